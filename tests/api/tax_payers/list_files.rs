//! GET /v1/tax-payers/invoices and `/batches/{batch_no}` with an `Accept` that names a file.

use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use serde_json::{Value, json};
use testkit::documents;
use testkit::edit::{exact, with, without};
use testkit::roles::{BATCHES, INVOICES, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::workbook;
use crate::support::world::World;

const CSV: &str = "text/csv";
const NDJSON: &str = "application/x-ndjson";
const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

async fn download(taxpayer: &Taxpayer, path: &str, accept: &str) -> Response {
    let request = taxpayer.request("GET", path).header(ACCEPT, accept);
    request.send().await.unwrap()
}

async fn text(taxpayer: &Taxpayer, path: &str, accept: &str) -> String {
    let answer = download(taxpayer, path, accept).await;
    assert_eq!(answer.status(), 200, "{path}");
    answer.text().await.unwrap()
}

/// The rows of a CSV text, each as pairs of a column's name and a value.
fn csv_rows(text: &str) -> Vec<Vec<(String, String)>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<_> = reader
        .headers()
        .unwrap()
        .iter()
        .map(str::to_owned)
        .collect();
    let rows = reader.records().map(|row| {
        let values = row.unwrap();
        let values = values.iter().map(str::to_owned);
        names.iter().cloned().zip(values).collect()
    });
    rows.collect()
}

fn cell<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
    let found = row.iter().find(|(known, _)| known == name);
    &found.unwrap_or_else(|| panic!("no column {name}")).1
}

/// Creates 300 invoices, of which the 7th has texts that a spreadsheet would compute. Returns their outcome.
async fn create_many(taxpayer: &Taxpayer) -> Value {
    let invoices: Vec<_> = (0..300)
        .map(|at| {
            let body = with(
                &documents::invoice(),
                "invoice_lines.0.unit_price",
                exact(&format!("{at}.10")),
            );
            if at == 7 { hostile(&body) } else { body }
        })
        .collect();
    let created = taxpayer.create_batch(&invoices).await.expect_status(201);
    assert_eq!(created.data()["created"], 300);
    taxpayer.created_batch(&created).await
}

const FORMULA: &str = "=cmd|' /C calc'!A0";

fn hostile(invoice: &Value) -> Value {
    let changes = [
        ("customer.no", "+1"),
        ("customer.tin", "T-7"),
        ("customer.name", "@SUM(A1), \"B\""),
        ("customer.address_city", "-Lagos"),
        ("invoice_lines.0.item_name", FORMULA),
    ];
    changes
        .into_iter()
        .fold(invoice.clone(), |body, (path, text)| {
            with(&body, path, json!(text))
        })
}

#[each_database]
async fn the_whole_list_is_a_csv_file_without_formulas(world: &World) {
    let taxpayer = world.taxpayer().await;
    let outcome = create_many(&taxpayer).await;
    let answer = download(&taxpayer, &format!("{INVOICES}?per_page=3&page=2"), CSV).await;
    assert_eq!(answer.status(), 200);
    let header = |name| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header(CONTENT_TYPE), "text/csv; charset=utf-8");
    assert_eq!(header(VARY), "accept");
    let name = header(CONTENT_DISPOSITION);
    assert!(
        name.starts_with("attachment; filename=\"invoices-20") && name.ends_with(".csv\""),
        "{name}"
    );
    let text = answer.text().await.unwrap();
    assert!(text.starts_with("invoice_no,invoice_category,invoice_type,invoice_type_code,"));
    assert_eq!(text.matches("\r\n").count(), 301, "a row an invoice");
    assert_eq!(text.matches('\n').count(), 301);
    let rows = csv_rows(&text);
    let items = outcome["items"].as_array().unwrap();
    let expected: Vec<_> = items
        .iter()
        .rev()
        .map(|item| item["irn"].as_str().unwrap())
        .collect();
    let found: Vec<_> = rows.iter().map(|row| cell(row, "irn")).collect();
    assert_eq!(found, expected, "all of them, newest first");
    let row = &rows[299 - 7];
    for (name, value) in [
        ("line.item_name", "'=cmd|' /C calc'!A0"),
        ("customer.no", "'+1"),
        ("customer.name", "'@SUM(A1), \"B\""),
        ("customer.address_city", "'-Lagos"),
        ("customer.tin", "T-7"),
        ("line.unit_price", "7.10"),
        ("line.quantity", "2"),
        ("net_amount", "14.20"),
        ("tax_amount", "1.07"),
        ("payable_amount", "15.27"),
        ("amount_paid", "0"),
        ("line.position", "1"),
        ("line.net_amount", "14.20"),
        ("status", "draft"),
        ("authority_status", "PENDING"),
        ("invoice_type", ""),
        ("invoice_type_code", "381"),
    ] {
        assert_eq!(cell(row, name), value, "{name}");
    }
}

