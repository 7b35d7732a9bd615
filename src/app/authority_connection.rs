//! The connection to the authority: a client of the remote authority, or the embedded simulator and a client of it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use authority_client::{Authority, ClientSettings, CryptoKeys, RetryPolicy};
use sandbox::Sandbox;
use secrecy::ExposeSecret;
use timing::clock::SharedClock;

use crate::app::error::StartError;
use crate::app::serve_mode::ServeMode;
use crate::config::Settings;
use crate::config::authority::{AuthorityMode, AuthoritySettings};

/// The seed of the embedded simulator until `/sandbox/seed` changes it.
const SANDBOX_SEED: u64 = 1;

pub(super) struct AuthorityConnection {
    pub(super) authority: Authority,
    /// The keys that encrypt QR codes. Without them an invoice keeps its provisional QR code.
    pub(super) keys: Option<CryptoKeys>,
    /// The length of the longest IRN that fits into a QR code; `None` without keys.
    pub(super) irn_chars_max: Option<usize>,
    pub(super) sandbox: Option<Sandbox>,
}

impl AuthorityConnection {
    pub(super) async fn connect(
        settings: &Settings,
        mode: ServeMode,
        clock: &SharedClock,
    ) -> Result<Self, StartError> {
        let sandbox = match settings.authority.mode {
            AuthorityMode::Sandbox => Some(
                start_sandbox(settings, settings.sandbox.bind.to_string(), SANDBOX_SEED).await?,
            ),
            AuthorityMode::Remote => None,
        };
        let authority = build_client(settings, sandbox.as_ref(), mode, clock)?;
        let keys = load_crypto_keys(settings, sandbox.as_ref())?;
        let irn_chars_max = keys.as_ref().map(longest_irn).transpose()?;
        Ok(Self {
            authority,
            keys,
            irn_chars_max,
            sandbox,
        })
    }
}

/// Returns a client of the remote authority; `None` in mode sandbox.
pub(super) fn remote_client(
    settings: &Settings,
    clock: &SharedClock,
) -> Result<Option<Authority>, StartError> {
    match settings.authority.mode {
        AuthorityMode::Sandbox => Ok(None),
        AuthorityMode::Remote => build_client(settings, None, ServeMode::Normal, clock).map(Some),
    }
}

fn build_client(
    settings: &Settings,
    sandbox: Option<&Sandbox>,
    mode: ServeMode,
    clock: &SharedClock,
) -> Result<Authority, StartError> {
    let base_url = match sandbox {
        Some(sandbox) => sandbox.base_url().parse().ok(),
        None => settings.authority.base_url.clone(),
    };
    let base_url = base_url.ok_or(StartError::NoAuthority)?;
    Ok(Authority::new(
        &base_url,
        &client_settings(&settings.authority, mode),
        clock.clone(),
    )?)
}

fn client_settings(settings: &AuthoritySettings, mode: ServeMode) -> ClientSettings {
    ClientSettings {
        api_key: settings.api_key.clone(),
        api_secret: settings.api_secret.clone(),
        extra_ca_file: settings.extra_ca_file.clone(),
        timeout: Duration::from_secs(settings.timeout_s),
        max_concurrent_calls: settings.max_concurrent_calls,
        is_paused: mode == ServeMode::Paused,
    }
}

/// Starts the simulator of the authority. It accepts the API key and secret of the settings, and its days begin at
/// midnight in the settings' time zone (`authority.utc_offset`).
pub(super) async fn start_sandbox(
    settings: &Settings,
    bind: String,
    seed: u64,
) -> Result<Sandbox, StartError> {
    let address = bind.clone();
    let sandbox = sandbox::start(sandbox::Settings {
        bind,
        api_key: settings.authority.api_key.expose_secret().to_owned(),
        api_secret: settings.authority.api_secret.expose_secret().to_owned(),
        seed,
        utc_offset: settings.authority.utc_offset,
    });
    sandbox
        .await
        .map_err(|error| StartError::Sandbox(format!("{address}: {error}")))
}

/// Returns the authority's keys for QR codes: from the file in the settings, else from the embedded simulator.
fn load_crypto_keys(
    settings: &Settings,
    sandbox: Option<&Sandbox>,
) -> Result<Option<CryptoKeys>, StartError> {
    let (origin, text) = match (sandbox, &settings.authority.crypto_keys_file) {
        (_, Some(path)) => (
            format!("the file {} of authority.crypto_keys_file", path.display()),
            read_file(path)?,
        ),
        (Some(sandbox), None) => {
            let keys = sandbox.state().crypto_keys();
            (
                "the simulator".to_owned(),
                keys.map_err(StartError::Sandbox)?.to_string().into_bytes(),
            )
        }
        (None, None) => {
            tracing::warn!("authority.crypto_keys_file is not set: QR codes stay provisional");
            return Ok(None);
        }
    };
    CryptoKeys::parse(&text)
        .map(Some)
        .map_err(|source| StartError::CryptoKeys { origin, source })
}

fn longest_irn(keys: &CryptoKeys) -> Result<usize, StartError> {
    keys.irn_bytes_max()
        .map_err(|source| StartError::CryptoKeys {
            origin: "authority.crypto_keys_file".to_owned(),
            source,
        })
}

fn read_file(path: &Path) -> Result<Vec<u8>, StartError> {
    fs::read(path).map_err(|source| StartError::File {
        path: path.to_owned(),
        source,
    })
}

pub(super) fn retry_policy(settings: &Settings) -> RetryPolicy {
    RetryPolicy {
        initial: Duration::from_millis(settings.pipeline.retry_initial_ms),
        max: Duration::from_secs(settings.pipeline.retry_max_s),
        give_up_after: Duration::from_secs(settings.pipeline.give_up_after_s),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use timing::clock::SystemClock;

    use super::*;

    #[actix_web::test]
    async fn a_file_that_cannot_be_used_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        let clock: SharedClock = Arc::new(SystemClock);
        for (variable, expected) in [
            (
                "EXTRA_CA_FILE",
                format!(
                    "the file {path} of authority.extra_ca_file holds no readable PEM certificate"
                ),
            ),
            (
                "CRYPTO_KEYS_FILE",
                format!("the keys of the file {path} of authority.crypto_keys_file cannot be used"),
            ),
        ] {
            let pairs = [
                ("EINVOICE__AUTHORITY__MODE", "remote"),
                ("EINVOICE__AUTHORITY__ALLOW_REMOTE_IN_DEVELOPMENT", "true"),
                ("EINVOICE__AUTHORITY__BASE_URL", "https://authority.example"),
                ("EINVOICE__AUTHORITY__API_KEY", "a-key-of-theirs"),
                ("EINVOICE__AUTHORITY__API_SECRET", "a-secret-of-theirs"),
                (&format!("EINVOICE__AUTHORITY__{variable}"), &path),
            ];
            let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let settings = Settings::load(None, pairs.into_iter()).unwrap();
            let error = AuthorityConnection::connect(&settings, ServeMode::Normal, &clock)
                .await
                .err()
                .unwrap();
            assert_eq!(error.to_string(), expected);
        }
    }
}
