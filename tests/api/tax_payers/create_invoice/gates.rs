//! Who may create invoices.

use einvoice::internals::Subscription;
use serde_json::json;
use testkit::documents;
use testkit::roles::INVOICES;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[on_sqlite]
async fn an_incomplete_profile_is_refused_with_the_missing_fields(world: &World) {
    let taxpayer = world.newcomer().await;
    for body in [documents::invoice(), json!({})] {
        let answer = taxpayer
            .create_invoice(&body)
            .await
            .expect_refusal(403, "PROFILE_INCOMPLETE");
        assert_eq!(answer.faulty_paths(), ["city", "country", "state"]);
    }
    assert_eq!(taxpayer.list_invoices("").await.data()["total"], json!(0));
}

#[on_sqlite]
async fn a_profile_completed_step_by_step_lets_invoices_through_at_the_last(world: &World) {
    let taxpayer = world.newcomer().await;
    for (field, value, lacking) in [
        ("city", "Lagos", vec!["country", "state"]),
        ("state", "Lagos", vec!["country"]),
    ] {
        world
            .integrator()
            .change_profile(taxpayer.id, &json!({ field: value }))
            .await
            .expect_status(200);
        let answer = taxpayer.create_invoice(&documents::invoice()).await;
        assert_eq!(
            answer
                .expect_refusal(403, "PROFILE_INCOMPLETE")
                .faulty_paths(),
            lacking
        );
    }
    world
        .integrator()
        .change_profile(taxpayer.id, &json!({ "country": "NG" }))
        .await
        .expect_status(200);
    taxpayer
        .create_invoice(&documents::invoice())
        .await
        .expect_status(201);
}

#[each_database]
async fn an_inactive_subscription_creates_nothing_and_still_reads(world: &World) {
    let taxpayer = world.taxpayer().await;
    let before = taxpayer.invoice(&documents::invoice()).await;
    world.set_subscription(taxpayer.id, Subscription::Inactive);
    let answer = taxpayer.create_invoice(&documents::invoice()).await;
    answer.expect_refusal(403, "SUBSCRIPTION_INACTIVE");
    assert_eq!(taxpayer.reread(&before).await, before);
    taxpayer
        .set_status(&before, "approved")
        .await
        .expect_status(200);
    world.set_subscription(taxpayer.id, Subscription::Active);
    taxpayer
        .create_invoice(&documents::invoice())
        .await
        .expect_status(201);
}

#[on_sqlite]
async fn only_a_taxpayers_key_opens_the_taxpayer_surface(world: &World) {
    let body = documents::invoice();
    let answer = world.anonymous().send("POST", INVOICES, &body).await;
    answer.expect_refusal(401, "UNAUTHENTICATED");
    let answer = world.integrator().send("POST", INVOICES, &body).await;
    answer.expect_refusal(401, "INVALID_API_KEY");
}
