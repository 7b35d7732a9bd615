//! POST /v1/app/invoices/validate?explain=patch, and the explanations of every refusal on this surface. The table of
//! bad documents is also a page: `EINVOICE_WRITE_DOCS=1 cargo test --test api app::explain` writes `docs/explain.md`.

use std::fmt::Write as _;

use serde_json::{Value, json};
use testkit::documents::{self, irn, number, submission, validation};
use testkit::edit::{exact, with, without};

use crate::support::answer::Answer;
use crate::support::clients::{Taxpayer, VALIDATE};
use crate::support::world::{World, on_every_database};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/explain.md");
const HEAD: &str = "# When the authority says no\n\n\
    Bad documents, what the authority itself says to each, and what Validate tells instead: the field by its own name, the rule, what was \
    expected and what was sent. The last column is the patch of `?explain=patch`, where a change is safe; *passes* says that the \
    authority takes the document with it. Written by a test that asks both, so that this page and the service cannot differ.\n";

/// What is changed of a document that passes: dot path and value, or none to leave the field out.
type Changes = Vec<(&'static str, Option<Value>)>;

fn set(path: &'static str, value: impl Into<Value>) -> Changes {
    vec![(path, Some(value.into()))]
}

fn dates() -> Vec<(&'static str, Changes)> {
    vec![
        ("day before month", set("issue_date", "15/01/2026")),
        ("no leading zeros", set("issue_date", "2026-1-15")),
        ("slashes", set("tax_point_date", "2026/01/15")),
        ("a moment", set("due_date", "2026-02-15T10:00:00Z")),
        ("a month by its name", set("tax_point_date", "15 January 2026")),
        ("points", set("payment_means.0.payment_due_date", "15.02.2026")),
        ("two ways to read it", set("issue_date", "03/04/2026")),
        ("due before it is issued", set("due_date", "2026-01-14")),
        ("not dated", vec![("issue_date", None)]),
    ]
}

fn codes() -> Vec<(&'static str, Changes)> {
    const TAX: &str = "tax_total.0.tax_subtotal.0.tax_category.id";
    const MEANS: &str = "payment_means.0.payment_means_code";
    const SUPPLIER: &str = "accounting_supplier_party.postal_address.country";
    const CUSTOMER: &str = "accounting_customer_party.postal_address.country";
    vec![
        ("currency in lower case", set("document_currency_code", "ngn")),
        ("a slip, the other currency is right", set("document_currency_code", "NGM")),
        ("a unit that is no currency", set("document_currency_code", "GBX")),
        ("currency by its name", set("tax_currency_code", "Nigerian Naira")),
        ("type by its name", set("invoice_type_code", "Commercial Invoice")),
        ("no such type", set("invoice_type_code", "382")),
        ("means by its name", set(MEANS, "Credit Transfer")),
        ("no such means", set(MEANS, "32")),
        ("category with a blank", set(TAX, "standard vat")),
        ("category with a slip", set(TAX, "STANDART_VAT")),
        ("a word that may be any category", set(TAX, "VAT")),
        ("country by its name", set(CUSTOMER, "Nigeria")),
        ("country of three letters", set(SUPPLIER, "NGA")),
        ("Niger or Nigeria", set(CUSTOMER, "Nigera")),
        ("no such category of invoice", set("invoice_category", "B2X")),
    ]
}

fn lines() -> Vec<(&'static str, Changes)> {
    const UNIT: &str = "invoice_line.0.price.price_unit";
    let goods = |code: &str| {
        vec![
            ("invoice_line.0.product_category", None),
            ("invoice_line.0.service_category", Some(Value::from(code))),
        ]
    };
    let mut service = set("invoice_line.0.isic_code", "6201");
    service.extend(set("invoice_line.0.product_category", "6201"));
    service.push(("invoice_line.0.hsn_code", None));
    vec![
        ("unit by its name", set(UNIT, "each")),
        ("unit as people write it", set(UNIT, "kg")),
        ("unit in the plural", set(UNIT, "hours")),
        ("gram, or gram per square metre", set(UNIT, "gm")),
        ("goods in the place of a service", goods("8471.30")),
        ("goods and a service at once", goods("6201")),
        ("a service in the place of goods", service),
        ("nothing sold", set("invoice_line.0.invoiced_quantity", 0)),
        ("a number in a text", set("invoice_line.0.line_extension_amount", "1000")),
        ("item without a name", vec![("invoice_line.0.item.name", None)]),
        ("more than all of it off", set("invoice_line.0.discount_rate", 101)),
        ("no lines", set("invoice_line", json!([]))),
    ]
}

fn totals() -> Vec<(&'static str, Changes)> {
    const INCLUSIVE: &str = "legal_monetary_total.tax_inclusive_amount";
    const PAYABLE: &str = "legal_monetary_total.payable_amount";
    let mut both = set(INCLUSIVE, 1057);
    both.extend(set(PAYABLE, 1057));
    vec![
        ("total of the lines", set("legal_monetary_total.line_extension_amount", 1001)),
        ("total without tax", set("legal_monetary_total.tax_exclusive_amount", 1010)),
        ("total with tax", set(INCLUSIVE, 1057)),
        ("total with tax, and payable", both),
        ("tax total", set("tax_total.0.tax_amount", 57)),
        ("part of a tax", set("tax_total.0.tax_subtotal.0.tax_amount", exact("7.5"))),
        ("line that disagrees with all else", set("invoice_line.0.line_extension_amount", 900)),
        ("nothing payable said", vec![(PAYABLE, None)]),
    ]
}

fn whole() -> Vec<(&'static str, Changes)> {
    let mut several = set("issue_date", "15/01/2026");
    several.extend(set("invoice_line.0.price.price_unit", "each"));
    several.extend(set("legal_monetary_total.line_extension_amount", 1100));
    several.extend(set("accounting_supplier_party.postal_address.country", "Nigeria"));
    let mut half = set("due_date", "15/02/2026");
    half.push(("accounting_supplier_party.tin", None));
    vec![
        ("business id that is none", set("business_id", "11111111")),
        ("supplier without a tax number", vec![("accounting_supplier_party.tin", None)]),
        ("credit note of nothing", set("invoice_type_code", "380")),
        ("several at once", several),
        ("one that is safe and one that is not", half),
    ]
}

/// One bad document: what it is, and how it reads on either side.
struct Row {
    title: &'static str,
    changes: Vec<String>,
    authority: String,
    reasons: Vec<String>,
    patch: Vec<String>,
    passes: bool,
}

async fn ask(taxpayer: &Taxpayer, body: &Value) -> Answer {
    taxpayer.send("POST", &format!("{VALIDATE}?explain=patch"), body).await
}

fn patched(body: &Value, answer: &Answer) -> Value {
    let patch: json_patch::Patch = serde_json::from_value(answer.body["patch"].clone()).unwrap();
    let mut body = body.clone();
    json_patch::patch(&mut body, &patch).unwrap();
    body
}

async fn row(world: &World, taxpayer: &Taxpayer, title: &'static str, changes: Changes) -> Row {
    let body = validation(taxpayer, &documents::invoice_no());
    let change = |body: Value, (path, value): &(&str, Option<Value>)| match value {
        Some(value) => with(&body, path, value.clone()),
        None => without(&body, path),
    };
    let bad = changes.iter().fold(body, change);
    let told = |(path, value): &(&str, Option<Value>)| match value {
        Some(value) => format!("{path} = {value}"),
        None => format!("no {path}"),
    };
    let mut row = told_of(world, taxpayer, title, &bad).await;
    row.changes = changes.iter().map(told).collect();
    row
}

async fn told_of(world: &World, taxpayer: &Taxpayer, title: &'static str, bad: &Value) -> Row {
    let authority = world.authority_says(bad).await;
    let answer = ask(taxpayer, bad).await;
    assert_eq!(answer.status, 400, "{title}: {}", answer.text);
    let reason = |why: &Value| {
        let text = |name: &str| why[name].as_str().unwrap_or("-").to_owned();
        assert!(why.get("path").is_some() && why.get("actual").is_some(), "{why}");
        format!(
            "{} | {} | {} | {} | {}",
            text("path"),
            text("rule"),
            text("expected"),
            why["actual"],
            text("source")
        )
    };
    let operation = |operation: &Value| {
        let text = |name: &str| operation[name].as_str().unwrap_or_default().to_owned();
        let what = match operation.get("value") {
            Some(value) => value.to_string(),
            None => text("from"),
        };
        format!("{} {} {what} ({})", text("op"), text("path"), text("why")).replace("  ", " ")
    };
    let passes = answer.body["patch_suffices"] == json!(true);
    let again = taxpayer.app().validate(&patched(bad, &answer)).await;
    assert_eq!(again.status == 200, passes, "{title}: {}\n{}", answer.text, again.text);
    let list = |name: &str| answer.body[name].as_array().unwrap().clone();
    Row {
        title,
        changes: Vec::new(),
        authority: if authority.status == 200 { "-".to_owned() } else { authority.message().to_owned() },
        reasons: list("explanations").iter().map(reason).collect(),
        patch: list("patch").iter().map(operation).collect(),
        passes,
    }
}

async fn rows(world: &World) -> Vec<Row> {
    let taxpayer = world.taxpayer().await;
    let mut rows = Vec::new();
    for (title, changes) in [dates(), codes(), lines(), totals(), whole()].into_iter().flatten() {
        rows.push(row(world, &taxpayer, title, changes).await);
    }
    let refused = validation(&taxpayer, &format!("INV{}SBXREJECT", number()));
    let mut last =
        told_of(world, &taxpayer, "code that only the authority knows to be wrong", &refused).await;
    last.changes.push("irn of an invoice that the simulator rejects".to_owned());
    rows.push(last);
    rows
}

fn text(rows: &[Row]) -> String {
    let mut text = String::new();
    for (place, row) in rows.iter().enumerate() {
        let end = if row.passes { ", and it passes" } else { "" };
        let patch = if row.patch.is_empty() { vec!["none".to_owned()] } else { row.patch.clone() };
        writeln!(text, "{}. {}: {}", place + 1, row.title, row.changes.join(", ")).unwrap();
        writeln!(text, "   authority | {}", row.authority).unwrap();
        for reason in &row.reasons {
            writeln!(text, "   caller    | {reason}").unwrap();
        }
        writeln!(text, "   patch     | {}{end}", patch.join("\n             | ")).unwrap();
    }
    text
}

fn page(rows: &[Row]) -> String {
    let cell = |parts: &[String]| {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| format!("`{}`", part.replace(" | ", " · ").replace('|', "\\|")))
            .collect();
        parts.join("<br>")
    };
    let mut page = format!(
        "{HEAD}\n| | The document | The authority says | You read: path · rule · expected · sent · whose rule | Patch |\n|---|---|---|---|---|\n"
    );
    for (place, row) in rows.iter().enumerate() {
        let patch = match (row.patch.is_empty(), row.passes) {
            (true, _) => "none".to_owned(),
            (false, true) => format!("{}<br>*passes*", cell(&row.patch)),
            (false, false) => cell(&row.patch),
        };
        let (title, changes, reasons) = (row.title, cell(&row.changes), cell(&row.reasons));
        writeln!(page, "| {} | {title}: {changes} | {} | {reasons} | {patch} |", place + 1, row.authority)
            .unwrap();
    }
    page
}

