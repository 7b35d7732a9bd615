//! /v1/system-integrators/taxpayers/{id}/webhook/test?grade=true: what an endpoint is worth.

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::receiver::{Receiver, Reply};
use testkit::roles::{Integrator, Taxpayer, webhook};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const CHECKS: [&str; 9] = [
    "good",
    "duplicate",
    "reordered",
    "delayed",
    "bad_signature",
    "missing_signature",
    "old_timestamp",
    "large_body",
    "speed",
];

struct Scene {
    taxpayer: Taxpayer,
    integrator: Integrator,
    receiver: Receiver,
    secret: String,
}

impl Scene {
    async fn new(world: &World) -> Self {
        let taxpayer = world.newcomer().await;
        let integrator = world.integrator();
        let receiver = Receiver::start();
        integrator
            .set_webhook(taxpayer.id, &receiver.url(), &["webhook.test"])
            .await
            .expect_status(200);
        let secret = integrator.rotate_secret(taxpayer.id).await;
        Self {
            taxpayer,
            integrator,
            receiver,
            secret,
        }
    }

    fn path(&self) -> String {
        format!("{}/test?grade=true", webhook(self.taxpayer.id))
    }

    async fn grade(&self) -> Answer {
        self.integrator.call("POST", &self.path()).await
    }
}

fn failed(answer: &Answer) -> Vec<&str> {
    let checks = answer.data()["checks"].as_array().unwrap().iter();
    checks
        .filter(|check| check["passed"] == json!(false))
        .map(|check| check["name"].as_str().unwrap())
        .collect()
}

fn check<'a>(answer: &'a Answer, name: &str) -> &'a Value {
    answer.data()["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == name)
        .unwrap()
}

#[each_database]
async fn a_receiver_that_verifies_has_an_a(world: &World) {
    let scene = Scene::new(world).await;
    scene.receiver.verify_with(&scene.secret);
    let answer = scene.grade().await.expect_status(200);
    assert_eq!(
        answer.message(),
        "Webhook graded A: 100 of 100 points",
        "{}",
        answer.text
    );
    assert_eq!(
        (&answer.data()["grade"], &answer.data()["score"]),
        (&json!("A"), &json!(100))
    );
    let names: Vec<_> = answer.data()["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, CHECKS);
    let one = check(&answer, "bad_signature");
    let fields: Vec<_> = one
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "duration_ms",
        "expected",
        "explanation",
        "name",
        "passed",
        "sent",
        "status",
    ];
    assert_eq!(
        (fields.as_slice(), &one["status"]),
        (&expected[..], &json!(401))
    );
    assert!(!answer.text.contains("whsec_"), "{}", answer.text);
    let by_get = scene.integrator.get(&scene.path()).await.expect_status(200);
    assert_eq!(by_get.data()["grade"], json!("A"));
}

#[on_sqlite]
async fn each_message_of_the_battery_is_what_it_says(world: &World) {
    let scene = Scene::new(world).await;
    let before = scene.taxpayer.events().await.len();
    scene.grade().await.expect_status(200);
    let all = scene.receiver.received_notifications();
    assert_eq!(all.len(), 9);
    assert!(
        all.iter()
            .all(|one| one.kind() == "webhook.test" && one.body()["id"] == json!(one.id))
    );
    assert!(all.iter().all(|one| {
        one.body()["data"]["message"]
            .as_str()
            .unwrap()
            .contains("test")
    }));
    assert_eq!(
        (&all[0].id, &all[0].bytes),
        (&all[1].id, &all[1].bytes),
        "the duplicate"
    );
    assert_eq!(
        [2, 3].map(|at: usize| all[at].body()["sequence"].clone()),
        [json!(2), json!(1)]
    );
    assert_eq!(
        all[2].body()["data"]["subject"],
        all[3].body()["data"]["subject"]
    );
    let stamp = |at: usize| all[at].timestamp.parse::<i64>().unwrap();
    let event_of = |at: usize| {
        let text = all[at].body()["timestamp"].as_str().unwrap().to_owned();
        text.parse::<jiff::Timestamp>().unwrap().as_second()
    };
    assert_eq!((stamp(4) - event_of(4)) / 86_400, 3, "the delayed one");
    assert!(
        (595..=620).contains(&(stamp(0) - stamp(7)).abs()),
        "the old one"
    );
    assert!(all[8].bytes.len() > 200 * 1_024, "the large one");
    let signed: Vec<_> = all
        .iter()
        .map(|one| one.is_signed_with(&scene.secret))
        .collect();
    assert_eq!(
        signed,
        [true, true, true, true, true, false, false, true, true]
    );
    assert!(all[5].signature.starts_with("v1,") && all[6].signature.is_empty());
    // Nothing is kept of it.
    assert_eq!(scene.taxpayer.events().await.len(), before);
    let log = scene
        .integrator
        .deliveries(scene.taxpayer.id, "")
        .await
        .expect_status(200);
    assert_eq!(log.data()["total"], json!(0));
}

