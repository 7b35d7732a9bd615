//! What the settings must hold together: a remote authority needs its address and keys, and production takes no
//! secret that was made for development.

use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};

use super::fault::{ConfigFault, Fault};
use super::{AuthorityMode, Environment, Settings};

/// Characters of what the authority gave us: fewer are a placeholder.
const KEY_CHARS_MIN: usize = 8;
/// Characters of the token in the path of notices, which may be guessed at from outside.
const TOKEN_CHARS_MIN: usize = 16;

pub(super) fn check(settings: &Settings) -> Result<(), ConfigFault> {
    let mut demands = Demands::default();
    if settings.authority.mode == AuthorityMode::Remote {
        demands.of_a_remote_authority(settings);
    }
    if settings.environment == Environment::Production {
        demands.of_production(settings);
    }
    ConfigFault::unless_empty(demands.0)
}

#[derive(Default)]
struct Demands(Vec<Fault>);

impl Demands {
    fn of_a_remote_authority(&mut self, settings: &Settings) {
        let authority = &settings.authority;
        let demand = "be set where `authority.mode` is remote";
        self.unless(authority.base_url.is_some(), "authority.base_url", demand);
        self.unless(has(&authority.api_key, 1), "authority.api_key", demand);
        self.unless(has(&authority.api_secret, 1), "authority.api_secret", demand);
    }

    fn of_production(&mut self, settings: &Settings) {
        let (authority, secrets) = (&settings.authority, &settings.secrets);
        self.unless(
            authority.mode == AuthorityMode::Remote,
            "authority.mode",
            "be remote in production: the simulator validates no invoice",
        );
        let is_safe =
            authority.base_url.as_ref().is_none_or(|url| url.scheme() == "https" || is_loopback(url));
        self.unless(is_safe, "authority.base_url", "begin with https:// in production, loopback excepted");
        if authority.mode == AuthorityMode::Remote {
            let demand = "have 8 characters at least in production";
            let is_long = |secret| !has(secret, 1) || has(secret, KEY_CHARS_MIN);
            self.unless(is_long(&authority.api_key), "authority.api_key", demand);
            self.unless(is_long(&authority.api_secret), "authority.api_secret", demand);
        }
        self.unless(
            has(&authority.notification_token, TOKEN_CHARS_MIN),
            "authority.notification_token",
            "have 16 characters at least in production",
        );
        self.unless(
            has(&secrets.encryption_key, 1),
            "secrets.encryption_key",
            "be set in production, the same on every replica: 32 bytes in base64, as of `openssl rand -base64 32`",
        );
        self.unless(
            has(&secrets.contact_password, 1),
            "secrets.contact_password",
            "be set in production, the same on every replica: 12 characters at least",
        );
    }

    fn unless(&mut self, is_met: bool, key: &'static str, demand: &'static str) {
        if !is_met {
            self.0.push(Fault::Demanded { key, demand });
        }
    }
}

fn has(secret: &SecretString, chars_min: usize) -> bool {
    secret.expose_secret().chars().count() >= chars_min
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
