//! The client's address: the peer of the connection or, if the peer is a trusted proxy, the address that it forwards.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Once;

use actix_web::dev::Payload;
use actix_web::http::header::{FORWARDED, HeaderMap, HeaderName, X_FORWARDED_FOR};
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use ipnet::IpNet;

/// The largest number of forwarded addresses that are examined, beginning with the nearest proxy.
const HOPS_MAX: usize = 32;
/// Stands for the address of a connection that has none, because it ended at once.
const UNKNOWN_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The header from which forwarded addresses are read. A proxy sets one of the two headers and passes on the other
/// unchanged, so the caller could forge the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    #[default]
    XForwardedFor,
    /// The header `Forwarded` of RFC 7239.
    Forwarded,
}

/// The proxies whose forwarding headers are trusted.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies {
    pub networks: Vec<IpNet>,
    pub header: ForwardedHeader,
}

/// The client's address, set by the outermost middleware.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) Option<IpAddr>);

impl FromRequest for ClientAddress {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self(client_address(request))))
    }
}

pub(crate) fn client_address(request: &HttpRequest) -> Option<IpAddr> {
    let stored = request.extensions().get::<ClientAddress>().copied();
    stored.map_or_else(
        || request.peer_addr().map(|peer| peer.ip()),
        |ClientAddress(address)| address,
    )
}

impl TrustedProxies {
    /// Follows the forwarded addresses, beginning with the nearest proxy, and returns the first that is not a trusted
    /// proxy. An entry that cannot be parsed ends the search: the last trusted proxy then counts as the client.
    pub(crate) fn client_address(
        &self,
        peer: Option<SocketAddr>,
        headers: &HeaderMap,
    ) -> Option<IpAddr> {
        let mut last_trusted = peer?.ip().to_canonical();
        if !self.is_trusted(last_trusted) {
            return Some(last_trusted);
        }
        let values: Vec<_> = headers.get_all(self.header.name()).collect();
        let hops = values
            .iter()
            .rev()
            .flat_map(|value| value.to_str().unwrap_or("?").rsplit(','));
        for hop in hops.take(HOPS_MAX) {
            match self.header.forwarded_address(hop) {
                Some(address) if self.is_trusted(address) => last_trusted = address,
                Some(address) => return Some(address),
                None => break,
            }
        }
        Some(last_trusted)
    }

    /// Warns once if a peer that is no trusted proxy forwards an address. The peer is either a proxy that the
    /// settings do not name, or somebody who pretends to be one.
    pub(crate) fn warn_about_untrusted_forwarder(
        &self,
        peer: Option<SocketAddr>,
        headers: &HeaderMap,
    ) {
        static WARNED: Once = Once::new();
        if WARNED.is_completed() || !self.is_untrusted_forwarder(peer, headers) {
            return;
        }
        WARNED.call_once(|| {
            tracing::warn!(
                peer = peer.map(|peer| tracing::field::display(peer.ip())),
                "a peer forwards addresses and is not in http.trusted_proxies: if it is your proxy, all its callers \
                 share the limits of one address"
            );
        });
    }

    /// True if the peer sends a header with a forwarded address, but is no trusted proxy.
    fn is_untrusted_forwarder(&self, peer: Option<SocketAddr>, headers: &HeaderMap) -> bool {
        let has_forwarding_header = [FORWARDED, X_FORWARDED_FOR]
            .iter()
            .any(|name| headers.contains_key(name));
        has_forwarding_header && peer.is_some_and(|peer| !self.is_trusted(peer.ip().to_canonical()))
    }

    /// Returns the client of a connection, or `None` if the peer is a trusted proxy.
    pub(crate) fn connection_client(&self, peer: Option<SocketAddr>) -> Option<IpAddr> {
        let peer = peer.map_or(UNKNOWN_ADDRESS, |peer| peer.ip().to_canonical());
        (!self.is_trusted(peer)).then_some(peer)
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }
}

impl ForwardedHeader {
    fn name(self) -> HeaderName {
        match self {
            Self::XForwardedFor => X_FORWARDED_FOR,
            Self::Forwarded => FORWARDED,
        }
    }

