//! The command `demo`: the whole flow on a temporary database. Everything is real: the service over HTTP, the
//! simulator of the authority behind it, and a receiver that verifies the signature of each notification.
//!
//! | Concept | File |
//! |---|---|
//! | the requests step by step, and the expected responses | `story` |
//! | the buyer and its inbox | `buyer` |
//! | the client that prints each exchange | `client` |
//! | the endpoint that receives the notifications | `receiver` |

mod buyer;
mod client;
mod receiver;
mod story;

use sandbox::{FaultKind, FaultOrder, Operation};
use secrecy::SecretString;

use crate::app::error::StartError;
use crate::app::first_start;
use crate::app::serve::Application;
use crate::app::serve_mode::ServeMode;
use crate::cli::DemoFault;
use crate::config::authority::AuthorityMode;
use crate::config::{Environment, Settings};
use story::Story;

/// Takes one invoice from creation to confirmed transmission, and checks every response and every webhook on the way.
pub async fn demo(settings: Settings, fault: Option<DemoFault>) -> Result<(), StartError> {
    let directory = tempfile::tempdir()?;
    let mut settings = settings;
    settings.environment = Environment::Development;
    settings.data_dir = directory.path().to_owned();
    settings.database.url = SecretString::default();
    settings.authority.mode = AuthorityMode::Sandbox;
    settings.http.bind.set_port(0);
    settings.http.ops_bind = None;
    settings.sandbox.bind.set_port(0);
    let settings = settings
        .with_local_secrets()
        .map_err(|error| StartError::Demo(error.to_string()))?;

    let application = Application::build(&settings, ServeMode::Normal).await?;
    let accounts = first_start::create_accounts(application.app(), &settings).await?;
    let accounts =
        accounts.ok_or_else(|| StartError::Demo("the temporary database is not new".into()))?;
    if fault == Some(DemoFault::CommitThenDrop) {
        let order = FaultOrder::new(FaultKind::CommitThenDrop)
            .on(Operation::Sign)
            .times(1);
        let authority = application
            .app()
            .sandbox
            .as_ref()
            .map(|sandbox| sandbox.state().add_fault(order));
        authority.transpose().map_err(StartError::Sandbox)?;
        println!(
            "The authority will sign the invoice and drop the connection before it answers.\n"
        );
    }
    let authority = application
        .app()
        .sandbox
        .as_ref()
        .map(|sandbox| sandbox.state().clone());
    let authority = authority.ok_or(StartError::NoAuthority)?;
    let story = Story::begin(application.address(), &accounts, authority)?;
    let handle = application.handle();
    let service = actix_rt::spawn(application.run_until_stopped());
    let outcome = story.run().await;
    handle.stop(true).await;
    service
        .await
        .map_err(|error| StartError::Demo(error.to_string()))??;
    outcome?;
    println!("\nEvery step was as expected.");
    Ok(())
}
