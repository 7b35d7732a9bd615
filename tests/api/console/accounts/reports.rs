//! The report of a month, a quarter or a year, on its page and as files.

use serde_json::json;
use testkit::documents::{self, submission};
use testkit::each_database;
use testkit::edit::with;

use super::{Account, assert_shows};
use crate::support::world::World;

/// An account with invoices numbered 7, 9 and 12 in January 2026, the first of them approved.
async fn account_with_invoices(world: &World) -> Account {
    let account = Account::new(world).await;
    for number in ["REP7", "REP9", "REP12"] {
        let body = with(&documents::invoice(), "invoice_no", json!(number));
        let body = with(&body, "invoice_date", json!("2026-01-15"));
        let invoice = account.taxpayer.invoice(&body).await;
        if number == "REP7" {
            let approved = account.taxpayer.set_status(&invoice, "approved").await;
            approved.expect_status(200);
        }
    }
    account
}

#[each_database]
async fn a_month_is_summed_up_with_its_totals_and_its_gaps(world: &World) {
    let account = account_with_invoices(world).await;
    let page = account.page("/reports?month=2026-01").await;
    let total = page.split("Sales in NGN, not signed yet").nth(1).unwrap();
    let total = total.split("</tr>").next().unwrap();
    assert!(
        total.contains("data-label=\"Count\">1</td>"),
        "the drafts do not count: {total}"
    );
    assert_shows(
        &page,
        &[
            "Invoices in NGN",
            "Draft",
            "Approved",
            "3: REP8, REP10 to REP11",
            "2025-12",
            "2026-02",
        ],
    );
    let summary = account
        .taxpayer
        .get("/v1/tax-payers/invoices/summary?month=2026-01");
    let summary = summary.await.expect_status(200);
    let sums = summary.data()["sums"].as_array().unwrap();
    let approved = sums.iter().find(|sum| sum["status"] == "approved").unwrap();
    let vat = approved["vat"].to_string();
    assert!(
        total.contains(&format!("data-label=\"VAT\">{vat}</td>")),
        "{vat} in {total}"
    );
    let none = account.page("/reports?month=2020-02").await;
    assert_shows(&none, &["No invoice has a date in this period."]);
    let odd = account.owner.get(&account.path("/reports?month=odd")).await;
    odd.expect(422).shows("a month written YYYY-MM");
}

#[each_database]
async fn a_quarter_and_a_year_are_chosen_and_the_files_follow(world: &World) {
    let account = account_with_invoices(world).await;
    let later = with(&documents::invoice(), "invoice_no", json!("REP13"));
    let later = with(&later, "invoice_date", json!("2026-04-01"));
    account.taxpayer.invoice(&later).await;
    for (period, shown, rows) in [
        (
            "quarter=2026-Q1",
            [
                "from 2026-01-01 to 2026-03-31",
                "<option selected>2026-Q1</option>",
                "?quarter=2025-Q4\">2025-Q4",
                "gaps.xlsx?quarter=2026-Q1",
            ],
            "NGN,invoice,draft,2,",
        ),
        (
            "year=2026",
            [
                "from 2026-01-01 to 2026-12-31",
                "<option selected>2026</option>",
                "?year=2025\">2025",
                "gaps.xlsx?year=2026",
            ],
            "NGN,invoice,draft,3,",
        ),
    ] {
        let page = account.page(&format!("/reports?{period}")).await;
        assert_shows(&page, &shown);
        let file = account.path(&format!("/reports/files/vat.csv?{period}"));
        let file = account.owner.get(&file).await.expect(200).html;
        assert!(file.contains(rows), "{period}: {file}");
    }
    for odd in ["quarter=2026-Q5", "year=26", "month=2026-01&year=2026"] {
        let page = account.path(&format!("/reports?{odd}"));
        account.owner.get(&page).await.expect(422);
    }
}

#[each_database]
async fn the_tables_of_a_month_are_files(world: &World) {
    let account = account_with_invoices(world).await;
    let file = async |name: &str| {
        let path = account.path(&format!("/reports/files/{name}?month=2026-01"));
        account.owner.get(&path).await
    };
    let gaps = file("gaps.csv").await.expect(200).html;
    let rows = "prefix,from,to,count\r\nREP,REP8,REP8,1\r\nREP,REP10,REP11,2\r\n";
    assert_eq!(gaps, rows);
    let vat = file("vat.csv").await.expect(200).html;
    let lines: Vec<_> = vat.lines().collect();
    assert_eq!(lines[0], "currency,kind,status,count,net,vat,gross");
    assert_eq!(lines.len(), 3, "{vat}");
    assert!(
        lines[1..]
            .iter()
            .any(|line| line.starts_with("NGN,invoice,draft,2,")),
        "{vat}"
    );
    for sheet in ["vat.xlsx", "vat-rates.xlsx", "gaps.xlsx"] {
        file(sheet).await.expect(200);
    }
    for missing in ["vat.ndjson", "odd.csv", "vat", "vat.pdf"] {
        file(missing).await.expect(404);
    }
}

/// The signed documents are the figure to declare, by rate. Rejected and cancelled ones count nowhere.
#[each_database]
async fn the_vat_to_declare_is_that_of_the_signed_documents(world: &World) {
    let account = Account::new(world).await;
    let taxpayer = &account.taxpayer;
    let store = async |number: &str, category: &str, status: &str| {
        let body = documents::invoice_numbered(number);
        let body = with(&body, "invoice_lines.0.tax_category", json!(category));
        let stored = taxpayer.invoice(&body).await;
        let changed = taxpayer.set_status(&stored, status).await;
        changed.expect_status(200);
    };
    let signed = documents::invoice_no();
    store(&signed, "STANDARD_VAT", "approved").await;
    let rejected = format!("SBXREJECT{}", documents::number());
    store(&rejected, "STANDARD_VAT", "approved").await;
    store(&documents::invoice_no(), "ZERO_VAT", "approved").await;
    store(&documents::invoice_no(), "STANDARD_VAT", "cancelled").await;
    for (number, status) in [(&signed, 200), (&rejected, 422)] {
        let document = submission(taxpayer, number);
        let answer = taxpayer.app().submit_to_the_end(&document).await;
        answer.expect_status(status);
    }
    let csv = account.path("/reports/files/vat-rates.csv?month=2026-01");
    let csv = account.owner.get(&csv).await.expect(200).html;
    let rows = "currency,category,percent,signed_net,signed_vat,unsigned_net,unsigned_vat\r\n\
                NGN,STANDARD_VAT,7.5,1000.00,75.00,0.00,0.00\r\n\
                NGN,ZERO_VAT,0,0.00,0.00,1000.00,0.00\r\n";
    assert_eq!(csv, rows);
    let page = account.page("/reports?month=2026-01").await;
    assert_shows(
        &page,
        &[
            "VAT to declare",
            "Standard Value-Added Tax in NGN",
            "data-label=\"VAT, signed\">75.00</td>",
            "data-label=\"Net, not signed yet\">1,000.00</td>",
            "Rejected",
        ],
    );
    for (line, count) in [
        ("Sales in NGN, signed", 1),
        ("Sales in NGN, not signed yet", 1),
    ] {
        let total = page.split(line).nth(1).unwrap();
        let total = total.split("</tr>").next().unwrap();
        let count = format!("data-label=\"Count\">{count}</td>");
        assert!(total.contains(&count), "{line}: {total}");
    }
}
