//! The command `demo`: takes one invoice through the whole service on a temporary database. Nothing is mocked: the
//! demo calls the service over HTTP, with the simulator of the authority behind it, and a receiver verifies the
//! signature of each notification.
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

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use sandbox::{FaultKind, FaultOrder, Operation};

use crate::app::error::StartError;
use crate::app::first_start;
use crate::app::serve::Application;
use crate::app::serve_mode::ServeMode;
use crate::cli::DemoFault;
use crate::config::{ConfigFault, Settings};
use story::Story;

/// Takes one invoice from creation to confirmed transmission, and checks every response and every webhook on the way.
pub async fn demo(fault: Option<DemoFault>) -> Result<(), StartError> {
    let directory = tempfile::tempdir()?;
    let settings = demo_settings(directory.path())
        .map_err(|error| StartError::Demo(error.to_string()))?
        .with_local_secrets()
        .map_err(|error| StartError::Demo(error.to_string()))?;

    let application = Application::build(&settings, ServeMode::Normal).await?;
    let accounts = first_start::create_accounts(application.app(), &settings).await?;
    let accounts =
        accounts.ok_or_else(|| StartError::Demo("the temporary database is not new".into()))?;
    if fault == Some(DemoFault::CommitThenDrop) {
        let drop_fault = FaultOrder::new(FaultKind::CommitThenDrop)
            .on(Operation::Sign)
            .times(1);
        let added = application
            .app()
            .sandbox
            .as_ref()
            .map(|sandbox| sandbox.state().add_fault(drop_fault));
        added.transpose().map_err(StartError::Sandbox)?;
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
    let story = Story::start(application.address(), &accounts, authority)?;
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

/// Returns the settings of a demo: the defaults, with free ports of loopback and all files below `directory`. The
/// settings that the program was started with are ignored: they may belong to a deployment, which a demo must not
/// touch, or may forbid what the demo needs, such as a webhook at a loopback address.
fn demo_settings(directory: &Path) -> Result<Settings, ConfigFault> {
    let mut settings = Settings::defaults()?;
    directory.clone_into(&mut settings.data_dir);
    settings.http.bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::config::Environment;
    use crate::config::authority::AuthorityMode;

    #[test]
    fn a_demo_touches_nothing_outside_of_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        let demo = demo_settings(directory.path()).unwrap();
        assert_eq!(demo.environment, Environment::Development);
        assert_eq!(demo.authority.mode, AuthorityMode::Sandbox);
        let demo = demo.with_local_secrets().unwrap();
        for bind in [demo.http.bind, demo.sandbox.bind] {
            assert!(bind.ip().is_loopback() && bind.port() == 0, "{bind}");
        }
        assert_eq!(demo.http.ops_bind, None);
        for file in [demo.checkpoints.file, demo.checkpoints.key_file] {
            assert!(file.unwrap().starts_with(directory.path()));
        }
        for server in [&demo.database.url, &demo.mail.smtp_url] {
            assert_eq!(server.expose_secret(), "");
        }
        assert_eq!(demo.telemetry.otlp_endpoint, None);
    }
}
