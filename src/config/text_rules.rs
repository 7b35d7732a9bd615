//! The rules for settings that are text, such as an address or a URL. A rule is a check, and the text
//! with which an error message describes the allowed values.

use std::net::SocketAddr;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::Url;

use super::form::NetworkEntry;

/// The length of an encryption key, in bytes.
const ENCRYPTION_KEY_BYTES: usize = 32;

pub(super) const NETWORKS_RULE: &str = "networks such as \"10.0.0.0/8\", \"10.1.2.0/24:8443\" or \"[fd00::/8]:8443\", none of them link-local or a metadata address";
pub(super) const PROXIES_RULE: &str = "networks such as \"10.0.0.0/8\"";
pub(super) const ADDRESS_OR_EMPTY_RULE: &str =
    "an IP address and a port, such as 10.0.0.5:8081, or empty";
pub(super) const ROOT_RULE: &str =
    "an http or https URL without user, query and fragment, or empty";
pub(super) const ADDRESS_RULE: &str = "an IP address and a port, such as 127.0.0.1:8080";
pub(super) const SEGMENT_RULE: &str = "letters, digits, `-`, `.`, `_` and `~`, or empty";
pub(super) const HEADER_RULE: &str = "visible ASCII characters without spaces, or empty";
pub(super) const FILE_RULE: &str = "the path of a file that exists, or empty";
pub(super) const REPLICA_NAME_RULE: &str =
    "at most 64 letters, digits, `-`, `.`, `_` and `:`, or empty";

pub(super) fn is_replica_name(text: &str) -> bool {
    text.len() <= 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte))
}

/// True for the URL of an SMTP server, and for empty text.
pub(super) fn is_smtp_url(text: &str) -> bool {
    let url = text.parse::<Url>().ok();
    let is_url = url.is_some_and(|url| matches!(url.scheme(), "smtp" | "smtps") && url.has_host());
    text.is_empty() || is_url
}

pub(super) fn is_socket_address(text: &str) -> bool {
    text.parse::<SocketAddr>().is_ok()
}

pub(super) fn is_database_url(text: &str) -> bool {
    let is_sqlite = text
        .strip_prefix("sqlite://")
        .is_some_and(|path| !path.is_empty());
    text.is_empty() || is_sqlite || Url::parse(text).is_ok_and(|url| is_postgres(&url))
}

fn is_postgres(url: &Url) -> bool {
    matches!(url.scheme(), "postgres" | "postgresql") && url.has_host()
}

pub(super) fn is_root_url(text: &str) -> bool {
    text.is_empty()
        || Url::parse(text).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        })
}

pub(super) fn is_header_value(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

pub(super) fn is_path_segment(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

pub(super) fn is_existing_file(text: &str) -> bool {
    text.is_empty() || Path::new(text).is_file()
}

pub(super) fn is_network(text: &str) -> bool {
    text.parse::<NetworkEntry>().is_ok()
}

pub(super) fn is_encryption_key(text: &str) -> bool {
    text.is_empty()
        || STANDARD
            .decode(text.trim())
            .is_ok_and(|key| key.len() == ENCRYPTION_KEY_BYTES)
}

pub(super) fn is_nonempty_encryption_key(text: &str) -> bool {
    !text.is_empty() && is_encryption_key(text)
}

pub(super) fn is_option_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}
