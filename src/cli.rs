//! The command line: arguments to values, nothing else. The calls are implemented in `app`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;
use jiff::civil::Date;

use crate::domain::access::api_key::{KeyScope, KeyTerms, OVERLAP_MAX};
use crate::domain::kernel::codes::Subscription;

/// An e-invoicing relay between taxpayers and a national tax authority.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "einvoice", version, disable_help_subcommand = true)]
pub struct Arguments {
    /// The settings file; without it ./config.toml, if there is one.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(subcommand)]
    call: Option<Call>,
}

/// One call of the program.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Call {
    /// Runs the service until it is stopped; the default call.
    Serve,
    /// Walks one invoice from creation to its webhook, on a temporary database, and prints each exchange.
    Demo {
        /// A fault to inject on the way.
        #[arg(long, value_enum)]
        fault: Option<DemoFault>,
    },
    /// Brings the schema of the database up to date.
    Migrate,
    /// Integrators, who act for taxpayers.
    #[command(subcommand)]
    Integrator(IntegratorCall),
    /// Operators of this deployment.
    #[command(subcommand)]
    Operator(OperatorCall),
    /// Taxpayers.
    #[command(subcommand)]
    Taxpayer(TaxpayerCall),
    /// Runs the simulator of the tax authority alone.
    Sandbox {
        /// The address and port to listen on; without it `sandbox.bind` of the settings.
        #[arg(long, value_name = "ADDR")]
        bind: Option<SocketAddr>,
        /// The seed of all randomness: the same seed, the same run.
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
    /// The settings.
    #[command(subcommand)]
    Config(ConfigCall),
    /// Prints the document of the API (`OpenAPI` 3.1).
    Openapi,
    /// Compares our ledger of one day with the authority's. Prints a line of JSON for each finding, then a
    /// summary. Exits 0 if no finding is left to an operator, 1 if one is, 2 if the authority could not be
    /// asked.
    Reconcile {
        #[arg(long, value_name = "ID")]
        taxpayer: i64,
        /// The day, as YYYY-MM-DD, in the authority's time zone.
        #[arg(long, value_name = "DAY")]
        day: Date,
    },
    /// The sealed secrets of the database.
    #[command(subcommand)]
    Secrets(SecretsCall),
    /// Checks that no event of a taxpayer was changed or lost, and with checkpoints also that none was
    /// rewritten.
    Verify {
        /// The taxpayer; all of them by default.
        #[arg(long, value_name = "ID")]
        taxpayer: Option<i64>,
        /// Signed checkpoints to compare with.
        #[arg(long, value_name = "FILE")]
        checkpoints: Option<PathBuf>,
        /// The public key of the checkpoints, as printed by `checkpoint`; by default that of
        /// `checkpoints.key_file`.
        #[arg(long, value_name = "KEY", requires = "checkpoints")]
        public_key: Option<String>,
    },
    /// Signs the heads of the event chains that have grown, appends them to `checkpoints.file`, and prints
    /// where that ends as one line of JSON.
    Checkpoint,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum IntegratorCall {
    /// Creates an integrator and prints { id, name, email, `api_key` } as one line of JSON.
    Create {
        #[arg(long)]
        name: String,
        #[arg(long)]
        email: String,
        #[command(flatten)]
        terms: KeyArguments,
    },
    #[command(flatten)]
    Keys(KeyCall),
    /// Revokes all keys of an integrator at once and prints how many as one line of JSON.
    Revoke {
        id: i64,
        /// Revokes also the keys of the taxpayers that it onboarded.
        #[arg(long)]
        taxpayer_keys: bool,
    },
}

/// Key commands that integrators and operators share.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum KeyCall {
    /// Prints all accounts of this kind with their keys as one line of JSON.
    List,
    /// Gives an account a new key and prints { id, `api_key` } as one line of JSON; the old key is refused at once or
    /// after an overlap.
    Rotate {
        id: i64,
        /// How long the old key stays valid, in seconds; 7 days at most.
        #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=OVERLAP_S_MAX))]
        overlap_s: u64,
        #[command(flatten)]
        terms: KeyArguments,
    },
}

