//! The command line: parses arguments into values and does nothing else. The commands are implemented in `app`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;
use jiff::civil::Date;

use crate::domain::access::api_key::{KeyScope, KeyTerms, OVERLAP_MAX};
use crate::domain::access::session::{ContactRole, OperatorRole};
use crate::domain::events::checkpoint::CheckpointTail;
use crate::domain::import::source::ImportForm;
use crate::domain::kernel::codes::Subscription;

/// The version and the commit, which build.rs finds.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (commit ",
    env!("EINVOICE_COMMIT"),
    ")"
);

/// An e-invoicing relay between taxpayers and a national tax authority.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "einvoice", version = VERSION, disable_help_subcommand = true)]
pub struct Arguments {
    /// The settings file. Without this option ./config.toml is read, if it exists.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(subcommand)]
    call: Option<Call>,
}

/// The command to run.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Call {
    /// Runs the service until it is stopped. This is the default command.
    Serve {
        /// Sends nothing: makes no call to the authority and sends no webhook. For a copy of a database beside the live one.
        #[arg(long)]
        paused: bool,
    },
    /// Checks this deployment before a start and changes nothing: the settings, the encryption key, the database, the
    /// disk, the authority, the files of checkpoints, the ports, the limit of open files and the receivers of webhooks.
    /// Prints one line for each check. Exits with 0 if no check failed, and with 1 otherwise.
    Doctor {
        /// Prints one JSON object instead.
        #[arg(long)]
        json: bool,
    },
    /// Takes one invoice from creation to its webhooks, on a temporary database, and prints each exchange.
    Demo {
        /// A fault that the simulated authority injects into the demo.
        #[arg(long, value_enum)]
        fault: Option<DemoFault>,
    },
    /// Holds a fire drill on a running development service: causes a fault, waits until the service tells the
    /// incident, ends the fault, and waits until the incident is gone. Exits with 0 only if it came and went.
    Drill(DrillArguments),
    /// Sends a file of invoices to a running service: shows the preview, asks, imports, and writes the refused invoices
    /// beside the file. The same call again goes on with an import that was interrupted. Exits with 0 if all invoices
    /// of the file exist, and with 1 otherwise.
    Import(ImportArguments),
    /// Brings the database schema up to date.
    Migrate,
    /// Manages integrators, who act for taxpayers.
    #[command(subcommand)]
    Integrator(IntegratorCall),
    /// Manages the operators of this deployment.
    #[command(subcommand)]
    Operator(OperatorCall),
    /// Manages taxpayers.
    #[command(subcommand)]
    Taxpayer(TaxpayerCall),
    /// Runs the simulator of the tax authority alone.
    Sandbox {
        /// The address and port to listen on. Without this option the setting `sandbox.bind` is used.
        #[arg(long, value_name = "ADDR")]
        bind: Option<SocketAddr>,
        /// The seed of all random decisions. Two runs with the same seed and the same calls behave alike.
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
    /// Shows the settings.
    #[command(subcommand)]
    Config(ConfigCall),
    /// Prints the description of the HTTP API, as an `OpenAPI` 3.1 document.
    Openapi,
    /// Compares one day of a taxpayer's invoices with the authority's ledger. Prints one line of JSON for each
    /// finding, then one for the summary. Exits with 0 if no finding is left to an operator, with 1 if at least one
    /// is, and with 2 if the authority could not be asked.
    Reconcile {
        #[arg(long, value_name = "ID")]
        taxpayer: i64,
        /// The day to compare with the ledger, as YYYY-MM-DD, in the authority's time zone.
        #[arg(long, value_name = "DAY")]
        day: Date,
    },
    /// Manages the sealed secrets in the database.
    #[command(subcommand)]
    Secrets(SecretsCall),
    /// Checks that no event was changed or lost. With checkpoints, also checks that no event chain was rewritten
    /// together with its hashes.
    Verify {
        /// The id of the taxpayer to check; all taxpayers by default.
        #[arg(long, value_name = "ID")]
        taxpayer: Option<i64>,
        /// The file with the signed checkpoints to compare with.
        #[arg(long, value_name = "FILE")]
        checkpoints: Option<PathBuf>,
        /// The public key that verifies the checkpoints, as `checkpoint` prints it. By default the public half of the
        /// key in `checkpoints.key_file`.
        #[arg(long, value_name = "KEY", requires = "checkpoints")]
        public_key: Option<String>,
        /// A checkpoint that the file must still hold, as an earlier `verify` printed it in its last line. With it,
        /// `verify` detects a file that was cut or replaced since.
        #[arg(long, value_name = "NUMBER:HASH", requires = "checkpoints")]
        at_least: Option<CheckpointTail>,
    },
    /// Signs the heads of the event chains that have grown and appends them to `checkpoints.file`. Prints the number
    /// and hash of the file's last line as one line of JSON.
    Checkpoint,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum IntegratorCall {
    /// Creates an integrator and prints { id, name, email, password, `api_key` } as one line of JSON.
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
    /// Revokes all keys of an integrator and ends its sessions, at once. Prints the numbers of both as one line of
    /// JSON. Whoever knows the password can sign in again: use `disable` to keep everybody out.
    Revoke {
        id: i64,
        /// Also revokes the keys of the taxpayers that the integrator onboarded.
        #[arg(long)]
        taxpayer_keys: bool,
    },
    /// Disables an integrator: ends its keys and sessions at once and refuses its password, until `enable`. Prints what
    /// it ended as one line of JSON. Its taxpayers are not disabled.
    Disable {
        id: i64,
        /// Also revokes the keys of the taxpayers that the integrator onboarded.
        #[arg(long)]
        taxpayer_keys: bool,
    },
    /// Lets a disabled integrator sign in again, with its password. Keys and sessions that were ended stay ended.
    Enable { id: i64 },
}

/// The key commands that exist for integrators and for operators.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum KeyCall {
    /// Prints all accounts of this kind with their keys as one line of JSON.
    List,
    /// Gives an account a new key and prints { id, `api_key` } as one line of JSON. The old key is refused at once,
    /// or after the overlap.
    Rotate {
        id: i64,
        /// How long the old key stays valid, in seconds; at most 7 days.
        #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=OVERLAP_S_MAX))]
        overlap_s: u64,
        #[command(flatten)]
        terms: KeyArguments,
    },
    /// Gives an account a new password for the console, ends its sessions, and prints { id, password } as one line of
    /// JSON.
    Password { id: i64 },
    /// Makes a one-time link with which a person chooses a new password for the console, and prints { id, path,
    /// `expires_at` } as one line of JSON. The present password stays valid until the link is used. The link expires
    /// after 72 hours.
    Invitation { id: i64 },
    /// Removes the second factor of an account whose person lost it, ends its sessions, and prints { id, `had_totp` }
    /// as one line of JSON. The next sign-in needs the password only. If a second factor is required, the person then
    /// sets up a new one.
    TotpReset { id: i64 },
}