    fn forwarded_address(self, hop: &str) -> Option<IpAddr> {
        let node = match self {
            Self::XForwardedFor => hop.trim(),
            Self::Forwarded => {
                let pairs = hop.split(';').filter_map(|pair| pair.split_once('='));
                let node = pairs
                    .into_iter()
                    .find(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
                node.map(|(_, node)| node.trim().trim_matches('"'))?
            }
        };
        parse_forwarded_node(node)
    }
}

/// Parses an address with or without a port. An IPv6 address may have brackets.
fn parse_forwarded_node(node: &str) -> Option<IpAddr> {
    let without_brackets = node
        .strip_prefix('[')
        .and_then(|node| node.strip_suffix(']'))
        .unwrap_or(node);
    let address = without_brackets.parse().ok().or_else(|| {
        let with_port: SocketAddr = node.parse().ok()?;
        Some(with_port.ip())
    });
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    const PROXY: &str = "10.0.0.9:40000";

    fn client(header: ForwardedHeader, peer: &str, sent: &[(&str, &'static str)]) -> String {
        let networks = vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_static(value),
            );
        }
        let proxies = TrustedProxies { networks, header };
        proxies
            .client_address(Some(peer.parse().unwrap()), &headers)
            .unwrap()
            .to_string()
    }

    #[test]
    fn only_a_proxy_that_is_trusted_forwards_an_address() {
        let sent = [("x-forwarded-for", "203.0.113.7")];
        assert_eq!(
            client(ForwardedHeader::XForwardedFor, "198.51.100.1:1", &sent),
            "198.51.100.1"
        );
        assert_eq!(
            client(ForwardedHeader::XForwardedFor, PROXY, &sent),
            "203.0.113.7"
        );
        assert_eq!(
            client(ForwardedHeader::XForwardedFor, "[::ffff:10.0.0.9]:1", &sent),
            "203.0.113.7"
        );
        let nobody = TrustedProxies::default();
        let mut headers = HeaderMap::new();
        headers.insert(X_FORWARDED_FOR, HeaderValue::from_static("203.0.113.7"));
        assert_eq!(
            nobody
                .client_address(PROXY.parse().ok(), &headers)
                .unwrap()
                .to_string(),
            "10.0.0.9"
        );
    }

    #[test]
    fn a_proxy_that_the_settings_do_not_name_is_noticed() {
        let networks = vec!["10.0.0.0/8".parse().unwrap()];
        let proxies = TrustedProxies {
            networks,
            header: ForwardedHeader::XForwardedFor,
        };
        for (peer, header, expected) in [
            (PROXY, "x-forwarded-for", false),
            ("198.51.100.1:1", "x-forwarded-for", true),
            ("198.51.100.1:1", "forwarded", true),
            ("198.51.100.1:1", "x-other", false),
        ] {
            let name = HeaderName::from_bytes(header.as_bytes()).unwrap();
            let headers = HeaderMap::from_iter([(name, HeaderValue::from_static("203.0.113.7"))]);
            assert_eq!(
                proxies.is_untrusted_forwarder(peer.parse().ok(), &headers),
                expected,
                "{peer} {header}"
            );
        }
        assert_eq!(
            proxies.connection_client(PROXY.parse().ok()),
            None,
            "its address is not limited"
        );
        let direct = proxies.connection_client("[::ffff:198.51.100.1]:1".parse().ok());
        assert_eq!(direct.unwrap().to_string(), "198.51.100.1");
    }

    #[test]
    fn the_nearest_address_that_belongs_to_no_proxy_counts() {
        for (value, expected) in [
            ("1.1.1.1, 203.0.113.7", "203.0.113.7"),
            ("1.1.1.1, 203.0.113.7, 10.1.2.3", "203.0.113.7"),
            ("1.1.1.1, 203.0.113.7:5000, 10.1.2.3:80", "203.0.113.7"),
            ("2001:db8::7", "2001:db8::7"),
            ("[2001:db8::7]:443, [fd00::1]", "2001:db8::7"),
            ("203.0.113.7, unknown, 10.1.2.3", "10.1.2.3"),
            ("unknown", "10.0.0.9"),
            ("", "10.0.0.9"),
            ("10.1.2.3, 10.3.2.1", "10.1.2.3"),
        ] {
            let sent = [("x-forwarded-for", value)];
            assert_eq!(
                client(ForwardedHeader::XForwardedFor, PROXY, &sent),
                expected,
                "{value}"
            );
        }
        let lines = [
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-for", "203.0.113.7, 10.1.2.3"),
        ];
        assert_eq!(
            client(ForwardedHeader::XForwardedFor, PROXY, &lines),
            "203.0.113.7"
        );
    }

    #[test]
    fn the_standard_header_is_read_if_it_is_the_configured_one() {
        for (value, expected) in [
            ("for=203.0.113.7;proto=https;by=10.0.0.9", "203.0.113.7"),
            ("For=\"[2001:db8::7]:4711\"", "2001:db8::7"),
            ("for=1.1.1.1, for=203.0.113.7, for=10.1.2.3", "203.0.113.7"),
            ("for=\"1.1.1.1, for=203.0.113.7", "203.0.113.7"),
            ("for=_hidden", "10.0.0.9"),
            ("proto=https", "10.0.0.9"),
        ] {
            let sent = [("forwarded", value), ("x-forwarded-for", "9.9.9.9")];
            assert_eq!(
                client(ForwardedHeader::Forwarded, PROXY, &sent),
                expected,
                "{value}"
            );
        }
        let sent = [("forwarded", "for=9.9.9.9")];
        assert_eq!(
            client(ForwardedHeader::XForwardedFor, PROXY, &sent),
            "10.0.0.9",
            "a caller wrote it"
        );
    }
}
