//! Validate, Submit and Report with the IRN alone: the stored invoice is meant.

use serde_json::{Value, json};
use testkit::documents::{self, full_invoice, invoice, report, submission};
use testkit::edit::{exact, with, without};
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

fn alone(invoice: &Value) -> Value {
    json!({ "irn": invoice["irn"] })
}

/// Submits a stored invoice and returns the document that the authority signed.
async fn signed_document(taxpayer: &Taxpayer, stored: &Value) -> Value {
    let submitted = taxpayer.app().submit_to_the_end(&alone(stored)).await;
    submitted.expect_status(200);
    let irn = stored["irn"].as_str().unwrap();
    let signed = taxpayer.app().download(irn).await;
    signed.expect_status(200).data().clone()
}

/// A number whose digits follow from `seed`, with this many of them after the point.
fn digits(seed: &mut u64, whole_max: u64, fraction: u32) -> Value {
    let mut next = |max: u64| {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % max
    };
    let whole = next(whole_max);
    let rest = next(10_u64.pow(fraction));
    exact(&format!(
        "{whole}.{rest:0width$}",
        width = fraction as usize
    ))
}

/// The authority wants the IRN and the date of the original, which such a reference does not lead to.
#[on_sqlite]
async fn a_credit_note_whose_original_is_not_stored_is_refused_with_the_reason(world: &World) {
    let taxpayer = world.taxpayer().await;
    let original = "INVELSEWHERE-94AD90FB-20260101";
    for (kind, reference, is_enough) in [
        ("IRN", original, true),
        ("INTERNAL_INVOICE_NO", "INVELSEWHERE", false),
        ("PORTAL_ID", "900719925474099", false),
    ] {
        let body = with(&invoice(), "invoice_type_code", json!("380"));
        let body = with(&body, "original_invoice_reference", json!(reference));
        let body = with(&body, "original_invoice_reference_type", json!(kind));
        let created = taxpayer.create_invoice(&body).await.expect_status(201);
        let warnings = created.warnings();
        assert!(warnings.contains("names no invoice"), "{warnings}");
        assert_eq!(
            warnings.contains("only if the reference is an IRN"),
            !is_enough,
            "{kind}: {warnings}"
        );
        let answer = taxpayer.app().submit(&alone(created.data())).await;
        if is_enough {
            assert_ne!(answer.faulty_paths(), ["original_invoice_reference"]);
        } else {
            let refused = answer.expect_faults(&["original_invoice_reference"]);
            assert!(
                refused
                    .message()
                    .contains("names no invoice of this account"),
                "{}",
                refused.message()
            );
        }
    }
}

#[each_database]
async fn the_authority_gets_what_is_stored(world: &World) {
    let taxpayer = world.taxpayer().await;
    for body in [
        invoice(),
        with(&invoice(), "invoice_type_code", json!("386")),
    ] {
        let stored = taxpayer.invoice(&body).await;
        taxpayer
            .app()
            .validate(&alone(&stored))
            .await
            .expect_status(200);
        let document = signed_document(&taxpayer, &stored).await;
        let seen = json!({
            "type": document["invoice_type_code"], "category": document["invoice_kind"],
            "dates": [document["issue_date"], document["due_date"]],
            "currency": document["document_currency_code"],
            "totals": document["legal_monetary_total"], "tax": document["tax_total"][0]["tax_amount"],
            "customer": document["accounting_customer_party"]["tin"],
            "supplier": document["accounting_supplier_party"]["tin"],
            "line": document["invoice_line"][0]["item"]["name"],
            "code": document["invoice_line"][0]["hsn_code"],
        });
        let expected = json!({
            "type": body["invoice_type_code"], "category": "B2B", "dates": ["2026-01-15", "2026-02-15"],
            "currency": "NGN",
            "totals": {
                "line_extension_amount": exact("1000.00"), "tax_exclusive_amount": exact("1000.00"),
                "tax_inclusive_amount": exact("1075.00"), "payable_amount": exact("1075.00"),
            },
            "tax": exact("75.00"), "customer": documents::CUSTOMER_TIN, "supplier": taxpayer.as_ref().tin,
            "line": "Laptop", "code": "8471.30",
        });
        assert_eq!(seen, expected);
        assert_eq!(
            taxpayer.reread(&stored).await["authority_data"]["status"],
            "SUBMITTED"
        );
    }
}

#[on_sqlite]
async fn no_warning_names_a_field_that_the_caller_did_not_send(world: &World) {
    let taxpayer = world.taxpayer().await;
    for stored in [
        taxpayer.invoice(&invoice()).await,
        taxpayer.new_full_invoice(&full_invoice(&taxpayer)).await,
    ] {
        let app = taxpayer.app();
        let alone = alone(&stored);
        let named = with(&alone, "business_id", json!(taxpayer.as_ref().business_id));
        for answer in [
            app.validate(&alone).await,
            app.validate(&named).await,
            app.submit_to_the_end(&alone).await,
            app.submit_to_the_end(&named).await,
            app.transmit_to_the_end(stored["irn"].as_str().unwrap())
                .await,
            app.report_to_the_end(&alone).await,
            app.report_to_the_end(&named).await,
        ] {
            assert_eq!(answer.expect_status(200).warnings(), "");
        }
    }
}

