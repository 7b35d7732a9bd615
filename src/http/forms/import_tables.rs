//! Tables of invoices: what they state is what is created, or the invoice is refused in a sentence.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Value, json};

use crate::domain::import::profile::ImportProfile;
use crate::domain::import::source::ImportForm;
use crate::domain::import::table::{Row, Table};
use crate::domain::import::{csv_table, table_documents};
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::table_columns::export_header;
use crate::domain::invoice::table_rows::{Cell, InvoiceRows};
use crate::domain::invoice::{Draft, Invoice, InvoiceIdentity};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{CustomerId, InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::domain::party::InvoiceCustomer;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::full_invoice::{self, FormAccount};
use crate::http::forms::import::{ImportContext, read};
use crate::http::forms::testing::{
    self, full_invoice, import_account, number, object, standard_invoice, with_member,
};
use crate::http::forms::{calculated, reader, standard_invoice};

const HEADER: &str = "invoice_no,invoice_category,invoice_type_code,invoice_date,due_date,currency,customer.no,\
    customer.name,customer.email,customer.tin,customer.business_description,customer.address_street_name,\
    customer.address_city,customer.address_state,customer.address_postal_code,customer.address_country,line.item_name,\
    line.item_no,line.item_type,line.price_unit,line.tax_category,line.product_category,line.quantity,line.unit_price";
const START: &str = "A,B2B,381,2026-11-21,2026-12-21,NGN,C1,Mills,m@example.com,12345678-0001,Flour,1 Marina,Lagos,\
    Lagos,100001,NG,Rice,R1,PRODUCT,KGM,STANDARD_VAT,1006.30";

fn catalog() -> Catalog {
    let mut catalog = testing::catalog();
    let currencies = json!([
        { "code": "NGN", "decimal_digits": 2 }, { "code": "JPY", "decimal_digits": 0 },
        { "code": "KWD", "decimal_digits": 3 },
    ]);
    catalog.load(ReferenceList::Currencies, &currencies);
    catalog
}

/// Returns what becomes of the first invoice of a table: what it comes to, or its faults.
fn import(table: Table) -> Result<Draft, Faults> {
    import_with_warnings(table).map(|(draft, _)| draft)
}

fn import_with_warnings(table: Table) -> Result<(Draft, Vec<String>), Faults> {
    let catalog = catalog();
    let (profile, account) = (ImportProfile::default(), import_account());
    let context = ImportContext {
        form: ImportForm::Standard,
        profile: &profile,
        account: &account,
        today: Date::MAX,
        catalog: &catalog,
    };
    let file = table_documents::read(table, &BTreeMap::new()).unwrap();
    let (mut candidates, mut imported) = read(file, "I1".to_owned(), &context);
    let warnings = imported.documents.swap_remove(0).warnings;
    let draft = candidates.swap_remove(0).draft;
    draft.map(|draft| (*draft, warnings))
}

/// Imports rows with these columns behind those of `HEADER`. Each begins with the quantity and the unit price.
fn import_rows(columns: &str, rows: &[&str]) -> Result<Draft, Faults> {
    let rows = rows.iter().map(|row| format!("{START},{row}"));
    let rows: Vec<_> = rows.collect();
    let text = format!("{HEADER}{columns}\n{}\n", rows.join("\n"));
    import(csv_table::read(text.as_bytes()).unwrap())
}

fn sentences(result: Result<Draft, Faults>) -> Vec<String> {
    match result {
        Ok(_) => Vec::new(),
        Err(faults) => faults
            .iter()
            .map(|fault| format!("{} {fault}", fault.path))
            .collect(),
    }
}

#[test]
fn an_invoice_comes_to_the_sums_that_its_table_states_or_is_refused() {
    let sums = ",line.net_amount,net_amount,tax_amount,payable_amount";
    for (rows, said) in [
        (&["2,500.00,,,,"][..], ""),
        (&["2,500.00,1000.00,1000,75,1075.00"], ""),
        (
            &["2,500.00,1000.0000000000001,1000,75.00000000000001,1075"],
            "",
        ),
        // The amount of a line may be rounded by itself, or not at all.
        (&["1,33.335,33.335,,,", "1,33.335,33.34,66.67,,71.67"], ""),
        (
            &["2,500.00,1100.00,1100.00,,1182.50"],
            "invoice_lines.0.net_amount The line.net_amount is 1100.00 in the file, but the line comes to 1000.00:",
        ),
        (
            &["2,500.00,1000.00,,,", "2,500.00,100,,,"],
            "invoice_lines.1.net_amount The line.net_amount is 100 in the file",
        ),
        (
            &["2,500.00,,990.00,,"],
            "net_amount The net_amount is 990.00 in the file, but the invoice comes to 1000.00:",
        ),
        (
            &["2,500.00,,,70.00,"],
            "tax_amount The tax_amount is 70.00 in the file, but the invoice comes to 75.00:",
        ),
        (
            &["2,500.00,,,,1075.01"],
            "payable_amount The payable_amount is 1075.01 in the file, but the invoice comes to 1075.00:",
        ),
        // The sums that all lines state, and what is wrong with them.
        (&["3,0.335,1.01,1.01,0.08,1.09"], ""),
        (
            &["2,500.00,1000.00,990.00,75.00,1065.00"],
            "net_amount The net_amount is 990.00 in the file, but its lines come to 1000.00: correct the row, or leave \
             the column out.",
        ),
        (
            &["2,500.00,1000.00,1000.00,100.00,1100.00"],
            "tax_amount The tax_amount is 100.00 in the file, but at the authority's rates it is 75.00:",
        ),
        (
            &["2,500.00,1000.00,1000.00,75.00,1085.00"],
            "payable_amount The payable_amount is 1085.00 in the file, but net and tax come to 1075.00: correct the \
             row, or leave the column out; no column holds a charge or an allowance",
        ),
        (
            &["1,33.335,33.335,33.335,2.50,35.835"],
            "net_amount The net_amount is 33.335 in the file, but the invoice comes to 33.34: NGN has 2 digits",
        ),
        (
            &["1,500.00,500.02,500.02,37.50,537.52"],
            "invoice_lines.0.net_amount The line.net_amount is 500.02 in the file, but the line comes to 500.00:",
        ),
        (
            &["1,500.00,,500,,", "1,500.00,,1000,,"],
            "net_amount The net_amount of line 3 is not the one of line 2",
        ),
        (
            &["2,500.00,,,,about 9"],
            "payable_amount The payable_amount must be a number",
        ),
    ] {
        let found = sentences(import_rows(sums, rows));
        assert_eq!(found.is_empty(), said.is_empty(), "{rows:?}: {found:?}");
        assert!(
            found.iter().all(|one| one.starts_with(said)),
            "{rows:?}: {found:?}"
        );
        assert!(found.len() <= 1, "{rows:?}: {found:?}");
    }
}

#[test]
fn a_number_that_is_written_otherwise_is_told_how_it_is_written() {
    for (cell, is_number) in [
        ("1234.50", true),
        ("\"1234,50\"", false),
        ("\"1,234.50\"", false),
        ("10%", false),
        ("1 234", false),
        ("NGN 5", false),
    ] {
        let found = sentences(import_rows("", &[&format!("1,{cell}")]));
        let expected = "invoice_lines.0.unit_price The line.unit_price must be a number, which is written 1234.50";
        assert_eq!(found.is_empty(), is_number, "{cell}: {found:?}");
        assert!(
            found.iter().all(|one| one.starts_with(expected)),
            "{found:?}"
        );
        assert!(found.len() <= 1, "{found:?}");
    }
}

#[test]
fn a_filled_cell_without_a_column_is_a_fault_of_its_invoice() {
    for (columns, row, number) in [
        ("", "1,5,", None),
        ("", "1,5,00", Some(25)),
        (",,", "1,5,,", None),
        (",,", "1,5,,x", Some(26)),
    ] {
        let found = sentences(import_rows(columns, &[row]));
        let start = number.map(|number| format!("invoice_lines.0 Cell {number} of the line"));
        assert_eq!(!found.is_empty(), start.is_some(), "{row}: {found:?}");
        if let Some(start) = start {
            assert!(
                found[0].starts_with(&start) && found[0].contains("1234,50"),
                "{found:?}"
            );
        }
    }
}

fn stored(draft: Draft) -> Invoice {
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
    // Create Full has no field for the state, which Create Standard wants.
    customer.address.state = Some("Lagos".to_owned());
    let rows = InvoiceRows::new(stored(draft), Some(customer), &catalog());
    let cell = |cell: Cell<'_>| match cell {
        Cell::Empty => String::new(),
        Cell::Text(text) => text.into_owned(),
        Cell::Number(number) => number.to_string(),
    };
    let rows = (0..rows.count()).zip(2..).map(|(index, number)| Row {
        number,
        cells: rows.row(index).into_iter().map(cell).collect(),
    });
    Table {
        word: "row",
        header: export_header(),
        rows: rows.collect(),
    }
}

