//! Who may create full invoices.

use einvoice::internals::Subscription;
use serde_json::json;
use testkit::documents;
use testkit::on_sqlite;

use crate::support::world::World;

#[on_sqlite]
async fn an_incomplete_profile_creates_nothing_whatever_is_sent(world: &World) {
    let taxpayer = world.newcomer().await;
    for body in [documents::full_invoice(&taxpayer), json!({})] {
        let answer = taxpayer
            .create_full(&body)
            .await
            .expect_refusal(403, "PROFILE_INCOMPLETE");
        assert_eq!(answer.faulty_paths(), ["city", "country", "state"]);
    }
    assert_eq!(taxpayer.list_invoices("").await.data()["total"], json!(0));
}

#[on_sqlite]
async fn an_inactive_subscription_creates_nothing_whatever_is_sent(world: &World) {
    let taxpayer = world.taxpayer().await;
    world.set_subscription(taxpayer.id, Subscription::Inactive);
    for body in [documents::full_invoice(&taxpayer), json!({})] {
        taxpayer
            .create_full(&body)
            .await
            .expect_refusal(403, "SUBSCRIPTION_INACTIVE");
    }
}
