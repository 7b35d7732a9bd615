//! The addresses to which an outgoing call may connect: public addresses, and the networks that are allowed besides.
//!
//! An IPv6 address that embeds an IPv4 address is refused, because the IPv4 address may be private. The lists of
//! networks follow the IANA special-purpose address registries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use crate::network::{AllowedNetwork, NetworkFault, is_never_called};

/// The IPv4 networks that are not public, each with a description.
const SPECIAL_V4: [(Ipv4Net, &str); 17] = [
    (v4(0, 0, 0, 0, 8), "this network, unspecified"),
    (v4(10, 0, 0, 0, 8), "private"),
    (v4(100, 64, 0, 0, 10), "shared by carriers"),
    (v4(127, 0, 0, 0, 8), "loopback"),
    (
        v4(168, 63, 129, 16, 32),
        "metadata of a cloud, in public space",
    ),
    (v4(169, 254, 0, 0, 16), "link-local, metadata"),
    (v4(172, 16, 0, 0, 12), "private"),
    (v4(192, 0, 0, 0, 24), "protocol assignments"),
    (v4(192, 0, 2, 0, 24), "documentation"),
    (v4(192, 52, 193, 0, 24), "multicast tunnels"),
    (v4(192, 88, 99, 0, 24), "6to4 relays"),
    (v4(192, 168, 0, 0, 16), "private"),
    (v4(198, 18, 0, 0, 15), "benchmarking"),
    (v4(198, 51, 100, 0, 24), "documentation"),
    (v4(203, 0, 113, 0, 24), "documentation"),
    (v4(224, 0, 0, 0, 4), "multicast"),
    (v4(240, 0, 0, 0, 4), "reserved, broadcast"),
];

/// The IPv6 network of global unicast. Other IPv6 addresses are not public or contain an IPv4 address.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

/// The IPv6 networks within global unicast that are not public, each with a description.
const SPECIAL_V6: [(Ipv6Net, &str); 4] = [
    (
        v6(0x2001, 0, 0, 23),
        "protocol assignments, Teredo, benchmarking, identifiers",
    ),
    (v6(0x2001, 0xdb8, 0, 32), "documentation"),
    (v6(0x2002, 0, 0, 16), "6to4"),
    (v6(0x3fff, 0, 0, 20), "documentation"),
];

/// Decides which addresses may be called: public addresses, and those in `allowed`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// The allow-list. Its networks may also be called over plain http.
    pub(crate) allowed: Vec<AllowedNetwork>,
    /// True in production: each network must name the port that may be called.
    requires_ports: bool,
}

impl AddressPolicy {
    pub fn new(allowed: Vec<AllowedNetwork>) -> Self {
        Self {
            allowed,
            requires_ports: false,
        }
    }

    /// Sets whether each network of the allow-list must name its port.
    #[must_use]
    pub fn with_required_ports(self, requires_ports: bool) -> Self {
        Self {
            requires_ports,
            ..self
        }
    }

    /// Returns this policy with additional networks.
    #[must_use]
    pub fn with_networks(&self, more: &[AllowedNetwork]) -> Self {
        let networks = self.allowed.iter().chain(more);
        Self {
            allowed: networks.copied().collect(),
            ..*self
        }
    }

    /// Parses a network and checks that it may be added to the allow-list.
    pub fn check_network(&self, text: &str) -> Result<AllowedNetwork, NetworkFault> {
        let network: AllowedNetwork = text.parse()?;
        if self.requires_ports && network.port.is_none() {
            return Err(NetworkFault::PortMissing);
        }
        Ok(network)
    }

    /// Returns true if a client may connect to this address and port.
    pub fn permits(&self, address: IpAddr, port: u16) -> bool {
        self.is_in_allow_list(address, port) || (is_public(address) && !is_never_called(address))
    }

    /// Returns true if the allow-list contains this address and port. Never true for a cloud metadata address.
    pub fn is_in_allow_list(&self, address: IpAddr, port: u16) -> bool {
        !is_never_called(address)
            && self
                .allowed
                .iter()
                .any(|network| network.admits(address, port))
    }

