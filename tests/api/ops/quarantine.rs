//! GET /ops/quarantine: runs, deliveries and tasks beside commands, each with its cause and the paths that move it.

use serde_json::{Value, json};
use testkit::each_database;
use testkit::patience::eventually;
use testkit::receiver::Receiver;
use testkit::roles::Operator;

use crate::ops::dead_letters::with_a_dead_letter;
use crate::ops::runs::{id, until, waiting};
use crate::support::world::World;

/// Returns the only line of the quarantine that matches.
async fn only(operator: &Operator, filter: &str) -> Value {
    find_only(operator, filter).await.unwrap()
}

/// Returns the line of the quarantine that matches, if there is exactly one.
async fn find_only(operator: &Operator, filter: &str) -> Option<Value> {
    let listed = operator
        .get(&format!("/ops/quarantine?state=kept&{filter}"))
        .await
        .expect_status(200);
    (listed.data()["total"] == json!(1)).then(|| listed.data()["data"][0].clone())
}

async fn is_empty(operator: &Operator, filter: &str) -> bool {
    let listed = operator
        .get(&format!("/ops/quarantine?{filter}"))
        .await
        .expect_status(200);
    listed.data()["total"] == json!(0)
}

#[each_database]
async fn a_run_in_quarantine_is_listed_until_it_is_retried(world: &World) {
    let operator = world.new_operator().await;
    let (taxpayer, _) = waiting(world, &operator).await;
    let run = operator.newest_run(&taxpayer).await;
    operator
        .move_run(id(&run), "pause")
        .await
        .expect_status(200);
    until(&operator, &taxpayer, "paused").await;
    let filter = format!("taxpayer_id={}", taxpayer.id);
    assert!(
        is_empty(&operator, &filter).await,
        "an operator's pause is no quarantine"
    );
    for (counted, cause) in [
        (
            "crashes = 3, panics = 0",
            "the process crashed 3 times while it was in flight, at the step irn-check",
        ),
        (
            "crashes = 0, panics = 2",
            "it panicked 2 times, at the step irn-check",
        ),
    ] {
        let update = format!(
            "UPDATE pipeline_runs SET {counted} WHERE id = '{}'",
            id(&run)
        );
        let expected = ["run", id(&run), "submit", cause];
        // A step that was under way when the run was paused writes the run once more, with the counts that it read.
        let listed = async || {
            assert_eq!(world.execute(&update).await, 1);
            let found = find_only(&operator, &filter).await?;
            let shown = ["kind", "reference", "name", "cause"].map(|name| found[name].clone());
            (shown == expected.map(Value::from)).then_some(found)
        };
        let found = eventually(cause, listed).await;
        assert_eq!(found["about"], run["irn"]);
    }
    let found = only(&operator, &format!("kind=run&name=submit&{filter}")).await;
    assert!(
        is_empty(&operator, &format!("kind=task&{filter}")).await,
        "no task"
    );
    for act in ["replay", "drop"] {
        operator
            .call("POST", found[act].as_str().unwrap())
            .await
            .expect_status(200);
        let gone = async || is_empty(&operator, &filter).await.then_some(());
        eventually("an empty quarantine", gone).await;
    }
}

#[each_database]
async fn a_delivery_in_quarantine_is_listed_until_it_is_replayed(world: &World) {
    let receiver = Receiver::start();
    let operator = world.new_operator().await;
    let taxpayer = with_a_dead_letter(world, &receiver).await;
    let filter = format!("taxpayer_id={}", taxpayer.id);
    assert!(
        is_empty(&operator, &filter).await,
        "a dead letter that was given up is not in quarantine"
    );
    let update = format!(
        "UPDATE deliveries SET crashes = 3 WHERE taxpayer_id = {}",
        taxpayer.id
    );
    assert_eq!(world.execute(&update).await, 1);
    let found = only(&operator, &filter).await;
    let shown = ["kind", "name", "state"].map(|name| found[name].as_str().unwrap());
    assert_eq!(shown, ["delivery", "invoice.created", "kept"]);
    let drop = found["drop"].as_str().unwrap();
    let dropped = operator.call("POST", drop).await.expect_status(200);
    let shown = ["state", "replay", "drop"].map(|name| dropped.data()[name].clone());
    assert_eq!(shown, [json!("dropped"), Value::Null, Value::Null]);
    assert!(
        is_empty(&operator, &filter).await,
        "it is a dead letter like any other"
    );
    operator
        .call("POST", drop)
        .await
        .expect_refusal(404, "COMMAND_NOT_FOUND");
    let audit = operator
        .get(&format!(
            "/ops/audit?subject={}",
            found["reference"].as_str().unwrap()
        ))
        .await;
    assert_eq!(audit.data()["data"][0]["action"], "delivery.drop");
    assert_eq!(world.execute(&update).await, 1);
    operator
        .call("POST", found["replay"].as_str().unwrap())
        .await
        .expect_status(200);
    eventually("an empty quarantine", async || {
        is_empty(&operator, &filter).await.then_some(())
    })
    .await;
}

#[each_database]
async fn a_task_in_quarantine_is_listed_with_nothing_to_do(world: &World) {
    let operator = world.new_operator().await;
    let taxpayer = world.taxpayer().await;
    let far = 9_000_000_000_000_000_i64;
    let insert = format!(
        "INSERT INTO lanes (kind, key, epoch, version, taxpayer_id, next_due_at, lease_until, crashes) \
         VALUES ('reconciliation', '{0}', 3, 0, 0, {far}, 0, 3)",
        taxpayer.id
    );
    assert_eq!(world.execute(&insert).await, 1);
    let found = only(&operator, &format!("taxpayer_id={}", taxpayer.id)).await;
    assert_eq!(
        found["reference"],
        json!(format!("reconciliation/{}", taxpayer.id))
    );
    assert_eq!(
        (&found["kind"], &found["replay"], &found["drop"]),
        (&json!("task"), &Value::Null, &Value::Null)
    );
    let delete = format!(
        "DELETE FROM lanes WHERE kind = 'reconciliation' AND key = '{}'",
        taxpayer.id
    );
    assert_eq!(world.execute(&delete).await, 1);
}
