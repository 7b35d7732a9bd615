//! POST /v1/tax-payers/invoices/import, and what became of a file.

use std::io::{Cursor, Write};

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::client::Client;
use testkit::documents::{self, full_invoice, invoice, invoice_no};
use testkit::edit::{exact, with, without};
use testkit::roles::{INVOICES, Taxpayer};
use testkit::{each_database, on_sqlite};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::world::World;

const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
pub(super) const IMPORT: &str = "/v1/tax-payers/invoices/import";
const IMPORTS: &str = "/v1/tax-payers/invoices/imports";
const HEADER: [&str; 24] = [
    "invoice_no",
    "invoice_category",
    "invoice_type_code",
    "invoice_date",
    "due_date",
    "currency",
    "customer.no",
    "customer.name",
    "customer.email",
    "customer.tin",
    "customer.business_description",
    "customer.address_street_name",
    "customer.address_city",
    "customer.address_state",
    "customer.address_postal_code",
    "customer.address_country",
    "line.item_name",
    "line.item_no",
    "line.item_type",
    "line.unit_price",
    "line.quantity",
    "line.price_unit",
    "line.tax_category",
    "line.product_category",
];

pub(super) async fn import(
    client: &Client,
    query: &str,
    kind: &str,
    file: impl Into<reqwest::Body>,
) -> Answer {
    let request = client
        .request("POST", &format!("{IMPORT}{query}"))
        .header("content-type", kind)
        .body(file);
    Answer::to(request).await
}

/// Returns the row of a table for the invoice of `documents::invoice`, with this quantity.
pub(super) fn row(no: &str, quantity: &str) -> Vec<String> {
    let body = documents::invoice_numbered(no);
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let cells = HEADER.iter().map(|name| match name.split_once('.') {
        Some(("line", "quantity")) => quantity.to_owned(),
        Some(("line", name)) => text(&body["invoice_lines"][0][name]),
        Some((part, name)) => text(&body[part][name]),
        None => text(&body[*name]),
    });
    cells.collect()
}

pub(super) fn csv(rows: &[Vec<String>]) -> String {
    let lines = rows.iter().map(|row| row.join(";"));
    let lines: Vec<_> = std::iter::once(HEADER.join(";")).chain(lines).collect();
    lines.join("\n")
}