/// The terms of a new key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct KeyArguments {
    /// The scope of the new key: `full`, or `read_only` for a key that cannot change anything. By default the scope
    /// of the replaced key.
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<KeyScope>,
    /// When the key expires, as an RFC 3339 time. By default the key never expires.
    #[arg(long, value_name = "TIME")]
    pub expires_at: Option<Timestamp>,
}

const OVERLAP_S_MAX: u64 = OVERLAP_MAX.as_secs();

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum OperatorCall {
    /// Creates an operator and prints { id, email, role, password, `api_key` } as one line of JSON.
    Create {
        #[arg(long)]
        email: String,
        /// The role of the operator and of its keys: a viewer can only read, an operator can also act, an admin can
        /// also change accounts.
        #[arg(long, value_name = "ROLE", default_value_t = OperatorRole::Admin)]
        role: OperatorRole,
        #[command(flatten)]
        terms: KeyArguments,
    },
    #[command(flatten)]
    Keys(KeyCall),
    /// Revokes all keys of an operator and ends its sessions, at once. Prints the numbers of both as one line of JSON.
    /// Whoever knows the password can sign in again: use `disable` to keep everybody out.
    Revoke { id: i64 },
    /// Disables an operator: ends its keys and sessions at once and refuses its password, until `enable`. Prints what
    /// it ended as one line of JSON.
    Disable { id: i64 },
    /// Lets a disabled operator sign in again, with its password. Keys and sessions that were ended stay ended.
    Enable { id: i64 },
    /// Removes an operator for good, with its keys, sessions and second factor.
    Remove { id: i64 },
    /// Gives an operator another role. It applies to the operator's keys and sessions from the next request on.
    Role {
        id: i64,
        /// viewer, operator or admin.
        #[arg(value_name = "ROLE")]
        role: OperatorRole,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum TaxpayerCall {
    /// Sets whether a taxpayer may create invoices.
    Subscription {
        id: i64,
        #[arg(value_name = "STATE", value_parser = subscription_parser())]
        state: Subscription,
    },
    /// Manages the contact persons of a taxpayer, who sign in to its account.
    #[command(subcommand)]
    Contact(ContactCommand),
}

/// The commands disable, enable, remove and role print { `taxpayer_id`, id, `ended_sessions` } as one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ContactCommand {
    /// Makes a one-time link with which a contact person chooses a password, and prints { id, path, `expires_at` } as
    /// one line of JSON. The present password stays valid until the link is used. The link expires after 72 hours.
    Invitation { taxpayer: i64, id: i64 },
    /// Ends the sessions of a contact person at once and refuses its password, until `enable`.
    Disable { taxpayer: i64, id: i64 },
    /// Lets a disabled contact person sign in again, with its password.
    Enable { taxpayer: i64, id: i64 },
    /// Removes a contact person for good and ends its sessions.
    Remove { taxpayer: i64, id: i64 },
    /// Gives a contact person another role. It applies from the person's next request on.
    Role {
        taxpayer: i64,
        id: i64,
        /// `read_only`, accountant or owner.
        #[arg(value_name = "ROLE")]
        role: ContactRole,
    },
    /// Removes the second factor of a contact person who lost it, ends its sessions, and prints { id, `had_totp` } as
    /// one line of JSON.
    TotpReset { taxpayer: i64, id: i64 },
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum SecretsCall {
    /// Seals every secret in the database with the current encryption key and prints counts as one line of JSON.
    /// Exits with 1 if some secrets could not be resealed. The command may run beside the service and may be
    /// repeated.
    Reseal,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ConfigCall {
    /// Prints the effective settings, with masked secrets.
    Check,
}

/// The file to import, and the service. A key on the command line is seen in lists of processes and kept in the history
/// of the shell: give it in the environment or in a file.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ImportArguments {
    /// UBL (.xml), CSV, XLSX, NDJSON or JSON, known by the ending of its name.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The create request whose fields the invoices have: standard, or full for UBL and JSON.
    #[arg(long, value_name = "FORM", default_value_t = ImportForm::Standard)]
    pub form: ImportForm,
    /// Imports without a question.
    #[arg(long)]
    pub yes: bool,
    /// The address of the service.
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8080",
        env = "EINVOICE_IMPORT_URL"
    )]
    pub url: String,
    /// The API key of the taxpayer.
    #[arg(
        long,
        value_name = "KEY",
        env = "EINVOICE_IMPORT_KEY",
        hide_env_values = true
    )]
    pub key: Option<String>,
    /// The file with the key.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

