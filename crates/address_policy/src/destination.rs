//! Decides which URLs may be set as a webhook: absolute https URLs whose host is not known to be private.
//!
//! Plain http and private host names are accepted only if they could lead to a network of the allow-list. The addresses
//! that a name leads to are checked later, at each connection.

use url::{Host, Url};

use crate::address::AddressPolicy;

/// The longest webhook URL that is accepted, in characters.
pub const URL_CHARS_MAX: usize = 500;

/// Suffixes of names in private networks. Sources: RFC 6761, RFC 6762 (appendix G), RFC 8375, RFC 9476, and ICANN.
const PRIVATE_SUFFIXES: [&str; 14] = [
    "alt",
    "corp",
    "home",
    "home.arpa",
    "internal",
    "intranet",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "mail",
    "onion",
    "private",
    "test",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    #[error("the URL may not be longer than 500 characters")]
    TooLong,
    #[error("the URL must be a valid absolute URL")]
    Malformed,
    #[error("the URL must use https")]
    Scheme,
    #[error("the URL may not carry a user name or password")]
    UserInfo,
    #[error("the URL may not name port 0")]
    Port,
    #[error("the URL must lead to a public address")]
    AddressRefused,
}

impl AddressPolicy {
    /// Parses and checks a URL. The addresses of its host name are checked only at the connection.
    pub fn check_url(&self, text: &str) -> Result<Url, UrlFault> {
        if text.chars().count() > URL_CHARS_MAX {
            return Err(UrlFault::TooLong);
        }
        let url = parse_absolute(text)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlFault::UserInfo);
        }
        if url.port() == Some(0) {
            return Err(UrlFault::Port);
        }
        let host = url.host().ok_or(UrlFault::Malformed)?;
        let port = url.port_or_known_default().ok_or(UrlFault::Malformed)?;
        if !self.is_host_permitted(&host, port) {
            return Err(UrlFault::AddressRefused);
        }
        if url.scheme() == "http" && !self.may_use_plain_http(&host, port) {
            return Err(UrlFault::Scheme);
        }
        Ok(url)
    }

    /// Returns true if the host is a permitted address, or a name that may have one.
    fn is_host_permitted(&self, host: &Host<&str>, port: u16) -> bool {
        match host {
            Host::Ipv4(address) => self.permits((*address).into(), port),
            Host::Ipv6(address) => self.permits((*address).into(), port),
            Host::Domain(name) => self.is_name_permitted(name, port),
        }
    }

    /// Returns true for a public name, and for a private name that may lead to the allow-list.
    fn is_name_permitted(&self, name: &str, port: u16) -> bool {
        if is_loopback_name(name) {
            return self.allows_loopback(port);
        }
        !is_private_name(name) || self.allowed.iter().any(|network| network.is_open_at(port))
    }

    /// True if the host may be called over plain http: an allowed address, or a private name that may lead to one.
    fn may_use_plain_http(&self, host: &Host<&str>, port: u16) -> bool {
        match host {
            Host::Ipv4(address) => self.is_in_allow_list((*address).into(), port),
            Host::Ipv6(address) => self.is_in_allow_list((*address).into(), port),
            Host::Domain(name) => is_private_name(name) && self.is_name_permitted(name, port),
        }
    }
}

/// Parses a URL more strictly than browsers do: no blanks, backslashes or empty labels, and `//` after the scheme.
fn parse_absolute(text: &str) -> Result<Url, UrlFault> {
    if text.contains(|letter: char| letter.is_whitespace() || letter.is_control() || letter == '\\')
    {
        return Err(UrlFault::Malformed);
    }
    let url = Url::parse(text).map_err(|_| UrlFault::Malformed)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(UrlFault::Scheme);
    }
    if url
        .host_str()
        .is_some_and(|host| host.starts_with('.') || host.contains(".."))
    {
        return Err(UrlFault::Malformed);
    }
    let authority = text
        .get(url.scheme().len()..)
        .and_then(|rest| rest.strip_prefix("://"));
    if authority.is_none_or(|rest| rest.starts_with('/')) {
        return Err(UrlFault::Malformed);
    }
    Ok(url)
}

fn is_loopback_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

