//! The totals fit each other and the lines, within 0.01.

use serde_json::json;
use testkit::documents;
use testkit::each_database;
use testkit::edit::{exact, with};

use crate::support::world::World;

#[each_database]
async fn totals_that_do_not_fit_are_refused_and_a_hundredth_is_let_pass(world: &World) {
    let taxpayer = world.taxpayer().await;
    let exclusive = "legal_monetary_total.tax_exclusive_amount";
    let inclusive = "legal_monetary_total.tax_inclusive_amount";
    let lines = "legal_monetary_total.line_extension_amount";
    for (path, digits, faults) in [
        (exclusive, "1000.01", &[] as &[&str]),
        (exclusive, "999.99", &[]),
        (exclusive, "1000.02", &[exclusive]),
        (exclusive, "999.98", &[exclusive]),
        (inclusive, "1000", &[]),
        (inclusive, "999.99", &[inclusive]),
        (lines, "1000.01", &[]),
        (lines, "1000.02", &[exclusive, "invoice_line"]),
        (lines, "0", &[exclusive, "invoice_line"]),
    ] {
        let answer =
            taxpayer.create_full(&with(&documents::full_invoice(&taxpayer), path, exact(digits))).await;
        match faults {
            [] => drop(answer.expect_status(201)),
            faults => drop(answer.expect_faults(faults)),
        }
    }
}

#[each_database]
async fn the_lines_add_up_exactly(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::full_invoice(&taxpayer);
    let line = with(&body["invoice_line"][0], "line_extension_amount", exact("0.1"));
    let body = with(&body, "invoice_line", json!(vec![line.clone(); 3]));
    let total = |digits: &str| {
        let amount = exact(digits);
        with(
            &body,
            "legal_monetary_total",
            json!({
                "line_extension_amount": amount, "tax_exclusive_amount": amount,
                "tax_inclusive_amount": amount, "payable_amount": amount,
            }),
        )
    };
    taxpayer.create_full(&total("0.311")).await.expect_faults(&["invoice_line"]);
    taxpayer.create_full(&total("0.289")).await.expect_faults(&["invoice_line"]);
    taxpayer.create_full(&total("0.3")).await.expect_status(201);
}