#[test]
fn forty_bad_documents_are_told_in_the_callers_own_words() {
    on_every_database(async |world| {
        let rows = rows(world).await;
        assert!(rows.len() >= 40, "{}", rows.len());
        insta::assert_snapshot!("bad_documents", text(&rows));
        let page = page(&rows);
        if std::env::var_os("EINVOICE_WRITE_DOCS").is_some() {
            std::fs::write(FILE, &page).unwrap();
        }
        let written = std::fs::read_to_string(FILE).unwrap_or_default();
        assert_eq!(
            written, page,
            "docs/explain.md is old: EINVOICE_WRITE_DOCS=1 cargo test --test api app::explain"
        );
    });
}

#[test]
fn a_patch_comes_only_where_it_is_asked_for_and_something_is_wrong() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        let right = validation(&taxpayer, &documents::invoice_no());
        let wrong = with(&right, "issue_date", json!("15/01/2026"));
        let plain = taxpayer.app().validate(&wrong).await.expect_refusal(400, "VALIDATION_FAILED");
        assert_eq!((plain.body.get("patch"), plain.body.get("patch_suffices")), (None, None));
        assert_eq!(plain.body["explanations"][0]["actual"], json!("15/01/2026"));
        for query in ["explain=patch", "explain=PATCH", "explain=", "colour=red"] {
            let answer = taxpayer.send("POST", &format!("{VALIDATE}?{query}"), &right).await;
            assert_eq!(answer.expect_status(200).body.get("patch"), None, "{query}");
        }
        let odd = taxpayer.send("POST", &format!("{VALIDATE}?explain=fix"), &right).await;
        let odd = odd.expect_invalid(&["explain"]);
        assert_eq!(odd.message(), "The explain field must be one of patch.");
        let broken = taxpayer.send_text("POST", &format!("{VALIDATE}?explain=patch"), "{").await;
        assert_eq!(broken.expect_refusal(400, "MALFORMED_JSON").body.get("patch"), None);
        assert_eq!(taxpayer.invoice_event_names().await, [""; 0], "nothing is stored");
    });
}

