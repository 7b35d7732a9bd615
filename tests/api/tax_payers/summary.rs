//! GET /v1/tax-payers/invoices/summary.

use std::collections::BTreeMap;

use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::edit::{exact, with};
use testkit::roles::{INVOICES, Taxpayer};

use crate::support::world::World;

async fn summary(taxpayer: &Taxpayer, month: &str) -> Value {
    let path = format!("{INVOICES}/summary?month={month}");
    taxpayer.get(&path).await.expect_status(200).data().clone()
}

fn amount(value: &Value) -> Decimal {
    value.to_string().parse().unwrap()
}

#[each_database]
async fn the_sums_are_exact(world: &World) {
    let taxpayer = world.taxpayer().await;
    let cents =
        |sum: Decimal| sum.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero);
    let rate = Decimal::new(1_075, 3);
    let mut expected: BTreeMap<&str, [Decimal; 3]> = BTreeMap::new();
    let mut invoices = Vec::new();
    for at in 0..300_i64 {
        let currency = if at % 3 == 0 { "USD" } else { "NGN" };
        let price = Decimal::new(at * 7_919 % 1_000_003, 3);
        let body = with(
            &documents::invoice(),
            "invoice_lines.0.unit_price",
            exact(&price.to_string()),
        );
        let body = with(&body, "invoice_lines.0.quantity", json!(1));
        invoices.push(with(&body, "currency", json!(currency)));
        let (net, gross) = (cents(price), cents(price * rate));
        let sum = expected.entry(currency).or_default();
        for (sum, part) in sum.iter_mut().zip([net, gross - net, gross]) {
            *sum += part;
        }
    }
    taxpayer.create_batch(&invoices).await.expect_status(201);
    let found = summary(&taxpayer, "2026-01").await;
    assert_eq!(
        (&found["month"], &found["count"]),
        (&json!("2026-01"), &json!(300))
    );
    let sums = found["sums"].as_array().unwrap();
    assert_eq!(sums.len(), 2, "{found}");
    for sum in sums {
        let expected = expected[sum["currency"].as_str().unwrap()];
        let found = ["net", "vat", "gross"].map(|name| amount(&sum[name]));
        assert_eq!(found, expected);
        assert_eq!(
            (&sum["kind"], &sum["status"]),
            (&json!("invoice"), &json!("draft"))
        );
    }
    for other in ["2025-12", "2026-02"] {
        assert_eq!(summary(&taxpayer, other).await["count"], 0);
    }
}

#[each_database]
async fn kinds_and_statuses_are_summed_up_apart(world: &World) {
    let taxpayer = world.taxpayer().await;
    let original = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&original, "approved")
        .await
        .expect_status(200);
    let credit = with(&documents::invoice(), "invoice_type_code", json!("380"));
    let credit = with(
        &credit,
        "original_invoice_reference",
        original["irn"].clone(),
    );
    let credit = with(&credit, "original_invoice_reference_type", json!("IRN"));
    taxpayer.invoice(&credit).await;
    taxpayer
        .new_full_invoice(&documents::full_invoice(&taxpayer))
        .await;
    let found = summary(&taxpayer, "2026-01").await;
    let line = |kind: &str, status: &str| {
        json!({ "currency": "NGN", "kind": kind, "status": status, "count": 1,
            "net": exact("1000.00"), "vat": exact("75.00"), "gross": exact("1075.00") })
    };
    let expected = [
        line("invoice", "draft"),
        line("invoice", "approved"),
        line("credit_note", "draft"),
    ];
    assert_eq!(found["sums"], json!(expected), "{found}");
    let none = json!({ "net": exact("0.00"), "vat": exact("0.00") });
    let whole = json!({ "net": exact("1000.00"), "vat": exact("75.00") });
    let rate = json!({ "category": "STANDARD_VAT", "percent": exact("7.5"), "signed": none, "unsigned": whole });
    let sales = json!([{ "currency": "NGN", "signed": none, "unsigned": whole, "signed_otherwise": 0, "rates": [rate] }]);
    assert_eq!(found["vat_return"], sales, "{found}");
}

