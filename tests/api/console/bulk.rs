//! Acts on many things of a list at once: the preview, the reason, the act, and what the audit keeps of it.

use einvoice::internals::OperatorRole;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::json;
use testkit::documents::{self, irn, number, submission};
use testkit::each_database;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::roles::{Operator, Taxpayer, webhook};
use url::form_urlencoded::Serializer;

use crate::support::visitor::{Seen, Visitor};
use crate::support::world::{RETRY_LATE, World};

const DONE: &str = "This was done already.";

/// The fields of an act, as the preview sends them on.
pub(super) type Fields<'a> = Vec<(&'a str, &'a str)>;

pub(super) async fn preview(visitor: &Visitor, list: &str, fields: &[(&str, &str)]) -> Seen {
    let query = Serializer::new(String::new()).extend_pairs(fields).finish();
    visitor.get(&format!("{list}/move/preview?{query}")).await
}

/// Sends the form of a preview twice and returns the page that each led to.
async fn go_twice(visitor: &Visitor, path: &str, fields: &[(&str, &str)]) -> [Seen; 2] {
    let csrf = visitor.get("/account/password").await.csrf();
    let once = number().to_string();
    let tokens = [("csrf", csrf.as_str()), ("once", once.as_str())];
    let fields: Fields<'_> = fields.iter().copied().chain(tokens).collect();
    let first = visitor.send(path, &fields).await.expect(303);
    let first_page = visitor.get(&first.location).await;
    let second = visitor.send(path, &fields).await.expect(303);
    assert_eq!(first.location, second.location);
    [first_page, visitor.get(&second.location).await]
}

async fn count_runs(operator: &Operator, taxpayer: &Taxpayer, state: &str) -> i64 {
    let query = format!("?taxpayer_id={}&state={state}", taxpayer.id);
    let runs = operator.runs(&query).await.expect_status(200);
    runs.data()["total"].as_i64().unwrap()
}

/// A taxpayer with two runs that wait for an authority that fails the check of their IRNs.
pub(super) async fn with_two_waiting_runs(world: &World, operator: &Operator) -> Taxpayer {
    let taxpayer = world.taxpayer().await;
    for _ in 0..2 {
        let no = documents::invoice_no();
        let mut fault = FaultOrder::new(FaultKind::ServerError)
            .on(Operation::IrnValidate)
            .times(1_000_000);
        fault.irn = Some(irn(&taxpayer, &no));
        world.authority.add_fault(fault).unwrap();
        taxpayer
            .app()
            .submit_async(&submission(&taxpayer, &no))
            .await
            .expect_status(202);
    }
    let waiting = async || {
        let count = count_runs(operator, &taxpayer, "waiting").await;
        (count == 2).then_some(())
    };
    eventually("two runs that wait", waiting).await;
    taxpayer
}

/// Expects one entry of the act in the audit, by this operator, with these counts.
async fn is_audited_once(operator: &Operator, email: &str, action: &str, counts: &str) {
    let query = format!("?action={action}&operator={email}");
    let audit = operator.audit(&query).await.expect_status(200);
    assert_eq!(audit.data()["total"], json!(1), "{action}");
    let entry = &audit.data()["data"][0];
    assert_eq!(
        (&entry["to_state"], &entry["reason"]),
        (&json!(counts), &json!("as agreed"))
    );
}

