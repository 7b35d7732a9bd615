//! Warnings about risky settings. `config check` shows the warnings, and `serve` logs them at each start.

use std::net::IpAddr;

use secrecy::ExposeSecret;
use url::Url;

use super::authority::AuthorityMode;
use super::deployment::{is_local_name, is_protected_database};
use super::{Environment, LogLevel, SecondFactorPolicy, Settings};

impl Settings {
    /// Returns one sentence for each risky setting.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = match self.environment {
            Environment::Development => self.development_warnings(),
            Environment::Production => self.production_warnings(),
        };
        let is_sandbox = self.authority.mode == AuthorityMode::Sandbox;
        if is_sandbox && !self.sandbox.bind.ip().is_loopback() {
            warnings.push(
                "`sandbox.bind` lets other machines control the simulator of the authority"
                    .to_owned(),
            );
        }
        let memory_bytes = self.http.import_memory_bytes();
        if self.http.import_bytes_max > memory_bytes {
            let share = "three quarters of `http.bodies_bytes_per_account_max`";
            warnings.push(format!(
                "`http.import_bytes_max` is above {share}: a file may have {memory_bytes} bytes at most"
            ));
        }
        if !self.secrets.encryption_keys.is_empty() {
            let advice = "they are needed until `einvoice secrets reseal` has run with the new key \
                          as `secrets.encryption_key` (docs/operations.md, Keys and secrets)";
            warnings.push(format!(
                "`secrets.encryption_keys` has keys besides the current one: {advice}"
            ));
        }
        warnings
    }

    fn development_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.http.bind.ip().is_loopback() {
            let consequence =
                "secrets are made in data_dir, and the keys of demo accounts are printed";
            warnings.push(format!(
                "`http.bind` is open to other machines in development: {consequence}"
            ));
        }
        if self.authority.mode == AuthorityMode::Remote {
            warnings.push(
                "a remote authority is called in development: nothing of production is checked"
                    .to_owned(),
            );
        }
        if !is_protected_database(self.database.url.expose_secret()) {
            warnings
                .push("`database.url` does not verify the database it is connected to".to_owned());
        }
        warnings
    }

    fn production_warnings(&self) -> Vec<String> {
        let limits = &self.rate_limit;
        let rate_limits = [
            ("requests_per_s", limits.requests_per_s),
            (
                "integrator_requests_per_s",
                limits.integrator_requests_per_s,
            ),
            ("refused_creates_per_min", limits.refused_creates_per_min),
            ("onboardings_per_min", limits.onboardings_per_min),
            ("rotate_per_min", limits.rotate_per_min),
            ("webhook_test_per_min", limits.webhook_test_per_min),
            ("failed_auth_per_min", limits.failed_auth_per_min),
            ("sign_ins_per_min", limits.sign_ins_per_min),
            ("pages_per_s", limits.pages_per_s),
        ];
        let unlimited = rate_limits.iter().filter(|(_, limit)| *limit == 0);
        let mut warnings: Vec<_> = unlimited
            .map(|(name, _)| format!("`rate_limit.{name}` is 0: there is no limit"))
            .collect();
        if self.is_metrics_open() {
            let listener = match self.http.ops_bind {
                Some(_) => "http.ops_bind",
                None => "http.bind",
            };
            warnings.push(format!(
                "`/metrics` is open to everybody who reaches `{listener}`"
            ));
        }
        if !is_protected_mail(self.mail.smtp_url.expose_secret()) {
            let consequence =
                "others on the network can read the password, the mails and the links in them";
            warnings.push(format!(
                "`mail.smtp_url` does not demand TLS: {consequence}"
            ));
        }
        if !self.mail.smtp_url.expose_secret().is_empty() && self.http.public_url.is_none() {
            let consequence = "the links in mails lead to `http.bind`";
            warnings.push(format!("`http.public_url` is not set: {consequence}"));
        }
        if self.checkpoints.file.is_none() {
            let consequence =
                "anybody who can write to the database can rewrite the event log unnoticed";
            warnings.push(format!("`checkpoints.file` is not set: {consequence}"));
        }
        if !self.needs_second_factor() {
            let consequence =
                "whoever learns the password of an operator or an integrator signs in";
            warnings.push(format!("`console.second_factor` is never: {consequence}"));
        }
        if self.log.level == LogLevel::Off {
            warnings.push(
                "`log.level` is off: neither failures nor failed sign-ins leave a trace".to_owned(),
            );
        }
        warnings
    }

    /// Returns true if operators and integrators need a second factor in this environment.
    pub fn needs_second_factor(&self) -> bool {
        match self.console.second_factor {
            SecondFactorPolicy::InProduction => self.environment == Environment::Production,
            SecondFactorPolicy::Always => true,
            SecondFactorPolicy::Never => false,
        }
    }

    /// Returns true if other machines can read `/metrics` without a key. If the operators have a listener of their own,
    /// it serves `/metrics`.
    pub(super) fn is_metrics_open(&self) -> bool {
        let bind = self.http.ops_bind.unwrap_or(self.http.bind);
        self.metrics.public && !bind.ip().is_loopback()
    }
}