    /// Returns true if the allow-list contains a loopback address with this port.
    pub(crate) fn allows_loopback(&self, port: u16) -> bool {
        self.is_in_allow_list(Ipv4Addr::LOCALHOST.into(), port)
            || self.is_in_allow_list(Ipv6Addr::LOCALHOST.into(), port)
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4
            .iter()
            .any(|(network, _)| network.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address)
                && !SPECIAL_V6
                    .iter()
                    .any(|(network, _)| network.contains(&address))
                && !is_isatap(address)
        }
    }
}

/// Returns true for an ISATAP address, whose last 64 bits embed an IPv4 address (RFC 5214, section 6.1). Any IPv6
/// network may contain such addresses.
fn is_isatap(address: Ipv6Addr) -> bool {
    let [.., kind, mark, _, _] = address.segments();
    matches!(kind, 0 | 0x0200) && mark == 0x5efe
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allowed: &[&str]) -> AddressPolicy {
        AddressPolicy::new(
            allowed
                .iter()
                .map(|network| network.parse().unwrap())
                .collect(),
        )
    }

    fn permits(allowed: &[&str], address: &str) -> bool {
        policy(allowed).permits(address.parse().unwrap(), 443)
    }

    #[test]
    fn public_addresses_are_permitted() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "2001:200::1",
            "2c0f::1",
            "2606:4700::1:5efe:7f00:1",
        ] {
            assert!(permits(&[], address), "{address}");
        }
    }

    #[test]
    fn addresses_that_are_not_public_are_refused() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2606:4700::5efe:7f00:1",
            "2606:4700::200:5efe:a00:1",
        ] {
            assert!(!permits(&[], address), "{address}");
        }
    }

    #[test]
    fn the_allow_list_opens_its_networks_and_no_others() {
        let loopback = ["127.0.0.0/8", "::1/128"];
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "::ffff:127.0.0.1",
            "8.8.8.8",
        ] {
            assert!(permits(&loopback, address), "{address}");
        }
        for address in [
            "10.0.0.1",
            "::",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "::7f00:1",
        ] {
            assert!(!permits(&loopback, address), "{address}");
        }
    }

    #[test]
    fn the_allow_list_opens_the_port_that_it_names() {
        let policy = policy(&["10.1.2.0/24:8443"]);
        let permits = |address: &str, port| policy.permits(address.parse().unwrap(), port);
        assert!(permits("10.1.2.3", 8_443) && permits("8.8.8.8", 443));
        assert!(!permits("10.1.2.3", 443) && !permits("10.1.3.3", 8_443));
        let more = policy.with_networks(&["10.1.3.0/24".parse().unwrap()]);
        assert!(
            more.permits("10.1.3.3".parse().unwrap(), 22)
                && more.permits("10.1.2.3".parse().unwrap(), 8_443)
        );
    }

    #[test]
    fn metadata_is_not_called_in_however_wide_a_network() {
        for address in [
            "100.100.100.200",
            "fd00:ec2::254",
            "::ffff:100.100.100.200",
            "168.63.129.16",
        ] {
            assert!(
                !permits(&["100.64.0.0/10", "fd00::/8", "168.63.0.0/16"], address),
                "{address}"
            );
        }
        assert!(permits(&["100.64.0.0/10"], "100.100.100.201"));
        // The parser already refuses such wide networks. The policy must refuse these addresses even so.
        let everything = ["0.0.0.0/0", "::/0"].map(|network| AllowedNetwork {
            network: network.parse().unwrap(),
            port: None,
        });
        let policy = AddressPolicy::new(everything.to_vec());
        for address in ["169.254.169.254", "fe80::1", "64:ff9b::a9fe:a9fe"] {
            assert!(!policy.permits(address.parse().unwrap(), 80), "{address}");
        }
    }

    #[test]
    fn production_wants_the_port_of_a_network() {
        let production = policy(&[]).with_required_ports(true);
        assert_eq!(
            production.check_network("10.1.2.0/24"),
            Err(NetworkFault::PortMissing)
        );
        assert!(production.check_network("10.1.2.0/24:8443").is_ok());
        assert!(
            production
                .with_networks(&[])
                .check_network("10.1.2.0/24")
                .is_err()
        );
        assert!(policy(&[]).check_network("10.1.2.0/24").is_ok());
        assert_eq!(
            production.check_network("fe80::/10"),
            Err(NetworkFault::NeverCalled)
        );
    }
}