#[each_database(&RETRY_LATE)]
async fn runs_are_counted_first_and_moved_once(world: &World) {
    let api = world.new_operator().await;
    let taxpayer = with_two_waiting_runs(world, &api).await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let (operator, email, _) = Visitor::new_operator(world, OperatorRole::Operator).await;
    let filter = format!("taxpayer_id={}&state=waiting", taxpayer.id);
    let list = format!("/console/runs?{filter}");
    viewer
        .get(&list)
        .await
        .shows_all(&["2 runs match"])
        .hides_all(&["/move/preview", "name=\"id\""]);
    operator
        .get(&list)
        .await
        .shows_all(&["All 2 that match the filter", "name=\"id\""]);
    let all: Fields<'_> = vec![("act", "pause"), ("all", "true"), ("filter", &filter)];
    preview(&viewer, "/console/runs", &all).await.expect(403);
    let shown = preview(&operator, "/console/runs", &all).await.shows_all(&[
        "Pause: 2 runs",
        "Each run stops before its next step",
        &taxpayer.id.to_string(),
    ]);
    let ids = shown.hidden("id");
    assert_eq!(count_runs(&api, &taxpayer, "waiting").await, 2);

    let path = "/console/runs/move";
    let mut go = all.clone();
    go.push(("id", &ids));
    let refused = operator.submit(path, &go).await.expect(422);
    let refused = refused.shows("Pause: 2 runs").shows("id=\"fault-reason\"");
    assert_eq!(refused.hidden("id").len(), ids.len());
    go.push(("reason", "as agreed"));
    viewer.submit(path, &go).await.expect(403);
    let [first, second] = go_twice(&operator, path, &go).await;
    first.shows_all(&["2 runs are paused."]);
    second.shows_all(&[DONE]);
    assert_eq!(count_runs(&api, &taxpayer, "paused").await, 2);
    is_audited_once(&api, &email, "runs.move", "2 moved, 0 refused").await;
    let single = api
        .audit(&format!("?action=run.pause&operator={email}"))
        .await
        .expect_status(200);
    assert_eq!(single.data()["total"], json!(2), "each run has an entry");
}

#[each_database(&RETRY_LATE)]
async fn only_ticked_runs_are_moved_and_those_that_may_not_say_why(world: &World) {
    let api = world.new_operator().await;
    let taxpayer = with_two_waiting_runs(world, &api).await;
    let operator = Visitor::operator(world, OperatorRole::Operator).await;
    let newest = api.newest_run(&taxpayer).await;
    let id = newest["id"].as_str().unwrap();
    let ticked: Fields<'_> = vec![("act", "pause"), ("id", id)];
    preview(&operator, "/console/runs", &ticked)
        .await
        .shows_all(&["Pause: 1 run<"]);
    let refused: Fields<'_> = vec![("act", "resume"), ("id", id)];
    preview(&operator, "/console/runs", &refused)
        .await
        .shows_all(&["A run that is waiting takes no resume (1)"])
        .shows_all(&["There is nothing that this can be done with."]);
    let path = "/console/runs/move";
    let go: Fields<'_> = vec![("act", "pause"), ("id", id), ("reason", "as agreed")];
    let [first, _] = go_twice(&operator, path, &go).await;
    first.shows_all(&["1 run is paused."]);
    assert_eq!(count_runs(&api, &taxpayer, "paused").await, 1);
    preview(&operator, "/console/runs", &[("act", "pause")])
        .await
        .expect(422);
    let unseen = [
        ("act", "pause"),
        ("all", "true"),
        ("filter", "state=waiting"),
        ("reason", "x"),
    ];
    operator.submit(path, &unseen).await.expect(422);
    preview(
        &operator,
        "/console/runs",
        &[("act", "explode"), ("id", id)],
    )
    .await
    .expect(404);
}

/// A taxpayer whose endpoint failed and whose one notification is a dead letter.
async fn with_a_dead_letter(world: &World, receiver: &Receiver) -> Taxpayer {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &["invoice.created"])
        .await
        .expect_status(200);
    receiver.answer_next(&[Reply::Status(503); 4]);
    taxpayer.invoice(&documents::invoice()).await;
    let dead = async || {
        let log = integrator
            .deliveries(taxpayer.id, "?state=dead")
            .await
            .expect_status(200);
        (log.data()["total"] == json!(1)).then_some(())
    };
    eventually("a dead letter", dead).await;
    taxpayer
}