#[each_database]
async fn the_list_is_invoices_line_by_line(world: &World) {
    let taxpayer = world.taxpayer().await;
    let outcome = create_many(&taxpayer).await;
    let text = text(&taxpayer, INVOICES, NDJSON).await;
    let lines: Vec<Value> = text
        .lines()
        .map(|line| strict_json::from_trusted(line).unwrap())
        .collect();
    let ids: Vec<_> = lines.iter().map(|line| line["id"].clone()).collect();
    let items = outcome["items"].as_array().unwrap();
    let expected: Vec<_> = items.iter().rev().map(|item| item["id"].clone()).collect();
    assert_eq!(ids, expected);
    let path = format!("{INVOICES}/{}?include=lines", lines[299 - 7]["id"]);
    let whole = taxpayer.get(&path).await.expect_status(200);
    assert_eq!(lines[299 - 7], *whole.data());
    assert_eq!(whole.data()["lines"][0]["item_name"], FORMULA);
}

#[on_sqlite]
async fn the_list_is_a_workbook_whose_texts_are_texts(world: &World) {
    let taxpayer = world.taxpayer().await;
    create_many(&taxpayer).await;
    let answer = download(&taxpayer, INVOICES, XLSX).await;
    assert_eq!(answer.headers()[CONTENT_TYPE], XLSX);
    let cells = workbook::cells(&answer.bytes().await.unwrap());
    let in_column = |letter: &str| -> Vec<_> {
        let found = cells.iter().filter(|cell| {
            let number = cell.place.strip_prefix(letter).unwrap_or_default();
            number.starts_with(|sign: char| sign.is_ascii_digit())
        });
        found.cloned().collect()
    };
    let numbers = in_column("A");
    assert_eq!(
        (numbers.len(), numbers[0].text.as_str()),
        (301, "invoice_no")
    );
    let names = in_column("T");
    assert_eq!(names[0].text, "line.item_name");
    let row = 300 - 7;
    assert_eq!(
        (names[row].text.as_str(), names[row].is_number),
        (FORMULA, false)
    );
    let prices = in_column("W");
    assert_eq!(prices[0].text, "line.unit_price");
    assert_eq!(
        (prices[row].text.as_str(), prices[row].is_number),
        ("7.1", true)
    );
    // 46037 and 46068 are the days 2026-01-15 and 2026-02-15.
    for (letter, name, day) in [("G", "invoice_date", "46037"), ("H", "due_date", "46068")] {
        let days = in_column(letter);
        assert_eq!(days[0].text, name);
        assert_eq!((days[row].text.as_str(), days[row].is_number), (day, true));
    }
    let times = in_column("AR");
    assert_eq!(times[0].text, "updated_at");
    assert!(times[1..].iter().all(|cell| cell.is_number), "{times:?}");
}

/// The body of Create Invoice that the rows of one invoice are.
fn body_of(rows: &[Vec<(String, String)>]) -> Value {
    const NUMBERS: [&str; 4] = ["unit_price", "quantity", "discount_rate", "discount_amount"];
    let mut body = json!({ "customer": {}, "invoice_lines": [] });
    for row in rows {
        let mut line = json!({});
        for (name, value) in row.iter().take(30).filter(|(_, value)| !value.is_empty()) {
            let (place, name) = name.split_once('.').unwrap_or(("", name));
            match place {
                "line" if NUMBERS.contains(&name) => line[name] = exact(value),
                "line" => line[name] = json!(value),
                "customer" => body["customer"][name] = json!(value),
                _ => body[name] = json!(value),
            }
        }
        body["invoice_lines"].as_array_mut().unwrap().push(line);
    }
    body
}

