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

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

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
    let settings = demo_settings(settings, directory.path())
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

/// Returns the settings of a demo. It must not touch the deployment whose settings it was started with: it keeps
/// everything below `directory`, listens on loopback only, and sends nothing to the servers of the settings.
fn demo_settings(mut settings: Settings, directory: &Path) -> Settings {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    settings.environment = Environment::Development;
    directory.clone_into(&mut settings.data_dir);
    settings.database.url = SecretString::default();
    settings.authority.mode = AuthorityMode::Sandbox;
    settings.authority.api_key = SecretString::default();
    settings.authority.api_secret = SecretString::default();
    settings.http.bind = any_port;
    settings.http.ops_bind = None;
    settings.sandbox.bind = any_port;
    settings.checkpoints.file = None;
    settings.checkpoints.key_file = None;
    settings.mail.smtp_url = SecretString::default();
    settings.telemetry.otlp_endpoint = None;
    settings
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_demo_touches_nothing_of_the_deployment_whose_settings_it_has() {
        // The settings must name a key file that exists.
        let key_file = tempfile::NamedTempFile::new().unwrap();
        let key_path = key_file.path().to_str().unwrap();
        let key = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let pairs = [
            ("EINVOICE__ALLOW_OPEN_DEVELOPMENT", "true"),
            ("EINVOICE__HTTP__BIND", "0.0.0.0:8080"),
            ("EINVOICE__SANDBOX__BIND", "0.0.0.0:8081"),
            ("EINVOICE__DATABASE__URL", "sqlite:///srv/einvoice.db"),
            ("EINVOICE__AUTHORITY__API_KEY", key),
            ("EINVOICE__CHECKPOINTS__FILE", "/srv/checkpoints.log"),
            ("EINVOICE__CHECKPOINTS__KEY_FILE", key_path),
            ("EINVOICE__MAIL__SMTP_URL", "smtps://mail.example"),
            (
                "EINVOICE__TELEMETRY__OTLP_ENDPOINT",
                "http://127.0.0.1:4318",
            ),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let deployed = Settings::load(None, pairs.into_iter()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let demo = demo_settings(deployed, directory.path());
        let demo = demo.with_local_secrets().unwrap();
        for bind in [demo.http.bind, demo.sandbox.bind] {
            assert!(bind.ip().is_loopback() && bind.port() == 0, "{bind}");
        }
        for file in [demo.checkpoints.file, demo.checkpoints.key_file] {
            assert!(file.unwrap().starts_with(directory.path()));
        }
        for server in [&demo.database.url, &demo.mail.smtp_url] {
            assert_eq!(server.expose_secret(), "");
        }
        assert_ne!(demo.authority.api_key.expose_secret(), key);
        assert_eq!(demo.telemetry.otlp_endpoint, None);
    }
}