fn full_draft(body: Value) -> Draft {
    let account = FormAccount {
        today: Date::MAX,
        service_id: Some("94AD90FB"),
    };
    full_invoice::read(&object(body), account, &catalog())
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
        let found = sentences(import(export(full_draft(body))));
        assert!(
            found.len() == 1 && found[0].contains("take JSON or UBL"),
            "{name}: {found:?}"
        );
    }
}

/// Reads a full invoice of lines with these prices and quantities of 1, whose amounts the service computes.
fn calculated_draft(currency: &str, prices: &[&str]) -> Draft {
    let mut body = with_member(&full_invoice(), "/legal_monetary_total", None);
    body["document_currency_code"] = json!(currency);
    let bare = ["line_extension_amount", "total_tax"];
    let line = bare
        .iter()
        .fold(body["invoice_line"][0].clone(), |line, name| {
            with_member(&line, &format!("/{name}"), None)
        });
    let lines = prices.iter().map(|price| {
        let line = with_member(&line, "/price/price_amount", Some(number(price)));
        with_member(&line, "/invoiced_quantity", Some(json!(1)))
    });
    body["invoice_line"] = lines.collect();
    let account = FormAccount {
        today: Date::MAX,
        service_id: Some("94AD90FB"),
    };
    let read = calculated::read_full_invoice(&object(body), account, &catalog(), true);
    read.unwrap().0.value
}

