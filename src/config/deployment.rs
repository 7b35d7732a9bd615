//! Checks the settings as a whole. A remote authority needs its address and keys. Production accepts neither
//! development secrets nor settings that leave the service open.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};

use super::authority::AuthorityMode;
use super::fault::{ConfigFault, SettingFault};
use super::strength::{is_guessable, is_patterned};
use super::{Environment, Settings};

/// The minimum length of the authority's API key and API secret in production. A shorter text counts as a
/// placeholder, and the settings are refused.
const KEY_CHARS_MIN: usize = 8;
/// The minimum length of the notification token in production. With a shorter token, the settings are refused, because
/// the token is part of a URL that outsiders may try to guess.
const TOKEN_CHARS_MIN: usize = 16;

pub(super) fn check(settings: &Settings) -> Result<(), ConfigFault> {
    let mut checks = DeploymentChecks::default();
    checks.check_body_limits(settings);
    if settings.authority.mode == AuthorityMode::Remote {
        checks.check_remote_authority(settings);
    }
    match settings.environment {
        Environment::Production => {
            checks.check_production(settings);
            checks.check_production_is_safe(settings);
        }
        Environment::Development => checks.check_development(settings),
    }
    ConfigFault::unless_empty(checks.0)
}

#[derive(Default)]
struct DeploymentChecks(Vec<SettingFault>);

impl DeploymentChecks {
    fn check_body_limits(&mut self, settings: &Settings) {
        let http = &settings.http;
        self.require(
            http.bodies_bytes_per_account_max >= http.body_bytes_max.max(http.bulk_bytes_max),
            "http.bodies_bytes_per_account_max",
            "be no less than `http.body_bytes_max` and `http.bulk_bytes_max`",
        );
        self.require(
            http.bodies_bytes_per_integrator_max >= http.bodies_bytes_per_account_max,
            "http.bodies_bytes_per_integrator_max",
            "be no less than `http.bodies_bytes_per_account_max`",
        );
        self.require(
            http.bodies_bytes_max >= http.bodies_bytes_per_integrator_max,
            "http.bodies_bytes_max",
            "be no less than `http.bodies_bytes_per_integrator_max`",
        );
    }

    fn check_remote_authority(&mut self, settings: &Settings) {
        let authority = &settings.authority;
        let demand = "be set where `authority.mode` is remote";
        self.require(authority.base_url.is_some(), "authority.base_url", demand);
        self.require(
            has_chars(&authority.api_key, 1),
            "authority.api_key",
            demand,
        );
        self.require(
            has_chars(&authority.api_secret, 1),
            "authority.api_secret",
            demand,
        );
    }

    fn check_production(&mut self, settings: &Settings) {
        let authority = &settings.authority;
        let secrets = &settings.secrets;
        self.require(
            authority.mode == AuthorityMode::Remote,
            "authority.mode",
            "be remote in production: the simulator validates no invoice",
        );
        let is_safe = authority
            .base_url
            .as_ref()
            .is_none_or(|url| url.scheme() == "https" || is_loopback(url));
        self.require(
            is_safe,
            "authority.base_url",
            "begin with https:// in production, loopback excepted",
        );
        if authority.mode == AuthorityMode::Remote {
            let demand = "have 8 characters at least in production";
            self.require(
                is_empty_or_long(&authority.api_key),
                "authority.api_key",
                demand,
            );
            self.require(
                is_empty_or_long(&authority.api_secret),
                "authority.api_secret",
                demand,
            );
        }
        self.require(
            has_chars(&authority.notification_token, TOKEN_CHARS_MIN),
            "authority.notification_token",
            "have 16 characters at least in production",
        );
        let networks = settings.allowed_networks();
        self.require(
            networks.iter().all(|network| network.port.is_some()),
            "webhooks.allowed_networks",
            "name a port with each network in production, as in 10.1.2.0/24:8443 or [fd00::/8]:8443",
        );
        self.require(
            has_chars(&secrets.encryption_key, 1),
            "secrets.encryption_key",
            "be set in production, the same on every replica: 32 bytes in base64, as of `openssl rand -base64 32`",
        );
    }

    fn check_development(&mut self, settings: &Settings) {
        let authority = &settings.authority;
        self.require(
            authority.mode == AuthorityMode::Sandbox || authority.allow_remote_in_development,
            "authority.allow_remote_in_development",
            "be true where `authority.mode` is remote in development; a real authority wants `environment` production",
        );
        let configured_binds = [Some(settings.http.bind), settings.http.ops_bind];
        let mut binds = configured_binds.into_iter().flatten();
        self.require(
            settings.allow_open_development || binds.all(|bind| bind.ip().is_loopback()),
            "allow_open_development",
            "be true where `http.bind` or `http.ops_bind` is open to other machines in development; who serves others \
             wants `environment` production",
        );
    }