/// The fault of a fire drill, and the service to hold it on. The keys can be given as environment variables, so that no
/// list of processes shows them.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DrillArguments {
    #[arg(value_enum)]
    pub fault: DrillFault,
    /// How long the fault lasts at least, such as 30s or 2m.
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = parse_span)]
    pub lasts: Duration,
    /// The address of the service.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// The address of the simulator of the authority that the service calls: see `sandbox.bind`.
    #[arg(long, value_name = "URL")]
    pub simulator: String,
    /// The key of an operator who is an admin.
    #[arg(
        long,
        value_name = "KEY",
        env = "EINVOICE_DRILL_OPERATOR_KEY",
        hide_env_values = true
    )]
    pub operator_key: String,
    /// The key of a taxpayer, who calls the authority meanwhile.
    #[arg(
        long,
        value_name = "KEY",
        env = "EINVOICE_DRILL_TAXPAYER_KEY",
        hide_env_values = true
    )]
    pub taxpayer_key: String,
    /// The API key of the taxpayer's integrator; only for `receiver`, which changes the taxpayer's webhook.
    #[arg(
        long,
        value_name = "KEY",
        env = "EINVOICE_DRILL_INTEGRATOR_KEY",
        hide_env_values = true
    )]
    pub integrator_key: Option<String>,
    /// The id of the taxpayer; only for `receiver` and `panic`.
    #[arg(long, value_name = "ID")]
    pub taxpayer: Option<i64>,
}