#[test]
fn lines_that_are_rounded_one_by_one_come_back_from_a_table() {
    for (currency, prices, net, tax, payable, is_told) in [
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
        let told = warnings.iter().filter(|one| one.starts_with(&warning));
        assert_eq!(
            told.count(),
            usize::from(is_told),
            "{currency} {prices:?}: {warnings:?}"
        );
        for draft in [draft, again] {
            assert_eq!(draft.payable.to_string(), payable, "{currency} {prices:?}");
            let own = Breakdown::from_draft(&draft, &catalog()).unwrap();
            let found = [own.totals.tax_exclusive_amount, own.tax().unwrap()];
            let found = found.map(|amount| amount.to_string());
            assert_eq!(found, [net, tax], "{currency} {prices:?}");
        }
    }
}

/// A credit note of a correction states amounts of its lines that are cut, so that they add up.
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
        let read = reader::read(&object(body), &catalog(), standard_invoice::read);
        let mut draft = read.unwrap().value.draft;
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
        let found = Breakdown::from_draft(&again, &catalog()).unwrap();
        assert_eq!(found, stated, "{currency} {lines:?}");
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
        let kind = expected.map(|_| "IRN");
        assert_eq!(text("original_invoice_reference_type"), kind, "{code}");
    }
}

#[test]
fn the_money_of_a_refused_invoice_has_the_digits_of_its_currency() {
    for (currency, price, amount) in [
        ("NGN", "2678.468021", "8035.40"),
        ("NGN", "0.335", "1.01"),
        ("JPY", "33.5", "101"),
        ("KWD", "0.33351", "1.001"),
        ("KWD", "5", "15"),
    ] {
        let start = START.replace("NGN", currency);
        let text = format!("{HEADER},net_amount\n{start},3,{price},1000000\n");
        let table = csv_table::read(text.as_bytes()).unwrap();
        let catalog = catalog();
        let (profile, account) = (ImportProfile::default(), import_account());
        let context = ImportContext {
            form: ImportForm::Standard,
            profile: &profile,
            account: &account,
            today: Date::MAX,
            catalog: &catalog,
        };
        let file = table_documents::read(table, &BTreeMap::new()).unwrap();
        let (candidates, imported) = read(file, "I1".to_owned(), &context);
        assert!(candidates[0].draft.is_err(), "{currency} {price}");
        let found = imported.documents[0].amount.unwrap();
        assert_eq!(found.to_string(), amount, "{currency} {price}");
    }
}