/// Returns true if mails go out over TLS only, stay on this machine, or are not sent at all.
fn is_protected_mail(server: &str) -> bool {
    let Ok(url) = Url::parse(server) else {
        return true;
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = is_local_name(host)
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    let mut parameters = url.query_pairs();
    let demands_tls = parameters.any(|(name, value)| name == "tls" && value == "required");
    is_local || url.scheme() == "smtps" || demands_tls
}

#[cfg(test)]
mod tests {
    use crate::config::tests::{from_environment, production_variables};

    fn warnings_with(pairs: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut all = production_variables();
        all.extend(pairs);
        from_environment(&all).warnings()
    }

    #[test]
    fn default_development_and_complete_production_settings_give_no_warning() {
        assert_eq!(from_environment(&[]).warnings(), [""; 0]);
        assert_eq!(warnings_with(&[]), [""; 0]);
    }

    #[test]
    fn open_production_settings_are_warned_about() {
        let warnings = warnings_with(&[
            ("EINVOICE__RATE_LIMIT__REQUESTS_PER_S", "0"),
            ("EINVOICE__RATE_LIMIT__INTEGRATOR_REQUESTS_PER_S", "0"),
            ("EINVOICE__RATE_LIMIT__FAILED_AUTH_PER_MIN", "0"),
            ("EINVOICE__RATE_LIMIT__ONBOARDINGS_PER_MIN", "0"),
            ("EINVOICE__HTTP__BIND", "0.0.0.0:8080"),
            ("EINVOICE__METRICS__PUBLIC_ON_NETWORK", "true"),
            ("EINVOICE__CHECKPOINTS__FILE", ""),
            ("EINVOICE__CONSOLE__SECOND_FACTOR", "never"),
            ("EINVOICE__LOG__LEVEL", "off"),
            (
                "EINVOICE__SECRETS__ENCRYPTION_KEYS",
                "[\"mI0mZb7Zt4gP3oS2xq8vJc1yL6nKdWfR9uTaEhQwBkM=\"]",
            ),
        ]);
        insta::assert_snapshot!(warnings.join("\n"), @r"
        `rate_limit.requests_per_s` is 0: there is no limit
        `rate_limit.integrator_requests_per_s` is 0: there is no limit
        `rate_limit.onboardings_per_min` is 0: there is no limit
        `rate_limit.failed_auth_per_min` is 0: there is no limit
        `/metrics` is open to everybody who reaches `http.bind`
        `checkpoints.file` is not set: anybody who can write to the database can rewrite the event log unnoticed
        `console.second_factor` is never: whoever learns the password of an operator or an integrator signs in
        `log.level` is off: neither failures nor failed sign-ins leave a trace
        `secrets.encryption_keys` has keys besides the current one: they are needed until `einvoice secrets reseal` has run with the new key as `secrets.encryption_key` (docs/operations.md, Keys and secrets)
        ");
    }

    #[test]
    fn open_metrics_are_detected_at_the_listener_that_serves_them() {
        let open_at = |listener: &str| {
            vec![format!(
                "`/metrics` is open to everybody who reaches `{listener}`"
            )]
        };
        let inside = "127.0.0.1:8081";
        let outside = "0.0.0.0:8080";
        for (bind, ops_bind, expected) in [
            (outside, "", open_at("http.bind")),
            (outside, inside, Vec::new()),
            (inside, outside, open_at("http.ops_bind")),
            (inside, "", Vec::new()),
        ] {
            let warnings = warnings_with(&[
                ("EINVOICE__HTTP__BIND", bind),
                ("EINVOICE__HTTP__OPS_BIND", ops_bind),
                ("EINVOICE__METRICS__PUBLIC_ON_NETWORK", "true"),
            ]);
            assert_eq!(warnings, expected, "{bind} and {ops_bind}");
        }
    }

    #[test]
    fn mails_without_tls_are_warned_about() {
        for (url, is_open) in [
            ("", false),
            ("smtps://user:password@mail.example", false),
            ("smtp://user:password@mail.example:587?tls=required", false),
            ("smtp://localhost:25", false),
            ("smtp://127.0.0.1:25", false),
            ("smtp://[::1]:25", false),
            ("smtp://user:password@mail.example:587", true),
            ("smtp://mail.example?tls=opportunistic", true),
        ] {
            let warnings = warnings_with(&[
                ("EINVOICE__MAIL__SMTP_URL", url),
                ("EINVOICE__HTTP__PUBLIC_URL", "https://invoices.example"),
            ]);
            assert_eq!(warnings.len(), usize::from(is_open), "{url}: {warnings:?}");
            let text = warnings.concat();
            assert!(!text.contains("mail.example"), "{text}");
        }
    }

    #[test]
    fn mails_with_links_to_an_internal_address_are_warned_about() {
        let server = "smtps://mail.example";
        for (server, public_url, is_warned) in [
            (server, None, true),
            (server, Some("https://invoices.example"), false),
            ("", None, false),
        ] {
            let mut pairs = vec![("EINVOICE__MAIL__SMTP_URL", server)];
            pairs.extend(public_url.map(|url| ("EINVOICE__HTTP__PUBLIC_URL", url)));
            let warnings = warnings_with(&pairs).concat();
            let expected = if is_warned {
                "`http.public_url` is not set: the links in mails lead to `http.bind`"
            } else {
                ""
            };
            assert_eq!(warnings, expected, "{server} {public_url:?}");
        }
    }

    #[test]
    fn a_file_limit_without_memory_for_it_is_warned_about() {
        let warning = "`http.import_bytes_max` is above three quarters of `http.bodies_bytes_per_account_max`: \
                       a file may have";
        let cases = [
            ("50331648", "67108864", None),
            ("50331649", "67108864", Some("50331648")),
            ("15000000", "20000000", None),
            ("50331648", "20000000", Some("15000000")),
            ("50331648", "20000001", Some("15000001")),
        ];
        for (file, share, room) in cases {
            let settings = [
                ("EINVOICE__HTTP__IMPORT_BYTES_MAX", file),
                ("EINVOICE__HTTP__BODIES_BYTES_PER_ACCOUNT_MAX", share),
            ];
            let expected = room.map(|room| format!("{warning} {room} bytes at most"));
            let expected: Vec<String> = expected.into_iter().collect();
            assert_eq!(warnings_with(&settings), expected, "{file} of {share}");
            assert_eq!(from_environment(&settings).warnings(), expected);
        }
    }

    #[test]
    fn open_development_settings_are_warned_about() {
        let settings = from_environment(&[
            ("EINVOICE__ALLOW_OPEN_DEVELOPMENT", "true"),
            ("EINVOICE__HTTP__BIND", "0.0.0.0:8080"),
            ("EINVOICE__SANDBOX__BIND", "0.0.0.0:9000"),
            ("EINVOICE__DATABASE__URL", "postgres://u:p@db.example/e"),
        ]);
        insta::assert_snapshot!(settings.warnings().join("\n"), @r"
        `http.bind` is open to other machines in development: secrets are made in data_dir, and the keys of demo accounts are printed
        `database.url` does not verify the database it is connected to
        `sandbox.bind` lets other machines control the simulator of the authority
        ");
    }
}
