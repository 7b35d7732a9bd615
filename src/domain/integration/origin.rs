//! The origin of a URL: its scheme, host and port (RFC 6454). Credentials are bound to one origin.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

/// An origin in ASCII form, such as `https://erp.example.com:8443`. The default port of the scheme is left out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Origin(String);

impl Origin {
    /// Returns the origin of an absolute http or https URL; `None` for any other text.
    pub fn from_url(url: &str) -> Option<Self> {
        let url = Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))?;
        Some(Self(url.origin().ascii_serialization()))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let origin = |url: &str| Origin::from_url(url).map(|origin| origin.to_string());
        let same = Some("https://erp.example".to_owned());
        for url in [
            "https://erp.example",
            "HTTPS://ERP.example:443/a?b#c",
            "https://u:p@erp.example/",
        ] {
            assert_eq!(origin(url), same, "{url}");
        }
        for url in [
            "http://erp.example/",
            "https://erp.example:8443/",
            "https://erp.example./",
            "https://erp.example.evil.example/",
            "https://[::1]/",
        ] {
            assert!(origin(url).is_some() && origin(url) != same, "{url}");
        }
        for url in [
            "",
            "erp.example",
            "ftp://erp.example",
            "file:///a",
            "data:text/plain,a",
            "https://",
        ] {
            assert_eq!(origin(url), None, "{url}");
        }
    }
}
