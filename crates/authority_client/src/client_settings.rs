//! The settings of a client, and what is made of them: the HTTP client, the base URL and the headers with secrets.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use reqwest::header::HeaderValue;
use reqwest::{Certificate, Client, Url};
use secrecy::{ExposeSecret, SecretString};

/// The longest wait for a connection. A call that fails to connect in this time has sent nothing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// An unused connection is closed after this time. Gateways keep idle connections longer, so a call rarely uses a
/// connection that the gateway has just closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub enum AuthorityBuildError {
    #[error(
        "the authority's base URL must be http or https, with a host, without query and fragment"
    )]
    BaseUrl,
    #[error("the authority's {0} holds characters that no header may hold")]
    Header(&'static str),
    #[error("the file {} cannot be read", .path.display())]
    ExtraCaFile { path: PathBuf, source: io::Error },
    #[error("the file {} of authority.extra_ca_file holds no readable PEM certificate", .0.display())]
    ExtraCa(PathBuf),
    #[error("the authority's HTTP client cannot be built")]
    Client(#[source] reqwest::Error),
}

/// The settings of a client.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    pub api_key: SecretString,
    pub api_secret: SecretString,
    /// A file in PEM form with certificates to trust in addition to the usual ones.
    pub extra_ca_file: Option<PathBuf>,
    /// The longest time that a call waits for its slot, and then for its answer.
    pub timeout: Duration,
    /// The maximum number of concurrent calls of each operation.
    pub max_concurrent_calls: u32,
    /// True if the client makes no call: each one fails with `Paused`.
    pub is_paused: bool,
}

pub(crate) fn http_client(settings: &ClientSettings) -> Result<Client, AuthorityBuildError> {
    let timeout = settings.timeout;
    let extra = settings
        .extra_ca_file
        .as_deref()
        .map(read_certificates)
        .transpose()?
        .unwrap_or_default();
    Client::builder()
        .user_agent(concat!("einvoice/", env!("CARGO_PKG_VERSION")))
        .timeout(timeout)
        .connect_timeout(CONNECT_TIMEOUT.min(timeout / 2))
        .pool_idle_timeout(IDLE_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .tls_certs_merge(extra)
        .build()
        .map_err(AuthorityBuildError::Client)
}

fn read_certificates(path: &Path) -> Result<Vec<Certificate>, AuthorityBuildError> {
    let pem = fs::read(path).map_err(|source| AuthorityBuildError::ExtraCaFile {
        path: path.to_owned(),
        source,
    })?;
    let certificates = Certificate::from_pem_bundle(&pem).unwrap_or_default();
    if certificates.is_empty() {
        Err(AuthorityBuildError::ExtraCa(path.to_owned()))
    } else {
        Ok(certificates)
    }
}

/// Returns the base URL as text, without a trailing slash.
pub(crate) fn base_url_text(base: &Url) -> Result<String, AuthorityBuildError> {
    let usable = matches!(base.scheme(), "http" | "https")
        && base.has_host()
        && base.query().is_none()
        && base.fragment().is_none();
    usable
        .then(|| base.as_str().trim_end_matches('/').to_owned())
        .ok_or(AuthorityBuildError::BaseUrl)
}

pub(crate) fn secret_header(
    secret: &SecretString,
    name: &'static str,
) -> Result<HeaderValue, AuthorityBuildError> {
    let mut value = HeaderValue::from_str(secret.expose_secret())
        .map_err(|_| AuthorityBuildError::Header(name))?;
    value.set_sensitive(true);
    Ok(value)
}
