//! The program: reads its arguments and settings, makes one call, and reports the result by its exit code.
//!
//! 0 is success, 1 a failed call, 2 unusable arguments or settings. Errors are one sentence on standard error;
//! standard output holds answers only. `reconcile` exits 1 if findings are listed, and 2 if it has no answer.

use std::error::Error;
use std::fmt::Display;
use std::io::{Write as _, stdout};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use einvoice::app;
use einvoice::app::StartError;
use einvoice::cli::{
    Arguments, Call, ConfigCall, IntegratorCall, KeyCall, OperatorCall, SecretsCall, TaxpayerCall,
};
use einvoice::config::Settings;
use einvoice::domain::access::api_key::KeyOwner;
use einvoice::domain::access::caller::KeyKind;
use einvoice::http;
use einvoice::telemetry;
use rustix::fs::Mode;
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const FAILED: u8 = 1;
const UNUSABLE: u8 = 2;

/// The output of a successful call, if any.
type CallResult = Result<Option<String>, ExitFailure>;

/// Why the program fails, and its exit code.
struct ExitFailure {
    code: u8,
    sentence: String,
}

fn main() -> ExitCode {
    // Files written here are for this user alone: the database, its secrets, checkpoints.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    // Clap prints help and errors, and ends the program itself: with 0, or with 2.
    let (call, file) = Arguments::parse().into_parts();
    match run(call, file.as_deref()).and_then(print) {
        Ok(()) => ExitCode::SUCCESS,
        Err(ExitFailure { code, sentence }) => {
            eprintln!("einvoice: {sentence}");
            ExitCode::from(code)
        }
    }
}

/// A key that could not be printed is lost: that is a failure, not a panic.
fn print(answer: Option<String>) -> Result<(), ExitFailure> {
    let Some(answer) = answer else { return Ok(()) };
    writeln!(stdout(), "{}", answer.trim_end()).map_err(|error| failed(&error))
}

fn run(call: Call, file: Option<&Path>) -> CallResult {
    if call == Call::Openapi {
        return Ok(Some(http::openapi_document().to_owned()));
    }
    let settings = Settings::load(file, environment()).map_err(|fault| unusable(&fault))?;
    if call == Call::Config(ConfigCall::Check) {
        settings.warnings().iter().for_each(|warning| eprintln!("einvoice: warning: {warning}"));
        return Ok(Some(settings.masked()));
    }
    telemetry::init(&settings.log);
    if call == Call::Serve {
        settings.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    }
    // A demo leaves no trace here: it has its own directory, and creates its secrets there.
    let settings = match call {
        Call::Demo { .. } => settings,
        _ => settings.with_local_secrets().map_err(|fault| unusable(&fault))?,
    };
    actix_rt::System::new().block_on(dispatch(call, settings))
}

async fn dispatch(call: Call, settings: Settings) -> CallResult {
    match call {
        Call::Config(ConfigCall::Check) => Ok(Some(settings.masked())),
        Call::Openapi => Ok(Some(http::openapi_document().to_owned())),
        Call::Serve => no_output(app::serve(settings).await),
        Call::Demo { fault } => no_output(app::demo(settings, fault).await),
        Call::Migrate => no_output(app::migrate(settings).await),
        Call::Integrator(call) => json_line(integrator(settings, call).await),
        Call::Operator(call) => json_line(operator(settings, call).await),
        Call::Taxpayer(TaxpayerCall::Subscription { id, state }) => {
            no_output(app::set_subscription(settings, id, state).await)
        }
        Call::Sandbox { bind, seed } => {
            let bind = bind.unwrap_or(settings.sandbox.bind);
            no_output(app::sandbox(settings, bind, seed).await)
        }
        Call::Reconcile { taxpayer, day } => reconciled(app::reconcile(settings, taxpayer, day).await),
        Call::Secrets(SecretsCall::Reseal) => {
            let done = app::reseal(settings).await.map_err(|error| failed(&error))?;
            print(Some(done.to_json().to_string()))?;
            no_output(done.check())
        }
        Call::Checkpoint => json_line(app::checkpoint(settings).await),
        Call::Verify { taxpayer, checkpoints, public_key } => {
            let source = checkpoints.map(|file| app::CheckpointSource { file, public_key });
            let report = app::verify(settings, taxpayer, source).await.map_err(|error| failed(&error))?;
            if report.is_intact() { Ok(Some(report.to_string())) } else { Err(broken(&report)) }
        }
    }
}

async fn integrator(settings: Settings, call: IntegratorCall) -> Result<Value, StartError> {
    const KIND: KeyKind = KeyKind::Integrator;
    match call {
        IntegratorCall::Create { name, email, terms } => {
            app::create_integrator(settings, name, email, terms.into_terms(0)).await
        }
        IntegratorCall::Keys(call) => keys(settings, KIND, call).await,
        IntegratorCall::Revoke { id, taxpayer_keys } => {
            app::revoke_keys(settings, KeyOwner { kind: KIND, id }, taxpayer_keys).await
        }
    }
}

async fn operator(settings: Settings, call: OperatorCall) -> Result<Value, StartError> {
    const KIND: KeyKind = KeyKind::Operator;
    match call {
        OperatorCall::Create { email, terms } => {
            app::create_operator(settings, email, terms.into_terms(0)).await
        }
        OperatorCall::Keys(call) => keys(settings, KIND, call).await,
        OperatorCall::Revoke { id } => app::revoke_keys(settings, KeyOwner { kind: KIND, id }, false).await,
    }
}

async fn keys(settings: Settings, kind: KeyKind, call: KeyCall) -> Result<Value, StartError> {
    match call {
        KeyCall::List => app::list_accounts(settings, kind).await,
        KeyCall::Rotate { id, overlap_s, terms } => {
            app::rotate_key(settings, KeyOwner { kind, id }, terms.into_terms(overlap_s)).await
        }
    }
}

/// The environment; settings read only their own variables. Text that is not Unicode is never an allowed value.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
}

fn no_output<E: Error>(done: Result<(), E>) -> CallResult {
    done.map(|()| None).map_err(|error| failed(&error))
}

/// One line of JSON.
fn json_line<E: Error>(answer: Result<Value, E>) -> CallResult {
    answer.map(|answer| Some(answer.to_string())).map_err(|error| failed(&error))
}

/// Findings are printed in either case.
fn reconciled<E: Error>(done: Result<app::Reconciled, E>) -> CallResult {
    let found = done.map_err(|error| unusable(&error))?;
    print(Some(found.to_string()))?;
    match found.listed() {
        0 => Ok(None),
        listed => {
            Err(ExitFailure { code: FAILED, sentence: format!("{listed} findings are left to an operator") })
        }
    }
}

fn broken(report: &impl Display) -> ExitFailure {
    ExitFailure { code: FAILED, sentence: report.to_string() }
}

fn failed(error: &dyn Error) -> ExitFailure {
    ExitFailure { code: FAILED, sentence: sentence(error) }
}

fn unusable(error: &dyn Error) -> ExitFailure {
    ExitFailure { code: UNUSABLE, sentence: sentence(error) }
}

/// The error and its causes, without repetitions.
fn sentence(error: &dyn Error) -> String {
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
