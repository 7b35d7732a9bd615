//! The ERP integration: an owner sets it, secrets are not shown, and the networks stay the operator's.

use serde_json::json;
use testkit::each_database;

use super::{Account, assert_shows};
use crate::support::world::World;

#[each_database]
async fn an_owner_sets_the_integration_and_no_secret_is_shown(world: &World) {
    let account = Account::new(world).await;
    assert_shows(
        &account.page("/integration").await,
        &["value=\"none\" selected"],
    );
    let fields_of_basic = account
        .page("/integration?auth_type=basic&data_format=soap")
        .await;
    assert_shows(
        &fields_of_basic,
        &["auth.username", "auth.password", "format.namespace"],
    );
    let fields = [
        ("auth_type", "basic"),
        ("data_format", "soap"),
        ("origin", "https://erp.example.com"),
        ("auth.username", "clerk"),
        ("auth.password", "hidden words"),
    ];
    account.post("/integration", &fields).await.expect(303);
    let page = account.page("/integration").await;
    assert_shows(
        &page,
        &[
            "value=\"clerk\"",
            "A value is stored.",
            "https://erp.example.com",
        ],
    );
    assert!(!page.contains("hidden words"), "{page}");
    // A blank secret stays, but not for another host.
    let moved = fields.map(|(name, value)| match name {
        "origin" => (name, "https://other.example.com"),
        "auth.password" => (name, ""),
        _ => (name, value),
    });
    let page = account.post("/integration", &moved).await.expect(422).html;
    assert_shows(&page, &["The auth.password field is required"]);
}

#[each_database]
async fn the_networks_stay_the_operators(world: &World) {
    let account = Account::new(world).await;
    let operator = world.new_operator().await;
    let path = format!("/ops/taxpayers/{}/integration", account.taxpayer.id);
    let body =
        json!({ "auth_type": "none", "data_format": "rest", "allowed_networks": ["10.1.0.0/16"] });
    operator.send("PUT", &path, &body).await.expect_status(200);
    let fields = [
        ("auth_type", "none"),
        ("data_format", "jsonrpc"),
        ("allowed_networks", "10.0.0.0/8"),
    ];
    account.post("/integration", &fields).await.expect(303);
    let stored = operator.get(&path).await.expect_status(200);
    assert_eq!(stored.data()["allowed_networks"], json!(["10.1.0.0/16"]));
    assert_eq!(stored.data()["data_format"], "jsonrpc");
    let audit = operator.get("/ops/audit").await.expect_status(200);
    assert!(audit.text.contains("\"contact\""), "{}", audit.text);
}
