//! The business profile: what is missing, and the form that completes it.

use serde_json::json;
use testkit::documents;
use testkit::each_database;

use super::{Account, assert_shows};
use crate::support::world::World;

#[each_database]
async fn a_newcomer_completes_the_profile_and_may_create_invoices(world: &World) {
    let account = Account::newcomer(world, &world.integrator()).await;
    let page = account.page("/profile").await;
    assert_shows(
        &page,
        &[
            "3 / 6",
            "No invoice can be created",
            "<strong>City</strong>",
            "value=\"3\"",
        ],
    );
    account
        .taxpayer
        .create_invoice(&documents::invoice())
        .await
        .expect_refusal(403, "PROFILE_INCOMPLETE");
    let fields = [
        ("city", "Lagos"),
        ("state", "Lagos"),
        ("country", "NG"),
        ("phone", ""),
    ];
    let saved = account.post("/profile", &fields).await.expect(303);
    assert_eq!(saved.location, account.path("/profile"));
    let page = account.page("/profile").await;
    assert_shows(
        &page,
        &[
            "6 / 6",
            "The profile is complete",
            "value=\"Lagos\"",
            "value=\"+2348010000000\"",
        ],
    );
    account.taxpayer.invoice(&documents::invoice()).await;
    let path = format!(
        "/v1/system-integrators/audit?taxpayer_id={}",
        account.taxpayer.id
    );
    let audit = world.integrator().get(&path).await.expect_status(200);
    let newest = &audit.data()["data"][0];
    assert_eq!(
        (&newest["actor"], &newest["action"]),
        (&json!("contact"), &json!("taxpayer.update-profile"))
    );
}

#[each_database]
async fn a_fault_stands_beside_its_field_and_nothing_is_changed(world: &World) {
    let account = Account::new(world).await;
    let other = Account::new(world).await;
    let hostile = r#"x@example.com"><script>"#;
    let fields = [("business_email", hostile), ("city", "Abuja")];
    let page = account.post("/profile", &fields).await.expect(422).html;
    assert_shows(
        &page,
        &[
            "The business_email field must be",
            "value=\"Abuja\"",
            "aria-invalid=\"true\"",
        ],
    );
    assert!(!page.contains("<script>\""), "{page}");
    let taken = other.taxpayer.id;
    let email = world
        .integrator()
        .get(&format!("/v1/system-integrators/taxpayers/{taken}"))
        .await;
    let fields = [("business_email", email.data()["email"].as_str().unwrap())];
    let page = account.post("/profile", &fields).await.expect(422).html;
    assert_shows(&page, &["The business_email has already been taken."]);
    assert_shows(&account.page("/profile").await, &["value=\"Lagos\""]);
}