/// Returns an XLSX file with these parts beside those that every file has.
fn workbook(sheet: &str) -> Vec<u8> {
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let relations = "http://schemas.openxmlformats.org/package/2006/relationships";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let parts = [
        (
            "_rels/.rels",
            format!(
                "<Relationships xmlns=\"{relations}\"><Relationship Id=\"r1\" Type=\"{office}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/workbook.xml",
            format!(
                "<workbook xmlns=\"{main}\" xmlns:r=\"{office}\"><sheets><sheet name=\"S\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            format!(
                "<Relationships xmlns=\"{relations}\"><Relationship Id=\"r1\" Type=\"{office}/worksheet\" Target=\"worksheets/sheet1.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/worksheets/sheet1.xml",
            format!("<worksheet xmlns=\"{main}\"><sheetData>{sheet}</sheetData></worksheet>"),
        ),
    ];
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Returns the rows of a sheet. Whole numbers become cells of numbers; a code such as 8471.30 stays a text, because a
/// number would lose its last digit.
fn sheet(rows: &[Vec<String>]) -> String {
    let rows = rows.iter().map(|row| {
        let cells = row.iter().map(|cell| match cell.parse::<u32>() {
            Ok(_) => format!("<c><v>{cell}</v></c>"),
            Err(_) => format!("<c t=\"inlineStr\"><is><t>{cell}</t></is></c>"),
        });
        format!("<row>{}</row>", cells.collect::<String>())
    });
    rows.collect()
}

fn header_row() -> Vec<String> {
    HEADER.map(str::to_owned).to_vec()
}

pub(super) fn outcomes(answer: &Answer) -> Vec<String> {
    let items = answer.data()["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| {
            format!(
                "{} {}",
                item["source"].as_str().unwrap(),
                item["outcome"].as_str().unwrap()
            )
        })
        .collect()
}

fn errors(item: &Value) -> Vec<String> {
    let errors = item["errors"].as_array().unwrap().iter();
    errors
        .map(|error| {
            format!(
                "{}: {}",
                error["place"].as_str().unwrap(),
                error["rule"].as_str().unwrap()
            )
        })
        .collect()
}

#[on_sqlite]
async fn each_format_is_accepted_and_a_faulty_document_names_its_place(world: &World) {
    let taxpayer = world.taxpayer().await;
    let [one, two, three, four, five] = [(); 5].map(|()| invoice_no());
    let bad_no = invoice_no();
    let bad = without(&documents::invoice_numbered(&bad_no), "due_date");
    let table = [row(&one, "2"), row(&one, "3"), row(&bad_no, "none")];
    let sheet_rows = [header_row(), row(&two, "2"), row(&bad_no, "none")];
    let lines = format!("{}\n\n{bad}\n{{oops", documents::invoice_numbered(&three));
    let array = json!([documents::invoice_numbered(&four), bad]);
    let bulk = json!({ "invoices": [documents::invoice_numbered(&five)] });
    let cases = [
        (
            "text/csv",
            csv(&table).into_bytes(),
            &["lines 2 to 3 created", "line 4 failed"][..],
            "line 4, column line.quantity: type",
        ),
        (
            XLSX,
            workbook(&sheet(&sheet_rows)),
            &["row 2 created", "row 3 failed"],
            "row 3, column line.quantity: type",
        ),
        (
            "application/x-ndjson",
            lines.into_bytes(),
            &["line 1 created", "line 3 failed", "line 4 failed"],
            "line 3, due_date: required",
        ),
        (
            "application/json; charset=utf-8",
            array.to_string().into_bytes(),
            &["document 1 created", "document 2 failed"],
            "document 2, due_date: required",
        ),
        (
            "application/json",
            bulk.to_string().into_bytes(),
            &["document 1 created"],
            "",
        ),
    ];
    for (kind, file, expected, place) in cases {
        let preview = import(&taxpayer, "?preview=true", kind, file.clone())
            .await
            .expect_status(200);
        assert_eq!(outcomes(&preview), expected, "{kind}");
        assert_eq!(preview.data()["import_no"], Value::Null);
        let made = import(&taxpayer, "", kind, file).await.expect_status(201);
        assert_eq!(outcomes(&made), expected, "{kind}");
        let failed = &made.data()["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|item| item["outcome"] == "failed")
            .cloned();
        if let Some(failed) = failed {
            assert_eq!(errors(failed), [place], "{kind}");
        }
        let (created, read) = (
            &made.data()["items"][0],
            made.data()["items"][0]["id"].clone(),
        );
        let stored = taxpayer.get_invoice(&read).await.expect_status(200);
        assert_eq!(stored.data()["irn"], created["irn"]);
        let batch_no = made.data()["batch_no"].as_str().unwrap();
        let batch = taxpayer
            .list_invoices(&format!("?batch_no={batch_no}"))
            .await;
        assert_eq!(batch.data()["total"], 1, "{kind}");
    }
}

#[on_sqlite]
async fn points_that_may_stand_between_thousands_are_told(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (second, is_told) in [("2", true), ("2.5", false)] {
        let file = csv(&[row(&invoice_no(), "1.234"), row(&invoice_no(), second)]);
        for (query, status) in [("?preview=true", 200), ("", 201)] {
            let answer = import(&taxpayer, query, "text/csv", file.clone()).await;
            let answer = answer.expect_status(status);
            let warnings = answer.data()["warnings"].to_string();
            let told = "Line 2, column line.quantity: 1.234 is read as 1.234 and not as 1234";
            assert_eq!(warnings.contains(told), is_told, "{query}: {warnings}");
            assert_eq!(answer.data()["created"], 2, "{}", answer.body);
        }
    }
}

#[on_sqlite]
async fn the_event_of_an_import_names_it_and_its_batch_keeps_the_warnings(world: &World) {
    let taxpayer = world.taxpayer().await;
    let odd = with(&invoice(), "colour", json!("red"));
    let made = import(&taxpayer, "", "application/x-ndjson", odd.to_string()).await;
    let made = made.expect_status(201);
    let events = taxpayer.events().await;
    let ended = events.last().unwrap();
    assert_eq!(ended["type"], "invoice.batch-completed");
    for name in ["batch_no", "import_no"] {
        assert_eq!(ended["data"][name], made.data()[name], "{name}");
    }
    assert_eq!(ended["data"]["cancelled"], false);
    let batch = taxpayer.created_batch(&made).await;
    let warnings = &batch["items"][0]["warnings"];
    assert_eq!(*warnings, made.data()["items"][0]["warnings"]);
    assert!(warnings.to_string().contains("colour"), "{warnings}");
}

#[each_database]
async fn a_preview_changes_nothing_and_foresees_duplicates(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let stored_no = stored["invoice_no"].as_str().unwrap();
    let new = invoice_no();
    let file = csv(&[row(stored_no, "2"), row(&new, "2")]);
    let array = json!([
        documents::invoice_numbered(&new),
        documents::invoice_numbered(&new)
    ]);
    let preview = import(&taxpayer, "?preview=true", "text/csv", file.clone()).await;
    let preview = preview.expect_status(200);
    assert_eq!(outcomes(&preview), ["line 2 duplicate", "line 3 created"]);
    assert_eq!(preview.data()["items"][0]["id"], stored["id"]);
    let twice = import(
        &taxpayer,
        "?preview=1",
        "application/json",
        array.to_string(),
    )
    .await;
    assert_eq!(
        outcomes(&twice),
        ["document 1 created", "document 2 duplicate"]
    );
    let listed = taxpayer.list_invoices("").await.expect_status(200);
    assert_eq!(listed.data()["total"], 1);
    let made = import(&taxpayer, "", "text/csv", file)
        .await
        .expect_status(201);
    assert_eq!(outcomes(&made), outcomes(&preview));
    assert_eq!(
        made.data()["items"][1]["irn"],
        preview.data()["items"][1]["irn"]
    );
}

#[on_sqlite]
async fn a_preview_foresees_numbers_that_a_strict_account_refuses(world: &World) {
    let taxpayer = world.taxpayer().await;
    let kept = format!("{}-A", invoice_no());
    let odd = format!("{}-B", invoice_no());
    let plain = invoice_no();
    taxpayer.invoice(&documents::invoice_numbered(&kept)).await;
    world
        .integrator()
        .change_profile(taxpayer.id, &json!({ "strict_numbers": true }))
        .await
        .expect_status(200);
    let numbers = [&kept, &odd, &odd, &plain];
    let lines = numbers.map(|no| documents::invoice_numbered(no).to_string());
    for (query, status) in [("?preview=true", 200), ("", 201)] {
        let answer = import(&taxpayer, query, "application/x-ndjson", lines.join("\n")).await;
        let answer = answer.expect_status(status);
        let expected = [
            "line 1 duplicate",
            "line 2 failed",
            "line 3 failed",
            "line 4 created",
        ];
        assert_eq!(outcomes(&answer), expected, "{query}");
        let error = &answer.data()["items"][1]["errors"][0];
        assert_eq!(error["rule"], "submittable", "{query}");
    }
}

#[each_database]
async fn the_same_file_is_imported_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let file = csv(&[row(&invoice_no(), "2"), row(&invoice_no(), "0")]);
    let first = import(&taxpayer, "", "text/csv", file.clone())
        .await
        .expect_status(201);
    let again = import(&taxpayer, "?form=standard", "text/csv", file.clone()).await;
    let again = again.expect_status(200);
    assert_eq!(again.message(), "This file was imported before");
    assert_eq!(again.data(), first.data());
    let path = format!("{IMPORTS}/{}", first.data()["import_no"].as_str().unwrap());
    assert_eq!(first.headers["location"], path.as_str());
    let read = taxpayer.get(&path).await.expect_status(200);
    assert_eq!(read.data(), first.data());
    // Another profile may change what becomes of the file.
    let profile = json!({ "defaults": { "address_state": "Lagos" } });
    taxpayer
        .send("PUT", "/v1/tax-payers/import-profile", &profile)
        .await
        .expect_status(200);
    let anew = import(&taxpayer, "", "text/csv", file)
        .await
        .expect_status(201);
    assert_eq!(anew.data()["duplicates"], 1);
    assert_ne!(anew.data()["import_no"], first.data()["import_no"]);
    let listed = taxpayer.list_invoices("").await.expect_status(200);
    assert_eq!(listed.data()["total"], 1);
}

#[on_sqlite]
async fn the_errors_come_in_the_layout_of_the_table(world: &World) {
    let taxpayer = world.taxpayer().await;
    let bad = invoice_no();
    let file = csv(&[row(&invoice_no(), "2"), row(&bad, "2"), row(&bad, "-1")]);
    let made = import(&taxpayer, "", "text/csv", file)
        .await
        .expect_status(201);
    let path = format!(
        "{IMPORTS}/{}/errors",
        made.data()["import_no"].as_str().unwrap()
    );
    let errors = taxpayer.get(&path).await.expect_status(200);
    assert_eq!(errors.headers["content-type"], "text/csv; charset=utf-8");
    let lines: Vec<_> = errors.text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], format!("{},error", HEADER.join(",")));
    assert!(
        lines[1].starts_with(&bad)
            && lines[1].ends_with("The invoice has errors in other rows: lines 3 to 4")
    );
    assert!(
        lines[2].ends_with("field must be greater than 0."),
        "{}",
        lines[2]
    );
    let mended = errors.text.replace(",-1,", ",1,");
    let again = import(&taxpayer, "", "text/csv", mended)
        .await
        .expect_status(201);
    assert_eq!(again.data()["created"], 1);
}

