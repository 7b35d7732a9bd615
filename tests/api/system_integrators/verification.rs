//! Who a taxpayer is: the authority is asked after it was onboarded, and an operator may say so in its place.

use serde_json::{Value, json};
use testkit::documents::{self, number};
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::roles::{BULK, INVOICES, TAXPAYERS, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::supplies::planted;
use crate::support::world::World;

const COMPLETE: [(&str, &str); 3] = [("city", "Lagos"), ("state", "Lagos"), ("country", "NG")];

/// A taxpayer that may create invoices but for what the authority says of it.
async fn onboarded(world: &World, body: &Value) -> Taxpayer {
    let integrator = world.integrator();
    let made = integrator.create_taxpayer(body).await.expect_status(201);
    let id = made.data()["id"].as_i64().unwrap();
    let profile: Value = COMPLETE
        .into_iter()
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    integrator
        .change_profile(id, &profile)
        .await
        .expect_status(200);
    let key = integrator.rotate_api_key(id).await.expect_status(200);
    world.taxpayer_with_key(key.data()["api_key"].as_str().unwrap(), id, body)
}

/// A body whose business id begins with eight digits that the simulator gives a meaning.
fn typed(group: &str) -> Value {
    let id = format!("{group}-1111-4111-8111-{:012}", number());
    with(&documents::taxpayer(), "authority_business_id", json!(id))
}

/// Waits until the verification of a taxpayer has come so far; the reason.
async fn verification(world: &World, id: i64, status: &str) -> Value {
    let look = async || {
        let seen = world
            .integrator()
            .get(&format!("{TAXPAYERS}/{id}"))
            .await
            .expect_status(200);
        (seen.data()["verification"] == status).then(|| seen.data()["verification_reason"].clone())
    };
    eventually(status, look).await
}

#[each_database]
async fn a_taxpayer_that_the_authority_lists_is_verified(world: &World) {
    let body = documents::taxpayer();
    world.enrol(&body, &body["tin_no"].as_str().unwrap().replace('-', " "));
    let taxpayer = onboarded(world, &body).await;
    assert_eq!(
        verification(world, taxpayer.id, "verified").await,
        "confirmed_by_authority"
    );
    let listed = world
        .integrator()
        .get(&format!("{TAXPAYERS}?search={}", taxpayer.registration.tin))
        .await;
    assert_eq!(listed.data()["data"][0]["verification"], "verified");
    let names = taxpayer.event_names().await;
    assert!(
        names.iter().all(|name| !name.starts_with("taxpayer.")),
        "nothing is new: {names:?}"
    );
}

#[each_database]
async fn a_taxpayer_that_the_authority_contradicts_or_does_not_know_is_unverified_and_works_all_the_same(
    world: &World,
) {
    let operator = world.new_operator().await;
    for (group, reason) in [
        ("00000409", "tin_mismatch"),
        ("00000404", "business_unknown"),
        ("00000503", "no_answer"),
    ] {
        let taxpayer = onboarded(world, &typed(group)).await;
        assert_eq!(verification(world, taxpayer.id, "unverified").await, reason);
        taxpayer.invoice(&documents::invoice()).await;
        let events = taxpayer.events().await;
        let event = events
            .iter()
            .find(|event| event["type"] == "taxpayer.unverified")
            .unwrap();
        let data =
            json!({ "taxpayer_id": taxpayer.id, "verification": "unverified", "reason": reason });
        assert_eq!(event["data"], data);
        let query = format!(
            "/ops/taxpayers?verification=unverified&tin={}",
            taxpayer.registration.tin.replace('-', "")
        );
        let listed = operator.get(&query).await.expect_status(200);
        let lines = listed.data()["data"].as_array().unwrap();
        assert_eq!(lines.len(), 1, "{}", listed.text);
        assert_eq!(
            (&lines[0]["id"], &lines[0]["verification_reason"]),
            (&json!(taxpayer.id), &json!(reason))
        );
    }
    operator
        .get("/ops/taxpayers?verification=odd")
        .await
        .expect_faults(&["verification"]);
    let is_counted = async || {
        let page = world.anonymous().get("/metrics").await.text;
        let mut lines = page.lines();
        lines
            .any(|line| line.starts_with("einvoice_taxpayers{verification=\"unverified\"} "))
            .then_some(())
    };
    eventually("the count of unverified taxpayers", is_counted).await;
}

#[each_database]
async fn a_business_that_is_registered_later_is_confirmed_then(world: &World) {
    let body = documents::taxpayer();
    let taxpayer = onboarded(world, &body).await;
    assert_eq!(
        verification(world, taxpayer.id, "unverified").await,
        "business_unknown"
    );
    world.enrol(&body, &taxpayer.registration.tin);
    assert_eq!(
        verification(world, taxpayer.id, "verified").await,
        "confirmed_by_authority"
    );
    let names = taxpayer.event_names().await;
    let names: Vec<_> = names
        .iter()
        .filter(|name| name.starts_with("taxpayer."))
        .collect();
    assert_eq!(names, ["taxpayer.unverified", "taxpayer.verified"]);
}

#[each_database(&[("ACCOUNTS__VERIFICATION", "require")])]
async fn where_confirmation_is_required_an_unverified_taxpayer_waits_for_an_operator(
    world: &World,
) {
    let taxpayer = onboarded(world, &typed("00000404")).await;
    verification(world, taxpayer.id, "unverified").await;
    let single = taxpayer.send("POST", INVOICES, &documents::invoice()).await;
    single.expect_refusal(403, "TAXPAYER_UNVERIFIED");
    let full = taxpayer
        .send(
            "POST",
            testkit::roles::FULL_INVOICES,
            &documents::full_invoice(&taxpayer),
        )
        .await;
    full.expect_refusal(403, "TAXPAYER_UNVERIFIED");
    let bulk = taxpayer
        .send("POST", BULK, &json!({ "invoices": [documents::invoice()] }))
        .await;
    bulk.expect_refusal(403, "TAXPAYER_UNVERIFIED");
    let submission = documents::submission(&taxpayer, &documents::invoice_no());
    for caller in [taxpayer.app(), world.integrator().app()] {
        caller
            .submit(&submission)
            .await
            .expect_refusal(403, "TAXPAYER_UNVERIFIED");
        let path = format!(
            "/v1/app/invoices/{}/download",
            submission["irn"].as_str().unwrap()
        );
        caller
            .get(&path)
            .await
            .expect_refusal(403, "TAXPAYER_UNVERIFIED");
    }
    let irn = planted(world, &taxpayer.registration.tin);
    world
        .notice(&irn, "TRANSMITTING")
        .await
        .expect_refusal(404, "INVOICE_NOT_FOUND");
    assert!(taxpayer.inbox_lines().await.is_empty());
    let is_counted = async || {
        let page = world.anonymous().get("/metrics").await.text;
        let line = page
            .lines()
            .find(|line| line.starts_with("einvoice_inbound_withheld_total "));
        line.is_some_and(|line| !line.ends_with(" 0")).then_some(())
    };
    eventually("the count of withheld invoices", is_counted).await;

    let operator = world.new_operator().await;
    let path = format!("/ops/taxpayers/{}/verify", taxpayer.id);
    operator
        .send("POST", &path, &json!({}))
        .await
        .expect_faults(&["reason"]);
    operator
        .send(
            "POST",
            "/ops/taxpayers/999999/verify",
            &json!({ "reason": "odd" }),
        )
        .await
        .expect_status(404);
    let reason = json!({ "reason": "the certificate of incorporation was shown" });
    taxpayer
        .send("POST", &path, &reason)
        .await
        .expect_status(401);
    let verified = operator
        .send("POST", &path, &reason)
        .await
        .expect_status(200);
    assert_eq!(
        verified.data()["verification_reason"],
        "confirmed_by_operator"
    );
    let audit = operator
        .get(&format!("/ops/audit?taxpayer_id={}", taxpayer.id))
        .await;
    let entry = &audit.data()["data"][0];
    assert_eq!(
        (&entry["action"], &entry["reason"]),
        (&json!("taxpayer.verify"), &reason["reason"])
    );
    assert_eq!(
        (&entry["from_state"], &entry["to_state"]),
        (&json!("unverified"), &json!("verified"))
    );
    assert_eq!(taxpayer.count_events("taxpayer.verified").await, 1);

    taxpayer
        .send("POST", INVOICES, &documents::invoice())
        .await
        .expect_status(201);
    taxpayer.app().submit(&submission).await.expect_status(200);
    world.notice(&irn, "TRANSMITTING").await.expect_status(200);
    assert_eq!(taxpayer.inbox_lines().await.len(), 1);
}

#[on_sqlite(&[("ACCOUNTS__VERIFICATION", "require")])]
async fn where_confirmation_is_required_the_authoritys_own_suffices(world: &World) {
    let body = documents::taxpayer();
    world.enrol(&body, body["tin_no"].as_str().unwrap());
    let taxpayer = onboarded(world, &body).await;
    verification(world, taxpayer.id, "verified").await;
    taxpayer
        .send("POST", INVOICES, &documents::invoice())
        .await
        .expect_status(201);
    assert_eq!(taxpayer.count_events("taxpayer.verified").await, 1);
}