#[test]
fn a_body_of_nothing_gets_an_empty_patch() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        let answer = ask(&taxpayer, &json!({})).await.expect_refusal(400, "VALIDATION_FAILED");
        assert_eq!((&answer.body["patch"], &answer.body["patch_suffices"]), (&json!([]), &json!(false)));
        let of_integrator =
            world.integrator().send("POST", &format!("{VALIDATE}?explain=patch"), &json!({})).await;
        assert_eq!(
            of_integrator.expect_refusal(400, "VALIDATION_FAILED").body.get("patch"),
            None,
            "whose is it?"
        );
    });
}

#[test]
fn a_problem_document_explains_its_errors() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        let body = validation(&taxpayer, &format!("INV{}SBXREJECT", number()));
        let request = taxpayer.request("POST", &format!("{VALIDATE}?explain=patch"));
        let answer = Answer::to(request.header("accept", "application/problem+json").json(&body)).await;
        assert_eq!(answer.header("content-type"), "application/problem+json");
        let words = "invoicerequest.invoice.invoiceline[0].hsncode must be a known code";
        let expected = json!([{
            "pointer": "#/invoice_line/0/hsn_code", "rule": "exists",
            "detail": "The invoice_line.0.hsn_code field must be a known code.",
            "expected": "a known code", "actual": "8471.30", "source": "authority", "authority_message": words,
        }]);
        assert_eq!(answer.body["errors"], expected);
        assert_eq!((&answer.body["patch"], &answer.body["patch_suffices"]), (&json!([]), &json!(false)));
        assert_eq!(answer.body["detail"], json!(words));
    });
}

