//! Private networks that webhooks may call, and addresses that webhooks never call.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

/// Link-local networks, which expose the machine's local network and, in most clouds, the machine's credentials.
const LINK_LOCAL_NETWORKS: [IpNet; 4] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(169, 254, 0, 0), 16)),
    IpNet::V6(Ipv6Net::new_assert(
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0),
        10,
    )),
    IpNet::V6(Ipv6Net::new_assert(
        Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0xa9fe, 0),
        112,
    )),
    IpNet::V6(Ipv6Net::new_assert(
        Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0xa9fe, 0),
        112,
    )),
];

/// Metadata services outside the link-local range: Alibaba, Azure and Oracle (IPv4), AWS, Google and Oracle (IPv6).
const METADATA_ADDRESSES: [IpAddr; 6] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe)),
];

/// A network that webhooks may call, at one port or any: `10.1.2.0/24:8443`, `[fd00::/8]:8443`, `10.1.2.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowedNetwork {
    pub network: IpNet,
    pub port: Option<u16>,
}

/// The reason why a text is not an allowed network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NetworkFault {
    #[error("must be a network such as 10.1.2.0/24, 10.1.2.0/24:8443 or [fd00::/8]:8443")]
    Malformed,
    #[error("must not be link-local or a metadata address: these are never called")]
    NeverCalled,
    #[error("must name a port in production, as in 10.1.2.0/24:8443 or [fd00::/8]:8443")]
    PortMissing,
}

impl AllowedNetwork {
    /// True if webhooks may call the address at this port. An IPv4-mapped IPv6 address counts as the IPv4 address.
    pub fn admits(&self, address: IpAddr, port: u16) -> bool {
        let holds = |address: IpAddr| self.network.contains(&address);
        self.is_open_at(port) && (holds(address) || holds(address.to_canonical()))
    }

    /// True if webhooks may call this port of the network.
    pub fn is_open_at(&self, port: u16) -> bool {
        self.port.is_none_or(|only| only == port)
    }
}

/// True for an address that webhooks never call, even if it is in an allowed network.
pub fn is_never_called(address: IpAddr) -> bool {
    is_link_local_or_metadata(address)
        || embedded_ipv4(address).is_some_and(|inner| is_link_local_or_metadata(inner.into()))
}

fn is_link_local_or_metadata(address: IpAddr) -> bool {
    let mut networks = LINK_LOCAL_NETWORKS.iter();
    networks.any(|network| network.contains(&address)) || METADATA_ADDRESSES.contains(&address)
}

/// Returns the IPv4 address within an IPv6 address: IPv4-mapped, IPv4-compatible, translated (RFC 6052) or 6to4.
fn embedded_ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(ipv4_from_segments(high, low)),
        _ => None,
    }
}

fn ipv4_from_segments(high: u16, low: u16) -> Ipv4Addr {
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Ipv4Addr::new(a, b, c, d)
}

/// True if nobody may allow this network: it overlaps the link-local range, or it is a single metadata address. A wider
/// network around a metadata address is allowed, but calls to that address stay blocked.
fn may_never_be_allowed(network: IpNet) -> bool {
    let is_host = network.prefix_len() == network.max_prefix_len();
    LINK_LOCAL_NETWORKS
        .iter()
        .any(|other| other.contains(&network) || network.contains(other))
        || (is_host && is_never_called(network.addr()))
}

impl FromStr for AllowedNetwork {
    type Err = NetworkFault;

    fn from_str(text: &str) -> Result<Self, NetworkFault> {
        let (network, port) = split_port(text).ok_or(NetworkFault::Malformed)?;
        let port = port.map(parse_port).transpose()?;
        if may_never_be_allowed(network) {
            Err(NetworkFault::NeverCalled)
        } else {
            Ok(Self { network, port })
        }
    }
}

/// Splits `10.1.2.0/24:8443` into network and port. An IPv6 network with a port stands in brackets: `[fd00::/8]:8443`.
fn split_port(text: &str) -> Option<(IpNet, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (network, port) = rest.split_once("]:")?;
        return Some((IpNet::V6(network.parse().ok()?), Some(port)));
    }
    if let Ok(network) = text.parse() {
        return Some((network, None));
    }
    let (network, port) = text.split_once(':')?;
    Some((IpNet::V4(network.parse().ok()?), Some(port)))
}

fn parse_port(port: &str) -> Result<u16, NetworkFault> {
    let is_plain = !port.starts_with('0') && port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse()
        .ok()
        .filter(|_| is_plain)
        .ok_or(NetworkFault::Malformed)
}

