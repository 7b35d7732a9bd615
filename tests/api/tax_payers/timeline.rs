//! GET /v1/tax-payers/invoices/{id}/timeline.

use serde_json::{Value, json};
use testkit::answer::{Answer, stable_text};
use testkit::documents::{self, submission};
use testkit::edit::exact;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::roles::INVOICES;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

fn entries(answer: &Answer) -> Vec<Value> {
    answer.data()["entries"].as_array().unwrap().clone()
}

/// Kind and name of each entry, in order.
fn names(entries: &[Value]) -> Vec<String> {
    let word = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
    entries
        .iter()
        .map(|entry| format!("{} {}", word(entry, "kind"), word(entry, "name")))
        .collect()
}

#[each_database]
async fn a_new_invoice_has_its_creation_to_show(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let answer = taxpayer.timeline(&invoice["id"]).await.expect_status(200);
    assert_eq!(answer.message(), "Timeline retrieved successfully");
    assert_eq!(answer.data()["irn"], invoice["irn"]);
    let first = ["at", "actor/id", "detail/event_id"].map(|name| format!("/data/entries/0/{name}"));
    let unsteady = ["/data/irn", &first[0], &first[1], &first[2]];
    insta::assert_snapshot!(stable_text(&answer.body, &unsteady), @r#"
            {
              "data": {
                "entries": [
                  {
                    "actor": {
                      "id": "…",
                      "kind": "taxpayer-key",
                      "name": null
                    },
                    "at": "…",
                    "attempt": null,
                    "detail": {
                      "event_id": "…",
                      "sequence": 2,
                      "status": "draft"
                    },
                    "duration_ms": null,
                    "kind": "event",
                    "name": "invoice.created",
                    "outcome": null
                  }
                ],
                "irn": "…"
              },
              "message": "Timeline retrieved successfully",
              "success": true
            }
        "#);
    let at = answer.data()["entries"][0]["at"].as_str().unwrap();
    assert!(
        at.parse::<jiff::Timestamp>().is_ok() && at.len() == "2026-01-15T10:00:00.000000Z".len(),
        "{at}"
    );
    assert_eq!(answer.warnings(), "");
}

#[each_database]
async fn changes_follow_in_order_with_what_was_said_of_them(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let part = json!({
        "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": "partial",
        "amount": exact("0.10"), "reference": "R-1", "remark": "first part",
    });
    taxpayer.pay(&part).await.expect_status(200);
    taxpayer.invoice(&documents::invoice()).await;
    let entries = entries(&taxpayer.timeline(&invoice["id"]).await.expect_status(200));
    assert_eq!(
        names(&entries),
        [
            "event invoice.created",
            "event invoice.status-updated",
            "event payment.status-updated"
        ]
    );
    let approved = &entries[1]["detail"];
    assert_eq!(
        (
            &approved["previous_status"],
            &approved["status"],
            &approved["remark"]
        ),
        (&json!("draft"), &json!("approved"), &json!("as agreed"))
    );
    let paid = &entries[2]["detail"];
    assert_eq!(
        (
            paid["amount"].to_string().as_str(),
            &paid["reference"],
            &paid["remark"]
        ),
        ("0.10", &json!("R-1"), &json!("first part"))
    );
    let sequences: Vec<_> = entries
        .iter()
        .map(|entry| &entry["detail"]["sequence"])
        .collect();
    assert_eq!(sequences, [2, 3, 4]);
}

#[each_database]
async fn steps_of_the_pipeline_stand_between_the_events(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
    taxpayer.app().submit(&body).await.expect_status(200);
    let answer = taxpayer.timeline(&invoice["id"]).await.expect_status(200);
    let entries = entries(&answer);
    let names = names(&entries);
    let of = |kind: &str| {
        names
            .iter()
            .filter(|name| name.starts_with(kind))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("step"),
        [
            "step irn-check",
            "step data-check",
            "step sign",
            "step confirm"
        ]
    );
    assert!(
        of("event").contains(&"event invoice.submitted".to_owned()),
        "{names:?}"
    );
    for step in entries.iter().filter(|entry| entry["kind"] == "step") {
        assert_eq!(
            (&step["outcome"], &step["attempt"]),
            (&json!("done"), &json!(1)),
            "{step}"
        );
        assert!(step["duration_ms"].is_i64(), "{step}");
        assert_eq!(step["detail"], json!({ "operation": "submit" }));
    }
    let times: Vec<_> = entries
        .iter()
        .map(|entry| entry["at"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[each_database]
async fn each_attempt_at_a_delivery_is_shown(world: &World) {
    let receiver = Receiver::start();
    let taxpayer = world.taxpayer().await;
    let wanted = ["invoice.created"];
    world
        .integrator()
        .set_webhook(taxpayer.id, &receiver.url(), &wanted)
        .await
        .expect_status(200);
    receiver.answer_next(&[Reply::Status(500)]);
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let deliveries = eventually("two attempts", async || {
        let answer = taxpayer.timeline(&invoice["id"]).await.expect_status(200);
        let mut all = entries(&answer);
        all.retain(|entry| entry["kind"] == "delivery");
        (all.len() == 2).then_some(all)
    })
    .await;
    let said: Vec<_> = deliveries
        .iter()
        .map(|entry| {
            (
                &entry["name"],
                &entry["outcome"],
                &entry["attempt"],
                &entry["detail"]["status"],
            )
        })
        .collect();
    let created = &json!("invoice.created");
    assert_eq!(
        said,
        [
            (created, &json!("failed"), &json!(1), &json!(500)),
            (created, &json!("delivered"), &json!(2), &json!(204)),
        ]
    );
    assert!(
        deliveries[0]["duration_ms"].is_i64() && deliveries[0]["detail"]["failure"].is_string()
    );
}

#[each_database]
async fn of_a_long_life_the_newest_entries_are_shown(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer
        .invoice(&documents::invoice_with_price("1000000", "1"))
        .await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let part = json!({
        "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": "partial", "amount": 1,
        "remark": "one more",
    });
    for _ in 0..20 {
        let paid = futures_util::future::join_all((0..50).map(|_| taxpayer.pay(&part))).await;
        for answer in paid {
            answer.expect_status(200);
        }
    }
    let answer = taxpayer.timeline(&invoice["id"]).await.expect_status(200);
    let entries = entries(&answer);
    assert_eq!(
        (entries.len(), &entries[999]["detail"]["sequence"]),
        (1_000, &json!(1_003))
    );
    assert_eq!(answer.warnings(), "only the newest 1000 entries are shown");
}

#[on_sqlite]
async fn an_invoice_that_is_not_the_callers_has_no_timeline(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let theirs = other.invoice(&documents::invoice()).await["id"].to_string();
    for id in [
        theirs.as_str(),
        "999999999",
        "0",
        "-1",
        "abc",
        "1.5",
        "%00",
        "99999999999999999999",
    ] {
        let answer = taxpayer.get(&format!("{INVOICES}/{id}/timeline")).await;
        let answer = answer.expect_refusal(404, "INVOICE_NOT_FOUND");
        assert_eq!(answer.message(), "Invoice not found", "{id}");
    }
}
