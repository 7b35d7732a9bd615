//! The command line: arguments to values, nothing else. What the calls do stands in `app`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Parser, Subcommand, ValueEnum};
use jiff::civil::Date;

use crate::domain::codes::Subscription;

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
    /// Runs the service until it is told to stop; the call where none is named.
    Serve,
    /// Walks one invoice from creation to its webhook, on a temporary database, and shows each exchange.
    Demo {
        /// What goes wrong on the way.
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
        /// What everything left to chance is drawn with: the same seed, the same run.
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
    /// The settings.
    #[command(subcommand)]
    Config(ConfigCall),
    /// Prints the document of the API (`OpenAPI` 3.1).
    Openapi,
    /// Compares our ledger of one day with the authority's and prints a line of JSON for each finding, then one for
    /// all: exits 0 where nothing is left listed, 1 where something is, 2 where the authority could not be asked.
    Reconcile {
        #[arg(long, value_name = "ID")]
        taxpayer: i64,
        /// The day, as YYYY-MM-DD, of the authority's zone.
        #[arg(long, value_name = "DAY")]
        day: Date,
    },
    /// Checks that no event of a taxpayer was changed or lost.
    Verify {
        /// The taxpayer; without it all of them.
        #[arg(long, value_name = "ID")]
        taxpayer: Option<i64>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum IntegratorCall {
    /// Creates an integrator and prints { id, name, email, `api_key` } as one line of JSON.
    Create {
        #[arg(long)]
        name: String,
        #[arg(long)]
        email: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum OperatorCall {
    /// Creates an operator and prints { email, password, `api_key` } as one line of JSON.
    Create {
        #[arg(long)]
        email: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum TaxpayerCall {
    /// Says whether a taxpayer may create invoices.
    Subscription {
        id: i64,
        #[arg(value_name = "STATE", value_parser = subscriptions())]
        state: Subscription,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ConfigCall {
    /// Prints the settings as they would be used, secrets masked.
    Check,
}

/// What can go wrong in a demonstration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DemoFault {
    /// The authority takes the invoice and drops the connection before it answers.
    CommitThenDrop,
}

impl Arguments {
    /// The call and the settings file.
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
        for (line, expected) in [
            ("demo", Call::Demo { fault: None }),
            ("demo --fault commit-then-drop", Call::Demo { fault: Some(DemoFault::CommitThenDrop) }),
            ("migrate", Call::Migrate),
            (
                "integrator create --name N --email E",
                Call::Integrator(IntegratorCall::Create { name, email: email.clone() }),
            ),
            ("operator create --email E", Call::Operator(OperatorCall::Create { email })),
            ("taxpayer subscription 7 inactive", Call::Taxpayer(TaxpayerCall::Subscription { id: 7, state })),
            ("sandbox --bind 127.0.0.1:9000", Call::Sandbox { bind, seed: 1 }),
            ("sandbox --seed 7", Call::Sandbox { bind: None, seed: 7 }),
            ("sandbox", Call::Sandbox { bind: None, seed: 1 }),
            ("config check", Call::Config(ConfigCall::Check)),
            ("openapi", Call::Openapi),
            ("reconcile --taxpayer 7 --day 2026-01-15", Call::Reconcile { taxpayer: 7, day }),
            ("verify", Call::Verify { taxpayer: None }),
            ("verify --taxpayer 7", Call::Verify { taxpayer: Some(7) }),
        ] {
            assert_eq!(call(line), expected, "{line}");
        }
    }

    #[test]
    fn the_settings_file_is_named_anywhere_on_the_line() {
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
    fn what_is_not_understood_is_refused() {
        for (line, kind) in [
            ("start", ErrorKind::InvalidSubcommand),
            ("integrator create --name N", ErrorKind::MissingRequiredArgument),
            ("taxpayer subscription 7 paused", ErrorKind::InvalidValue),
            ("taxpayer subscription seven active", ErrorKind::ValueValidation),
            ("sandbox --bind here", ErrorKind::ValueValidation),
            ("sandbox --seed luck", ErrorKind::ValueValidation),
            ("demo --fault fire", ErrorKind::InvalidValue),
            ("reconcile --taxpayer 7", ErrorKind::MissingRequiredArgument),
            ("reconcile --taxpayer 7 --day yesterday", ErrorKind::ValueValidation),
            ("reconcile --taxpayer seven --day 2026-01-15", ErrorKind::ValueValidation),
            ("serve --port 1", ErrorKind::UnknownArgument),
        ] {
            assert_eq!(parse(line).unwrap_err().kind(), kind, "{line}");
        }
    }
}
