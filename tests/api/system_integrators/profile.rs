//! PATCH /v1/system-integrators/taxpayers/{id}/profile.

use serde_json::json;
use testkit::roles::TAXPAYERS;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[each_database]
async fn what_is_not_sent_stays(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let path = format!("{TAXPAYERS}/{}", taxpayer.id);
    let before = integrator
        .get(&path)
        .await
        .expect_status(200)
        .data()
        .clone();
    let body = json!({ "city": "Jos", "state": "Plateau", "country": "NG" });
    let answer = integrator
        .change_profile(taxpayer.id, &body)
        .await
        .expect_status(200);
    assert_eq!(answer.body["success"], json!(true));
    let after = integrator
        .get(&path)
        .await
        .expect_status(200)
        .data()
        .clone();
    for name in [
        "name",
        "tin",
        "email",
        "address",
        "authority_service_id",
        "users",
    ] {
        assert_eq!(after[name], before[name], "{name}");
    }
}

#[each_database]
async fn the_business_email_is_the_taxpayers_email(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let email = format!("billing{}@trading.example", taxpayer.id);
    let body = json!({ "business_email": email });
    integrator
        .change_profile(taxpayer.id, &body)
        .await
        .expect_status(200);
    let read = integrator
        .get(&format!("{TAXPAYERS}/{}", taxpayer.id))
        .await
        .expect_status(200);
    assert_eq!(read.data()["email"], json!(email));
}

#[each_database]
async fn the_business_email_of_another_taxpayer_is_taken(world: &World) {
    let one = world.newcomer().await;
    let other = world.newcomer().await;
    let integrator = world.integrator();
    let read = integrator
        .get(&format!("{TAXPAYERS}/{}", one.id))
        .await
        .expect_status(200);
    let body = json!({ "business_email": read.data()["email"] });
    let answer = integrator.change_profile(other.id, &body).await;
    answer.expect_faults(&["business_email"]);
}

#[on_sqlite]
async fn all_faults_are_reported_at_once(world: &World) {
    let taxpayer = world.newcomer().await;
    let odd = json!({ "city": "x".repeat(256), "state": 7, "business_email": "plain" });
    let answer = world.integrator().change_profile(taxpayer.id, &odd).await;
    answer.expect_faults(&["business_email", "city", "state"]);
}

#[on_sqlite(&[("RATE_LIMIT__REFUSED_CREATES_PER_MIN", "2")])]
async fn beyond_the_limit_a_taken_email_is_answered_like_a_free_one(world: &World) {
    let integrator = world.integrator();
    let taxpayer = world.newcomer().await;
    let other = world.newcomer().await;
    let body = |email: &str| json!({ "business_email": email });
    let free = |number: u8| format!("free{number}-{}@trading.example", taxpayer.id);
    let path = format!("{TAXPAYERS}/{}", other.id);
    let read = integrator.get(&path).await.expect_status(200);
    let taken = read.data()["email"].as_str().unwrap().to_owned();
    // Only what is taken is counted.
    for number in 1..=3 {
        let change = body(&free(number));
        let sent = integrator.change_profile(taxpayer.id, &change);
        sent.await.expect_status(200);
    }
    for _ in 0..2 {
        let change = body(&taken);
        let sent = integrator.change_profile(taxpayer.id, &change);
        sent.await.expect_faults(&["business_email"]);
    }
    for email in [taken, free(4)] {
        let change = body(&email);
        let sent = integrator.change_profile(taxpayer.id, &change);
        sent.await.expect_refusal(429, "RATE_LIMITED");
    }
    // The email that it has already tells nothing.
    let change = body(&free(3));
    let sent = integrator.change_profile(taxpayer.id, &change);
    sent.await.expect_status(200);
}