#[each_database]
async fn another_taxpayers_import_is_unknown(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let file = json!([invoice()]).to_string();
    let made = import(&other, "", "application/json", file.clone())
        .await
        .expect_status(201);
    let theirs = made.data()["import_no"].as_str().unwrap().to_owned();
    for number in [theirs.as_str(), "nonsense", "%00", "%FF", "a%0Ab", "'--"] {
        for end in ["", "/errors"] {
            taxpayer
                .get(&format!("{IMPORTS}/{number}{end}"))
                .await
                .expect_refusal(404, "IMPORT_NOT_FOUND");
        }
    }
    // The same file is a file of its own for another taxpayer.
    import(&taxpayer, "", "application/json", file)
        .await
        .expect_status(201);
    taxpayer
        .get(&format!("{IMPORTS}/{theirs}"))
        .await
        .expect_status(200);
}

#[each_database]
async fn what_the_profile_answers_is_asked_for_and_then_taken(world: &World) {
    let taxpayer = world.taxpayer().await;
    let bare = |email: Option<&str>| {
        let body = without(&invoice(), "customer.email");
        let body = without(&body, "invoice_lines.0.price_unit");
        match email {
            Some(email) => with(&body, "customer.email", json!(email)),
            None => body,
        }
    };
    let file = json!([
        bare(None),
        bare(Some("own@retail.example")),
        without(&bare(None), "due_date")
    ])
    .to_string();
    let asked = import(&taxpayer, "?preview=true", "application/json", file.clone())
        .await
        .expect_status(200);
    assert_eq!(
        outcomes(&asked),
        [
            "document 1 needs_answer",
            "document 2 needs_answer",
            "document 3 failed"
        ]
    );
    assert_eq!(
        (&asked.data()["unanswered"], &asked.data()["failed"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        asked.data()["questions"],
        json!([{ "customer_no": "C-001", "name": "Retail Stores Ltd", "fields": ["email", "price_unit"] }])
    );
    assert_eq!(
        asked.data()["causes"][0],
        json!({ "rule": "required", "field": "invoice_lines.*.price_unit", "count": 3, "amount": 3000, "currency": "NGN" })
    );
    let profile = json!({ "defaults": { "price_unit": "EA" }, "customers": { "C-001": { "email": "desk@retail.example" } } });
    taxpayer
        .send("PUT", "/v1/tax-payers/import-profile", &profile)
        .await
        .expect_status(200);
    let made = import(&taxpayer, "", "application/json", file)
        .await
        .expect_status(201);
    assert_eq!(made.data()["created"], 2);
    assert_eq!(
        made.data()["items"][0]["warnings"],
        json!([
            "customer.email came from the profile (customer C-001).",
            "price_unit of 1 lines came from the profile (defaults).",
        ])
    );
    let stored = taxpayer.get_invoice(&made.data()["items"][0]["id"]).await;
    assert_eq!(stored.data()["customer"]["email"], "desk@retail.example");
}

#[on_sqlite]
async fn ubl_of_one_taxpayer_is_the_same_invoice_of_another(world: &World) {
    let (seller, other) = (world.taxpayer().await, world.taxpayer().await);
    let priced = with(&invoice(), "invoice_lines.0.unit_price", exact("333.335"));
    let discounted = with(&priced, "invoice_lines.0.discount_rate", exact("2.5"));
    for body in [invoice(), discounted] {
        let stored = seller.invoice(&body).await;
        let ubl = seller
            .get(&format!("{INVOICES}/{}/ubl.xml", stored["id"]))
            .await
            .expect_status(200);
        let made = import(&other, "", "application/xml", ubl.text)
            .await
            .expect_status(201);
        assert_eq!(outcomes(&made), ["/Invoice created"], "{}", made.body);
        let again = other.get_invoice(&made.data()["items"][0]["id"]).await;
        for field in [
            "invoice_no",
            "invoice_category",
            "invoice_date",
            "due_date",
            "currency",
        ] {
            assert_eq!(again.data()[field], stored[field], "{field}");
        }
        let lines = |whole: Value| {
            let line = &whole["lines"][0];
            [
                "item_name",
                "item_no",
                "price_unit",
                "tax_category",
                "product_category",
                "quantity",
            ]
            .map(|name| line[name].clone())
        };
        let (copy, original) = (
            other.invoice_with_ledger(again.data()).await,
            seller.invoice_with_ledger(&stored).await,
        );
        let payable = |whole: &Value| whole["ledger"]["payable_amount"].clone();
        assert_eq!(payable(&copy), payable(&original));
        assert_eq!(lines(copy), lines(original));
    }
}

#[on_sqlite]
async fn ubl_becomes_a_full_invoice_too(world: &World) {
    let (seller, other) = (world.taxpayer().await, world.taxpayer().await);
    let stored = seller.new_full_invoice(&full_invoice(&seller)).await;
    let ubl = seller
        .get(&format!("{INVOICES}/{}/ubl.xml", stored["id"]))
        .await
        .expect_status(200);
    let made = import(&other, "?form=full", "text/xml", ubl.text)
        .await
        .expect_status(201);
    assert_eq!(outcomes(&made), ["/Invoice created"], "{}", made.body);
    let irn = documents::irn(&other, stored["invoice_no"].as_str().unwrap());
    assert_eq!(made.data()["items"][0]["irn"], irn);
    let again = other.get_invoice(&made.data()["items"][0]["id"]).await;
    let payable = async |taxpayer: &Taxpayer, invoice: &Value| {
        taxpayer.invoice_with_ledger(invoice).await["ledger"]["payable_amount"].clone()
    };
    assert_eq!(
        payable(&other, again.data()).await,
        payable(&seller, &stored).await
    );
    let own = json!(full_invoice(&other)).to_string();
    let made = import(&other, "?form=full", "application/json", own)
        .await
        .expect_status(201);
    assert_eq!(made.data()["created"], 1);
}

/// Imports a file that is refused as a whole.
async fn refuse(taxpayer: &Client, kind: &str, file: impl Into<reqwest::Body>, message: &str) {
    let code = if message.contains("100000 invoices") {
        "BATCH_TOO_LARGE"
    } else {
        "VALIDATION_FAILED"
    };
    let answer = import(taxpayer, "", kind, file).await;
    let answer = answer.expect_refusal(422, code);
    assert!(
        answer.message().starts_with(message),
        "{}",
        answer.message()
    );
}

#[on_sqlite]
async fn an_import_that_creates_nothing_says_so(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (kind, file) in [
        ("application/xml", "<Invoice>".to_owned()),
        ("application/xml", "<html><body>x</body></html>".to_owned()),
        ("application/x-ndjson", "{\"invoice_no\":\n".to_owned()),
        ("text/csv", csv(&[row(&invoice_no(), "0")])),
    ] {
        let answer = import(&taxpayer, "", kind, file.clone()).await;
        let answer = answer.expect_status(201);
        assert_eq!(answer.data()["created"], 0, "{file}");
        let message = "No invoice was imported: see items";
        assert_eq!(answer.message(), message, "{file}");
    }
}

#[on_sqlite]
async fn a_formula_is_a_fault_of_its_invoice_and_hides_no_other(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut formula = row(&invoice_no(), "2");
    "=HYPERLINK(1)".clone_into(&mut formula[16]);
    let file = csv(&[formula, row(&invoice_no(), "0"), row(&invoice_no(), "2")]);
    let answer = import(&taxpayer, "", "text/csv", file).await;
    let answer = answer.expect_status(201);
    let expected = ["line 2 failed", "line 3 failed", "line 4 created"];
    assert_eq!(outcomes(&answer), expected);
    let error = &answer.data()["items"][0]["errors"][0];
    assert_eq!(error["rule"], "formula", "{error}");
    assert_eq!(error["place"], "line 2, column line.item_name", "{error}");
}

#[on_sqlite]
async fn a_table_that_cannot_be_read_is_refused_in_a_sentence(world: &World) {
    let taxpayer = world.taxpayer().await;
    let csv_type = "text/csv";
    for (file, message) in [
        (
            vec!["x"; 10_000].join(","),
            "Line 1 has more than 256 columns.",
        ),
        (
            "a;b\n1;2".to_owned(),
            "The first row must name the columns, and one of them must be invoice_no",
        ),
        ("invoice_no".to_owned(), "The file has no invoice."),
    ] {
        refuse(&taxpayer, csv_type, file, message).await;
    }
    let full = import(&taxpayer, "?form=full", csv_type, "invoice_no\n1").await;
    let full = full.expect_refusal(422, "VALIDATION_FAILED");
    assert_eq!(
        full.message(),
        "A table has the columns of Create Standard: import it with form=standard."
    );
    let mut bomb = ZipWriter::new(Cursor::new(Vec::new()));
    bomb.start_file("xl/workbook.xml", SimpleFileOptions::default())
        .unwrap();
    for _ in 0..40 {
        bomb.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let bomb = bomb.finish().unwrap().into_inner();
    let far = workbook("<row r=\"1\"><c r=\"XFD1\"><v>1</v></c></row>");
    refuse(
        &taxpayer,
        XLSX,
        bomb,
        "The file unpacks to more than 33554432 bytes",
    )
    .await;
    refuse(&taxpayer, XLSX, far, "Row 1 has more than 256 columns.").await;
    refuse(
        &taxpayer,
        XLSX,
        "PK",
        "The file is not an XLSX file that can be read.",
    )
    .await;
    let listed = taxpayer.list_invoices("").await.expect_status(200);
    assert_eq!(listed.data()["total"], 0);
}

#[on_sqlite]
async fn a_request_that_says_nothing_usable_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let many: Vec<_> = (0..=100_000)
        .map(|number| json!({ "invoice_no": number }))
        .collect();
    let json_type = "application/json";
    let message =
        "The file has more than 100000 invoices: split it into files of at most 100000 each.";
    refuse(&taxpayer, json_type, json!(many).to_string(), message).await;
    refuse(&taxpayer, json_type, "{", "The JSON is not valid").await;
    let form = import(&taxpayer, "?form=both", json_type, "[]").await;
    form.expect_faults(&["form"]);
    for kind in [
        "text/plain",
        "text/csv; charset=latin1",
        "multipart/form-data",
    ] {
        import(&taxpayer, "", kind, "invoice_no")
            .await
            .expect_refusal(415, "UNSUPPORTED_MEDIA_TYPE");
    }
}

#[on_sqlite]
async fn hostile_xml_fails_without_growing(world: &World) {
    let taxpayer = world.taxpayer().await;
    let laughs = r#"<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY l2 "&lol;&lol;&lol;">]><Invoice>&l2;</Invoice>"#;
    for (file, rule) in [
        (laughs.to_owned(), "xml"),
        ("<a>".repeat(100_000), "limit"),
        ("<order/>".to_owned(), "format"),
    ] {
        let answer = import(&taxpayer, "?preview=true", "application/xml", file)
            .await
            .expect_status(200);
        assert_eq!(answer.data()["failed"], 1);
        assert_eq!(answer.data()["items"][0]["errors"][0]["rule"], rule);
    }
}

#[each_database]
async fn an_idempotency_key_replays_the_import(world: &World) {
    let taxpayer = world.taxpayer().await;
    let file = csv(&[row(&invoice_no(), "2")]);
    let keyed = || {
        let request = taxpayer.request("POST", IMPORT);
        request
            .header("content-type", "text/csv")
            .header("idempotency-key", "import-1")
    };
    let first = Answer::to(keyed().body(file.clone()))
        .await
        .expect_status(201);
    let again = Answer::to(keyed().body(file)).await.expect_status(201);
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.body, first.body);
    Answer::to(keyed().body("invoice_no\n1"))
        .await
        .expect_refusal(422, "IDEMPOTENCY_KEY_REUSED");
}

#[each_database]
async fn a_corrected_file_is_told_that_its_invoices_exist_with_other_contents(world: &World) {
    let taxpayer = world.taxpayer().await;
    let numbers = [invoice_no(), invoice_no(), invoice_no()];
    let rows = |quantity: &str| {
        let last = row(&numbers[2], quantity);
        csv(&[row(&numbers[0], "2"), row(&numbers[1], "2"), last])
    };
    import(&taxpayer, "", "text/csv", rows("2"))
        .await
        .expect_status(201);
    for (query, status) in [("?preview=true", 200), ("", 201)] {
        let answer = import(&taxpayer, query, "text/csv", rows("3")).await;
        let answer = answer.expect_status(status);
        let data = answer.data();
        assert_eq!(data["duplicates"], 3, "{data}");
        assert_eq!(data["duplicates_different"], 1, "{data}");
        let items = data["items"].as_array().unwrap();
        let contents: Vec<_> = items.iter().map(|item| &item["duplicate"]).collect();
        assert_eq!(contents, ["identical", "identical", "different"]);
        let warnings = items[2]["warnings"].to_string();
        assert!(warnings.contains("with other contents"), "{warnings}");
    }
    // Two copies of one number in a file.
    let body = documents::invoice();
    let other = with(&body, "due_date", json!("2026-03-15"));
    let lines = format!("{body}\n{other}\n{body}\n");
    for query in ["?preview=true", ""] {
        let answer = import(&taxpayer, query, "application/x-ndjson", lines.clone()).await;
        let items = answer.data()["items"].as_array().unwrap().clone();
        let contents: Vec<_> = items
            .iter()
            .map(|item| item["duplicate"].as_str())
            .collect();
        assert_eq!(contents, [None, Some("different"), Some("identical")]);
    }
}

#[on_sqlite]
async fn a_product_code_that_a_spreadsheet_made_a_number_is_restored(world: &World) {
    let taxpayer = world.taxpayer().await;
    let rows = [header_row(), row(&invoice_no(), "2")];
    let text = "<c t=\"inlineStr\"><is><t>8471.30</t></is></c>";
    let numbers = sheet(&rows).replace(text, "<c><v>8471.3</v></c>");
    let made = import(&taxpayer, "", XLSX, workbook(&numbers)).await;
    let made = made.expect_status(201);
    let item = &made.data()["items"][0];
    let warnings = item["warnings"].to_string();
    assert!(warnings.contains("is read as the code 8471.30"), "{item}");
    let stored = taxpayer.invoice_with_ledger(item).await;
    assert_eq!(stored["lines"][0]["product_category"], "8471.30");
    let file = csv(&[row(&invoice_no(), "2")]).replace("8471.30", "8471.3");
    let refused = import(&taxpayer, "?preview=true", "text/csv", file).await;
    let refused = refused.expect_status(200);
    let error = &refused.data()["items"][0]["errors"][0];
    assert_eq!(error["rule"], "format", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("format the column as text"), "{message}");
}

#[on_sqlite]
async fn a_preview_tells_the_totals_and_the_amount_of_each_invoice(world: &World) {
    let taxpayer = world.taxpayer().await;
    let more = with(&invoice(), "invoice_lines.0.quantity", json!(4));
    let credited = taxpayer.create_invoice(&invoice()).await;
    let credited = credited.expect_status(201).data()["irn"].clone();
    let credit = with(&invoice(), "invoice_type_code", json!("380"));
    let credit = with(&credit, "original_invoice_reference", credited);
    let credit = with(&credit, "original_invoice_reference_type", json!("IRN"));
    let dollars = with(&invoice(), "currency", json!("USD"));
    let bad = without(&invoice(), "due_date");
    let file = json!([invoice(), more, credit, dollars, bad]).to_string();
    let totals = json!([
        { "currency": "NGN", "invoices": 3, "payable": exact("2150.00") },
        { "currency": "USD", "invoices": 1, "payable": exact("1075.00") },
    ]);
    let seen = import(&taxpayer, "?preview=true", "application/json", file.clone()).await;
    let seen = seen.expect_status(200);
    assert_eq!(seen.data()["totals"], totals);
    let items = seen.data()["items"].as_array().unwrap();
    assert_eq!(items[0]["customer"], "Retail Stores Ltd");
    let amounts = items.iter().map(|item| item["payable"].clone());
    let amounts: Vec<_> = amounts.collect();
    let [one, more, credit, dollars] = ["1075.00", "2150.00", "-1075.00", "1075.00"].map(exact);
    assert_eq!(amounts, [one, more, credit, dollars, Value::Null]);
    assert_eq!(items[3]["currency"], "USD");
    let made = import(&taxpayer, "", "application/json", file).await;
    let made = made.expect_status(201);
    assert_eq!(
        made.data()["totals"],
        totals,
        "the import has the totals, too"
    );
    assert_eq!(made.data()["items"][0]["payable"], Value::Null);
}
