//! Tables of invoices: what they state is what is created, or the invoice is refused in a sentence.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Value, json};

use crate::domain::import::profile::ImportProfile;
use crate::domain::import::source::ImportForm;
use crate::domain::import::table::{Row, Table};
use crate::domain::import::{csv_table, table_documents};
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::table_columns::export_header;
use crate::domain::invoice::table_rows::{Cell, InvoiceRows};
use crate::domain::invoice::{Draft, Invoice, InvoiceIdentity};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{CustomerId, InvoiceId, TaxpayerId};
use crate::domain::party::InvoiceCustomer;
use crate::http::forms::full_invoice::{self, FormAccount};
use crate::http::forms::import::{ImportContext, read};
use crate::http::forms::testing::{
    catalog, full_invoice, import_account, object, standard_invoice, with_member,
};
use crate::http::forms::{reader, standard_invoice};

const HEADER: &str = "invoice_no,invoice_category,invoice_type_code,invoice_date,due_date,currency,customer.no,\
    customer.name,customer.email,customer.tin,customer.business_description,customer.address_street_name,\
    customer.address_city,customer.address_state,customer.address_postal_code,customer.address_country,line.item_name,\
    line.item_no,line.item_type,line.price_unit,line.tax_category,line.product_category,line.quantity,line.unit_price";
const START: &str = "A,B2B,381,2026-11-21,2026-12-21,NGN,C1,Mills,m@example.com,12345678-0001,Flour,1 Marina,Lagos,\
    Lagos,100001,NG,Rice,R1,PRODUCT,KGM,STANDARD_VAT,1006.30";

/// Returns what becomes of the first invoice of a table: what it comes to, or its faults.
fn import(table: Table) -> Result<Draft, Faults> {
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
    let (mut candidates, _) = read(file, "I1".to_owned(), &context);
    candidates.swap_remove(0).draft.map(|draft| *draft)
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
