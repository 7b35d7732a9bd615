//! The arguments of the program: the settings file and the command.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::civil::Date;

use crate::cli::accounts::{IntegratorSubcommand, OperatorSubcommand, TaxpayerSubcommand};
use crate::cli::drill::DrillArguments;
use crate::domain::events::checkpoint::LastCheckpointLine;
use crate::domain::import::source::ImportForm;

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
    command: Option<Command>,
}

/// The command to run.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Command {
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
    /// Holds a fire drill on a running development service: causes a fault, waits until the service reports the
    /// incident, ends the fault, and waits until the incident is gone. Exits with 0 only if the incident came and went.
    Drill(DrillArguments),
    /// Sends a file of invoices to a running service: shows the preview, asks, imports, and writes the refused invoices
    /// beside the file. The same call again continues an import that was interrupted. Exits with 0 if all invoices of
    /// the file exist, and with 1 otherwise.
    Import(ImportArguments),
    /// Brings the database schema up to date.
    Migrate,
    /// Manages integrators, who act for taxpayers.
    #[command(subcommand)]
    Integrator(IntegratorSubcommand),
    /// Manages the operators of this deployment.
    #[command(subcommand)]
    Operator(OperatorSubcommand),
    /// Manages taxpayers.
    #[command(subcommand)]
    Taxpayer(TaxpayerSubcommand),
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
    Config(ConfigSubcommand),
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
    Secrets(SecretsSubcommand),
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
        at_least: Option<LastCheckpointLine>,
    },
    /// Signs the heads of the event chains that have grown and appends them to `checkpoints.file`. Prints the number
    /// and hash of the file's last line as one line of JSON.
    Checkpoint,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum SecretsSubcommand {
    /// Seals every secret in the database with the current encryption key and prints counts as one line of JSON.
    /// Exits with 1 if some secrets could not be resealed. The command may run beside the service and may be
    /// repeated.
    Reseal,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ConfigSubcommand {
    /// Prints the effective settings, with masked secrets.
    Check,
}

/// The file to import, and the service. A key on the command line is seen in lists of processes and kept in the history
/// of the shell: give it in the environment or in a file.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ImportArguments {
    /// The file of invoices: UBL (.xml), CSV, XLSX, NDJSON or JSON, recognised by the ending of its name.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The create request whose fields the invoices have: standard, or full for UBL and JSON.
    #[arg(long, value_name = "FORM", default_value_t = ImportForm::Standard)]
    pub form: ImportForm,
    /// Imports without asking for confirmation first.
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

/// A fault that the simulated authority injects into the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DemoFault {
    /// The authority accepts the invoice and drops the connection before it answers.
    CommitThenDrop,
}

impl Arguments {
    /// Returns the command, `serve` by default, and the path of the settings file, if given.
    pub fn into_parts(self) -> (Command, Option<PathBuf>) {
        (
            self.command.unwrap_or(Command::Serve { paused: false }),
            self.config,
        )
    }
}