/// Returns true for a name of one label or with a private suffix. `name` is already in lower case.
fn is_private_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    !name.contains('.')
        || PRIVATE_SUFFIXES.iter().any(|suffix| {
            name.strip_suffix(suffix)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(allowed: &[&str], text: &str) -> Result<(), UrlFault> {
        let allowed = allowed
            .iter()
            .map(|network| network.parse().unwrap())
            .collect();
        AddressPolicy::new(allowed).check_url(text).map(drop)
    }

    const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

    #[test]
    fn public_https_urls_may_be_called() {
        for text in [
            "https://example.com/hook?a=b#c",
            "HTTPS://EXAMPLE.com:8443",
            "https://1.1.1.1/",
            "https://[2606:4700::1]/",
            "https://bücher.example/",
            "https://example.com./",
        ] {
            assert_eq!(check(&[], text), Ok(()), "{text}");
        }
    }

    #[test]
    fn anything_but_an_absolute_url_is_refused() {
        for text in [
            "",
            "example.com",
            "/hook",
            "//example.com",
            "https:",
            "https://",
            "https:///example.com",
            "https:example.com",
            "https:/example.com",
            " https://example.com",
            "https://example.com/a b",
            "https://exa\tmple.com",
            "https:\\\\example.com",
            "https://exa mple.com",
            "https://[::1",
            "https://example..com/",
            "https://example.com../",
            "https://.example.com/",
            "https://127.0.0.1../",
            "https://1.2.3.4.5/",
            "https://example.com:99999/",
        ] {
            assert_eq!(check(&LOOPBACK, text), Err(UrlFault::Malformed), "{text}");
        }
        for text in [
            "ftp://example.com",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "gopher://127.0.0.1",
        ] {
            assert_eq!(check(&LOOPBACK, text), Err(UrlFault::Scheme), "{text}");
        }
    }

    #[test]
    fn five_hundred_characters_are_the_limit() {
        let url = |length: usize| format!("https://example.com/{}", "ä".repeat(length - 20));
        assert_eq!(check(&[], &url(500)), Ok(()));
        assert_eq!(check(&[], &url(501)), Err(UrlFault::TooLong));
    }

    #[test]
    fn user_names_and_passwords_are_refused() {
        for text in [
            "https://user@example.com",
            "https://user:pass@example.com",
            "https://:pass@example.com",
        ] {
            assert_eq!(check(&[], text), Err(UrlFault::UserInfo), "{text}");
        }
    }

    #[test]
    fn every_spelling_of_a_private_address_is_refused() {
        for text in [
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0177.0.0.1/",
            "https://0x7f.1/",
            "https://0x7f000001/",
            "https://127.1/",
            "https://127.0.0.1./",
            "https://1%32%37.0.0.1/",
            "https://①②⑦.0.0.1/",
            "https://127。0。0。1/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[fd00:ec2::254]/",
            "https://169.254.169.254/latest/meta-data",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://a.localhost/",
            "https://0/",
        ] {
            assert_eq!(check(&[], text), Err(UrlFault::AddressRefused), "{text}");
        }
    }

    #[test]
    fn names_of_private_networks_are_for_the_allow_list() {
        for host in [
            "receiver",
            "receiver.",
            "printer.local",
            "HOOKS.Internal",
            "a.b.lan",
            "nas.home.arpa",
            "home.arpa",
            "erp.corp",
            "db.localdomain",
        ] {
            let url = format!("https://{host}/hook");
            assert_eq!(check(&[], &url), Err(UrlFault::AddressRefused), "{url}");
            assert_eq!(check(&["172.16.0.0/12"], &url), Ok(()), "{url}");
        }
        for host in [
            "notlocal.example",
            "local.example",
            "mylan.example.org",
            "internal.example.com",
        ] {
            assert_eq!(check(&[], &format!("https://{host}/")), Ok(()), "{host}");
        }
    }

    #[test]
    fn port_0_is_no_port() {
        for text in ["https://example.com:0/", "http://127.0.0.1:0/"] {
            assert_eq!(check(&LOOPBACK, text), Err(UrlFault::Port), "{text}");
        }
    }

    #[test]
    fn plain_http_is_for_the_allow_list() {
        for text in ["http://example.com/", "http://1.1.1.1/"] {
            assert_eq!(check(&[], text), Err(UrlFault::Scheme), "{text}");
        }
        for text in [
            "http://example.com/",
            "http://1.1.1.1/",
            "http://localhost.example.com/",
        ] {
            assert_eq!(check(&LOOPBACK, text), Err(UrlFault::Scheme), "{text}");
        }
        for text in [
            "http://127.0.0.1:9/",
            "http://[::1]/",
            "http://localhost:8080/",
            "http://a.localhost/",
        ] {
            assert_eq!(check(&LOOPBACK, text), Ok(()), "{text}");
        }
        for text in [
            "http://receiver:8080/",
            "http://hooks.internal/",
            "http://172.18.0.3/",
        ] {
            assert_eq!(check(&["172.16.0.0/12"], text), Ok(()), "{text}");
        }
        assert_eq!(
            check(&["172.16.0.0/12"], "http://localhost/"),
            Err(UrlFault::AddressRefused)
        );
    }

    #[test]
    fn a_network_with_a_port_opens_nothing_else() {
        let allowed = ["10.1.2.0/24:8443", "[fd00::/8]:8443"];
        for text in [
            "http://10.1.2.3:8443/",
            "https://10.1.2.3:8443/",
            "http://[fd00::1]:8443/",
            "http://erp:8443/",
        ] {
            assert_eq!(check(&allowed, text), Ok(()), "{text}");
        }
        for text in [
            "https://10.1.2.3/",
            "http://10.1.2.3/",
            "https://10.1.3.3:8443/",
            "https://erp/",
            "https://erp.lan:443/",
        ] {
            assert_eq!(
                check(&allowed, text),
                Err(UrlFault::AddressRefused),
                "{text}"
            );
        }
        assert_eq!(
            check(&["100.64.0.0/10", "fd00::/8"], "http://100.100.100.200/"),
            Err(UrlFault::AddressRefused)
        );
        assert_eq!(
            check(&["100.64.0.0/10", "fd00::/8"], "http://[fd00:ec2::254]/"),
            Err(UrlFault::AddressRefused)
        );
    }
}
