//! The program: reads the arguments and the settings, runs one command, and reports the result by the exit code.
//!
//! The exit code is 0 for success, 1 for a failed command, 2 for unusable arguments or settings. Errors are one
//! sentence on standard error; standard output is only for results. `reconcile` exits with 1 if findings are left to
//! an operator, and with 2 if the day could not be compared.

// The layouts of futures nest deeper in a release build than in a build for tests. So test builds get a lower limit
// than the default of 128: code that nests too deeply already fails in tests, before anybody builds a release.
#![cfg_attr(debug_assertions, recursion_limit = "80")]

use std::error::Error;
use std::fmt::Display;
use std::io::{Write as _, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use einvoice::app;
use einvoice::app::{
    AccessAct, ContactAct, ContactId, DoctorReport, KeyKind, KeyOwner, ServeMode, StartError,
    TaxpayerId,
};
use einvoice::cli::{
    Arguments, Command, ConfigSubcommand, ContactSubcommand, IntegratorSubcommand, KeySubcommand,
    OperatorSubcommand, SecretsSubcommand, TaxpayerSubcommand,
};
use einvoice::config::Settings;
use einvoice::telemetry;
use rustix::fs::Mode;
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXIT_FAILED: u8 = 1;
const EXIT_UNUSABLE: u8 = 2;
/// The exit code if `reconcile` could not compare the day: its exit code 1 says that findings are left to an operator.
const EXIT_NOT_COMPARED: u8 = 2;

/// The text that a successful command prints on standard output, if any; or why the command failed.
type CommandResult = Result<Option<String>, ExitFailure>;

/// The reason why the program fails, as a sentence, and the exit code.
struct ExitFailure {
    code: u8,
    sentence: String,
}

fn main() -> ExitCode {
    // Only this user may read the files that the process creates: the database, the secrets and the checkpoints.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    // For help and for invalid arguments, clap prints the text and ends the program itself, with exit code 0 or 2.
    let (command, file) = Arguments::parse().into_parts();
    match run(command, file.as_deref()).and_then(print) {
        Ok(()) => ExitCode::SUCCESS,
        Err(ExitFailure { code, sentence }) => {
            print_error_line(&sentence);
            ExitCode::from(code)
        }
    }
}

/// Prints the result. If this fails, the command fails too, because a new API key that was not printed is lost.
fn print(answer: Option<String>) -> Result<(), ExitFailure> {
    let Some(answer) = answer else { return Ok(()) };
    writeln!(stdout(), "{}", answer.trim_end()).map_err(|error| exit_failure(&error))
}

/// Writes a line to standard error. If it cannot be written, the result and the exit code stay the same.
fn print_error_line(text: &str) {
    let _ = writeln!(stderr(), "einvoice: {text}");
}

fn run(command: Command, file: Option<&Path>) -> CommandResult {
    if command == Command::Openapi {
        return Ok(Some(app::openapi_document().to_owned()));
    }
    if let Command::Import(arguments) = command {
        // An import needs no settings: they are those of the service, which may run elsewhere.
        let done = actix_rt::System::new().block_on(app::import(arguments));
        return done.map(Some).map_err(|error| exit_failure(&error));
    }
    let settings =
        Settings::load(file, environment_variables()).map_err(|fault| unusable_failure(&fault))?;
    if command == Command::Config(ConfigSubcommand::Check) {
        settings
            .warnings()
            .iter()
            .for_each(|warning| print_error_line(&format!("warning: {warning}")));
        return Ok(Some(settings.to_masked_toml()));
    }
    telemetry::init(&settings.log);
    if matches!(command, Command::Serve { .. }) {
        settings
            .warnings()
            .iter()
            .for_each(|warning| tracing::warn!("{warning}"));
    }
    // The demo creates its secrets in a temporary directory, and a drill needs none, so `data_dir` is left untouched.
    let settings = match command {
        Command::Demo { .. } | Command::Drill(_) => Ok(settings),
        // The doctor changes nothing.
        Command::Doctor { .. } => settings.with_stored_secrets(),
        _ => settings.with_local_secrets(),
    };
    let settings = settings.map_err(|fault| unusable_failure(&fault))?;
    actix_rt::System::new().block_on(dispatch(command, settings))
}

async fn dispatch(command: Command, settings: Settings) -> CommandResult {
    match command {
        Command::Config(ConfigSubcommand::Check) => Ok(Some(settings.to_masked_toml())),
        Command::Openapi => Ok(Some(app::openapi_document().to_owned())),
        Command::Import(arguments) => app::import(arguments)
            .await
            .map(Some)
            .map_err(|error| exit_failure(&error)),
        Command::Serve { paused } => {
            let mode = if paused {
                ServeMode::Paused
            } else {
                ServeMode::Normal
            };
            no_output(app::serve(settings, mode).await)
        }
        Command::Doctor { json } => print_doctor_report(&app::doctor(&settings).await, json),
        Command::Demo { fault } => no_output(app::demo(fault).await),
        Command::Drill(arguments) => no_output(app::drill(arguments).await),
        Command::Migrate => no_output(app::migrate(settings).await),
        Command::Integrator(command) => json_line(run_integrator_command(settings, command).await),
        Command::Operator(command) => json_line(run_operator_command(settings, command).await),
        Command::Taxpayer(TaxpayerSubcommand::Subscription { id, state }) => {
            no_output(app::set_subscription(settings, id, state).await)
        }
        Command::Taxpayer(TaxpayerSubcommand::Contact(command)) => {
            json_line(run_contact_command(settings, command).await)
        }
        Command::Sandbox { bind, seed } => {
            let bind = bind.unwrap_or(settings.sandbox.bind);
            no_output(app::serve_sandbox(settings, bind, seed).await)
        }
        Command::Reconcile { taxpayer, day } => {
            print_reconciliation(app::reconcile(settings, taxpayer, day).await)
        }
        Command::Secrets(SecretsSubcommand::Reseal) => {
            let done = app::reseal(settings)
                .await
                .map_err(|error| exit_failure(&error))?;
            print(Some(done.to_json().to_string()))?;
            no_output(done.check_all_resealed())
        }
        Command::Checkpoint => json_line(app::checkpoint(settings).await),
        Command::Verify {
            taxpayer,
            checkpoints,
            public_key,
            at_least,
        } => {
            let source = checkpoints.map(|file| app::CheckpointSource {
                file,
                public_key,
                at_least,
            });
            let report = app::verify(settings, taxpayer, source)
                .await
                .map_err(|error| exit_failure(&error))?;
            if report.is_intact() {
                Ok(Some(report.to_string()))
            } else {
                Err(report_failure(&report))
            }
        }
    }
}

async fn run_integrator_command(
    settings: Settings,
    command: IntegratorSubcommand,
) -> Result<Value, StartError> {
    const KIND: KeyKind = KeyKind::Integrator;
    match command {
        IntegratorSubcommand::Create { name, email, terms } => {
            app::create_integrator(settings, name, email, terms.into_terms(0)).await
        }
        IntegratorSubcommand::Keys(command) => run_key_command(settings, KIND, command).await,
        IntegratorSubcommand::Revoke { id, taxpayer_keys } => {
            app::revoke_keys(settings, KeyOwner { kind: KIND, id }, taxpayer_keys).await
        }
        IntegratorSubcommand::Disable { id, taxpayer_keys } => {
            let call = AccessAct::Disable {
                includes_taxpayers: taxpayer_keys,
            };
            app::change_access(settings, KeyOwner { kind: KIND, id }, call).await
        }
        IntegratorSubcommand::Enable { id } => {
            app::change_access(settings, KeyOwner { kind: KIND, id }, AccessAct::Enable).await
        }
    }
}

async fn run_operator_command(
    settings: Settings,
    command: OperatorSubcommand,
) -> Result<Value, StartError> {
    const KIND: KeyKind = KeyKind::Operator;
    let access = async |settings, id, call| {
        app::change_access(settings, KeyOwner { kind: KIND, id }, call).await
    };
    match command {
        OperatorSubcommand::Create { email, role, terms } => {
            app::create_operator(settings, email, role, terms.into_terms(0)).await
        }
        OperatorSubcommand::Keys(command) => run_key_command(settings, KIND, command).await,
        OperatorSubcommand::Revoke { id } => {
            app::revoke_keys(settings, KeyOwner { kind: KIND, id }, false).await
        }
        OperatorSubcommand::Disable { id } => {
            access(
                settings,
                id,
                AccessAct::Disable {
                    includes_taxpayers: false,
                },
            )
            .await
        }
        OperatorSubcommand::Enable { id } => access(settings, id, AccessAct::Enable).await,
        OperatorSubcommand::Remove { id } => access(settings, id, AccessAct::Remove).await,
        OperatorSubcommand::Role { id, role } => access(settings, id, AccessAct::Role(role)).await,
    }
}

async fn run_contact_command(
    settings: Settings,
    command: ContactSubcommand,
) -> Result<Value, StartError> {
    match command {
        ContactSubcommand::Invitation { taxpayer, id } => {
            app::invite_contact(settings, TaxpayerId(taxpayer), ContactId(id)).await
        }
        ContactSubcommand::TotpReset { taxpayer, id } => {
            app::reset_contact_totp(settings, TaxpayerId(taxpayer), ContactId(id)).await
        }
        ContactSubcommand::Disable { taxpayer, id } => {
            change_contact(settings, taxpayer, id, ContactAct::Disable).await
        }
        ContactSubcommand::Enable { taxpayer, id } => {
            change_contact(settings, taxpayer, id, ContactAct::Enable).await
        }
        ContactSubcommand::Remove { taxpayer, id } => {
            change_contact(settings, taxpayer, id, ContactAct::Remove).await
        }
        ContactSubcommand::Role { taxpayer, id, role } => {
            change_contact(settings, taxpayer, id, ContactAct::Role(role)).await
        }
    }
}

async fn change_contact(
    settings: Settings,
    taxpayer: i64,
    id: i64,
    call: ContactAct,
) -> Result<Value, StartError> {
    app::change_contact(settings, TaxpayerId(taxpayer), ContactId(id), call).await
}

async fn run_key_command(
    settings: Settings,
    kind: KeyKind,
    command: KeySubcommand,
) -> Result<Value, StartError> {
    match command {
        KeySubcommand::List => app::list_accounts(settings, kind).await,
        KeySubcommand::Rotate {
            id,
            overlap_s,
            terms,
        } => app::rotate_key(settings, KeyOwner { kind, id }, terms.into_terms(overlap_s)).await,
        KeySubcommand::Password { id } => {
            app::set_new_password(settings, KeyOwner { kind, id }).await
        }
        KeySubcommand::Invitation { id } => app::invite(settings, KeyOwner { kind, id }).await,
        KeySubcommand::TotpReset { id } => app::reset_totp(settings, KeyOwner { kind, id }).await,
    }
}

/// Returns the environment variables whose names are Unicode. Parts of a value that are not Unicode become U+FFFD.
fn environment_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| {
        Some((
            name.into_string().ok()?,
            value.to_string_lossy().into_owned(),
        ))
    })
}

