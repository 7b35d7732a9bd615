//! GET /v1/system-integrators/taxpayers/{id}.

use serde_json::json;
use testkit::answer::stable_text;
use testkit::documents;
use testkit::edit::with;
use testkit::roles::TAXPAYERS;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[each_database]
async fn a_taxpayer_reads_with_tin_and_plain_stamps_and_its_contacts(world: &World) {
    let integrator = world.integrator();
    let body = documents::taxpayer();
    world.enrol(&body, body["tin_no"].as_str().unwrap());
    let made = integrator.create_taxpayer(&body).await.expect_status(201);
    world.settled(&made.data()["id"]).await;
    let answer = integrator
        .get(&format!("{TAXPAYERS}/{}", made.data()["id"]))
        .await
        .expect_status(200);
    let data = answer.data();
    assert_eq!(
        (&data["id"], &data["tin"]),
        (&made.data()["id"], &body["tin_no"])
    );
    assert_eq!(data["users"][0]["email"], body["contact_person"]["email"]);
    for stamp in [
        &data["created_at"],
        &data["updated_at"],
        &data["users"][0]["created_at"],
    ] {
        let stamp = stamp.as_str().unwrap();
        assert_eq!(stamp.len(), "2026-01-15 10:00:00".len(), "{stamp}");
        assert!(
            jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", stamp).is_ok(),
            "{stamp}"
        );
    }
    let unsteady = [
        "id",
        "name",
        "tin",
        "email",
        "authority_business_id",
        "authority_service_id",
        "created_at",
        "updated_at",
    ];
    let unsteady = unsteady.map(|name| format!("/{name}"));
    let mut unsteady: Vec<_> = unsteady.iter().map(String::as_str).collect();
    unsteady.extend([
        "/users/0/id",
        "/users/0/email",
        "/users/0/created_at",
        "/users/0/updated_at",
    ]);
    insta::assert_snapshot!(stable_text(data, &unsteady), @r#"
            {
              "address": "1 Marina Road",
              "authority_business_id": "…",
              "authority_service_id": "…",
              "created_at": "…",
              "email": "…",
              "id": "…",
              "name": "…",
              "nature_of_business": "Wholesale of computers",
              "tin": "…",
              "updated_at": "…",
              "users": [
                {
                  "created_at": "…",
                  "email": "…",
                  "first_name": "Ada",
                  "id": "…",
                  "last_name": "Obi",
                  "phone": "+2348020000000",
                  "updated_at": "…"
                }
              ],
              "verification": "verified",
              "verification_reason": "confirmed_by_authority"
            }
        "#);
}

#[each_database]
async fn the_integration_setup_is_the_taxpayer_and_no_erp_reading(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    world.settled(&json!(taxpayer.id)).await;
    let path = format!("{TAXPAYERS}/{}", taxpayer.id);
    let read = integrator.get(&path).await.expect_status(200);
    let setup = integrator
        .get(&format!("{path}/integration/setup"))
        .await
        .expect_status(200);
    assert_eq!(setup.body, read.body);
    assert_eq!(setup.data()["users"].as_array().unwrap().len(), 1);
    let answer = integrator
        .call("POST", &format!("{path}/integration/setup"))
        .await;
    answer.expect_refusal(405, "METHOD_NOT_ALLOWED");
}

#[on_sqlite]
async fn a_password_is_never_shown(world: &World) {
    let password = "a password to remember";
    let body = with(
        &documents::taxpayer(),
        "contact_person.password",
        json!(password),
    );
    let made = world
        .integrator()
        .create_taxpayer(&body)
        .await
        .expect_status(201);
    let read = world
        .integrator()
        .get(&format!("{TAXPAYERS}/{}", made.data()["id"]))
        .await;
    for answer in [made, read] {
        assert!(
            !answer.text.contains(password) && !answer.text.contains("argon2"),
            "{}",
            answer.text
        );
        assert!(!answer.text.contains("password"), "{}", answer.text);
    }
}

/// Every path below a taxpayer, with each of its methods.
fn paths_below(id: &str) -> Vec<(&'static str, String)> {
    let delivery = "00000000-0000-7000-8000-000000000000";
    let table: [(&[&str], String); 11] = [
        (&["GET"], String::new()),
        (&["GET"], "/integration/setup".into()),
        (&["PATCH"], "/profile".into()),
        (&["GET", "PUT", "PATCH", "POST"], "/webhook".into()),
        (&["POST", "GET"], "/webhook/test".into()),
        (&["POST"], "/webhook/secret".into()),
        (&["POST"], "/webhook/enable".into()),
        (&["GET", "POST"], "/webhook/replay".into()),
        (&["GET"], "/webhook/deliveries".into()),
        (&["POST"], format!("/webhook/deliveries/{delivery}/replay")),
        (&["POST", "PUT", "PATCH"], "/api-key/rotate".into()),
    ];
    let path = |end: &str| format!("{TAXPAYERS}/{id}{end}");
    let each = table
        .iter()
        .flat_map(|(methods, end)| methods.iter().map(|method| (*method, path(end))));
    each.collect()
}

/// A body that every one of them takes.
fn body_for_all() -> serde_json::Value {
    json!({ "city": "Jos", "webhook_url": "http://127.0.0.1:9/", "since": 0, "only": "all", "replay": "none" })
}

#[each_database]
async fn what_names_no_taxpayer_is_not_found_on_any_path(world: &World) {
    let id = world.newcomer().await.id;
    for id in [
        "999999999",
        "0",
        "-1",
        "abc",
        "1.5",
        "99999999999999999999999",
        "%00",
        "%20",
        &format!("0{id}"),
        &format!("%2B{id}"),
    ] {
        for (method, path) in paths_below(id) {
            let answer = world
                .integrator()
                .send(method, &path, &body_for_all())
                .await;
            let answer = answer.expect_refusal(404, "TAXPAYER_NOT_FOUND");
            assert_eq!(answer.message(), "Taxpayer not found", "{method} {path}");
        }
    }
}

#[each_database]
async fn the_taxpayer_of_another_integrator_is_not_found_on_any_path(world: &World) {
    let id = world.newcomer().await.id;
    let other = world.new_integrator().await;
    for (method, path) in paths_below(&id.to_string()) {
        let answer = other.send(method, &path, &body_for_all()).await;
        let answer = answer.expect_refusal(404, "TAXPAYER_NOT_FOUND");
        assert_eq!(answer.message(), "Taxpayer not found", "{method} {path}");
    }
}
