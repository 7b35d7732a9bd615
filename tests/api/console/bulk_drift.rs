//! Acts on many things whose preview is no longer true, and filters that filter nothing: only what the preview showed is
//! moved, and a mistyped filter is no filter.

use einvoice::internals::OperatorRole;
use serde_json::{Value, json};
use testkit::documents;
use testkit::patience::eventually;
use testkit::receiver::Receiver;
use testkit::roles::{Operator, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::console::bulk::{Fields, preview, with_two_waiting_runs};
use crate::support::visitor::{Seen, Visitor};
use crate::support::world::{RETRY_LATE, World};

const RUNS: &str = "/console/runs";
const MOVE_RUNS: &str = "/ops/pipeline/runs/move";

/// Sends the form of the preview with a reason. Returns the page that it leads to.
async fn confirm(visitor: &Visitor, list: &str, fields: &[(&str, &str)], shown: &Seen) -> Seen {
    let ids = shown.hidden("id");
    let mut fields = fields.to_vec();
    fields.extend([("id", ids.as_str()), ("reason", "as agreed")]);
    let sent = visitor.submit(&format!("{list}/move"), &fields).await;
    visitor.get(&sent.expect(303).location).await
}

async fn run_ids(operator: &Operator, taxpayer: &Taxpayer) -> Vec<Value> {
    let query = format!("?taxpayer_id={}", taxpayer.id);
    let runs = operator.runs(&query).await.expect_status(200);
    let runs = runs.data()["data"].as_array().unwrap().iter();
    runs.map(|run| run["id"].clone()).collect()
}

/// Moves one run by its id, as a program does.
async fn move_run(operator: &Operator, action: &str, id: &Value) {
    let body = json!({ "action": action, "filter": { "ids": [id] } });
    let answer = operator.send("POST", MOVE_RUNS, &body).await;
    let answer = answer.expect_status(200);
    let moved = ["matching", "moved", "ids"].map(|name| answer.data()[name].clone());
    assert_eq!(json!(moved), json!([1, 1, [id]]), "{action}");
}

async fn is_in_state(operator: &Operator, id: &Value, state: &str) {
    let path = format!("/ops/pipeline/runs/{}", id.as_str().unwrap());
    let run = operator.get(&path).await.expect_status(200);
    assert_eq!(run.data()["state"], json!(state), "{id}");
}

#[each_database(&RETRY_LATE)]
async fn runs_that_match_since_the_preview_are_left(world: &World) {
    let api = world.new_operator().await;
    let taxpayer = with_two_waiting_runs(world, &api).await;
    let operator = Visitor::operator(world, OperatorRole::Operator).await;
    let ids = run_ids(&api, &taxpayer).await;
    move_run(&api, "pause", &ids[0]).await;
    let filter = format!("state=paused&taxpayer_id={}", taxpayer.id);
    let cancel: Fields<'_> = vec![("act", "cancel"), ("all", "true"), ("filter", &filter)];
    let shown = preview(&operator, RUNS, &cancel).await;
    let shown = shown.shows_all(&["Cancel: 1 run<"]);
    move_run(&api, "resume", &ids[0]).await;
    move_run(&api, "pause", &ids[1]).await;
    let told = confirm(&operator, RUNS, &cancel, &shown).await;
    told.shows_all(&[
        "0 runs are cancelled. 1 is not: It has changed since it was shown (1). \
         1 more matches now: it was not shown and is left.",
    ]);
    is_in_state(&api, &ids[1], "paused").await;
    let shown = preview(&operator, RUNS, &cancel).await;
    assert_eq!(json!(shown.hidden("id")), ids[1]);
    move_run(&api, "pause", &ids[0]).await;
    let told = confirm(&operator, RUNS, &cancel, &shown).await;
    told.shows_all(&["1 run is cancelled. 1 more matches now: it was not shown and is left."]);
    is_in_state(&api, &ids[0], "paused").await;
    is_in_state(&api, &ids[1], "cancelled").await;
}

#[each_database]
async fn a_dead_letter_more_does_not_keep_the_shown_ones_from_being_sent(world: &World) {
    let operator = Visitor::operator(world, OperatorRole::Operator).await;
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &["invoice.created"])
        .await
        .expect_status(200);
    taxpayer.invoice(&documents::invoice()).await;
    taxpayer.invoice(&documents::invoice()).await;
    let delivered = async || {
        let query = "?state=delivered";
        let log = integrator.deliveries(taxpayer.id, query).await;
        let log = log.expect_status(200);
        (log.data()["total"] == json!(2)).then(|| log.data()["data"].clone())
    };
    let log = eventually("two deliveries", delivered).await;
    let die = async |index: usize| {
        let id = log[index]["id"].as_str().unwrap();
        let update = format!("UPDATE deliveries SET state = 'dead' WHERE id = '{id}'");
        assert_eq!(world.execute(&update).await, 1);
    };
    let list = "/console/deliveries/dead-letters";
    let filter = format!("taxpayer_id={}", taxpayer.id);
    let replay: Fields<'_> = vec![("act", "replay"), ("all", "true"), ("filter", &filter)];
    die(0).await;
    let shown = preview(&operator, list, &replay).await;
    let shown = shown.shows_all(&["Replay: 1 dead letter<"]);
    assert_eq!(json!(shown.hidden("id")), log[0]["id"]);
    die(1).await;
    let told = confirm(&operator, list, &replay, &shown).await;
    told.shows_all(&[
        "1 dead letter is sent again. 1 more matches now: it was not shown and is left.",
    ]);
    let all = receiver.wait_for(3).await;
    assert_eq!(json!(all[2].id), log[0]["event_id"]);
}

#[on_sqlite]
async fn a_mistyped_filter_takes_nothing(world: &World) {
    let api = world.new_operator().await;
    let operator = Visitor::operator(world, OperatorRole::Operator).await;
    operator
        .get("/console/runs?foo=bar")
        .await
        .hides("that match the filter");
    let lists = [
        (RUNS, "retry", "state, operation"),
        ("/console/deliveries/dead-letters", "replay", "taxpayer_id"),
        ("/console/deliveries/endpoints", "enable", "health"),
        ("/console/quarantine", "drop", "kind"),
    ];
    for (list, act, known) in lists {
        for filter in ["stat=paused", "taxpayer_id=1&stat=paused"] {
            let fields = [("act", act), ("all", "true"), ("filter", filter)];
            let page = preview(&operator, list, &fields).await;
            let page = page.expect(422);
            page.shows(&format!("There is no filter stat. The filters are {known}"));
        }
    }
    for filter in ["", "order=oldest", "page=2&per_page=9"] {
        let fields = [("act", "pause"), ("all", "true"), ("filter", filter)];
        preview(&operator, RUNS, &fields).await.expect(422);
    }
    let filter = json!({ "state": "paused", "taxpayer": 6 });
    let body = json!({ "action": "retry", "filter": filter, "preview": true });
    let answer = api.send("POST", MOVE_RUNS, &body).await;
    answer.expect_faults(&["filter.taxpayer"]);
}