impl fmt::Display for AllowedNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.network, self.port) {
            (network, None) => write!(f, "{network}"),
            (IpNet::V4(network), Some(port)) => write!(f, "{network}:{port}"),
            (IpNet::V6(network), Some(port)) => write!(f, "[{network}]:{port}"),
        }
    }
}

impl TryFrom<String> for AllowedNetwork {
    type Error = NetworkFault;

    fn try_from(text: String) -> Result<Self, NetworkFault> {
        text.parse()
    }
}

impl From<AllowedNetwork> for String {
    fn from(network: AllowedNetwork) -> Self {
        network.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<AllowedNetwork, NetworkFault> {
        text.parse()
    }

    #[test]
    fn a_network_is_written_with_or_without_a_port() {
        for text in [
            "10.0.0.0/8",
            "10.1.2.0/24:8443",
            "fd00::/8",
            "[fd00::/8]:8443",
            "127.0.0.1/32:1",
            "::1/128",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), text);
            let json = serde_json::to_value(parse(text).unwrap()).unwrap();
            assert_eq!(
                serde_json::from_value::<AllowedNetwork>(json).unwrap(),
                parse(text).unwrap()
            );
        }
        for text in [
            "",
            "10.0.0.0",
            "10.0.0.0:80",
            "10.0.0.0/33",
            "10.0.0.0/8:",
            "10.0.0.0/8:0",
            "10.0.0.0/8:080",
            "10.0.0.0/8:+80",
            "10.0.0.0/8:65536",
            "10.0.0.0/8:80:80",
            "[10.0.0.0/8]:80",
            "[fd00::/8]",
            "[fd00::/8]80",
            "fd00::/8:80",
            "[fd00::/8]:80x",
            " 10.0.0.0/8",
            "erp.example:443",
            "loopback",
        ] {
            assert_eq!(parse(text), Err(NetworkFault::Malformed), "{text}");
        }
    }

    #[test]
    fn a_network_with_a_port_is_open_at_that_port() {
        let admits = |network: &str, address: &str, port| {
            parse(network)
                .unwrap()
                .admits(address.parse().unwrap(), port)
        };
        assert!(admits("10.1.2.0/24:8443", "10.1.2.3", 8_443));
        assert!(admits("10.1.2.0/24:8443", "::ffff:10.1.2.3", 8_443));
        assert!(admits("[fd00::/8]:8443", "fd00::1", 8_443));
        assert!(admits("10.1.2.0/24", "10.1.2.3", 22));
        for (address, port) in [("10.1.2.3", 443), ("10.1.3.3", 8_443), ("fd00::1", 8_443)] {
            assert!(
                !admits("10.1.2.0/24:8443", address, port),
                "{address}:{port}"
            );
        }
    }

    #[test]
    fn link_local_and_metadata_are_no_networks_that_may_be_called() {
        for text in [
            "169.254.0.0/16",
            "169.254.169.254/32",
            "169.254.169.254/32:80",
            "169.254.1.0/24",
            "169.0.0.0/8",
            "0.0.0.0/0",
            "0.0.0.0/0:443",
            "::/0",
            "fe80::/10",
            "[fe80::/64]:443",
            "fe80::1/128",
            "f000::/4",
            "::ffff:169.254.169.254/128",
            "64:ff9b::a9fe:a9fe/128",
            "100.100.100.200/32",
            "168.63.129.16/32:80",
            "192.0.0.192/32",
            "fd00:ec2::254/128",
            "[fd00:ec2::254/128]:80",
            "fd20:ce::254/128",
            "fd00:c1::a9fe:a9fe/128",
            "2002:a9fe:a9fe::/128",
        ] {
            assert_eq!(parse(text), Err(NetworkFault::NeverCalled), "{text}");
        }
        // Wider networks are accepted. The metadata addresses within them stay blocked.
        for text in [
            "100.64.0.0/10",
            "[fd00::/8]:8443",
            "10.0.0.0/8",
            "168.63.129.0/24",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn some_addresses_are_never_called_in_any_spelling() {
        for address in [
            "169.254.169.254",
            "169.254.0.1",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "fe80::1",
            "febf::1",
            "100.100.100.200",
            "::ffff:100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
        ] {
            assert!(is_never_called(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "::1",
            "::",
            "10.0.0.1",
            "100.100.100.201",
            "fd00:ec2::253",
            "fec0::1",
            "8.8.8.8",
        ] {
            assert!(!is_never_called(address.parse().unwrap()), "{address}");
        }
    }
}