#[each_database]
async fn dead_letters_are_replayed_once(world: &World) {
    let api = world.new_operator().await;
    let receiver = Receiver::start();
    let taxpayer = with_a_dead_letter(world, &receiver).await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let (operator, email, _) = Visitor::new_operator(world, OperatorRole::Operator).await;
    let filter = format!("taxpayer_id={}", taxpayer.id);
    let list = "/console/deliveries/dead-letters";
    let mut fields: Fields<'_> = vec![("act", "replay"), ("all", "true"), ("filter", &filter)];
    preview(&viewer, list, &fields).await.expect(403);
    let shown = preview(&operator, list, &fields).await.shows_all(&[
        "Replay: 1 dead letter<",
        "The endpoint answered 503",
        "invoice.created",
    ]);
    let ids = shown.hidden("id");
    fields.extend([("id", ids.as_str()), ("reason", "as agreed")]);
    let path = format!("{list}/move");
    viewer.submit(&path, &fields).await.expect(403);
    let [first, second] = go_twice(&operator, &path, &fields).await;
    first.shows_all(&["1 dead letter is sent again."]);
    second.shows_all(&[DONE]);
    receiver.wait_for(5).await;
    is_audited_once(&api, &email, "dead-letters.move", "1 moved, 0 refused").await;
    let replays = api
        .audit(&format!("?action=delivery.replay&operator={email}"))
        .await
        .expect_status(200);
    assert_eq!(replays.data()["total"], json!(1));
}

#[each_database]
async fn endpoints_are_found_by_cause_and_tried_again_once(world: &World) {
    let api = world.new_operator().await;
    let receiver = Receiver::start();
    let taxpayer = with_a_dead_letter(world, &receiver).await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let (operator, email, _) = Visitor::new_operator(world, OperatorRole::Operator).await;
    let list = "/console/deliveries";
    let by_cause = |cause: &str| format!("taxpayer_id={}&cause={cause}", taxpayer.id);
    viewer
        .get(&format!("{list}?{}", by_cause("503")))
        .await
        .shows_all(&["Answers 503", "Failing", "of host 127.0.0.1"])
        .hides("/move/preview");
    viewer
        .get(&format!("{list}?{}", by_cause("connect")))
        .await
        .shows_all(&["No endpoint matches."]);
    let filter = by_cause("503");
    let mut fields: Fields<'_> = vec![("act", "enable"), ("all", "true"), ("filter", &filter)];
    let moves = "/console/deliveries/endpoints";
    preview(&viewer, moves, &fields).await.expect(403);
    let shown = preview(&operator, moves, &fields)
        .await
        .shows_all(&["Try again now: 1 endpoint<", "Answers 503"]);
    let ids = shown.hidden("id");
    fields.extend([("id", ids.as_str()), ("reason", "as agreed")]);
    let path = format!("{moves}/move");
    viewer.submit(&path, &fields).await.expect(403);
    let [first, second] = go_twice(&operator, &path, &fields).await;
    first.shows_all(&["1 endpoint is tried again."]);
    second.shows_all(&[DONE]);
    let query = format!("/ops/webhooks/endpoints?taxpayer_id={}", taxpayer.id);
    let listed = api.get(&query).await.expect_status(200);
    assert_eq!(listed.data()["data"][0]["health"], json!("working"));
    is_audited_once(&api, &email, "endpoints.move", "1 moved, 0 refused").await;
    is_audited_enabling(&api, &email, "default").await;
}

/// Expects that one endpoint was enabled by this operator, and that the audit names it.
async fn is_audited_enabling(api: &Operator, email: &str, endpoint: &str) {
    let enabled = api
        .audit(&format!("?action=webhook.enable&operator={email}"))
        .await
        .expect_status(200);
    assert_eq!(enabled.data()["total"], json!(1));
    let entry = &enabled.data()["data"][0];
    assert_eq!(
        (&entry["subject"], &entry["reason"]),
        (&json!(endpoint), &json!("as agreed"))
    );
}

