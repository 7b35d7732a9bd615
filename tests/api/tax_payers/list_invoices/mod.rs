//! GET /v1/tax-payers/invoices.

mod cursor;
mod filters;
mod sorts;

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents;
use testkit::each_database;
use testkit::roles::Taxpayer;

use crate::support::world::World;

/// Creates so many invoices; the ids, newest first.
async fn create(taxpayer: &Taxpayer, count: usize) -> Vec<Value> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.insert(
            0,
            taxpayer.invoice(&documents::invoice()).await["id"].clone(),
        );
    }
    ids
}

fn ids(answer: &Answer) -> Vec<Value> {
    answer.data()["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].clone())
        .collect()
}

/// The paginator's four numbers: current page, total, per page, last page.
fn numbers(answer: &Answer) -> [i64; 4] {
    ["current_page", "total", "per_page", "last_page"]
        .map(|name| answer.data()[name].as_i64().unwrap())
}

#[each_database]
async fn an_empty_list_is_one_empty_page_of_five_fields(world: &World) {
    let answer = world
        .taxpayer()
        .await
        .list_invoices("")
        .await
        .expect_status(200);
    assert_eq!(
        answer.body,
        json!({
            "success": true, "message": "Invoice retrieved successfully",
            "data": { "current_page": 1, "total": 0, "per_page": 10, "last_page": 1, "data": [] },
        })
    );
}

#[each_database]
async fn pages_follow_each_other_newest_first(world: &World) {
    let taxpayer = world.taxpayer().await;
    let all = create(&taxpayer, 12).await;
    let first = taxpayer.list_invoices("").await.expect_status(200);
    assert_eq!(
        (numbers(&first), ids(&first)),
        ([1, 12, 10, 2], all[..10].to_vec())
    );
    let second = taxpayer.list_invoices("?page=2").await.expect_status(200);
    assert_eq!(
        (numbers(&second), ids(&second)),
        ([2, 12, 10, 2], all[10..].to_vec())
    );
    let fives = taxpayer
        .list_invoices("?per_page=5&page=3")
        .await
        .expect_status(200);
    assert_eq!(
        (numbers(&fives), ids(&fives)),
        ([3, 12, 5, 3], all[10..].to_vec())
    );
    let beyond = taxpayer.list_invoices("?page=99").await.expect_status(200);
    assert_eq!((numbers(&beyond), ids(&beyond)), ([99, 12, 10, 2], vec![]));
    let last = taxpayer
        .list_invoices("?page=2147483647&per_page=100")
        .await
        .expect_status(200);
    assert_eq!(
        ids(&last),
        [] as [Value; 0],
        "the last page that can be asked for"
    );
    let clamped = taxpayer
        .list_invoices("?page=0&per_page=101&%FF=%00&&=")
        .await
        .expect_status(200);
    assert_eq!(
        (numbers(&clamped), ids(&clamped)),
        ([1, 12, 100, 1], all.clone())
    );
    let item = &first.data()["data"][0];
    assert_eq!(*item, taxpayer.reread(item).await);
}

#[each_database]
async fn a_list_holds_the_callers_own_invoices_only(world: &World) {
    let one = world.taxpayer().await;
    let other = world.taxpayer().await;
    let mine = create(&one, 2).await;
    create(&other, 3).await;
    assert_eq!(ids(&one.list_invoices("").await), mine);
}