#[on_sqlite]
async fn an_invoice_of_the_file_is_the_same_invoice_when_it_is_created_again(world: &World) {
    let taxpayer = world.taxpayer().await;
    let discounted = with(
        &documents::invoice()["invoice_lines"][0],
        "discount_rate",
        exact("12.5"),
    );
    let original = taxpayer.invoice(&documents::invoice()).await;
    let body = with(
        &documents::invoice(),
        "invoice_lines.0.unit_price",
        exact("0.005"),
    );
    let lines = json!([body["invoice_lines"][0], discounted]);
    let body = with(&body, "invoice_lines", lines);
    let body = with(&body, "invoice_type", json!("Sale"));
    taxpayer.invoice(&body).await;
    let credit = with(&documents::invoice(), "invoice_type_code", json!("380"));
    let credit = with(
        &credit,
        "original_invoice_reference",
        original["irn"].clone(),
    );
    let credit = with(&credit, "original_invoice_reference_type", json!("IRN"));
    taxpayer.invoice(&credit).await;
    let rows = csv_rows(&text(&taxpayer, INVOICES, CSV).await);
    assert_eq!(rows.len(), 4);
    let by_invoice = rows.chunk_by(|one, other| cell(one, "irn") == cell(other, "irn"));
    for rows in by_invoice {
        let again = taxpayer.create_invoice(&body_of(rows)).await;
        let again = again.expect_status(200);
        assert_eq!(again.header("x-duplicate"), "identical", "{}", again.text);
        assert_eq!(again.data()["irn"], cell(&rows[0], "irn"));
    }
}

#[on_sqlite]
async fn a_long_invoice_is_whole_in_each_file(world: &World) {
    const LINES: usize = 400;
    let taxpayer = world.taxpayer().await;
    let body = documents::invoice();
    let lines: Vec<_> = (0..LINES)
        .map(|at| {
            let name = json!(format!("Part {at}"));
            with(&body["invoice_lines"][0], "item_name", name)
        })
        .collect();
    let long = taxpayer
        .invoice(&with(&body, "invoice_lines", json!(lines)))
        .await;
    taxpayer.invoice(&documents::invoice()).await;
    let rows = csv_rows(&text(&taxpayer, INVOICES, CSV).await);
    assert_eq!(rows.len(), 1 + LINES);
    for (at, row) in rows[1..].iter().enumerate() {
        assert_eq!(cell(row, "irn"), long["irn"]);
        assert_eq!(cell(row, "line.item_name"), format!("Part {at}"));
        assert_eq!(cell(row, "line.position"), (at + 1).to_string());
    }
    let lines = text(&taxpayer, INVOICES, NDJSON).await;
    let last = lines.lines().last().unwrap();
    let last: Value = strict_json::from_trusted(last).unwrap();
    assert_eq!(last["invoice_lines"].as_array().unwrap().len(), LINES);
    let book = download(&taxpayer, INVOICES, XLSX).await;
    let cells = workbook::cells(&book.bytes().await.unwrap());
    assert_eq!(cells.last().unwrap().place, format!("AR{}", LINES + 2));
}

#[each_database]
async fn a_file_has_what_the_filters_ask_for_and_nothing_of_another_account(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let small = taxpayer
        .invoice(&documents::invoice_with_price("10", "1"))
        .await;
    let large = taxpayer
        .invoice(&documents::invoice_with_price("30", "1"))
        .await;
    taxpayer
        .invoice(&documents::invoice_with_price("99", "1"))
        .await;
    let path = format!("{INVOICES}?amount_max=30&sort=-payable");
    let rows = csv_rows(&text(&taxpayer, &path, CSV).await);
    let irns: Vec<_> = rows.iter().map(|row| cell(row, "irn")).collect();
    assert_eq!(
        irns,
        [
            large["irn"].as_str().unwrap(),
            small["irn"].as_str().unwrap()
        ]
    );
    for accept in [CSV, NDJSON] {
        let theirs = text(&other, INVOICES, accept).await;
        assert!(
            !theirs.contains(irns[0]) && theirs.lines().count() < 2,
            "{theirs}"
        );
    }
    let theirs = download(&other, INVOICES, XLSX).await;
    let cells = workbook::cells(&theirs.bytes().await.unwrap());
    assert!(
        cells
            .iter()
            .all(|cell| cell.place.ends_with('1') && !cell.is_number)
    );
    let refused = download(&taxpayer, &format!("{INVOICES}?due_before=soon"), CSV).await;
    assert_eq!(refused.status(), 422);
    assert_eq!(refused.headers()[CONTENT_TYPE], "application/json");
}

