//! Exports that are imported again: the table of an invoice becomes an invoice of the same amounts, or is refused.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Value, json};

use super::table_import::{catalog, import, import_with_warnings, sentences};
use crate::domain::import::table::{Row, Table};
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::table_columns::export_header;
use crate::domain::invoice::table_rows::InvoiceRows;
use crate::domain::invoice::{Draft, Invoice, InvoiceIdentity};
use crate::domain::kernel::ids::{CustomerId, InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::domain::party::InvoiceCustomer;
use crate::http::forms::full_invoice::{self, InvoiceContext};
use crate::http::forms::testing::{full_invoice, number, object, standard_invoice, with_member};
use crate::http::forms::{calculated, reader, standard_invoice};

fn to_invoice(draft: Draft) -> Invoice {
    let customer = InvoiceCustomer {
        id: CustomerId(1),
        external_customer_no: draft.customer.no.clone(),
        name: draft.customer.name.clone(),
        tin: draft.customer.tin.clone(),
        email: draft.customer.email.clone(),
    };
    let identity = InvoiceIdentity {
        id: InvoiceId(1),
        taxpayer_id: TaxpayerId(1),
        irn: Irn::parse("INV001-94AD90FB-20261121").unwrap(),
        customer,
        provisional_qr: String::new(),
    };
    draft.into_invoice(identity, Timestamp::UNIX_EPOCH).0
}

/// Returns the table that an export of the invoice has.
fn export(draft: Draft) -> Table {
    let mut customer = draft.customer.clone();
    // Create Full has no field for the state of the address, which Create Standard requires.
    customer.address.state = Some("Lagos".to_owned());
    let rows = InvoiceRows::new(to_invoice(draft), Some(customer), &catalog());
    let rows = (0..rows.row_count()).zip(2..).map(|(index, number)| Row {
        number,
        cells: rows.row(index).iter().map(ToString::to_string).collect(),
        formulas: Vec::new(),
    });
    Table {
        word: "row",
        header: export_header(),
        rows: rows.collect(),
    }
}

fn full_draft(body: Value) -> Draft {
    let context = InvoiceContext {
        today: Date::MAX,
        service_id: Some("94AD90FB"),
    };
    full_invoice::read(&object(body), context, &catalog())
        .unwrap()
        .value
}

#[test]
fn an_export_becomes_the_same_amounts_again_or_is_refused() {
    let standard = reader::read(
        &object(standard_invoice()),
        &catalog(),
        standard_invoice::read,
    );
    let standard = standard.unwrap().value.draft;
    let payable = standard.payable;
    assert_eq!(import(export(standard)).unwrap().payable, payable);
    let number = "/invoice_line/0/item/sellers_item_identification";
    for body in [full_invoice(), with_member(&full_invoice(), number, None)] {
        let full = full_draft(body);
        let payable = full.payable;
        assert_eq!(import(export(full)).unwrap().payable, payable);
    }
    let line = |name: &str, value: Value| {
        with_member(
            &full_invoice(),
            &format!("/invoice_line/0/{name}"),
            Some(value),
        )
    };
    let totals = |body: Value, net: u32, payable: &str| {
        let totals = format!(
            "{{\"line_extension_amount\":{net},\"tax_exclusive_amount\":{net},\"tax_inclusive_amount\":{payable},\
             \"payable_amount\":{payable}}}"
        );
        let totals = strict_json::from_trusted(&totals).unwrap();
        with_member(&body, "/legal_monetary_total", Some(totals))
    };
    let fee = with_member(
        &line("fee_amount", json!(10)),
        "/invoice_line/0/line_extension_amount",
        Some(json!(210)),
    );
    for (body, name) in [
        (totals(fee, 210, "225.75"), "a fee"),
        (
            totals(
                with_member(
                    &line("line_extension_amount", json!(20)),
                    "/invoice_line/0/price/base_quantity",
                    Some(json!(10)),
                ),
                20,
                "21.50",
            ),
            "a price for ten",
        ),
    ] {
        let refusals = sentences(import(export(full_draft(body))));
        assert!(
            refusals.len() == 1 && refusals[0].contains("take JSON or UBL"),
            "{name}: {refusals:?}"
        );
    }
}

/// Returns the draft of a full invoice that has, for each price, one line of quantity 1. The caller sends no amounts;
/// the service computes them.
fn calculated_draft(currency: &str, prices: &[&str]) -> Draft {
    let mut body = with_member(&full_invoice(), "/legal_monetary_total", None);
    body["document_currency_code"] = json!(currency);
    let computed_fields = ["line_extension_amount", "total_tax"];
    let line = computed_fields
        .iter()
        .fold(body["invoice_line"][0].clone(), |line, name| {
            with_member(&line, &format!("/{name}"), None)
        });
    let lines = prices.iter().map(|price| {
        let line = with_member(&line, "/price/price_amount", Some(number(price)));
        with_member(&line, "/invoiced_quantity", Some(json!(1)))
    });
    body["invoice_line"] = lines.collect();
    let context = InvoiceContext {
        today: Date::MAX,
        service_id: Some("94AD90FB"),
    };
    let form = calculated::read_full_invoice(&object(body), context, &catalog(), true);
    form.unwrap().0.value
}

#[test]
fn lines_that_are_rounded_one_by_one_come_back_from_a_table() {
    for (currency, prices, net, tax, payable, has_warning) in [
        ("NGN", &["0.335"; 3][..], "1.02", "0.08", "1.10", true),
        ("NGN", &["0.335"], "0.34", "0.03", "0.37", true),
        ("NGN", &["33.335", "33.335"], "66.68", "5.00", "71.68", true),
        ("NGN", &["100", "50"], "150.00", "11.25", "161.25", false),
        ("JPY", &["33.4"; 3], "99", "7", "106", true),
        ("JPY", &["101"], "101", "8", "109", false),
        ("KWD", &["0.3335"; 3], "1.002", "0.075", "1.077", true),
        ("KWD", &["1.007"], "1.007", "0.076", "1.083", false),
    ] {
        let full = calculated_draft(currency, prices);
        let (draft, warnings) = import_with_warnings(export(full)).unwrap();
        let again = import(export(draft.clone())).unwrap();
        let warning = format!(
            "The sums are those of the file, which rounds otherwise: {net} and {tax} of tax, not"
        );
        let sum_warnings = warnings.iter().filter(|text| text.starts_with(&warning));
        assert_eq!(
            sum_warnings.count(),
            usize::from(has_warning),
            "{currency} {prices:?}: {warnings:?}"
        );
        for draft in [draft, again] {
            assert_eq!(draft.payable.to_string(), payable, "{currency} {prices:?}");
            let breakdown = Breakdown::from_draft(&draft, &catalog()).unwrap();
            let sums = [
                breakdown.totals.tax_exclusive_amount,
                breakdown.tax().unwrap(),
            ];
            let sums = sums.map(|amount| amount.to_string());
            assert_eq!(sums, [net, tax], "{currency} {prices:?}");
        }
    }
}

/// A credit note of a correction states the amounts of its lines, which may be rounded up or down, so that they add up.
#[test]
fn a_credit_note_that_states_its_amounts_comes_back_from_a_table() {
    for (currency, price, lines, tax, payable) in [
        ("NGN", "33.335", ["33.33", "33.34"], "5.00", "71.67"),
        ("NGN", "33.335", ["33.33", "33.33"], "5.01", "71.67"),
        ("JPY", "33.4", ["33", "34"], "5", "72"),
        ("KWD", "0.3335", ["0.333", "0.334"], "0.050", "0.717"),
    ] {
        let mut body = with_member(&standard_invoice(), "/currency", Some(json!(currency)));
        let line = &body["invoice_lines"][0];
        let line = with_member(line, "/unit_price", Some(number(price)));
        let line = with_member(&line, "/quantity", Some(json!(1)));
        body["invoice_lines"] = json!([line, line]);
        let form = reader::read(&object(body), &catalog(), standard_invoice::read);
        let mut draft = form.unwrap().value.draft;
        let amounts = lines.map(|text| Amount::parse(text).unwrap());
        for (line, amount) in draft.lines.iter_mut().zip(amounts) {
            let name = "line_extension_amount".to_owned();
            line.extras.insert(name, json!(amount));
        }
        let net = Amount::sum(amounts).unwrap();
        draft.payable = Amount::parse(payable).unwrap();
        let totals = json!({
            "line_extension_amount": net, "tax_exclusive_amount": net, "tax_inclusive_amount": draft.payable,
            "payable_amount": draft.payable,
        });
        let taxes = json!([{ "tax_amount": number(tax), "tax_subtotal": [{
            "taxable_amount": net, "tax_amount": number(tax),
            "tax_category": { "id": "STANDARD_VAT", "percent": number("7.5") },
        }] }]);
        draft
            .extras
            .insert("legal_monetary_total".to_owned(), totals);
        draft.extras.insert("tax_total".to_owned(), taxes);
        let stated = Breakdown::from_draft(&draft, &catalog()).unwrap();
        let again = import(export(draft)).unwrap();
        let breakdown_again = Breakdown::from_draft(&again, &catalog()).unwrap();
        assert_eq!(breakdown_again, stated, "{currency} {lines:?}");
    }
}

#[test]
fn a_full_credit_note_keeps_its_invoice_in_a_table() {
    let reference = |irn: &str| json!([{ "irn": irn, "issue_date": "2026-11-20" }]);
    let first = "INV000-94AD90FB-20261120";
    for (code, references, expected) in [
        ("380", Some(reference(first)), Some(first)),
        ("381", Some(reference(first)), Some(first)),
        ("381", None, None),
    ] {
        let body = with_member(&full_invoice(), "/invoice_type_code", Some(json!(code)));
        let body = match references {
            Some(references) => with_member(&body, "/billing_reference", Some(references)),
            None => body,
        };
        let draft = import(export(full_draft(body))).unwrap();
        let text = |name: &str| draft.extras.get(name).and_then(Value::as_str);
        assert_eq!(text("original_invoice_reference"), expected, "{code}");
        let reference_type = expected.map(|_| "IRN");
        assert_eq!(
            text("original_invoice_reference_type"),
            reference_type,
            "{code}"
        );
    }
}