#[on_sqlite]
async fn what_a_receiver_does_wrong_is_marked_and_explained(world: &World) {
    let scene = Scene::new(world).await;
    let yes = Reply::Status(204);
    let no = Reply::Status(401);
    let right = [yes, yes, yes, yes, yes, no, no, no, yes];
    for (at, reply, grade, check_name, words) in [
        (1, Reply::Status(409), "B", "duplicate", "webhook-id"),
        (3, Reply::Status(422), "B", "reordered", "`sequence`"),
        (4, Reply::Status(400), "B", "delayed", "webhook-timestamp"),
        (5, yes, "F", "bad_signature", "another secret"),
        (6, yes, "F", "missing_signature", "400 or 401"),
        (
            6,
            Reply::Status(500),
            "B",
            "missing_signature",
            "no refusal",
        ),
        (
            6,
            Reply::Status(410),
            "B",
            "missing_signature",
            "switches the endpoint off",
        ),
        (7, yes, "C", "old_timestamp", "five minutes"),
        (8, Reply::Status(413), "B", "large_body", "1 MiB"),
        (8, Reply::Status(302), "B", "large_body", "Redirects"),
    ] {
        let mut replies = right;
        replies[at] = reply;
        scene.receiver.answer_next(&replies);
        let answer = scene.grade().await.expect_status(200);
        assert_eq!(
            (&answer.data()["grade"], failed(&answer)),
            (&json!(grade), vec![check_name])
        );
        let explanation = check(&answer, check_name)["explanation"].as_str().unwrap();
        assert!(explanation.contains(words), "{explanation}");
    }
    let record = scene
        .integrator
        .webhook(scene.taxpayer.id)
        .await
        .expect_status(200);
    assert_eq!(
        record.data()["is_active"],
        json!(true),
        "a 410 takes nothing out of service here"
    );
}

#[on_sqlite]
async fn a_receiver_that_takes_everything_or_nothing_fails(world: &World) {
    let scene = Scene::new(world).await;
    let trusting = scene.grade().await.expect_status(200);
    assert_eq!(trusting.data()["grade"], json!("F"));
    assert_eq!(
        failed(&trusting),
        ["bad_signature", "missing_signature", "old_timestamp"]
    );
    scene.receiver.answer_always(Reply::Status(401));
    let closed = scene.grade().await.expect_status(200);
    assert_eq!(
        (&closed.data()["grade"], failed(&closed).len()),
        (&json!("F"), 8)
    );
    let words = check(&closed, "bad_signature")["explanation"]
        .as_str()
        .unwrap();
    assert!(words.contains("shows nothing"), "{words}");
}

#[on_sqlite]
async fn a_slow_answer_costs_and_says_so(world: &World) {
    let scene = Scene::new(world).await;
    let yes = Reply::Status(204);
    let no = Reply::Status(401);
    scene
        .receiver
        .answer_next(&[yes, yes, yes, yes, yes, no, no, no, Reply::Slow]);
    let answer = scene.grade().await.expect_status(200);
    assert_eq!(
        (&answer.data()["grade"], failed(&answer)),
        (&json!("B"), vec!["large_body", "speed"])
    );
    assert_eq!(check(&answer, "large_body")["status"], Value::Null);
    assert!(check(&answer, "speed")["duration_ms"].as_u64().unwrap() >= 1_900);
}

#[on_sqlite]
async fn an_endpoint_that_cannot_be_reached_has_no_grade(world: &World) {
    let scene = Scene::new(world).await;
    let url = "http://127.0.0.1:9/";
    scene
        .integrator
        .set_webhook(scene.taxpayer.id, url, &[])
        .await
        .expect_status(200);
    let answer = scene
        .grade()
        .await
        .expect_refusal(502, "WEBHOOK_UNREACHABLE");
    assert_eq!(
        answer.message(),
        "No connection to the endpoint could be made"
    );
    let none = world.newcomer().await;
    let path = format!("{}/test?grade=true", webhook(none.id));
    scene
        .integrator
        .call("POST", &path)
        .await
        .expect_refusal(422, "WEBHOOK_NOT_CONFIGURED");
}

#[on_sqlite(&[("RATE_LIMIT__WEBHOOK_TEST_PER_MIN", "2")])]
async fn a_battery_counts_as_one_test(world: &World) {
    let scene = Scene::new(world).await;
    scene.grade().await.expect_status(200);
    scene
        .integrator
        .test_webhook(scene.taxpayer.id)
        .await
        .expect_status(200);
    scene.grade().await.expect_refusal(429, "RATE_LIMITED");
    assert_eq!(scene.receiver.received_notifications().len(), 9 + 1);
}

#[on_sqlite]
async fn only_a_yes_asks_for_a_grade(world: &World) {
    let scene = Scene::new(world).await;
    let path = format!("{}/test", webhook(scene.taxpayer.id));
    for query in ["?grade=false", "?grade=", "?grade=0", "?other=true"] {
        let answer = scene
            .integrator
            .call("POST", &format!("{path}{query}"))
            .await
            .expect_status(200);
        assert_eq!(
            answer.message(),
            "Connection test successful! Response code: 204",
            "{query}"
        );
    }
    scene
        .integrator
        .call("POST", &format!("{path}?grade=A"))
        .await
        .expect_faults(&["grade"]);
    assert_eq!(scene.receiver.received_notifications().len(), 4);
    let stranger = world.new_integrator().await;
    stranger
        .call("POST", &scene.path())
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
}
