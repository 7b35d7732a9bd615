//! GET and PUT /v1/tax-payers/import-profile.

use serde_json::json;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const PROFILE: &str = "/v1/tax-payers/import-profile";

#[each_database]
async fn a_profile_is_empty_until_it_is_set_and_then_replaced(world: &World) {
    let taxpayer = world.taxpayer().await;
    let empty = json!({ "defaults": {}, "customers": {}, "columns": {}, "units": {} });
    let read = taxpayer.get(PROFILE).await.expect_status(200);
    assert_eq!(*read.data(), empty);
    let profile = json!({
        "defaults": { "address_state": "Lagos" }, "customers": { "C-1": { "email": "a@b.example" } },
        "columns": { "Nr": "invoice_no" }, "units": { "XPP": "EA" },
    });
    let set = taxpayer
        .send("PUT", PROFILE, &profile)
        .await
        .expect_status(200);
    assert_eq!(*set.data(), profile);
    assert_eq!(*taxpayer.get(PROFILE).await.data(), profile);
    let other = world.taxpayer().await;
    assert_eq!(*other.get(PROFILE).await.data(), empty);
    taxpayer
        .send("PUT", PROFILE, &json!({}))
        .await
        .expect_status(200);
    assert_eq!(*taxpayer.get(PROFILE).await.data(), empty);
}

#[on_sqlite]
async fn a_profile_with_a_fault_is_refused_and_changes_nothing(world: &World) {
    let taxpayer = world.taxpayer().await;
    let bad = json!({ "defaults": { "price": "1" }, "columns": { "Nr": "no such" }, "units": 7 });
    let answer = taxpayer
        .send("PUT", PROFILE, &bad)
        .await
        .expect_refusal(422, "VALIDATION_FAILED");
    let fields: Vec<_> = answer.body["errors"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["columns.Nr", "defaults.price", "units"]);
    let large = json!({ "customers": { "C-1": { "email": "x".repeat(300) } } });
    taxpayer
        .send("PUT", PROFILE, &large)
        .await
        .expect_refusal(422, "VALIDATION_FAILED");
    assert_eq!(taxpayer.get(PROFILE).await.data()["customers"], json!({}));
}