    /// Refuses settings that would make a production deployment unsafe.
    fn check_production_is_safe(&mut self, settings: &Settings) {
        self.require(
            is_protected_database(settings.database.url.expose_secret()),
            "database.url",
            "hold sslmode=verify-full in production, loopback and Unix sockets excepted",
        );
        let key = settings.secrets.encryption_key.expose_secret();
        let key = STANDARD.decode(key.trim()).unwrap_or_default();
        self.require(
            key.is_empty() || !is_patterned(&key),
            "secrets.encryption_key",
            "be random in production, as of `openssl rand -base64 32`",
        );
        let authority = &settings.authority;
        let authority_secrets = [
            ("authority.api_key", &authority.api_key),
            ("authority.api_secret", &authority.api_secret),
            (
                "authority.notification_token",
                &authority.notification_token,
            ),
        ];
        for (key, secret) in authority_secrets {
            self.require(
                !has_chars(secret, 1) || !is_guessable(secret.expose_secret()),
                key,
                "be hard to guess in production",
            );
        }
        self.require(
            !settings.is_metrics_open() || settings.metrics.public_on_network,
            "metrics.public",
            "be false in production where `http.bind`, or `http.ops_bind` if it is set, is open to other machines, so that \
             scrapers send an operator's key; or set `metrics.public_on_network` where only scrapers get there",
        );
        let checkpoints = &settings.checkpoints;
        self.require(
            checkpoints.file.is_none() || checkpoints.key_file.is_some(),
            "checkpoints.key_file",
            "be set in production where `checkpoints.file` is: base64 of 32 bytes, as of `openssl rand -base64 32`",
        );
    }

    fn require(&mut self, is_met: bool, key: &'static str, demand: &'static str) {
        if !is_met {
            self.0.push(SettingFault::DemandUnmet { key, demand });
        }
    }
}

fn is_empty_or_long(secret: &SecretString) -> bool {
    !has_chars(secret, 1) || has_chars(secret, KEY_CHARS_MIN)
}

fn has_chars(secret: &SecretString, chars_min: usize) -> bool {
    secret.expose_secret().chars().count() >= chars_min
}

