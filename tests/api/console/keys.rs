//! /console/keys: whose keys there are, when and from where they were used, and the revocation of one. Also the filters
//! of the audit, which say who did that and from where.

use einvoice::app;
use einvoice::internals::{KeyTerms, OperatorRole};
use serde_json::json;
use testkit::documents::number;
use testkit::each_database;
use testkit::patience::eventually;
use testkit::roles::Operator;

use crate::support::visitor::Visitor;
use crate::support::world::World;

#[each_database]
async fn a_key_is_listed_with_its_last_use_and_revoked_once(world: &World) {
    let email = format!("operator{}@house.example", number());
    let made = app::create_operator(
        world.settings(),
        email.clone(),
        OperatorRole::Viewer,
        KeyTerms::default(),
    )
    .await
    .unwrap();
    let key = made["api_key"].as_str().unwrap();
    let thief = Operator::new(&world.anonymous(), key);
    thief.audit("").await.expect_status(200);

    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let (admin, admin_email, _) = Visitor::new_operator(world, OperatorRole::Admin).await;
    let last_four = &key[key.len() - 4..];
    let list = format!("/console/keys?kind=operator&owner={}", made["id"]);
    let used = async || {
        let page = viewer.get(&list).await;
        page.html.contains(">127.0.0.1</td>").then_some(page)
    };
    eventually("the last use of the key", used)
        .await
        .shows_all(&[&format!("…{last_four}"), &email, "Valid"])
        .hides("/revoke");
    let revoke = admin
        .get(&format!("{list}&last_four={last_four}&address=127.0.0.1"))
        .await
        .shows_all(&[&email]);
    let (_, rest) = revoke.html.split_once("formaction=\"").unwrap();
    let path = rest.split('"').next().unwrap().to_owned();
    viewer
        .submit(&path, &[("reason", "stolen")])
        .await
        .expect(403);
    admin.submit(&path, &[]).await.expect(422);
    admin
        .submit(&path, &[("reason", "stolen")])
        .await
        .leads_to(&list);
    admin
        .get(&list)
        .await
        .shows_all(&["No key matches.", "The key is revoked."]);
    thief.audit("").await.expect_refusal(401, "INVALID_API_KEY");
    admin
        .submit(&path, &[("reason", "stolen")])
        .await
        .expect(404);

    let api = world.new_operator().await;
    let query = format!("?action=operator.revoke-keys&operator={admin_email}");
    let audit = api.audit(&query).await.expect_status(200);
    let entry = &audit.data()["data"][0];
    assert_eq!(audit.data()["total"], json!(1));
    assert_eq!(
        (&entry["address"], &entry["reason"], &entry["subject"]),
        (
            &json!("127.0.0.1"),
            &json!("stolen"),
            &json!(made["id"].to_string())
        )
    );
}

#[each_database]
async fn the_audit_is_filtered_by_operator_action_and_time(world: &World) {
    let (browser, email, _) = Visitor::new_operator(world, OperatorRole::Viewer).await;
    let signed_in = format!("/console/audit?operator={email}&action=session.sign-in");
    let page = browser.get(&signed_in).await;
    page.shows_all(&["session.sign-in", ">127.0.0.1</td>"]);
    let nothing = "Nothing is recorded.";
    for filter in [
        "until=2020-01-01T00:00",
        "from=2999-01-01",
        "actor=integrator",
    ] {
        browser
            .get(&format!("{signed_in}&{filter}"))
            .await
            .shows_all(&[nothing]);
    }
    browser
        .get(&format!("{signed_in}&from=2020-01-01&until=2999-01-01"))
        .await
        .shows_all(&[">127.0.0.1</td>"]);
    for odd in ["from=soon", "action=dance"] {
        browser
            .get(&format!("/console/audit?{odd}"))
            .await
            .expect(422);
    }
    let api = world.new_operator().await;
    let query = format!("?operator={email}&action=session.sign-in&from=2020-01-01T00:00:00Z");
    let found = api.audit(&query).await.expect_status(200);
    assert_eq!(found.data()["data"][0]["address"], json!("127.0.0.1"));
    api.audit("?until=soon").await.expect_faults(&["until"]);
}
