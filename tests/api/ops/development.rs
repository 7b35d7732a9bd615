//! /ops/development: panics that an operator orders, and how supervision copes with them.

use einvoice::internals::OperatorRole;
use serde_json::json;
use testkit::documents::invoice;
use testkit::patience::eventually;
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::visitor::Visitor;
use crate::support::world::World;

const PANIC: &str = "/ops/development/panic";

/// A taxpayer whose next commands are those of the test: its verification, which its actor records, is over.
async fn idle_taxpayer(world: &World) -> Taxpayer {
    let taxpayer = world.taxpayer().await;
    world.settled(&json!(taxpayer.id)).await;
    taxpayer
}

#[each_database]
async fn a_command_is_executed_again_after_one_panic(world: &World) {
    let taxpayer = idle_taxpayer(world).await;
    let operator = world.new_operator().await;
    let order = json!({ "taxpayer_id": taxpayer.id });
    let ordered = operator
        .send("POST", PANIC, &order)
        .await
        .expect_status(200);
    assert_eq!(
        ordered.data(),
        &json!({ "taxpayer_id": taxpayer.id, "panics": 1 })
    );
    taxpayer.invoice(&invoice()).await;
    let put_aside = format!("/ops/quarantine?taxpayer_id={}", taxpayer.id);
    assert_eq!(
        operator
            .call("GET", &put_aside)
            .await
            .expect_status(200)
            .data()["total"],
        0
    );
    let tree = operator
        .call("GET", "/ops/supervision")
        .await
        .expect_status(200)
        .body
        .to_string();
    assert!(tree.contains("an operator ordered this panic"), "{tree}");
}

#[each_database]
async fn a_create_whose_actor_panics_twice_is_put_aside_and_replayed(world: &World) {
    let taxpayer = idle_taxpayer(world).await;
    let operator = world.new_operator().await;
    let neighbour = world.taxpayer().await;
    let order = json!({ "taxpayer_id": taxpayer.id, "panics": 2 });
    operator
        .send("POST", PANIC, &order)
        .await
        .expect_status(200);
    taxpayer.create_invoice(&invoice()).await.expect_status(500);
    neighbour.invoice(&invoice()).await;
    let put_aside = format!("/ops/quarantine?taxpayer_id={}&state=kept", taxpayer.id);
    let kept = async || {
        let listed = operator.call("GET", &put_aside).await.expect_status(200);
        listed.data()["data"].get(0).cloned()
    };
    let command = eventually("the command in the quarantine", kept).await;
    assert_eq!(
        (&command["name"], command["replay"].is_string()),
        (&json!("create"), true)
    );
    let replay = format!(
        "/ops/quarantine/{}/replay",
        command["reference"].as_str().unwrap()
    );
    operator.call("POST", &replay).await.expect_status(200);
    assert_eq!(
        taxpayer.list_invoices("").await.expect_status(200).data()["total"],
        1
    );
}

#[on_sqlite]
async fn only_an_operator_orders_panics_and_only_of_taxpayers_that_exist(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    let order = json!({ "taxpayer_id": taxpayer.id, "reason": "a drill" });
    world
        .anonymous()
        .send("POST", PANIC, &order)
        .await
        .expect_refusal(401, "UNAUTHENTICATED");
    taxpayer
        .send("POST", PANIC, &order)
        .await
        .expect_refusal(401, "INVALID_API_KEY");
    operator
        .send("POST", PANIC, &json!({ "taxpayer_id": 999_999 }))
        .await
        .expect_status(404);
    let unfit = json!({ "taxpayer_id": taxpayer.id, "panics": 3 });
    operator
        .send("POST", PANIC, &unfit)
        .await
        .expect_faults(&["panics"]);
    taxpayer.invoice(&invoice()).await;
    let query = format!("?action=taxpayer.order-panic&taxpayer_id={}", taxpayer.id);
    let orders = async || {
        let audit = operator.audit(&query).await.expect_status(200);
        audit.data()["data"].as_array().unwrap().clone()
    };
    assert_eq!(orders().await, [json!(null); 0], "none was ordered");
    operator
        .send("POST", PANIC, &order)
        .await
        .expect_status(200);
    let admin = Visitor::operator(world, OperatorRole::Admin).await;
    let page = format!("/console/taxpayers/{}/panic", taxpayer.id);
    let no_reason = admin.submit(&page, &[("panics", "1")]).await;
    no_reason.expect(422);
    let form = [("panics", "1"), ("reason", "a second drill")];
    admin.submit(&page, &form).await.expect(303);
    let told = ["subject", "reason", "to_state"];
    let told = orders()
        .await
        .iter()
        .map(|entry| json!(told.map(|name| entry[name].clone())))
        .collect::<Vec<_>>();
    let id = taxpayer.id.to_string();
    let expected = ["a second drill", "a drill"].map(|reason| json!([id, reason, "1 ordered"]));
    assert_eq!(told, expected);
}