/// Returns true if nobody on the network can read the database connection or impersonate the database.
pub(super) fn is_protected_database(database: &str) -> bool {
    let Ok(url) = Url::parse(database) else {
        return true;
    };
    if !matches!(url.scheme(), "postgres" | "postgresql") {
        return true;
    }
    // If a parameter occurs several times, the last value applies, as in the database driver.
    let last_value = |names: &[&str]| {
        url.query_pairs()
            .filter(|(name, _)| names.contains(&name.as_ref()))
            .last()
            .map(|(_, value)| value.to_string())
    };
    let mode = last_value(&["sslmode", "ssl-mode"]).unwrap_or_default();
    if mode.eq_ignore_ascii_case("verify-full") {
        return true;
    }
    let host = last_value(&["host", "hostaddr"])
        .unwrap_or_else(|| url.host_str().unwrap_or_default().to_owned());
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_socket = host.starts_with('/') || host.to_ascii_lowercase().starts_with("%2f");
    is_socket
        || is_local_name(host)
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

pub(super) fn is_local_name(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_local_name(name),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{
        environment_faults, from_environment, production_variables, variables,
    };

    /// Returns the faults of valid production settings in which the variable `without` is missing and `with` is set.
    fn production_faults(without: &str, with: Option<(&'static str, &'static str)>) -> String {
        let mut pairs = production_variables();
        pairs.retain(|(name, _)| *name != without);
        pairs.extend(with);
        environment_faults(&pairs)
    }

    #[test]
    fn complete_production_settings_are_accepted() {
        assert_eq!(
            from_environment(&production_variables()).environment,
            Environment::Production
        );
        let mut pairs = production_variables();
        pairs.push(("EINVOICE__AUTHORITY__BASE_URL", "http://127.0.0.1:9000"));
        from_environment(&pairs);
    }

    /// Returns the settings variables in the Dockerfile, with their values.
    fn image_variables() -> Vec<(&'static str, &'static str)> {
        let lines = include_str!("../../Dockerfile")
            .lines()
            .filter(|line| !line.starts_with('#'));
        let words = lines.flat_map(str::split_whitespace);
        words
            .filter(|word| word.starts_with("EINVOICE__"))
            .filter_map(|word| word.split_once('='))
            .collect()
    }

    #[test]
    fn the_image_is_production_and_refuses_to_start_without_settings() {
        let image = image_variables();
        assert!(
            image.contains(&("EINVOICE__HTTP__BIND", "0.0.0.0:8080")),
            "{image:?}"
        );
        let faults = environment_faults(&image);
        assert!(
            faults.contains("`authority.mode` must be remote in production"),
            "{faults}"
        );
    }

    #[test]
    fn production_refuses_development_settings() {
        let without = |name| production_faults(name, None);
        insta::assert_snapshot!(without("EINVOICE__SECRETS__ENCRYPTION_KEY"), @"`secrets.encryption_key` must be set in production, the same on every replica: 32 bytes in base64, as of `openssl rand -base64 32`");
        insta::assert_snapshot!(without("EINVOICE__AUTHORITY__NOTIFICATION_TOKEN"), @"`authority.notification_token` must have 16 characters at least in production");
        insta::assert_snapshot!(without("EINVOICE__AUTHORITY__API_KEY"), @"`authority.api_key` must be set where `authority.mode` is remote");
        insta::assert_snapshot!(without("EINVOICE__AUTHORITY__MODE"), @"`authority.mode` must be remote in production: the simulator validates no invoice");
        let with = |name, value| production_faults(name, Some((name, value)));
        insta::assert_snapshot!(with("EINVOICE__AUTHORITY__BASE_URL", "http://authority.example"), @"`authority.base_url` must begin with https:// in production, loopback excepted");
        insta::assert_snapshot!(with("EINVOICE__AUTHORITY__API_SECRET", "short"), @"`authority.api_secret` must have 8 characters at least in production");
        insta::assert_snapshot!(with("EINVOICE__WEBHOOKS__ALLOWED_NETWORKS", "[\"10.1.2.0/24:8443\", \"10.0.0.0/8\"]"), @"`webhooks.allowed_networks` must name a port with each network in production, as in 10.1.2.0/24:8443 or [fd00::/8]:8443");
        insta::assert_snapshot!(with("EINVOICE__AUTHORITY__NOTIFICATION_TOKEN", "guess-me"), @"`authority.notification_token` must have 16 characters at least in production");
    }

    #[test]
    fn a_network_may_be_called_at_its_port_in_production() {
        let mut pairs = production_variables();
        pairs.push((
            "EINVOICE__WEBHOOKS__ALLOWED_NETWORKS",
            "[\"10.1.2.0/24:8443\", \"[fd00::/8]:8443\"]",
        ));
        let networks = from_environment(&pairs).allowed_networks();
        assert!(
            networks
                .iter()
                .map(ToString::to_string)
                .eq(["10.1.2.0/24:8443", "[fd00::/8]:8443"])
        );
    }

    #[test]
    fn link_local_and_metadata_networks_are_refused_everywhere() {
        for network in [
            "169.254.0.0/16",
            "0.0.0.0/0",
            "fe80::/10",
            "169.254.169.254/32:80",
            "[fd00:ec2::254/128]:80",
        ] {
            let list = format!("[\"{network}\"]");
            let pairs = [("EINVOICE__WEBHOOKS__ALLOWED_NETWORKS", list.as_str())];
            let faults = environment_faults(&pairs);
            assert!(
                faults.contains("none of them link-local or a metadata address"),
                "{network}: {faults}"
            );
        }
    }

    #[test]
    fn a_remote_authority_in_development_needs_an_explicit_setting() {
        let mut pairs = production_variables();
        pairs[0] = ("EINVOICE__ENVIRONMENT", "development");
        insta::assert_snapshot!(environment_faults(&pairs), @"`authority.allow_remote_in_development` must be true where `authority.mode` is remote in development; a real authority wants `environment` production");
        pairs.push(("EINVOICE__AUTHORITY__ALLOW_REMOTE_IN_DEVELOPMENT", "true"));
        from_environment(&pairs);
    }

    #[test]
    fn development_open_to_other_machines_needs_an_explicit_setting() {
        for open in ["EINVOICE__HTTP__BIND", "EINVOICE__HTTP__OPS_BIND"] {
            let mut pairs = vec![(open, "0.0.0.0:8080")];
            let faults = environment_faults(&pairs);
            assert!(
                faults.starts_with("`allow_open_development` must be true where `http.bind`"),
                "{faults}"
            );
            pairs.push(("EINVOICE__ALLOW_OPEN_DEVELOPMENT", "true"));
            from_environment(&pairs);
        }
        from_environment(&[("EINVOICE__HTTP__BIND", "[::1]:8080")]);
    }

    #[test]
    fn the_systemd_unit_is_for_production() {
        let unit = include_str!("../../deploy/einvoice.service");
        assert!(unit.contains("\nEnvironment=EINVOICE__ENVIRONMENT=production\n"));
    }

    #[test]
    fn production_refuses_settings_that_leave_it_open() {
        let with = |name, value| production_faults("", Some((name, value)));
        insta::assert_snapshot!(with("EINVOICE__DATABASE__URL", "postgres://u:p@db.example/e"), @"`database.url` must hold sslmode=verify-full in production, loopback and Unix sockets excepted");
        insta::assert_snapshot!(with("EINVOICE__SECRETS__ENCRYPTION_KEY", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), @"`secrets.encryption_key` must be random in production, as of `openssl rand -base64 32`");
        insta::assert_snapshot!(with("EINVOICE__SECRETS__ENCRYPTION_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="), @"`secrets.encryption_key` must be random in production, as of `openssl rand -base64 32`");
        insta::assert_snapshot!(with("EINVOICE__AUTHORITY__NOTIFICATION_TOKEN", "1234567890123456"), @"`authority.notification_token` must be hard to guess in production");
        insta::assert_snapshot!(with("EINVOICE__HTTP__BIND", "0.0.0.0:8080"), @"`metrics.public` must be false in production where `http.bind`, or `http.ops_bind` if it is set, is open to other machines, so that scrapers send an operator's key; or set `metrics.public_on_network` where only scrapers get there");
        insta::assert_snapshot!(production_faults("EINVOICE__CHECKPOINTS__KEY_FILE", None), @"`checkpoints.key_file` must be set in production where `checkpoints.file` is: base64 of 32 bytes, as of `openssl rand -base64 32`");
        let mut pairs = production_variables();
        pairs.extend([
            ("EINVOICE__HTTP__BIND", "[::]:8080"),
            ("EINVOICE__METRICS__PUBLIC", "false"),
        ]);
        from_environment(&pairs);
    }

    #[test]
    fn a_database_over_the_network_is_verified() {
        for (url, expected) in [
            ("", true),
            ("sqlite://einvoice.db", true),
            ("postgres://u:p@localhost/e", true),
            ("postgres://u:p@127.0.0.1:5432/e", true),
            ("postgresql://u:p@[::1]/e", true),
            ("postgres://u:p@%2Fvar%2Frun%2Fpostgresql/e", true),
            ("postgres://u:p@db.example/e?host=/var/run/postgresql", true),
            ("postgres://u:p@db.example/e?sslmode=verify-full", true),
            (
                "postgres://u:p@db.example/e?ssl-mode=VERIFY-FULL&sslrootcert=ca.pem",
                true,
            ),
            ("postgres://u:p@db.example/e", false),
            ("postgres://u:p@10.0.0.1/e", false),
            ("postgres://u:p@db.example/e?sslmode=require", false),
            ("postgres://u:p@db.example/e?sslmode=verify-ca", false),
            (
                "postgres://u:p@db.example/e?sslmode=verify-full&sslmode=prefer",
                false,
            ),
            ("postgres://u:p@localhost/e?host=db.example", false),
            ("postgres://u:p@localhost/e?hostaddr=10.0.0.1", false),
            ("postgres://u:p@localhost.example/e", false),
        ] {
            assert_eq!(is_protected_database(url), expected, "{url}");
        }
    }

    #[test]
    fn limits_of_bodies_must_allow_the_largest_body() {
        let faults = |name, value| environment_faults(&[(name, value)]);
        insta::assert_snapshot!(faults("EINVOICE__HTTP__BULK_BYTES_MAX", "100000000"), @"`http.bodies_bytes_per_account_max` must be no less than `http.body_bytes_max` and `http.bulk_bytes_max`");
        insta::assert_snapshot!(faults("EINVOICE__HTTP__BODIES_BYTES_MAX", "10485760"), @"`http.bodies_bytes_max` must be no less than `http.bodies_bytes_per_integrator_max`");
    }

    #[test]
    fn production_without_settings_lists_every_missing_one() {
        let fault = Settings::load(None, variables(&[("EINVOICE__ENVIRONMENT", "production")]))
            .unwrap_err();
        assert_eq!(fault.0.len(), 3, "{fault}");
    }

    #[test]
    fn a_remote_authority_needs_its_address_and_keys_in_development_too() {
        let fault = Settings::load(None, variables(&[("EINVOICE__AUTHORITY__MODE", "remote")]))
            .unwrap_err();
        let keys = fault.0.iter().map(|fault| match fault {
            SettingFault::DemandUnmet { key, .. } => *key,
            other => panic!("{other}"),
        });
        let expected = [
            "authority.base_url",
            "authority.api_key",
            "authority.api_secret",
        ];
        assert!(
            keys.eq(expected
                .into_iter()
                .chain(["authority.allow_remote_in_development"])),
            "{fault}"
        );
    }
}
