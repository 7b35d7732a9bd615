//! /v1/tax-payers/webhook/dead-letters: what a taxpayer sees of what could not be delivered, and its replay.

use serde_json::{Value, json};
use testkit::documents;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const PATH: &str = "/v1/tax-payers/webhook/dead-letters";

/// A taxpayer whose one notification was given up.
async fn with_a_dead_letter(world: &World, url: &str) -> (Taxpayer, Value) {
    let taxpayer = world.taxpayer().await;
    world
        .integrator()
        .set_webhook(taxpayer.id, url, &["invoice.created"])
        .await
        .expect_status(200);
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    (taxpayer.clone(), one(&taxpayer, &invoice).await)
}

async fn one(taxpayer: &Taxpayer, invoice: &Value) -> Value {
    let dead = async || {
        let found = taxpayer.get(PATH).await.expect_status(200);
        let letters = found.data()["data"].as_array().unwrap().clone();
        letters
            .into_iter()
            .find(|letter| letter["irn"] == invoice["irn"])
    };
    eventually("a dead letter", dead).await
}

#[on_sqlite]
async fn a_dead_letter_tells_why_it_was_given_up_and_what_to_do(world: &World) {
    let receiver = Receiver::start();
    for (reply, why, words) in [
        (Reply::Status(503), "The endpoint answered 503", "log"),
        (
            Reply::Status(401),
            "The endpoint answered 401",
            "grade=true",
        ),
        (
            Reply::Status(302),
            "The endpoint answered 302, and redirects are not followed",
            "URL",
        ),
    ] {
        receiver.answer_always(reply);
        let (_, letter) = with_a_dead_letter(world, &receiver.url()).await;
        assert_eq!(
            (&letter["why"], &letter["state"]),
            (&json!(why), &json!("dead"))
        );
        assert!(
            letter["what_to_do"].as_str().unwrap().contains(words),
            "{letter}"
        );
        assert_eq!(letter["attempts"].as_array().unwrap().len(), 4);
    }
    let (_, letter) = with_a_dead_letter(world, "http://127.0.0.1:9/").await;
    assert_eq!(
        letter["why"],
        json!("No connection to the endpoint could be made")
    );
}

#[each_database]
async fn a_taxpayer_replays_its_own_dead_letter(world: &World) {
    let receiver = Receiver::start();
    receiver.answer_always(Reply::Status(500));
    let (taxpayer, letter) = with_a_dead_letter(world, &receiver.url()).await;
    receiver.answer_always(Reply::Status(204));
    let path = format!("{PATH}/{}/replay", letter["id"].as_str().unwrap());
    let answer = taxpayer.call("POST", &path).await.expect_status(200);
    assert_eq!(answer.message(), "Webhook delivery queued successfully");
    assert_eq!(answer.data()["since"], answer.data()["until"]);
    let all = receiver.wait_for(5).await;
    assert_eq!(
        (all[4].id.as_str(), all[4].answered),
        (all[0].id.as_str(), Reply::Status(204))
    );
    let gone = async || {
        let found = taxpayer.get(PATH).await.expect_status(200);
        (found.data()["total"] == json!(0)).then_some(())
    };
    eventually("no dead letter any more", gone).await;
    taxpayer
        .call("POST", &path)
        .await
        .expect_refusal(404, "DELIVERY_NOT_FOUND");
    assert_eq!(receiver.received_notifications().len(), 5);
}

#[each_database]
async fn dead_letters_are_the_taxpayers_own(world: &World) {
    let (taxpayer, letter) = with_a_dead_letter(world, "http://127.0.0.1:9/").await;
    let other = world.newcomer().await;
    let theirs = other.get(PATH).await.expect_status(200);
    let empty =
        json!({ "current_page": 1, "total": 0, "per_page": 10, "last_page": 1, "data": [] });
    assert_eq!(*theirs.data(), empty);
    for id in [
        letter["id"].as_str().unwrap(),
        "00000000-0000-7000-8000-000000000000",
        "1",
        "%00",
    ] {
        let answer = other.call("POST", &format!("{PATH}/{id}/replay")).await;
        answer.expect_refusal(404, "DELIVERY_NOT_FOUND");
    }
    let page = taxpayer
        .get(&format!("{PATH}?per_page=1&page=2"))
        .await
        .expect_status(200);
    assert_eq!(
        (&page.data()["total"], &page.data()["data"]),
        (&json!(1), &json!([]))
    );
}
