//! What is under way to an endpoint while something else changes.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use testkit::documents;
use testkit::each_database;
use testkit::receiver::{Receiver, Reply};

use super::{CREATED, subscribed};
use crate::support::world::World;

/// Longer than these tests keep an answer back.
const PATIENT: (&str, &str) = ("WEBHOOKS__TIMEOUT_S", "60");

#[each_database(&[PATIENT, ("WEBHOOKS__RETRY_SCHEDULE_S", "[0, 0, 0]")])]
async fn an_old_address_that_answers_410_leaves_the_new_one_in_service(world: &World) {
    let old = Receiver::start();
    let new = Receiver::start();
    let (taxpayer, _) = subscribed(world, &old, &[CREATED]).await;
    old.answer_always(Reply::Status(410));
    old.hold(true);
    let before = taxpayer.invoice(&documents::invoice()).await;
    old.wait_for(1).await;
    world
        .integrator()
        .set_webhook(taxpayer.id, &new.url(), &[CREATED])
        .await
        .expect_status(200);
    let after = taxpayer.invoice(&documents::invoice()).await;
    assert_eq!(new.wait_for(1).await[0].body()["data"]["irn"], after["irn"]);
    old.hold(false);
    let arrived = new.wait_for(2).await;
    assert_eq!(
        arrived[1].body()["data"]["irn"],
        before["irn"],
        "it is tried again where it now goes"
    );
    let record = world
        .integrator()
        .webhook(taxpayer.id)
        .await
        .expect_status(200);
    assert_eq!(
        (
            &record.data()["is_active"],
            &record.data()["health"]["state"]
        ),
        (&json!(true), &json!("working"))
    );
}

#[each_database(&[PATIENT])]
async fn a_look_at_the_database_in_vain_sends_nothing_twice(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &[CREATED]).await;
    receiver.hold(true);
    for _ in 0..3 {
        taxpayer.invoice(&documents::invoice()).await;
    }
    receiver.wait_for(3).await;
    // Whom to deliver to is read from it every few seconds.
    world
        .execute("ALTER TABLE integrations RENAME TO integrations_away")
        .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    world
        .execute("ALTER TABLE integrations_away RENAME TO integrations")
        .await;
    receiver.hold(false);
    let after = taxpayer.invoice(&documents::invoice()).await;
    let all = receiver.wait_for(4).await;
    assert_eq!(all.last().unwrap().body()["data"]["irn"], after["irn"]);
    let ids: BTreeSet<_> = all.iter().map(|one| &one.id).collect();
    assert_eq!((ids.len(), all.len()), (4, 4));
}
