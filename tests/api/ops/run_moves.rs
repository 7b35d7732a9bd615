//! /ops/pipeline/runs: the filters of the list, and the move of all runs that match one.

use serde_json::{Value, json};
use testkit::roles::Operator;
use testkit::{each_database, on_sqlite};

use crate::ops::runs::{id, until, waiting};
use crate::support::world::{RETRY_LATE, World};

async fn moved(operator: &Operator, body: &Value) -> Value {
    operator
        .send("POST", "/ops/pipeline/runs/move", body)
        .await
        .expect_status(200)
        .data()
        .clone()
}

#[each_database(&RETRY_LATE)]
async fn a_waiting_run_is_found_by_what_it_waits_for_and_by_its_missed_deadline(world: &World) {
    let operator = world.new_operator().await;
    let (taxpayer, invoice) = waiting(world, &operator).await;
    let found = async |filter: &str| {
        let query = format!("?taxpayer_id={}&{filter}", taxpayer.id);
        operator.runs(&query).await.expect_status(200).data()["total"]
            .as_i64()
            .unwrap()
    };
    let irn = invoice["irn"].as_str().unwrap();
    let hits = [
        &format!("irn={irn}"),
        "step=irn-check",
        "wait_reason=authority-unavailable",
        "error=AUTHORITY",
        "older_than_s=0",
        "state=waiting&operation=submit&order=deadline",
    ];
    for filter in hits {
        assert_eq!(found(filter).await, 1, "{filter}");
    }
    for filter in [
        "step=sign",
        "wait_reason=health-check-down",
        "error=100%25",
        "older_than_s=600",
        "deadline=soon",
        // The invoice was late from the beginning, and its run has hardly begun.
        "deadline=overdue",
    ] {
        assert_eq!(found(filter).await, 0, "{filter}");
    }
    let run = operator.newest_run(&taxpayer).await;
    operator
        .move_run(id(&run), "pause")
        .await
        .expect_status(200);
    until(&operator, &taxpayer, "paused").await;
    assert_eq!(found("deadline=overdue").await, 1);
    operator
        .move_run(id(&run), "cancel")
        .await
        .expect_status(200);
    let other = format!("irn=X{irn}");
    assert_eq!(found(&other).await, 0);
}

#[each_database(&RETRY_LATE)]
async fn a_bulk_move_counts_first_and_then_moves_and_records_each_run(world: &World) {
    let operator = world.new_operator().await;
    let (first, _) = waiting(world, &operator).await;
    let (second, _) = waiting(world, &operator).await;
    let filter = json!({ "taxpayer_id": first.id, "state": "waiting" });
    let body = json!({ "action": "pause", "filter": filter, "preview": true });
    let counted = moved(&operator, &body).await;
    let ids = json!([operator.newest_run(&first).await["id"]]);
    let expected = json!({
        "action": "pause", "preview": true, "matching": 1, "moved": 1, "ids": ids, "refused": 0,
        "refusals": [],
    });
    assert_eq!(counted, expected);
    assert_eq!(
        operator.newest_run(&first).await["state"],
        json!("waiting"),
        "a preview changes nothing"
    );
    let body =
        json!({ "action": "pause", "filter": filter, "reason": "the authority asked for it" });
    let answer = moved(&operator, &body).await;
    assert_eq!((&answer["moved"], &answer["ids"]), (&json!(1), &ids));
    let run = until(&operator, &first, "paused").await;
    assert_eq!(
        operator.newest_run(&second).await["state"],
        json!("waiting"),
        "it does not match"
    );
    assert_eq!(
        moved(&operator, &body).await["matching"],
        json!(0),
        "none is left"
    );
    let audit = operator
        .audit(&format!("?subject={}", id(&run)))
        .await
        .expect_status(200);
    let entry = &audit.data()["data"][0];
    assert_eq!(
        (&entry["action"], &entry["reason"]),
        (&json!("run.pause"), &json!("the authority asked for it"))
    );
    let body = json!({ "action": "cancel", "filter": { "taxpayer_id": second.id } });
    assert_eq!(moved(&operator, &body).await["moved"], json!(1));
    until(&operator, &second, "cancelled").await;
}

#[on_sqlite]
async fn a_bulk_move_without_a_condition_is_refused(world: &World) {
    let operator = world.new_operator().await;
    let send = async |body: Value| {
        operator
            .send("POST", "/ops/pipeline/runs/move", &body)
            .await
    };
    send(json!({ "action": "retry", "filter": {} }))
        .await
        .expect_faults(&["filter"]);
    send(json!({ "action": "stop", "filter": { "state": "stuck" } }))
        .await
        .expect_faults(&["action", "filter.state"]);
}