/// The fault of a fire drill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DrillFault {
    /// The authority answers every call with 503.
    Outage,
    /// The authority takes seconds to answer.
    Slow,
    /// The authority asks to be called less often.
    Throttle,
    /// The authority refuses the key of this service.
    Key,
    /// The taxpayer's receiver of webhooks answers 500. Afterwards the taxpayer is notified of nothing until its webhook
    /// is set again.
    Receiver,
    /// The taxpayer's actor panics twice, and its command is quarantined.
    Panic,
}

impl fmt::Display for DrillFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Outage => "the authority is out",
            Self::Slow => "the authority is slow",
            Self::Throttle => "the authority asks to be called less often",
            Self::Key => "the authority refuses the key",
            Self::Receiver => "the receiver of the taxpayer fails",
            Self::Panic => "the actor of the taxpayer panics",
        })
    }
}

/// Parses a span of time: a number of seconds, or a number with `s` or `m`.
fn parse_span(text: &str) -> Result<Duration, String> {
    let (number, seconds) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "a time is a number of seconds, such as 30s, or of minutes, such as 2m")?;
    let span = number.saturating_mul(seconds);
    if !(1..=DRILL_S_MAX).contains(&span) {
        return Err(format!("a drill lasts from 1 to {DRILL_S_MAX} seconds"));
    }
    Ok(Duration::from_secs(span))
}

/// The simulator ends each fault after an hour.
const DRILL_S_MAX: u64 = 3_000;

/// A fault that the simulated authority injects into the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DemoFault {
    /// The authority accepts the invoice and drops the connection before it answers.
    CommitThenDrop,
}

impl KeyArguments {
    /// Returns the terms of the new key. `overlap_s` is how long the old key stays valid, in seconds.
    pub fn into_terms(self, overlap_s: u64) -> KeyTerms {
        let Self { scope, expires_at } = self;
        KeyTerms {
            scope,
            expires_at,
            overlap: Duration::from_secs(overlap_s),
            keeps_others: false,
        }
    }
}

impl Arguments {
    /// Returns the command, `serve` by default, and the path of the settings file, if given.
    pub fn into_parts(self) -> (Call, Option<PathBuf>) {
        (
            self.call.unwrap_or(Call::Serve { paused: false }),
            self.config,
        )
    }
}