#[on_sqlite]
async fn whoever_does_not_ask_for_a_file_gets_json(world: &World) {
    let taxpayer = world.taxpayer().await;
    for accept in [
        "*/*",
        "application/json",
        "application/json, text/csv",
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "application/pdf",
        "text/csv;q=0",
        ";;odd",
    ] {
        let answer = download(&taxpayer, INVOICES, accept).await;
        assert_eq!(answer.status(), 200, "{accept}");
        assert_eq!(
            answer.headers()[CONTENT_TYPE],
            "application/json",
            "{accept}"
        );
        assert_eq!(answer.headers()[VARY], "accept");
    }
}

#[each_database]
async fn a_file_that_breaks_off_never_looks_whole(world: &World) {
    let taxpayer = world.taxpayer().await;
    let outcome = create_many(&taxpayer).await;
    let spoil = async |item: &Value| {
        let id = &item["id"];
        let spoil = format!(
            "UPDATE invoices SET lines = 'spoilt' WHERE id = {id} AND taxpayer_id = {}",
            taxpayer.id
        );
        assert_eq!(world.execute(&spoil).await, 1);
    };
    spoil(&outcome["items"][0]).await;
    for accept in [CSV, NDJSON] {
        let answer = download(&taxpayer, INVOICES, accept).await;
        assert_eq!(answer.status(), 200, "the first part was good: {accept}");
        assert!(answer.bytes().await.is_err(), "{accept}");
    }
    assert_eq!(download(&taxpayer, INVOICES, XLSX).await.status(), 500);
    spoil(&outcome["items"][299]).await;
    for accept in [CSV, NDJSON] {
        assert_eq!(
            download(&taxpayer, INVOICES, accept).await.status(),
            500,
            "{accept}"
        );
    }
}

#[each_database]
async fn a_batch_is_a_file_of_outcomes(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let good = with(&documents::invoice(), "colour", json!("red"));
    let bad = without(&without(&documents::invoice(), "currency"), "due_date");
    let bad = with(&bad, "invoice_no", json!("=1+1"));
    let made = taxpayer.create_batch(&[good.clone(), bad]).await;
    let path = format!("{BATCHES}/{}", made.data()["batch_no"].as_str().unwrap());
    let outcome = taxpayer.created_batch(&made).await;
    let rows = csv_rows(&text(&taxpayer, &path, CSV).await);
    let found: Vec<_> = rows
        .iter()
        .map(|row| ["index", "invoice_no", "outcome", "error_field"].map(|name| cell(row, name)))
        .collect();
    let no = good["invoice_no"].as_str().unwrap();
    assert_eq!(
        found,
        [
            ["0", no, "created", ""],
            ["1", "'=1+1", "failed", "currency"],
            ["1", "'=1+1", "failed", "due_date"],
        ]
    );
    assert_eq!(cell(&rows[0], "irn"), outcome["items"][0]["irn"]);
    assert_eq!(cell(&rows[0], "id"), outcome["items"][0]["id"].to_string());
    let warnings: Vec<_> = outcome["items"][0]["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning.as_str().unwrap())
        .collect();
    assert_eq!(cell(&rows[0], "warnings"), warnings.join("; "));
    assert!(cell(&rows[0], "warnings").contains("colour"));
    assert_eq!(cell(&rows[1], "warnings"), "");
    assert_eq!(
        cell(&rows[1], "error_message"),
        "The currency field is required."
    );
    let lines = text(&taxpayer, &path, NDJSON).await;
    let items: Vec<Value> = lines
        .lines()
        .map(|line| strict_json::from_trusted(line).unwrap())
        .collect();
    assert_eq!(Value::Array(items), outcome["items"]);
    let book = download(&taxpayer, &path, XLSX).await;
    let tag = book.headers()[ETAG].clone();
    let name = book.headers()[CONTENT_DISPOSITION]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(name.starts_with("attachment; filename=\"batch-B"), "{name}");
    let cells = workbook::cells(&book.bytes().await.unwrap());
    let shown = cells.iter().find(|cell| cell.place == "B3").unwrap();
    assert_eq!((shown.text.as_str(), shown.is_number), ("=1+1", false));
    let again = taxpayer
        .request("GET", &path)
        .header(ACCEPT, XLSX)
        .header(IF_NONE_MATCH, tag);
    assert_eq!(again.send().await.unwrap().status(), 304);
    for accept in [CSV, NDJSON, XLSX] {
        assert_eq!(download(&other, &path, accept).await.status(), 404);
    }
}
