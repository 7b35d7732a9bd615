//! Tests of settings that two pages change at the same moment.

use super::{BY, ID, TestTaxpayers, webhook};
use crate::actors::taxpayer::commands::{IfUnchanged, SeenSettings, SetIntegration, SetWebhook};
use crate::domain::integration::{Auth, Format, Integration};
use crate::domain::kernel::ids::EndpointKey;
use crate::store::testing::stores;
use crate::store::webhooks::{self, integrations};

/// Returns a command that names the ERP and keeps the other settings.
fn erp(name: &str) -> SetIntegration {
    SetIntegration {
        erp_system: Some(name.to_owned()),
        auth: Auth::None,
        origin: None,
        format: Format::Rest,
        allowed_networks: None,
        by: BY,
        reason: None,
    }
}

async fn stored_integration(app: &TestTaxpayers) -> Integration {
    let store = &app.test.store;
    let found = integrations::owned_by(store, store.reader(), ID);
    found.await.unwrap().unwrap_or_default()
}

#[actix_rt::test]
async fn of_two_changes_that_read_the_same_integration_the_second_is_refused() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        for (first, second) in [("A", "B"), ("C", "D")] {
            let seen = stored_integration(&app).await;
            let change = |name| IfUnchanged {
                seen: Some(SeenSettings::Integration(Box::new(seen.clone()))),
                command: erp(name),
            };
            let (one, other) = tokio::join!(
                app.taxpayers.send(ID, change(first)),
                app.taxpayers.send(ID, change(second)),
            );
            assert_ne!(one.is_ok(), other.is_ok(), "{first} {second}");
            let kept = if one.is_ok() { first } else { second };
            let stored = stored_integration(&app).await;
            assert_eq!(stored.erp_system.as_deref(), Some(kept));
        }
        app.close().await;
    }
}

#[actix_rt::test]
async fn of_two_changes_that_read_the_same_endpoint_the_second_is_refused() {
    let key = EndpointKey::from(ID);
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        for (first, second) in [("a", "b"), ("c", "d")] {
            let seen = webhooks::find_by_key(app.test.store.reader(), key);
            let seen = seen.await.unwrap().map(Box::new);
            let change = |path: &str| IfUnchanged {
                seen: Some(SeenSettings::Endpoint(key, seen.clone())),
                command: SetWebhook {
                    url: format!("https://a.example/{path}"),
                    ..webhook()
                },
            };
            let (one, other) = tokio::join!(
                app.taxpayers.send(ID, change(first)),
                app.taxpayers.send(ID, change(second)),
            );
            assert_ne!(one.is_ok(), other.is_ok(), "{first} {second}");
            let kept = if one.is_ok() { first } else { second };
            let stored = webhooks::find_by_key(app.test.store.reader(), key);
            let url = stored.await.unwrap().map(|endpoint| endpoint.url);
            assert_eq!(url, Some(format!("https://a.example/{kept}")));
        }
        app.close().await;
    }
}
