//! POST /authority/notifications/{token}: notices about invoices that are addressed to somebody here.

use futures_util::future::join_all;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::json;
use testkit::answer::stable_text;
use testkit::documents::{self, number};
use testkit::edit::with;
use testkit::roles::{Integrator, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::supplies::{planted, received};
use crate::support::world::World;

const WORDS: [&str; 4] = ["TRANSMITTING", "ACKNOWLEDGED", "TRANSMITTED", "FAILED"];

async fn with_tin(world: &World, integrator: &Integrator, tin: &str) -> Taxpayer {
    let body = with(&documents::taxpayer(), "tin_no", json!(tin));
    let made = integrator.create_taxpayer(&body).await.expect_status(201);
    let id = made.data()["id"].as_i64().unwrap();
    let key = integrator.rotate_api_key(id).await.expect_status(200);
    world.taxpayer_with_key(key.data()["api_key"].as_str().unwrap(), id, &body)
}

fn fault(world: &World, kind: FaultKind, irn: &str) {
    let mut order = FaultOrder::new(kind).on(Operation::Download).times(1);
    order.irn = Some(irn.to_owned());
    world.authority.add_fault(order).unwrap();
}

#[on_sqlite]
async fn a_wrong_token_is_a_path_that_does_not_exist(world: &World) {
    let buyer = world.taxpayer().await;
    let irn = planted(world, &buyer.registration.tin);
    let notice = json!({ "irn": irn, "message": "TRANSMITTING" });
    let anonymous = world.anonymous();
    let unknown = anonymous
        .send("POST", "/authority/nothing/here", &notice)
        .await;
    let unknown = unknown.expect_refusal(404, "ROUTE_NOT_FOUND");
    let right = world.notices_path();
    for path in [
        "/authority/notifications/guess".to_owned(),
        format!("{right}x"),
        right[..right.len() - 1].to_owned(),
        right.replace("/authority/notifications/", "/authority/notifications/%20"),
    ] {
        // The token comes before the body: a stranger does not learn what a notice looks like.
        for body in [&notice, &json!({})] {
            let answer = anonymous
                .send("POST", &path, body)
                .await
                .expect_refusal(404, "ROUTE_NOT_FOUND");
            assert_eq!(answer.message(), unknown.message());
        }
    }
    assert!(buyer.inbox_lines().await.is_empty());
}

#[on_sqlite]
async fn a_body_that_is_no_notice_is_refused_in_the_envelope(world: &World) {
    let anonymous = world.anonymous();
    let path = world.notices_path();
    world
        .notice("SUP1", "SEEN")
        .await
        .expect_faults(&["irn", "message"]);
    world
        .notice("SUP1", "TRANSMITTING")
        .await
        .expect_refusal(422, "IRN_MALFORMED");
    anonymous
        .send_text("POST", &path, "{")
        .await
        .expect_refusal(400, "MALFORMED_JSON");
    anonymous
        .send_text("POST", &path, "[]")
        .await
        .expect_refusal(422, "VALIDATION_FAILED");
    let long = format!("{{\"irn\":\"{}\"}}", "A".repeat(4_096));
    anonymous
        .send_text("POST", &path, long)
        .await
        .expect_refusal(413, "PAYLOAD_TOO_LARGE");
    anonymous
        .call("GET", &path)
        .await
        .expect_refusal(405, "METHOD_NOT_ALLOWED");
    let xml = anonymous
        .request("POST", &path)
        .header("content-type", "application/xml")
        .body("<a/>");
    testkit::answer::Answer::to(xml)
        .await
        .expect_refusal(415, "UNSUPPORTED_MEDIA_TYPE");
}

#[each_database]
async fn an_irn_that_nobody_here_sent_or_receives_is_not_found(world: &World) {
    let taxpayer = world.taxpayer().await;
    let elsewhere = planted(world, &format!("{:08}-7777", number()));
    for irn in [
        "NEVER1-5A0D0001-20260115",
        &documents::irn(&taxpayer, "NEVER1"),
        &elsewhere,
    ] {
        for word in WORDS {
            world
                .notice(irn, word)
                .await
                .expect_refusal(404, "INVOICE_NOT_FOUND");
        }
    }
}

#[each_database]
async fn an_invoice_that_is_addressed_to_a_taxpayer_comes_into_its_inbox(world: &World) {
    let buyer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let irn = planted(world, &buyer.registration.tin);
    let answer = world.notice(&irn, "transmitting").await.expect_status(200);
    assert_eq!(answer.message(), "Notification received successfully");
    assert_eq!(
        answer.data(),
        &json!({ "irn": irn, "message": "TRANSMITTING" })
    );
    let inbox = buyer.inbox("").await.expect_status(200);
    insta::assert_snapshot!(
        stable_text(inbox.data(), &["/data/0/supplier_irn", "/data/0/received_at"]), @r#"
            {
              "current_page": 1,
              "data": [
                {
                  "acknowledged": false,
                  "acknowledged_at": null,
                  "received_at": "…",
                  "supplier_irn": "…",
                  "supplier_name": "Simulated Supplier Ltd",
                  "supplier_tin": "99999999-0001"
                }
              ],
              "last_page": 1,
              "per_page": 10,
              "total": 1
            }
        "#);
    let event = buyer.events().await.pop().unwrap();
    assert_eq!(
        (&event["type"], &event["irn"]),
        (&json!("supplier-invoice.received"), &json!(irn))
    );
    insta::assert_snapshot!(
        stable_text(&event["data"], &["/irn", "/supplier_irn", "/received_at"]), @r#"
            {
              "irn": "…",
              "received_at": "…",
              "supplier_irn": "…",
              "supplier_name": "Simulated Supplier Ltd",
              "supplier_tin": "99999999-0001"
            }
        "#);
    assert!(other.inbox_lines().await.is_empty());
    assert!(
        other
            .event_names()
            .await
            .iter()
            .all(|name| name != "supplier-invoice.received")
    );
}

#[each_database]
async fn notices_that_come_twice_and_out_of_order_change_nothing_more(world: &World) {
    let buyer = world.taxpayer().await;
    let irn = planted(world, &buyer.registration.tin);
    for word in [
        "ACKNOWLEDGED",
        "TRANSMITTED",
        "TRANSMITTED",
        "FAILED",
        "TRANSMITTING",
    ] {
        world.notice(&irn, word).await.expect_status(200);
    }
    // The service id counts in any case.
    world
        .notice(&irn.replace("5A0D0001", "5a0d0001"), "TRANSMITTING")
        .await
        .expect_status(200);
    assert_eq!(buyer.inbox_lines().await.len(), 1);
    assert_eq!(buyer.count_events("supplier-invoice.received").await, 1);
    assert_eq!(buyer.inbox_lines().await[0]["acknowledged"], json!(false));
}

#[each_database]
async fn of_concurrent_notices_one_is_recorded_and_all_are_well(world: &World) {
    let buyer = world.taxpayer().await;
    let irn = planted(world, &buyer.registration.tin);
    let answers = join_all((0..12).map(|n| world.notice(&irn, WORDS[n % 4]))).await;
    assert!(
        answers.iter().all(|answer| answer.status == 200),
        "{answers:?}"
    );
    assert_eq!(buyer.inbox_lines().await.len(), 1);
    assert_eq!(buyer.count_events("supplier-invoice.received").await, 1);
}

#[each_database]
async fn however_its_tin_is_written_an_invoice_reaches_its_buyer_and_no_look_alike(world: &World) {
    let integrator = world.integrator();
    let stranger = world.new_integrator().await;
    let victim = with_tin(
        world,
        &integrator,
        &format!("{:08}-0001", 50_000_000 + number()),
    )
    .await;
    let plain = victim.registration.tin.replace('-', "");
    let look_alike = with(&documents::taxpayer(), "tin_no", json!(plain));
    stranger
        .create_taxpayer(&look_alike)
        .await
        .expect_faults(&["tin_no"]);
    let written = [
        plain,
        victim.registration.tin.clone(),
        victim.registration.tin.replace('-', " "),
        victim.registration.tin.replace('-', "\u{2013}"),
        victim.registration.tin.replace('-', "\u{a0}\u{200b}"),
        victim.registration.tin.replace('0', "０"),
        format!(" {} ", victim.registration.tin),
    ];
    for spelling in &written {
        let irn = planted(world, spelling);
        world.notice(&irn, "TRANSMITTING").await.expect_status(200);
    }
    assert_eq!(victim.inbox_lines().await.len(), written.len());
}

#[on_sqlite]
async fn an_authority_that_cannot_be_asked_has_the_notice_sent_again(world: &World) {
    for kind in [
        FaultKind::ServerError,
        FaultKind::Reset,
        FaultKind::Garbage,
        FaultKind::MissingFields,
    ] {
        let buyer = world.taxpayer().await;
        let irn = planted(world, &buyer.registration.tin);
        fault(world, kind, &irn);
        let answer = world.notice(&irn, "TRANSMITTING").await;
        let answer = answer.expect_refusal(503, "AUTHORITY_UNAVAILABLE");
        assert!(
            answer.header("retry-after").parse::<u64>().unwrap() >= 1,
            "{answer:?}"
        );
        assert!(buyer.inbox_lines().await.is_empty());
        world.notice(&irn, "TRANSMITTING").await.expect_status(200);
        assert_eq!(buyer.inbox_lines().await.len(), 1);
    }
}

#[each_database]
async fn what_is_in_the_inbox_already_needs_no_authority(world: &World) {
    let buyer = world.taxpayer().await;
    let irn = received(world, &buyer).await;
    let calls = || {
        let calls = world.authority.calls();
        calls
            .iter()
            .filter(|call| call.irn.as_deref() == Some(&irn))
            .count()
    };
    let before = calls();
    for word in WORDS {
        world.notice(&irn, word).await.expect_status(200);
    }
    assert_eq!(
        calls(),
        before,
        "a notice that is known costs the authority nothing"
    );
}
