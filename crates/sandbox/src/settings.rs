//! The settings of a simulator.

use jiff::tz::Offset;

/// The address to listen on, the accepted API key, the seed, and the time zone.
#[derive(Clone)]
pub struct Settings {
    /// The address and port to listen on; port 0 takes a free port.
    pub bind: String,
    /// The accepted API key, a UUID. Its first eight characters are part of the key that encrypts downloads.
    pub api_key: String,
    pub api_secret: String,
    /// The seed of all random decisions.
    pub seed: u64,
    /// The time zone of the authority's days, such as the day of a signature.
    pub utc_offset: Offset,
}
