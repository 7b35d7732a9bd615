//! The orders of the list, and the cursors of each.

use std::cmp::Ordering;

use serde_json::{Value, json};
use testkit::documents;
use testkit::edit::{with, without};
use testkit::roles::{INVOICES, Taxpayer};
use testkit::{each_database, on_sqlite};

use super::cursor::follow;
use crate::support::world::World;

/// An invoice, with what it is ordered by: date, due date and price.
struct Made {
    id: Value,
    date: &'static str,
    due: &'static str,
    price: i64,
}

const NOT_DUE: &str = "9999-12-31";

/// Creates invoices with equal values, in an order that is none of the list's. One of them has no due date.
async fn create_ordered(taxpayer: &Taxpayer) -> Vec<Made> {
    let mut all = Vec::new();
    for (date, due, price) in [
        ("2026-01-15", "2026-02-15", 100),
        ("2026-01-01", "2026-02-15", 9),
        ("2026-01-15", "2026-01-20", 20),
        ("2026-01-01", "2026-02-15", 100),
        ("2026-01-15", NOT_DUE, 1_075),
        ("2025-12-31", "2026-03-01", 9),
        ("2026-01-15", "2026-02-15", 100),
    ] {
        let id = if due == NOT_DUE {
            let body = without(&documents::full_invoice(taxpayer), "due_date");
            taxpayer.new_full_invoice(&body).await["id"].clone()
        } else {
            let body = documents::invoice_with_price(&price.to_string(), "1");
            let body = with(&body, "invoice_date", json!(date));
            taxpayer.invoice(&with(&body, "due_date", json!(due))).await["id"].clone()
        };
        all.push(Made {
            id,
            date,
            due,
            price,
        });
    }
    all
}

type Compare = fn(&Made, &Made) -> Ordering;

#[each_database]
async fn every_order_is_whole_in_both_directions_also_over_equal_values(world: &World) {
    let taxpayer = world.taxpayer().await;
    let made = create_ordered(&taxpayer).await;
    let orders: [(&str, Compare); 4] = [
        ("created_at", |_, _| Ordering::Equal),
        ("invoice_date", |one, other| one.date.cmp(other.date)),
        ("due_date", |one, other| one.due.cmp(other.due)),
        ("payable", |one, other| one.price.cmp(&other.price)),
    ];
    for (word, compare) in orders {
        let mut sorted: Vec<_> = made.iter().collect();
        sorted.sort_by(|one, other| compare(one, other));
        let mut expected: Vec<_> = sorted.iter().map(|one| one.id.clone()).collect();
        for sign in ["", "-"] {
            for per_page in [1, 2, 7] {
                let first = format!("{INVOICES}?sort={sign}{word}&per_page={per_page}");
                let found = follow(&taxpayer, &first).await;
                assert_eq!(found, expected, "{first}");
            }
            let filtered = format!("{INVOICES}?sort={sign}{word}&per_page=2&invoice_category=B2B");
            assert_eq!(follow(&taxpayer, &filtered).await, expected, "{filtered}");
            expected.reverse();
        }
    }
}

#[on_sqlite]
async fn a_cursor_of_another_order_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    create_ordered(&taxpayer).await;
    let page = taxpayer.list_invoices("?sort=payable&per_page=2").await;
    let cursor = page.header("x-next-cursor").to_owned();
    for sort in ["", "-payable", "due_date", "-created_at"] {
        let path = format!("?sort={sort}&cursor={cursor}");
        taxpayer
            .list_invoices(&path)
            .await
            .expect_faults(&["cursor"]);
    }
    taxpayer
        .list_invoices("?sort=irn")
        .await
        .expect_faults(&["sort"]);
    taxpayer
        .list_invoices(&format!("?sort=payable&cursor={cursor}"))
        .await
        .expect_status(200);
}