fn no_output<E: Error>(done: Result<(), E>) -> CommandResult {
    done.map(|()| None).map_err(|error| exit_failure(&error))
}

/// Turns the result of a command into one line of JSON.
fn json_line<E: Error>(answer: Result<Value, E>) -> CommandResult {
    answer
        .map(|answer| Some(answer.to_string()))
        .map_err(|error| exit_failure(&error))
}

/// Prints all findings, then succeeds only if no finding is left to an operator.
fn print_reconciliation<E: Error>(done: Result<app::ReconciliationReport, E>) -> CommandResult {
    let found = done.map_err(|error| ExitFailure {
        code: EXIT_NOT_COMPARED,
        sentence: error_sentence(&error),
    })?;
    print(Some(found.to_string()))?;
    match found.findings_to_decide() {
        0 => Ok(None),
        listed => Err(ExitFailure {
            code: EXIT_FAILED,
            sentence: format!("{listed} findings are left to an operator"),
        }),
    }
}

/// Prints all checks, then succeeds only if none failed.
fn print_doctor_report(report: &DoctorReport, as_json: bool) -> CommandResult {
    print(Some(if as_json {
        report.to_json().to_string()
    } else {
        report.to_string()
    }))?;
    let sentence = match report.failed_count() {
        0 => return Ok(None),
        1 => "1 check failed".to_owned(),
        failed => format!("{failed} checks failed"),
    };
    Err(report_failure(&sentence))
}

fn report_failure(report: &impl Display) -> ExitFailure {
    ExitFailure {
        code: EXIT_FAILED,
        sentence: report.to_string(),
    }
}

fn exit_failure(error: &dyn Error) -> ExitFailure {
    ExitFailure {
        code: EXIT_FAILED,
        sentence: error_sentence(error),
    }
}

fn unusable_failure(error: &dyn Error) -> ExitFailure {
    ExitFailure {
        code: EXIT_UNUSABLE,
        sentence: error_sentence(error),
    }
}

/// Returns the error and its causes as one sentence. A cause whose words are already in the sentence is left out.
fn error_sentence(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !said.contains(&words) {
            said = format!("{said}: {words}");
        }
        cause = error.source();
    }
    said
}