fn subscription_parser() -> impl clap::builder::TypedValueParser<Value = Subscription> {
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
        parse(line)
            .unwrap_or_else(|error| panic!("{line}: {error}"))
            .0
    }

    #[test]
    fn the_definition_holds_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn no_subcommand_means_serve() {
        assert_eq!(call(""), Call::Serve { paused: false });
        assert_eq!(call("serve"), Call::Serve { paused: false });
    }

    #[test]
    fn accounts_and_their_keys_are_created_changed_and_revoked() {
        let name = "N".to_owned();
        let email = "E".to_owned();
        let state = Subscription::Inactive;
        let terms = KeyArguments::default();
        let narrow = KeyArguments {
            scope: Some(KeyScope::ReadOnly),
            expires_at: Some("2030-01-01T00:00:00Z".parse().unwrap()),
        };
        for (line, expected) in [
            (
                "integrator create --name N --email E",
                Call::Integrator(IntegratorCall::Create {
                    name,
                    email: email.clone(),
                    terms: terms.clone(),
                }),
            ),
            (
                "integrator list",
                Call::Integrator(IntegratorCall::Keys(KeyCall::List)),
            ),
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
                Call::Integrator(IntegratorCall::Revoke {
                    id: 7,
                    taxpayer_keys: true,
                }),
            ),
            (
                "operator create --email E",
                Call::Operator(OperatorCall::Create {
                    email,
                    role: OperatorRole::Admin,
                    terms: terms.clone(),
                }),
            ),
            (
                "operator list",
                Call::Operator(OperatorCall::Keys(KeyCall::List)),
            ),
            (
                "operator rotate 7",
                Call::Operator(OperatorCall::Keys(KeyCall::Rotate {
                    id: 7,
                    overlap_s: 0,
                    terms,
                })),
            ),
            (
                "operator totp-reset 7",
                Call::Operator(OperatorCall::Keys(KeyCall::TotpReset { id: 7 })),
            ),
            (
                "operator revoke 7",
                Call::Operator(OperatorCall::Revoke { id: 7 }),
            ),
            (
                "taxpayer subscription 7 inactive",
                Call::Taxpayer(TaxpayerCall::Subscription { id: 7, state }),
            ),
        ] {
            assert_eq!(call(line), expected, "{line}");
        }
    }

    #[test]
    fn calls_that_manage_no_account_are_understood() {
        let bind = Some("127.0.0.1:9000".parse().unwrap());
        let day = "2026-01-15".parse().unwrap();
        for (line, expected) in [
            ("demo", Call::Demo { fault: None }),
            (
                "demo --fault commit-then-drop",
                Call::Demo {
                    fault: Some(DemoFault::CommitThenDrop),
                },
            ),
            ("migrate", Call::Migrate),
            ("serve --paused", Call::Serve { paused: true }),
            ("doctor", Call::Doctor { json: false }),
            ("doctor --json", Call::Doctor { json: true }),
            (
                "sandbox --bind 127.0.0.1:9000",
                Call::Sandbox { bind, seed: 1 },
            ),
            (
                "sandbox --seed 7",
                Call::Sandbox {
                    bind: None,
                    seed: 7,
                },
            ),
            (
                "sandbox",
                Call::Sandbox {
                    bind: None,
                    seed: 1,
                },
            ),
            ("config check", Call::Config(ConfigCall::Check)),
            ("openapi", Call::Openapi),
            (
                "reconcile --taxpayer 7 --day 2026-01-15",
                Call::Reconcile { taxpayer: 7, day },
            ),
            ("secrets reseal", Call::Secrets(SecretsCall::Reseal)),
            ("checkpoint", Call::Checkpoint),
        ] {
            assert_eq!(call(line), expected, "{line}");
        }
    }

    #[test]
    fn a_verification_names_its_checkpoints() {
        for (line, expected) in [
            (
                "verify",
                Call::Verify {
                    taxpayer: None,
                    checkpoints: None,
                    public_key: None,
                    at_least: None,
                },
            ),
            (
                "verify --taxpayer 7",
                Call::Verify {
                    taxpayer: Some(7),
                    checkpoints: None,
                    public_key: None,
                    at_least: None,
                },
            ),
            (
                "verify --checkpoints F --public-key K",
                Call::Verify {
                    taxpayer: None,
                    checkpoints: Some("F".into()),
                    public_key: Some("K".to_owned()),
                    at_least: None,
                },
            ),
        ] {
            assert_eq!(call(line), expected, "{line}");
        }
    }

    #[test]
    fn invitations_are_made_for_each_kind_of_person() {
        let keys = |id| KeyCall::Invitation { id };
        let contact = ContactCommand::Invitation { taxpayer: 7, id: 9 };
        for (line, expected) in [
            (
                "operator invitation 7",
                Call::Operator(OperatorCall::Keys(keys(7))),
            ),
            (
                "integrator invitation 7",
                Call::Integrator(IntegratorCall::Keys(keys(7))),
            ),
            (
                "taxpayer contact invitation 7 9",
                Call::Taxpayer(TaxpayerCall::Contact(contact)),
            ),
        ] {
            assert_eq!(call(line), expected, "{line}");
        }
    }

    #[test]
    fn access_is_taken_away_and_given_back() {
        for (line, expected) in [
            (
                "integrator disable 7 --taxpayer-keys",
                Call::Integrator(IntegratorCall::Disable {
                    id: 7,
                    taxpayer_keys: true,
                }),
            ),
            (
                "integrator enable 7",
                Call::Integrator(IntegratorCall::Enable { id: 7 }),
            ),
            (
                "operator disable 7",
                Call::Operator(OperatorCall::Disable { id: 7 }),
            ),
            (
                "operator enable 7",
                Call::Operator(OperatorCall::Enable { id: 7 }),
            ),
            (
                "operator remove 7",
                Call::Operator(OperatorCall::Remove { id: 7 }),
            ),
            (
                "operator role 7 viewer",
                Call::Operator(OperatorCall::Role {
                    id: 7,
                    role: OperatorRole::Viewer,
                }),
            ),
            (
                "taxpayer contact role 7 9 read_only",
                Call::Taxpayer(TaxpayerCall::Contact(ContactCommand::Role {
                    taxpayer: 7,
                    id: 9,
                    role: ContactRole::ReadOnly,
                })),
            ),
            (
                "taxpayer contact disable 7 9",
                Call::Taxpayer(TaxpayerCall::Contact(ContactCommand::Disable {
                    taxpayer: 7,
                    id: 9,
                })),
            ),
        ] {
            assert_eq!(call(line), expected, "{line}");
        }
    }

    #[test]
    fn a_drill_lasts_for_seconds_or_minutes() {
        let spans = ["30", "30s", "2m", "0s", "51m", "s", "1h"].map(|text| parse_span(text).ok());
        let seconds = spans.map(|span| span.map(|span| span.as_secs()));
        let expected = [Some(30), Some(30), Some(120), None, None, None, None];
        assert_eq!(seconds, expected);
        let line = "drill slow --for 5s --simulator http://s --operator-key o --taxpayer-key t";
        let Call::Drill(arguments) = call(line) else {
            panic!("{line}")
        };
        assert_eq!(
            (arguments.fault, arguments.lasts, arguments.url.as_str()),
            (
                DrillFault::Slow,
                Duration::from_secs(5),
                "http://127.0.0.1:8080"
            )
        );
    }

    #[test]
    fn an_import_names_its_file_and_where_the_key_is() {
        let line = "import july.csv --form full --yes --url http://s --key-file k";
        let Call::Import(arguments) = call(line) else {
            panic!("{line}")
        };
        assert_eq!(
            (arguments.form, arguments.yes, arguments.url.as_str()),
            (ImportForm::Full, true, "http://s")
        );
        assert_eq!(arguments.key_file, Some("k".into()));
        assert_eq!(
            parse("import").unwrap_err().kind(),
            ErrorKind::MissingRequiredArgument
        );
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
            (
                "integrator create --name N",
                ErrorKind::MissingRequiredArgument,
            ),
            ("taxpayer subscription 7 paused", ErrorKind::InvalidValue),
            ("integrator rotate seven", ErrorKind::ValueValidation),
            (
                "operator rotate 7 --overlap-s 604801",
                ErrorKind::ValueValidation,
            ),
            (
                "operator create --email E --scope some",
                ErrorKind::ValueValidation,
            ),
            (
                "operator revoke 7 --taxpayer-keys",
                ErrorKind::UnknownArgument,
            ),
            (
                "operator disable 7 --taxpayer-keys",
                ErrorKind::UnknownArgument,
            ),
            ("operator role 7", ErrorKind::MissingRequiredArgument),
            ("operator role 7 owner", ErrorKind::ValueValidation),
            ("integrator remove 7", ErrorKind::InvalidSubcommand),
            (
                "taxpayer subscription seven active",
                ErrorKind::ValueValidation,
            ),
            ("sandbox --bind here", ErrorKind::ValueValidation),
            ("sandbox --seed luck", ErrorKind::ValueValidation),
            ("demo --fault fire", ErrorKind::InvalidValue),
            ("reconcile --taxpayer 7", ErrorKind::MissingRequiredArgument),
            (
                "reconcile --taxpayer 7 --day yesterday",
                ErrorKind::ValueValidation,
            ),
            (
                "reconcile --taxpayer seven --day 2026-01-15",
                ErrorKind::ValueValidation,
            ),
            ("verify --public-key K", ErrorKind::MissingRequiredArgument),
            (
                "verify --checkpoints F --at-least 7",
                ErrorKind::ValueValidation,
            ),
            ("serve --port 1", ErrorKind::UnknownArgument),
        ] {
            assert_eq!(parse(line).unwrap_err().kind(), kind, "{line}");
        }
    }
}
