//! GET /ops/supervision: the worst actors of all replicas, and the tree of the one that answers.

use einvoice::internals::OperatorRole;
use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::patience::eventually;

use crate::support::visitor::Visitor;
use crate::support::world::{ALONE, World};

const SUPERVISION: &str = "/ops/supervision";

#[each_database]
async fn the_worst_actors_name_their_replica_and_can_be_limited_to_one(world: &World) {
    let operator = world.new_operator().await;
    let taxpayer = world.taxpayer().await;
    taxpayer.invoice(&documents::invoice()).await;
    let by_time = "by=handle-time&minutes=60&kind=taxpayer";
    let answer = operator
        .get(&format!("{SUPERVISION}?{by_time}"))
        .await
        .expect_status(200);
    let name = answer.data()["answered_by"].as_str().unwrap().to_owned();
    let worst = answer.data()["worst"].as_array().unwrap();
    assert!((1..=20).contains(&worst.len()), "{}", answer.text);
    for actor in worst {
        assert_eq!(actor["kind"], "taxpayer");
        assert_eq!(
            (&actor["replica"], &actor["told_at"], &actor["told_us_ago"]),
            (&json!(name), &Value::Null, &json!(0))
        );
        assert!(
            actor["last_hour"]["handle_max_us"].as_u64() > Some(0),
            "{actor}"
        );
    }
    assert!(answer.data()["groups"].is_array(), "{}", answer.text);
    for (replica, is_known) in [(name.as_str(), true), ("nobody", false)] {
        let path = format!("{SUPERVISION}?{by_time}&replica={replica}");
        let listed = operator.get(&path).await.expect_status(200);
        let worst = listed.data()["worst"].as_array().unwrap();
        assert_eq!(!worst.is_empty(), is_known, "{replica}");
    }
    for unknown in ["by=colour", "minutes=7"] {
        let path = format!("{SUPERVISION}?{unknown}");
        operator
            .get(&path)
            .await
            .expect_refusal(422, "VALIDATION_FAILED");
    }
}

/// Plants a replica that gave its last sign so many microseconds after the newest sign of all.
async fn plant_replica(world: &World, name: &str, after_us: i64) {
    let figures = json!({
        "actors": { "queued": 4321 },
        "worst_actors": [{
            "kind": "taxpayer", "name": "77", "state": "stuck", "mailbox_depth": 9,
            "batch": { "command": "create", "commands": 3, "age_us": 65_000_000 },
        }],
    });
    let statement = format!(
        "INSERT INTO replicas (id, name, seen_at, figures) \
         SELECT '{name}', '{name}', MAX(seen_at) + {after_us}, '{figures}' FROM replicas"
    );
    world.execute(&statement).await;
}

#[each_database(ALONE)]
async fn a_replica_shows_what_others_told_and_of_a_missing_one_only_when_asked(world: &World) {
    const HOUR: i64 = 3_600_000_000;
    let operator = world.new_operator().await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let has_sign = async || (world.number("SELECT COUNT(*) FROM replicas").await > 0).then_some(());
    eventually("the first sign", has_sign).await;
    plant_replica(world, "gone", -10_000_000).await;
    plant_replica(world, "other", HOUR).await;
    let told = async |query: &str| {
        let answer = operator.get(&format!("{SUPERVISION}?{query}")).await;
        let worst = answer.expect_status(200).data()["worst"].clone();
        let stuck = worst.as_array().unwrap().iter();
        let stuck = stuck.filter(|actor| actor["name"] == "77");
        stuck.cloned().collect::<Vec<_>>()
    };
    let only_other = async || {
        // The list may have been read between the two replicas.
        let told = told("").await;
        (told.len() == 1 && told[0]["replica"] == "other").then(|| told[0].clone())
    };
    let actor = eventually("the actor of the other replica alone", only_other).await;
    assert_eq!(actor["state"], "stuck");
    assert!(actor["told_at"].is_string(), "{actor}");
    assert_eq!(actor["batch"]["age_us"], 65_000_000);
    let gone = told("replica=gone").await;
    assert_eq!(gone[0]["replica"], "gone");
    assert!(
        gone[0]["told_us_ago"].as_u64() > Some(3_000_000),
        "{gone:?}"
    );
    let all = viewer.get("/console/supervision").await;
    all.shows_all(&["taxpayer 77", "4321", "replica=other", "All actors of"]);
    let page = viewer.get("/console/supervision?replica=gone").await;
    page.shows_all(&["gone, ", "1 min 5 s"])
        .hides("All actors of");
}
