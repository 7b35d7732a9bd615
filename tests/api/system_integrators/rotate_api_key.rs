//! POST /v1/system-integrators/taxpayers/{id}/api-key/rotate.

use serde_json::json;
use testkit::roles::{INVOICES, TAXPAYERS};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[each_database]
async fn the_old_key_is_refused_at_once_and_the_new_one_works(world: &World) {
    let taxpayer = world.taxpayer().await;
    taxpayer.list_invoices("").await.expect_status(200);
    for _ in 0..3 {
        let answer = world
            .integrator()
            .rotate_api_key(taxpayer.id)
            .await
            .expect_status(200);
        assert_eq!(answer.data()["taxpayer_id"], json!(taxpayer.id));
        let key = answer.data()["api_key"].as_str().unwrap();
        assert!(key.starts_with("tpk_") && key.len() >= 36, "{key}");
        taxpayer
            .list_invoices("")
            .await
            .expect_refusal(401, "INVALID_API_KEY");
        taxpayer
            .app()
            .run("A-AAAAAAAA-20260115")
            .await
            .expect_refusal(403, "KEY_NOT_RECOGNIZED");
        world
            .anonymous()
            .with_key(key)
            .get(INVOICES)
            .await
            .expect_status(200);
    }
}

#[each_database]
async fn a_rotation_is_an_event_without_the_key(world: &World) {
    let taxpayer = world.taxpayer().await;
    let answer = world
        .integrator()
        .rotate_api_key(taxpayer.id)
        .await
        .expect_status(200);
    let key = answer.data()["api_key"].as_str().unwrap();
    let feed = world
        .anonymous()
        .with_key(key)
        .get("/v1/tax-payers/events")
        .await
        .expect_status(200);
    let events = feed.data()["events"].as_array().unwrap();
    assert_eq!(events.last().unwrap()["type"], json!("api-key.rotated"));
    assert!(!feed.text.contains("tpk_"), "{}", feed.text);
    let read = world
        .integrator()
        .get(&format!("{TAXPAYERS}/{}", taxpayer.id))
        .await;
    assert!(!read.text.contains("tpk_"));
}

#[on_sqlite]
async fn put_and_patch_rotate_too(world: &World) {
    let taxpayer = world.newcomer().await;
    let path = format!("{TAXPAYERS}/{}/api-key/rotate", taxpayer.id);
    for method in ["POST", "PUT", "PATCH"] {
        let answer = world
            .integrator()
            .call(method, &path)
            .await
            .expect_status(200);
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    let answer = world.integrator().get(&path).await;
    answer.expect_refusal(405, "METHOD_NOT_ALLOWED");
}

#[on_sqlite]
async fn terms_in_the_body_are_refused_and_the_old_key_stays(world: &World) {
    let taxpayer = world.taxpayer().await;
    let path = format!("{TAXPAYERS}/{}/api-key/rotate", taxpayer.id);
    let integrator = world.integrator();
    let terms = json!({ "overlap_s": 3600, "scope": "read_only" });
    let answer = integrator.send("POST", &path, &terms).await;
    let answer = answer.expect_faults(&["overlap_s", "scope"]);
    assert_eq!(
        answer.body["errors"]["overlap_s"],
        json!(["Send overlap_s in the query: ?overlap_s=…"])
    );
    integrator
        .send_text("POST", &path, "overlap_s=3600")
        .await
        .expect_refusal(400, "MALFORMED_JSON");
    taxpayer.list_invoices("").await.expect_status(200);
    let odd = json!({ "colour": "red" });
    let answer = integrator.send("POST", &path, &odd).await;
    let answer = answer.expect_status(200);
    assert_eq!(answer.warnings(), "unknown field: colour");
    let answer = integrator.send("POST", &path, &json!({})).await;
    assert_eq!(answer.expect_status(200).warnings(), "");
}