#[test]
fn every_refusal_of_the_authority_is_explained() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        let app = taxpayer.app();
        let no = format!("INV{}SBXREJECT", number());
        let refused = app.submit(&submission(&taxpayer, &no)).await.expect_refusal(422, "AUTHORITY_REJECTED");
        let why = &refused.body["explanations"][0];
        assert_eq!((&why["path"], &why["rule"]), (&json!("invoice_line.0.hsn_code"), &json!("exists")));
        assert_eq!((&why["actual"], &why["source"]), (&json!("8471.30"), &json!("authority")));
        assert_eq!(refused.faulty_paths(), ["invoice_line.0.hsn_code"]);

        let no = documents::invoice_no();
        app.submit(&submission(&taxpayer, &no)).await.expect_status(200);
        let refused = app.pay(&irn(&taxpayer, &no), "PAID").await.expect_status(200);
        assert_eq!(refused.body.get("explanations"), None);
        let refused =
            app.pay(&irn(&taxpayer, &no), "REJECTED").await.expect_refusal(422, "AUTHORITY_REJECTED");
        let why = &refused.body["explanations"][0];
        assert_eq!((&why["path"], &why["rule"]), (&json!("payment_status"), &json!("transition")));
        assert_eq!(why["actual"], json!("REJECTED"));
        assert_eq!(why["authority_message"], json!("payment status is already PAID and cannot be changed"));

        let mut retail =
            without(&submission(&taxpayer, &documents::invoice_no()), "accounting_customer_party");
        retail["invoice_category"] = json!("B2C");
        app.submit(&retail).await.expect_status(200);
        let refused =
            app.transmit(retail["irn"].as_str().unwrap()).await.expect_refusal(500, "AUTHORITY_REJECTED");
        let why = &refused.body["explanations"][0];
        assert_eq!((&why["path"], &why["source"]), (&json!("accounting_customer_party"), &json!("einvoice")));
    });
}

#[test]
fn faults_of_our_own_are_explained_on_every_path_of_this_surface() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        let app = taxpayer.app();
        let no = documents::invoice_no();
        let first = |answer: &Answer| answer.body["explanations"][0].clone();
        let odd = with(&submission(&taxpayer, &no), "invoice_category", json!("B2X"));
        let why = first(&app.submit(&odd).await.expect_status(422));
        assert_eq!((&why["expected"], &why["actual"]), (&json!("one of B2B, B2C, B2G"), &json!("B2X")));
        let why = first(&app.transmit("odd").await.expect_status(422));
        assert_eq!((&why["rule"], &why["actual"]), (&json!("irn_malformed"), &json!("odd")));
        let report = documents::report(&taxpayer, &irn(&taxpayer, &no));
        let why = first(&app.report(&with(&report, "vat_rate", json!(101))).await.expect_status(422));
        assert_eq!((&why["expected"], &why["actual"]), (&json!("at most 100"), &json!(101)));
        app.submit(&submission(&taxpayer, &no)).await.expect_status(200);
        let why = first(&app.pay(&irn(&taxpayer, &no), "PARTIAL").await.expect_status(422));
        assert_eq!((&why["path"], &why["source"]), (&json!("payment_status"), &json!("einvoice")));
    });
}