#[each_database]
async fn gaps_in_the_numbers_are_told_and_filled_by_other_months(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    for no in ["A001", "A002", "A005", "A009", "B7", "odd"] {
        taxpayer.invoice(&documents::invoice_numbered(no)).await;
    }
    // `A8` is the number `A008`, written otherwise.
    for no in ["A006", "A8"] {
        let later = documents::invoice_numbered(no);
        let later = with(&later, "invoice_date", json!("2026-02-01"));
        taxpayer.invoice(&later).await;
    }
    other.invoice(&documents::invoice_numbered("A003")).await;
    let found = summary(&taxpayer, "2026-01").await;
    let gap = |from: &str, to: &str, count: u64| json!({ "from": from, "to": to, "count": count });
    assert_eq!(
        found["numbers"],
        json!({
            "series": [
                { "prefix": "A", "count": 4, "first": "A001", "last": "A009", "last_sequence": 9, "missing": 3,
                  "gaps": [gap("A003", "A004", 2), gap("A007", "A007", 1)] },
                { "prefix": "B", "count": 1, "first": "B7", "last": "B7", "last_sequence": 7, "missing": 0, "gaps": [] },
            ],
            "series_left_out": 0,
            "without_series": 1,
        })
    );
}

#[each_database]
async fn numbers_of_other_months_fill_long_gaps_too(world: &World) {
    let taxpayer = world.taxpayer().await;
    for no in ["A1", "A3000", "B1", "B3"] {
        taxpayer.invoice(&documents::invoice_numbered(no)).await;
    }
    for no in ["A2500", "B2"] {
        let later = documents::invoice_numbered(no);
        let later = with(&later, "invoice_date", json!("2026-02-01"));
        taxpayer.invoice(&later).await;
    }
    let found = summary(&taxpayer, "2026-01").await;
    let series = found["numbers"]["series"].as_array().unwrap();
    let with_prefix = |prefix: &str| {
        let mut all = series.iter();
        all.find(|one| one["prefix"] == prefix).unwrap()
    };
    assert_eq!(with_prefix("B")["missing"], 0, "{found}");
    assert_eq!(
        with_prefix("A")["gaps"],
        json!([
            { "from": "A2", "to": "A2499", "count": 2_498 },
            { "from": "A2501", "to": "A2999", "count": 499 },
        ]),
        "{found}"
    );
}

/// The last number before a period begins and the first one after it are no part of its series.
#[each_database]
async fn a_quarter_and_a_year_are_summed_up_whole(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (no, day) in [
        ("Q08", "2023-12-31"),
        ("Q09", "2024-01-01"),
        ("Q10", "2024-02-29"),
        ("Q12", "2024-03-31"),
        ("Q13", "2024-04-01"),
        ("Q15", "2024-12-31"),
        ("Q16", "2025-01-01"),
    ] {
        let body = documents::invoice_numbered(no);
        let body = with(&body, "invoice_date", json!(day));
        taxpayer.invoice(&body).await;
    }
    for (period, days, month, count, last, missing) in [
        (
            "month=2024-02",
            ["2024-02-01", "2024-02-29"],
            json!("2024-02"),
            1,
            10,
            0,
        ),
        (
            "quarter=2024-Q1",
            ["2024-01-01", "2024-03-31"],
            json!(null),
            3,
            12,
            1,
        ),
        (
            "quarter=2024-Q4",
            ["2024-10-01", "2024-12-31"],
            json!(null),
            1,
            15,
            0,
        ),
        (
            "year=2024",
            ["2024-01-01", "2024-12-31"],
            json!(null),
            5,
            15,
            2,
        ),
    ] {
        let path = format!("{INVOICES}/summary?{period}");
        let found = taxpayer.get(&path).await.expect_status(200);
        let found = found.data();
        assert_eq!([&found["from"], &found["to"]], days, "{period}");
        assert_eq!((&found["month"], &found["count"]), (&month, &json!(count)));
        assert_eq!(found["sums"][0]["count"], count, "{period}");
        let series = &found["numbers"]["series"][0];
        assert_eq!(series["last_sequence"], last, "{period}");
        assert_eq!(series["missing"], missing, "{period}");
    }
}

#[each_database]
async fn a_wrong_period_is_refused_and_without_one_it_is_the_present_month(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (odd, field) in [
        ("month=2026-13", "month"),
        ("month=2026-1", "month"),
        ("month=2026-01-01", "month"),
        ("month=now", "month"),
        ("month=%00", "month"),
        ("quarter=2026-Q5", "quarter"),
        ("year=26", "year"),
        ("month=2026-01&quarter=2026-Q1", "quarter"),
        ("quarter=2026-Q1&year=2026", "year"),
    ] {
        let path = format!("{INVOICES}/summary?{odd}");
        taxpayer.get(&path).await.expect_faults(&[field]);
    }
    let present = summary(&taxpayer, "").await;
    let month = present["month"].as_str().unwrap();
    assert_eq!((month.len(), present["count"].as_i64()), (7, Some(0)));
    assert_eq!(summary(&taxpayer, month).await, present);
}