#[each_database]
async fn what_was_stored_in_full_is_sent_in_full(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(
        &full_invoice(&taxpayer),
        "note",
        json!("Goods stay ours until paid"),
    );
    let body = with(&body, "buyer_reference", json!("PO-7"));
    let stored = taxpayer.new_full_invoice(&body).await;
    let document = signed_document(&taxpayer, &stored).await;
    for field in ["note", "buyer_reference"] {
        assert_eq!(document[field], body[field], "{field}");
    }
    assert_eq!(
        document["legal_monetary_total"]["payable_amount"],
        exact("1075.00")
    );
    assert_eq!(
        document["accounting_customer_party"]["telephone"],
        "+2348020000000"
    );
}

/// The money of each of many invoices arrives to the last digit, whatever was rounded.
#[each_database]
async fn amounts_arrive_to_the_cent(world: &World) {
    let taxpayer = world.taxpayer().await;
    let count: u64 = std::env::var("EINVOICE_STORED_INVOICES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(15);
    let mut seed = 31;
    for round in 0..count {
        let mut lines = Vec::new();
        for at in 0..=round % 5 {
            let line = invoice()["invoice_lines"][0].clone();
            let line = with(&line, "unit_price", digits(&mut seed, 99_999, 4));
            let line = with(&line, "quantity", digits(&mut seed, 500, 3));
            let line = with(&line, "discount_rate", digits(&mut seed, 60, 2));
            let tax = if at % 2 == 0 {
                "STANDARD_VAT"
            } else {
                "REDUCED_VAT"
            };
            lines.push(with(&line, "tax_category", json!(tax)));
        }
        let stored = taxpayer
            .invoice(&with(&invoice(), "invoice_lines", json!(lines)))
            .await;
        let whole = taxpayer.invoice_with_ledger(&stored).await;
        let document = signed_document(&taxpayer, &stored).await;
        assert_eq!(
            document["legal_monetary_total"]["payable_amount"].to_string(),
            whole["ledger"]["payable_amount"].to_string(),
            "{whole}"
        );
    }
}

#[each_database]
async fn the_authority_gets_the_present_payment_status(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (is_full, declared, later, sent, known) in [
        (true, "PENDING", None, "PENDING", "PENDING"),
        (true, "PAID", None, "PAID", "PAID"),
        (true, "PAID", Some("rejected"), "REJECTED", "REJECTED"),
        (true, "PAID", Some("pending"), "PENDING", "PENDING"),
        (true, "CANCELLED", None, "REJECTED", "REJECTED"),
        (true, "CANCELLED", Some("paid"), "PAID", "PAID"),
        (false, "", None, "PENDING", "PENDING"),
        (false, "", Some("paid"), "PAID", "PAID"),
        (false, "", Some("rejected"), "REJECTED", "REJECTED"),
    ] {
        let stored = if is_full {
            let body = with(&full_invoice(&taxpayer), "payment_status", json!(declared));
            taxpayer.new_full_invoice(&body).await
        } else {
            taxpayer.invoice(&invoice()).await
        };
        let approved = taxpayer.set_status(&stored, "approved").await;
        assert!([200, 409].contains(&approved.status), "{approved:?}");
        if let Some(word) = later {
            let change = json!({
                "unique_no": stored["irn"], "unique_no_type": "IRN", "payment_status": word, "remark": "later",
            });
            taxpayer.pay(&change).await.expect_status(200);
        }
        let paid = taxpayer.reread(&stored).await["payment"].clone();
        let document = signed_document(&taxpayer, &stored).await;
        let case = format!("{is_full} {declared} {later:?}");
        assert_eq!(document["payment_status"], json!(sent), "{case}");
        let present = taxpayer.reread(&stored).await;
        assert_eq!(present["payment_status"], json!(known), "{case}");
        assert_eq!(present["payment"], paid, "{case}");
    }
}

#[on_sqlite]
async fn what_is_missing_is_named_where_it_is_stored(world: &World) {
    let taxpayer = world.taxpayer().await;
    let bare = without(&invoice(), "invoice_lines.0.product_category");
    let stored = taxpayer.invoice(&bare).await;
    for answer in [
        taxpayer
            .app()
            .submit(&alone(&stored))
            .await
            .expect_status(422),
        taxpayer
            .app()
            .validate(&alone(&stored))
            .await
            .expect_status(400),
    ] {
        assert_eq!(
            answer.faulty_paths(),
            ["invoice_lines.0.product_category"],
            "{}",
            answer.body
        );
    }
    let unknown = with(
        &without(&invoice(), "invoice_type_code"),
        "invoice_type",
        json!("Something else"),
    );
    let stored = taxpayer.invoice(&unknown).await;
    let answer = taxpayer
        .app()
        .submit(&alone(&stored))
        .await
        .expect_status(422);
    assert_eq!(answer.faulty_paths(), ["invoice_type_code"]);
    let absent = json!({ "irn": documents::irn(&taxpayer, "NONE1") });
    for answer in [
        taxpayer.app().submit(&absent).await.expect_status(422),
        taxpayer.app().validate(&absent).await.expect_status(400),
        taxpayer.app().report(&absent).await.expect_status(422),
    ] {
        let told = answer.body["errors"]["irn"][0].as_str().unwrap_or_default();
        assert!(told.contains("no stored invoice"), "{}", answer.body);
        assert_eq!(answer.faulty_paths(), ["irn"]);
    }
}

#[each_database]
async fn a_repetition_means_what_was_sent(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let first = taxpayer
        .app()
        .submit_to_the_end(&alone(&stored))
        .await
        .expect_status(200);
    let again = taxpayer
        .app()
        .submit_to_the_end(&alone(&stored))
        .await
        .expect_status(200);
    assert_eq!(
        first.body["message"]["qr_code"],
        again.body["message"]["qr_code"]
    );
    // A document that was sent in full is meant too.
    let other = taxpayer.invoice(&invoice()).await;
    let no = other["invoice_no"].as_str().unwrap();
    let sent = with(&submission(&taxpayer, no), "note", json!("As agreed"));
    taxpayer
        .app()
        .submit_to_the_end(&sent)
        .await
        .expect_status(200);
    taxpayer
        .app()
        .submit_to_the_end(&alone(&other))
        .await
        .expect_status(200);
}

#[each_database]
async fn a_credit_note_names_the_invoice_that_it_corrects(world: &World) {
    let taxpayer = world.taxpayer().await;
    let original = taxpayer.invoice(&invoice()).await;
    let note = with(&invoice(), "invoice_type_code", json!("380"));
    let note = with(
        &note,
        "original_invoice_reference",
        original["invoice_no"].clone(),
    );
    let note = with(
        &note,
        "original_invoice_reference_type",
        json!("EXTERNAL_INVOICE_NO"),
    );
    let stored = taxpayer.invoice(&note).await;
    let document = signed_document(&taxpayer, &stored).await;
    assert_eq!(
        document["billing_reference"],
        json!([{ "irn": original["irn"], "issue_date": "2026-01-15" }])
    );
}

#[each_database]
async fn a_report_follows_from_the_stored_invoice(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    taxpayer
        .app()
        .report_to_the_end(&alone(&stored))
        .await
        .expect_status(200);
    let mixed = invoice();
    let line = with(
        &mixed["invoice_lines"][0],
        "tax_category",
        json!("ZERO_VAT"),
    );
    let lines = json!([mixed["invoice_lines"][0], line]);
    let mixed = taxpayer
        .invoice(&with(&mixed, "invoice_lines", lines))
        .await;
    let answer = taxpayer
        .app()
        .report(&alone(&mixed))
        .await
        .expect_status(422);
    assert_eq!(answer.faulty_paths(), ["vat_rate"]);
    let whole = report(&taxpayer, mixed["irn"].as_str().unwrap());
    taxpayer
        .app()
        .report_to_the_end(&whole)
        .await
        .expect_status(200);
}

#[on_sqlite]
async fn a_document_that_is_not_the_stored_one_is_told(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let same = submission(&taxpayer, stored["invoice_no"].as_str().unwrap());
    let answer = taxpayer
        .app()
        .submit_to_the_end(&same)
        .await
        .expect_status(200);
    assert!(
        !answer.warnings().contains("not the stored invoice"),
        "{}",
        answer.warnings()
    );
    let stored = taxpayer.invoice(&invoice()).await;
    let other = submission(&taxpayer, stored["invoice_no"].as_str().unwrap());
    let other = with(&other, "invoice_line.0.invoiced_quantity", json!(20));
    let other = with(
        &other,
        "invoice_line.0.line_extension_amount",
        json!(10_000),
    );
    let other = with(
        &other,
        "legal_monetary_total",
        json!({
            "line_extension_amount": 10_000, "tax_exclusive_amount": 10_000, "tax_inclusive_amount": 10_750,
            "payable_amount": 10_750,
        }),
    );
    let answer = taxpayer
        .app()
        .submit_to_the_end(&other)
        .await
        .expect_status(200);
    let told = "legal_monetary_total.payable_amount is 10750 here and 1075.00 there";
    assert!(answer.warnings().contains(told), "{}", answer.warnings());
}