#[each_database]
async fn one_ticked_endpoint_of_several_is_tried_again_alone(world: &World) {
    let api = world.new_operator().await;
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let url = "http://127.0.0.1:9/notifications";
    integrator
        .set_webhook(taxpayer.id, url, &["invoice.created"])
        .await
        .expect_status(200);
    let mut added = Vec::new();
    for _ in 0..2 {
        let body = json!({ "url": url, "enabled_events": ["invoice.created"] });
        let path = format!("{}/endpoints", webhook(taxpayer.id));
        let answer = integrator.send("POST", &path, &body).await;
        let answer = answer.expect_status(201);
        added.push(answer.data()["id"].as_str().unwrap().to_owned());
    }
    let disable = format!(
        "UPDATE webhooks SET is_active = false WHERE {0} IN (taxpayer_id, owner_id)",
        taxpayer.id
    );
    assert_eq!(world.execute(&disable).await, 3);
    let (operator, email, _) = Visitor::new_operator(world, OperatorRole::Operator).await;
    let list = format!("/console/deliveries?taxpayer_id={}", taxpayer.id);
    let ticked = format!("-{}", added[0]);
    let boxes = [
        taxpayer.id.to_string(),
        ticked.clone(),
        format!("-{}", added[1]),
    ];
    let boxes = boxes.map(|key| format!(r#"name="id" form="bulk" value="{key}""#));
    operator
        .get(&list)
        .await
        .shows_all(&boxes.each_ref().map(String::as_str));
    let moves = "/console/deliveries/endpoints";
    let mut fields: Fields<'_> = vec![("act", "enable"), ("id", &ticked)];
    preview(&operator, moves, &fields)
        .await
        .shows_all(&["Try again now: 1 endpoint<"]);
    fields.push(("reason", "as agreed"));
    let [first, _] = go_twice(&operator, &format!("{moves}/move"), &fields).await;
    first.shows_all(&["1 endpoint is tried again."]);
    is_audited_once(&api, &email, "endpoints.move", "1 moved, 0 refused").await;
    is_audited_enabling(&api, &email, &added[0]).await;
}

#[each_database]
async fn work_in_quarantine_is_dropped_once(world: &World) {
    let api = world.new_operator().await;
    let taxpayer = world.taxpayer().await;
    let reference = format!("01900000-0000-7000-9000-{:012}", taxpayer.id);
    let insert = format!(
        "INSERT INTO quarantine (reference, actor, command, taxpayer_id, at, panic, state) \
         VALUES ('{reference}', '{0}', 'pay', {0}, 1, 'it panicked', 'kept')",
        taxpayer.id
    );
    assert_eq!(world.execute(&insert).await, 1);
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let (operator, email, _) = Visitor::new_operator(world, OperatorRole::Operator).await;
    let filter = format!("taxpayer_id={}", taxpayer.id);
    let list = "/console/quarantine";
    let replay: Fields<'_> = vec![("act", "replay"), ("all", "true"), ("filter", &filter)];
    preview(&operator, list, &replay).await.shows_all(&[
        "It cannot be replayed",
        "There is nothing that this can be done with.",
    ]);
    let mut fields: Fields<'_> = vec![("act", "drop"), ("all", "true"), ("filter", &filter)];
    preview(&viewer, list, &fields).await.expect(403);
    let shown = preview(&operator, list, &fields).await.shows_all(&[
        "Drop: 1 piece of work",
        "it panicked",
        "command pay",
    ]);
    let ids = shown.hidden("id");
    fields.extend([("id", ids.as_str()), ("reason", "as agreed")]);
    let path = format!("{list}/move");
    viewer.submit(&path, &fields).await.expect(403);
    let [first, second] = go_twice(&operator, &path, &fields).await;
    first.shows_all(&["1 piece of work is dropped."]);
    second.shows_all(&[DONE]);
    is_audited_once(&api, &email, "quarantine.move", "1 moved, 0 refused").await;
    let dropped = api
        .audit(&format!("?action=command.drop&operator={email}"))
        .await
        .expect_status(200);
    assert_eq!(dropped.data()["total"], json!(1));
}
