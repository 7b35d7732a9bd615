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
            settings.allowed_networks().iter().all(|network| network.port.is_some()),
            "webhooks.allowed_networks",
            "name a port with each network in production, as in 10.1.2.0/24:8443 or [fd00::/8]:8443",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{from_environment, production, said_of_environment, variables};

    /// What is said of production when one variable is left out and one set.
    fn said_of_production(without: &str, with: Option<(&'static str, &'static str)>) -> String {
        let mut pairs = production();
        pairs.retain(|(name, _)| *name != without);
        pairs.extend(with);
        said_of_environment(&pairs)
    }

    #[test]
    fn production_starts_with_all_it_needs() {
        assert_eq!(from_environment(&production()).environment, Environment::Production);
        let mut pairs = production();
        pairs.push(("EINVOICE__AUTHORITY__BASE_URL", "http://127.0.0.1:9000"));
        from_environment(&pairs);
    }

    #[test]
    fn production_refuses_what_was_made_for_development() {
        let without = |name| said_of_production(name, None);
        insta::assert_snapshot!(without("EINVOICE__SECRETS__ENCRYPTION_KEY"), @"`secrets.encryption_key` must be set in production, the same on every replica: 32 bytes in base64, as of `openssl rand -base64 32`");
        insta::assert_snapshot!(without("EINVOICE__SECRETS__CONTACT_PASSWORD"), @"`secrets.contact_password` must be set in production, the same on every replica: 12 characters at least");
        insta::assert_snapshot!(without("EINVOICE__AUTHORITY__NOTIFICATION_TOKEN"), @"`authority.notification_token` must have 16 characters at least in production");
        insta::assert_snapshot!(without("EINVOICE__AUTHORITY__API_KEY"), @"`authority.api_key` must be set where `authority.mode` is remote");
        insta::assert_snapshot!(without("EINVOICE__AUTHORITY__MODE"), @"`authority.mode` must be remote in production: the simulator validates no invoice");
        let with = |name, value| said_of_production(name, Some((name, value)));
        insta::assert_snapshot!(with("EINVOICE__AUTHORITY__BASE_URL", "http://authority.example"), @"`authority.base_url` must begin with https:// in production, loopback excepted");
        insta::assert_snapshot!(with("EINVOICE__AUTHORITY__API_SECRET", "short"), @"`authority.api_secret` must have 8 characters at least in production");
        insta::assert_snapshot!(with("EINVOICE__WEBHOOKS__ALLOWED_NETWORKS", "[\"10.1.2.0/24:8443\", \"10.0.0.0/8\"]"), @"`webhooks.allowed_networks` must name a port with each network in production, as in 10.1.2.0/24:8443 or [fd00::/8]:8443");
        insta::assert_snapshot!(with("EINVOICE__AUTHORITY__NOTIFICATION_TOKEN", "guess-me"), @"`authority.notification_token` must have 16 characters at least in production");
    }

    #[test]
    fn a_network_may_be_called_at_its_port_in_production() {
        let mut pairs = production();
        pairs.push(("EINVOICE__WEBHOOKS__ALLOWED_NETWORKS", "[\"10.1.2.0/24:8443\", \"[fd00::/8]:8443\"]"));
        let networks = from_environment(&pairs).allowed_networks();
        assert!(networks.iter().map(ToString::to_string).eq(["10.1.2.0/24:8443", "[fd00::/8]:8443"]));
    }

    #[test]
    fn link_local_and_metadata_networks_are_refused_everywhere() {
        for network in
            ["169.254.0.0/16", "0.0.0.0/0", "fe80::/10", "169.254.169.254/32:80", "[fd00:ec2::254/128]:80"]
        {
            let list = format!("[\"{network}\"]");
            let pairs = [("EINVOICE__WEBHOOKS__ALLOWED_NETWORKS", list.as_str())];
            let said = said_of_environment(&pairs);
            assert!(said.contains("none of them link-local or a metadata address"), "{network}: {said}");
        }
    }

    #[test]
    fn production_without_anything_says_all_it_lacks() {
        let fault = Settings::load(None, variables(&[("EINVOICE__ENVIRONMENT", "production")])).unwrap_err();
        assert_eq!(fault.0.len(), 4, "{fault}");
    }

    #[test]
    fn a_remote_authority_needs_its_address_and_keys_in_development_too() {
        let fault = Settings::load(None, variables(&[("EINVOICE__AUTHORITY__MODE", "remote")])).unwrap_err();
        let keys = fault.0.iter().map(|fault| match fault {
            Fault::Demanded { key, .. } => *key,
            other => panic!("{other}"),
        });
        assert!(keys.eq(["authority.base_url", "authority.api_key", "authority.api_secret"]), "{fault}");
    }
}
