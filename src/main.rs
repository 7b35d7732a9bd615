//! The program: reads its arguments and settings, makes one call, and says how it went by its exit code.
//!
//! 0 is success, 1 a call that failed, 2 arguments or settings that cannot be used. What goes wrong is said in one
//! sentence on standard error; standard output holds answers only. `reconcile` exits 1 where findings are listed, and 2
//! wherever it came to no answer.

use std::error::Error;
use std::fmt::Display;
use std::io::{Write as _, stdout};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use einvoice::app;
use einvoice::app::StartError;
use einvoice::cli::{Arguments, Call, ConfigCall, IntegratorCall, OperatorCall, SecretsCall, TaxpayerCall};
use einvoice::config::Settings;
use einvoice::domain::access::api_key::KeyOwner;
use einvoice::domain::access::caller::KeyKind;
use einvoice::http::openapi::document;
use einvoice::telemetry;
use rustix::fs::Mode;
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const FAILED: u8 = 1;
const UNUSABLE: u8 = 2;

/// What a call that went well prints, if anything.
type Outcome = Result<Option<String>, Failure>;

/// Why the program ends before its time, and with which code.
struct Failure {
    code: u8,
    sentence: String,
}

fn main() -> ExitCode {
    // What is written here is for this user alone: the database, its secrets, checkpoints.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    // Clap prints help and what it does not understand, and ends the program itself: with 0, or with 2.
    let (call, file) = Arguments::parse().into_parts();
    match run(call, file.as_deref()).and_then(print) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, sentence }) => {
            eprintln!("einvoice: {sentence}");
            ExitCode::from(code)
        }
    }
}

/// A key that could not be printed is lost: that is a failure, and no panic.
fn print(answer: Option<String>) -> Result<(), Failure> {
    let Some(answer) = answer else { return Ok(()) };
    writeln!(stdout(), "{}", answer.trim_end()).map_err(|error| failed(&error))
}

fn run(call: Call, file: Option<&Path>) -> Outcome {
    if call == Call::Openapi {
        return Ok(Some(document::text().to_owned()));
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
    // A demonstration leaves no trace here: it has a directory of its own, and makes its secrets there.
    let settings = match call {
        Call::Demo { .. } => settings,
        _ => settings.with_local_secrets().map_err(|fault| unusable(&fault))?,
    };
    actix_rt::System::new().block_on(dispatch(call, settings))
}

async fn dispatch(call: Call, settings: Settings) -> Outcome {
    match call {
        Call::Config(ConfigCall::Check) => Ok(Some(settings.masked())),
        Call::Openapi => Ok(Some(document::text().to_owned())),
        Call::Serve => silent(app::serve(settings).await),
        Call::Demo { fault } => silent(app::demo(settings, fault).await),
        Call::Migrate => silent(app::migrate(settings).await),
        Call::Integrator(call) => line(integrator(settings, call).await),
        Call::Operator(call) => line(operator(settings, call).await),
        Call::Taxpayer(TaxpayerCall::Subscription { id, state }) => {
            silent(app::set_subscription(settings, id, state).await)
        }
        Call::Sandbox { bind, seed } => {
            let bind = bind.unwrap_or(settings.sandbox.bind);
            silent(app::sandbox(settings, bind, seed).await)
        }
        Call::Reconcile { taxpayer, day } => reconciled(app::reconcile(settings, taxpayer, day).await),
        Call::Secrets(SecretsCall::Reseal) => {
            let done = app::reseal(settings).await.map_err(|error| failed(&error))?;
            print(Some(done.to_json().to_string()))?;
            silent(done.check())
        }
        Call::Checkpoint => line(app::checkpoint(settings).await),
        Call::Verify { taxpayer, checkpoints, public_key } => {
            let against = checkpoints.map(|file| app::Against { file, public_key });
            let report = app::verify(settings, taxpayer, against).await.map_err(|error| failed(&error))?;
            if report.is_intact() { Ok(Some(report.to_string())) } else { Err(broken(&report)) }
        }
    }
}

async fn integrator(settings: Settings, call: IntegratorCall) -> Result<Value, StartError> {
    let owner = |id| KeyOwner { kind: KeyKind::Integrator, id };
    match call {
        IntegratorCall::Create { name, email, terms } => {
            app::create_integrator(settings, name, email, terms.into_terms(0)).await
        }
        IntegratorCall::List => app::list_accounts(settings, KeyKind::Integrator).await,
        IntegratorCall::Rotate { id, overlap_s, terms } => {
            app::rotate_key(settings, owner(id), terms.into_terms(overlap_s)).await
        }
        IntegratorCall::Revoke { id, taxpayer_keys } => {
            app::revoke_keys(settings, owner(id), taxpayer_keys).await
        }
    }
}

async fn operator(settings: Settings, call: OperatorCall) -> Result<Value, StartError> {
    let owner = |id| KeyOwner { kind: KeyKind::Operator, id };
    match call {
        OperatorCall::Create { email, terms } => {
            app::create_operator(settings, email, terms.into_terms(0)).await
        }
        OperatorCall::List => app::list_accounts(settings, KeyKind::Operator).await,
        OperatorCall::Rotate { id, overlap_s, terms } => {
            app::rotate_key(settings, owner(id), terms.into_terms(overlap_s)).await
        }
        OperatorCall::Revoke { id } => app::revoke_keys(settings, owner(id), false).await,
    }
}

/// The environment, of which settings read only their own. Text that is no Unicode is no allowed value either.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
}

fn silent<E: Error>(done: Result<(), E>) -> Outcome {
    done.map(|()| None).map_err(|error| failed(&error))
}

/// One line of JSON.
fn line<E: Error>(answer: Result<Value, E>) -> Outcome {
    answer.map(|answer| Some(answer.to_string())).map_err(|error| failed(&error))
}

/// What was found is printed either way.
fn reconciled<E: Error>(done: Result<app::Reconciled, E>) -> Outcome {
    let found = done.map_err(|error| unusable(&error))?;
    print(Some(found.to_string()))?;
    match found.listed() {
        0 => Ok(None),
        listed => {
            Err(Failure { code: FAILED, sentence: format!("{listed} findings are left to an operator") })
        }
    }
}

fn broken(report: &impl Display) -> Failure {
    Failure { code: FAILED, sentence: report.to_string() }
}

fn failed(error: &dyn Error) -> Failure {
    Failure { code: FAILED, sentence: sentence(error) }
}

fn unusable(error: &dyn Error) -> Failure {
    Failure { code: UNUSABLE, sentence: sentence(error) }
}

/// The error and what brought it about, unless that has been said already.
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
