//! GET /v1/tax-payers/supplier-invoices.

use serde_json::json;
use testkit::each_database;

use crate::support::supplies::received;
use crate::support::world::World;

#[each_database]
async fn an_inbox_that_nothing_came_into_is_an_empty_page(world: &World) {
    let inbox = world.taxpayer().await.inbox("").await.expect_status(200);
    assert_eq!(inbox.message(), "Supplier invoices retrieved successfully");
    let page = json!({ "current_page": 1, "data": [], "total": 0, "per_page": 10, "last_page": 1 });
    assert_eq!(inbox.data(), &page);
}

#[each_database]
async fn an_inbox_is_paginated_newest_first(world: &World) {
    let buyer = world.taxpayer().await;
    let mut irns = Vec::new();
    for _ in 0..3 {
        irns.push(received(world, &buyer).await);
    }
    irns.reverse();
    let mut seen = Vec::new();
    for page in 1..=2 {
        let answer = buyer
            .inbox(&format!("?per_page=2&page={page}"))
            .await
            .expect_status(200);
        assert_eq!(
            (&answer.data()["total"], &answer.data()["last_page"]),
            (&json!(3), &json!(2))
        );
        let lines = answer.data()["data"].as_array().unwrap().clone();
        seen.extend(
            lines
                .iter()
                .map(|line| line["supplier_irn"].as_str().unwrap().to_owned()),
        );
    }
    assert_eq!(seen, irns);
    assert_eq!(
        buyer.inbox("?per_page=101").await.data()["per_page"],
        json!(100)
    );
    assert_eq!(
        buyer.inbox("?page=0&per_page=x").await.data()["per_page"],
        json!(10)
    );
}