/// The terms of a new key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct KeyArguments {
    /// `full`, or `read_only` for a key that changes nothing; by default that of the replaced key.
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<KeyScope>,
    /// When the key ends, as RFC 3339; never by default.
    #[arg(long, value_name = "TIME")]
    pub expires_at: Option<Timestamp>,
}

const OVERLAP_S_MAX: u64 = OVERLAP_MAX.as_secs();

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum OperatorCall {
    /// Creates an operator and prints { email, password, `api_key` } as one line of JSON.
    Create {
        #[arg(long)]
        email: String,
        #[command(flatten)]
        terms: KeyArguments,
    },
    #[command(flatten)]
    Keys(KeyCall),
    /// Revokes all keys of an operator at once and prints how many as one line of JSON.
    Revoke { id: i64 },
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum TaxpayerCall {
    /// Sets whether a taxpayer may create invoices.
    Subscription {
        id: i64,
        #[arg(value_name = "STATE", value_parser = subscriptions())]
        state: Subscription,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum SecretsCall {
    /// Seals everything with the current encryption key and prints counts as one line of JSON. Exits 1 if
    /// something is left. It may run beside the service and be repeated.
    Reseal,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ConfigCall {
    /// Prints the effective settings, secrets masked.
    Check,
}

/// A fault to inject into a demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DemoFault {
    /// The authority accepts the invoice and drops the connection before it answers.
    CommitThenDrop,
}

impl KeyArguments {
    /// Returns the terms, with how long the old key stays valid.
    pub fn into_terms(self, overlap_s: u64) -> KeyTerms {
        let Self { scope, expires_at } = self;
        KeyTerms { scope, expires_at, overlap: Duration::from_secs(overlap_s) }
    }
}

impl Arguments {
    /// Returns the call and the settings file.
    pub fn into_parts(self) -> (Call, Option<PathBuf>) {
        (self.call.unwrap_or(Call::Serve), self.config)
    }
}

fn subscriptions() -> impl clap::builder::TypedValueParser<Value = Subscription> {
    let words = [Subscription::Active, Subscription::Inactive].map(Subscription::as_str);
    PossibleValuesParser::new(words).try_map(|word| Subscription::parse(&word).ok_or("not a state"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use clap::error::ErrorKind;

    use super::*;

    fn parse(line: &str) -> Result<(Call, Option<PathBuf>), clap::Error> {
        let words = std::iter::once("einvoice").chain(line.split_whitespace());
        Arguments::try_parse_from(words).map(Arguments::into_parts)
    }

    fn call(line: &str) -> Call {
        parse(line).unwrap_or_else(|error| panic!("{line}: {error}")).0
    }

    #[test]
    fn the_definition_holds_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn no_subcommand_means_serve() {
        assert_eq!(call(""), Call::Serve);
        assert_eq!(call("serve"), Call::Serve);
    }

    #[test]
    fn every_call_of_the_process_interface_is_understood() {
        let (name, email) = ("N".to_owned(), "E".to_owned());
        let bind = Some("127.0.0.1:9000".parse().unwrap());
        let state = Subscription::Inactive;
        let day = "2026-01-15".parse().unwrap();
        let terms = KeyArguments::default();
        let narrow = KeyArguments {
            scope: Some(KeyScope::ReadOnly),
            expires_at: Some("2030-01-01T00:00:00Z".parse().unwrap()),
        };
        for (line, expected) in [
            ("demo", Call::Demo { fault: None }),
            ("demo --fault commit-then-drop", Call::Demo { fault: Some(DemoFault::CommitThenDrop) }),
            ("migrate", Call::Migrate),
            (
                "integrator create --name N --email E",
                Call::Integrator(IntegratorCall::Create { name, email: email.clone(), terms: terms.clone() }),
            ),
            ("integrator list", Call::Integrator(IntegratorCall::Keys(KeyCall::List))),
            (
                "integrator rotate 7 --overlap-s 60 --scope read_only --expires-at 2030-01-01T00:00:00Z",
                Call::Integrator(IntegratorCall::Keys(KeyCall::Rotate {
                    id: 7,
                    overlap_s: 60,
                    terms: narrow,
                })),
            ),
            (
                "integrator revoke 7 --taxpayer-keys",
                Call::Integrator(IntegratorCall::Revoke { id: 7, taxpayer_keys: true }),
            ),
            (
                "operator create --email E",
                Call::Operator(OperatorCall::Create { email, terms: terms.clone() }),
            ),
            ("operator list", Call::Operator(OperatorCall::Keys(KeyCall::List))),
            (
                "operator rotate 7",
                Call::Operator(OperatorCall::Keys(KeyCall::Rotate { id: 7, overlap_s: 0, terms })),
            ),
            ("operator revoke 7", Call::Operator(OperatorCall::Revoke { id: 7 })),
            ("taxpayer subscription 7 inactive", Call::Taxpayer(TaxpayerCall::Subscription { id: 7, state })),
            ("sandbox --bind 127.0.0.1:9000", Call::Sandbox { bind, seed: 1 }),
            ("sandbox --seed 7", Call::Sandbox { bind: None, seed: 7 }),
            ("sandbox", Call::Sandbox { bind: None, seed: 1 }),
            ("config check", Call::Config(ConfigCall::Check)),
            ("openapi", Call::Openapi),
            ("reconcile --taxpayer 7 --day 2026-01-15", Call::Reconcile { taxpayer: 7, day }),
            ("secrets reseal", Call::Secrets(SecretsCall::Reseal)),
            ("checkpoint", Call::Checkpoint),
            ("verify", Call::Verify { taxpayer: None, checkpoints: None, public_key: None }),
            ("verify --taxpayer 7", Call::Verify { taxpayer: Some(7), checkpoints: None, public_key: None }),
            (
                "verify --checkpoints F --public-key K",
                Call::Verify {
                    taxpayer: None,
                    checkpoints: Some("F".into()),
                    public_key: Some("K".to_owned()),
                },
            ),
        ] {
            assert_eq!(call(line), expected, "{line}");
        }
    }

    #[test]
    fn the_settings_file_may_be_named_anywhere_on_the_line() {
        for line in [
            "--config x.toml",
            "--config x.toml config check",
            "config --config x.toml check",
            "config check --config x.toml",
            "verify --config=x.toml --taxpayer 7",
        ] {
            assert_eq!(parse(line).unwrap().1, Some("x.toml".into()), "{line}");
        }
    }

    #[test]
    fn invalid_lines_are_refused() {
        for (line, kind) in [
            ("start", ErrorKind::InvalidSubcommand),
            ("integrator create --name N", ErrorKind::MissingRequiredArgument),
            ("taxpayer subscription 7 paused", ErrorKind::InvalidValue),
            ("integrator rotate seven", ErrorKind::ValueValidation),
            ("operator rotate 7 --overlap-s 604801", ErrorKind::ValueValidation),
            ("operator create --email E --scope some", ErrorKind::ValueValidation),
            ("operator revoke 7 --taxpayer-keys", ErrorKind::UnknownArgument),
            ("taxpayer subscription seven active", ErrorKind::ValueValidation),
            ("sandbox --bind here", ErrorKind::ValueValidation),
            ("sandbox --seed luck", ErrorKind::ValueValidation),
            ("demo --fault fire", ErrorKind::InvalidValue),
            ("reconcile --taxpayer 7", ErrorKind::MissingRequiredArgument),
            ("reconcile --taxpayer 7 --day yesterday", ErrorKind::ValueValidation),
            ("reconcile --taxpayer seven --day 2026-01-15", ErrorKind::ValueValidation),
            ("verify --public-key K", ErrorKind::MissingRequiredArgument),
            ("serve --port 1", ErrorKind::UnknownArgument),
        ] {
            assert_eq!(parse(line).unwrap_err().kind(), kind, "{line}");
        }
    }
}
