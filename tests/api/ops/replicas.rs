//! GET /ops/replicas and the page Replicas: the processes of the deployment.

use einvoice::internals::OperatorRole;
use serde_json::json;
use testkit::patience::eventually;
use testkit::{each_database, on_sqlite};

use crate::support::visitor::Visitor;
use crate::support::world::{ALONE, World};

#[each_database]
async fn a_replica_tells_how_it_is_in_answers_and_on_its_page(world: &World) {
    let operator = world.new_operator().await;
    let visitor = Visitor::operator(world, OperatorRole::Viewer).await;
    let listed = async || {
        let answer = operator.get("/ops/replicas").await.expect_status(200);
        let data = answer.data();
        assert!(data["replicas"].is_array(), "{data}");
        let mut replicas = data["replicas"].as_array()?.iter();
        let own = replicas.find(|replica| replica["name"] == data["answered_by"])?;
        Some((own.clone(), data["read_at"].clone()))
    };
    let (replica, read_at) = eventually("the replica in its own list", listed).await;
    assert!(read_at.is_string(), "{read_at}");
    // Other tests share the process, so something may be wrong with its authority at this moment.
    let is_degraded = replica["degraded"].is_string();
    let state = if is_degraded { "degraded" } else { "ready" };
    assert_eq!(replica["state"], state, "{replica}");
    assert_eq!(replica["not_ready"], json!(null));
    assert_eq!(replica["version"], env!("CARGO_PKG_VERSION"));
    assert!(replica["actors"]["actors"].as_u64() > Some(0), "{replica}");
    let breakers = replica["breakers"].as_array().unwrap();
    assert!(
        breakers
            .iter()
            .any(|breaker| breaker["operation"] == "sign"),
        "{replica}"
    );
    let id = replica["id"].as_str().unwrap();
    let found = operator.get(&format!("/ops/search?q={id}")).await;
    let found = found.expect_status(200).data()[0].clone();
    assert_eq!(found["kind"], "replica", "{found}");
    assert_eq!(found["page"], "/console/replicas");
    let name = replica["name"].as_str().unwrap();
    let page = visitor.get("/console/replicas").await.expect(200);
    page.shows_all(&[name, &format!("Made by {name}")]);
    visitor
        .get("/console/lanes")
        .await
        .expect(200)
        .shows(&format!("Made by {name}"));
}

#[each_database]
async fn only_a_missing_replica_is_forgotten(world: &World) {
    const FORGET: &str = "/console/replicas/no-such-replica/forget";
    let operator = Visitor::operator(world, OperatorRole::Operator).await;
    operator
        .submit(FORGET, &[])
        .await
        .leads_to("/console/replicas");
    operator
        .get("/console/replicas")
        .await
        .shows("This replica is not missing any more.");
}

#[each_database(ALONE)]
async fn an_order_about_a_breaker_is_obeyed_and_recorded(world: &World) {
    let operator = world.new_operator().await;
    let unknown = operator
        .send("POST", "/ops/breakers/no-such-operation/trip", &json!({}))
        .await
        .expect_refusal(404, "ROUTE_NOT_FOUND");
    let message = unknown.message();
    assert!(
        message.starts_with("No such operation; the operations are validate_irn, validate, sign,"),
        "{message}"
    );
    for (order, is_tripped) in [("trip", true), ("reset", false)] {
        let path = format!("/ops/breakers/sign/{order}");
        let answer = operator
            .send("POST", &path, &json!({ "reason": "a wrong key" }))
            .await
            .expect_status(200);
        assert_eq!(answer.data()["operation"], "sign");
        assert_eq!(answer.data()["is_tripped"], is_tripped);
        let listed = operator.get("/ops/breakers").await.expect_status(200);
        let breakers = listed.data().as_array().unwrap();
        let sign = breakers.iter().find(|one| one["operation"] == "sign");
        assert_eq!(sign.unwrap()["is_tripped"], is_tripped);
    }
    let audit = operator.get("/ops/audit?subject=sign").await;
    let entries = audit.expect_status(200).data()["data"].clone();
    let actions: Vec<_> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["breaker.reset", "breaker.trip"]);
}

#[on_sqlite(ALONE)]
async fn an_order_that_changes_nothing_says_so_and_is_not_recorded(world: &World) {
    let operator = world.new_operator().await;
    let id = world.taxpayer().await.id;
    let taxpayer = format!("/ops/taxpayers/{id}");
    let breaker = "/ops/breakers/sign";
    // The path of the order, and what it says at first and when it is given again.
    let orders = [
        (
            &*taxpayer,
            "pause",
            [
                "Taxpayer paused successfully",
                "Taxpayer was already paused",
            ],
        ),
        (
            &*taxpayer,
            "resume",
            ["Taxpayer resumed successfully", "Taxpayer was not paused"],
        ),
        (
            breaker,
            "trip",
            [
                "Breaker tripped successfully",
                "Breaker was already tripped",
            ],
        ),
        (
            breaker,
            "reset",
            ["Breaker reset successfully", "Breaker was already closed"],
        ),
    ];
    for (path, order, messages) in orders {
        for message in messages {
            let body = json!({ "reason": "once is enough" });
            let answer = operator
                .send("POST", &format!("{path}/{order}"), &body)
                .await;
            assert_eq!(answer.expect_status(200).message(), message);
        }
        let kind = if path == breaker {
            "breaker"
        } else {
            "taxpayer"
        };
        let subject = if path == breaker {
            "sign".to_owned()
        } else {
            id.to_string()
        };
        let query = format!("?action={kind}.{order}&subject={subject}");
        let audit = operator.audit(&query).await.expect_status(200);
        assert_eq!(audit.data()["total"], json!(1), "{query}");
    }
}
