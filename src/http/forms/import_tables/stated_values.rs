//! Tests that an imported invoice has the values of its cells, or is refused with a sentence.

use std::collections::BTreeMap;

use jiff::civil::Date;

use super::table_import::{HEADER, ROW_START, catalog, import_rows, sentences};
use crate::domain::import::profile::ImportProfile;
use crate::domain::import::source::ImportForm;
use crate::domain::import::{csv_table, table_documents};
use crate::http::forms::import::{ImportContext, read};
use crate::http::forms::testing::import_account;

#[test]
fn an_invoice_comes_to_the_sums_that_its_table_states_or_is_refused() {
    let sums = ",line.net_amount,net_amount,tax_amount,payable_amount";
    for (rows, expected) in [
        (&["2,500.00,,,,"][..], ""),
        (&["2,500.00,1000.00,1000,75,1075.00"], ""),
        (
            &["2,500.00,1000.0000000000001,1000,75.00000000000001,1075"],
            "",
        ),
        // The amount of each line may be rounded or not.
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
        // All lines state sums: first correct sums, then sums that are wrong in one way each.
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
        let refusals = sentences(import_rows(sums, rows));
        assert_eq!(
            refusals.is_empty(),
            expected.is_empty(),
            "{rows:?}: {refusals:?}"
        );
        assert!(
            refusals
                .iter()
                .all(|sentence| sentence.starts_with(expected)),
            "{rows:?}: {refusals:?}"
        );
        assert!(refusals.len() <= 1, "{rows:?}: {refusals:?}");
    }
}

#[test]
fn the_fault_of_a_malformed_number_shows_the_accepted_format() {
    for (cell, is_number) in [
        ("1234.50", true),
        ("\"1234,50\"", false),
        ("\"1,234.50\"", false),
        ("10%", false),
        ("1 234", false),
        ("NGN 5", false),
    ] {
        let refusals = sentences(import_rows("", &[&format!("1,{cell}")]));
        let expected = "invoice_lines.0.unit_price The line.unit_price must be a number, which is written 1234.50";
        assert_eq!(refusals.is_empty(), is_number, "{cell}: {refusals:?}");
        assert!(
            refusals
                .iter()
                .all(|sentence| sentence.starts_with(expected)),
            "{refusals:?}"
        );
        assert!(refusals.len() <= 1, "{refusals:?}");
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
        let refusals = sentences(import_rows(columns, &[row]));
        let start = number.map(|number| format!("invoice_lines.0 Cell {number} of the line"));
        assert_eq!(!refusals.is_empty(), start.is_some(), "{row}: {refusals:?}");
        if let Some(start) = start {
            assert!(
                refusals[0].starts_with(&start) && refusals[0].contains("1234,50"),
                "{refusals:?}"
            );
        }
    }
}

#[test]
fn the_amount_of_a_refused_invoice_has_the_decimals_of_its_currency() {
    for (currency, price, amount) in [
        ("NGN", "2678.468021", "8035.40"),
        ("NGN", "0.335", "1.01"),
        ("JPY", "33.5", "101"),
        ("KWD", "0.33351", "1.001"),
        ("KWD", "5", "15"),
    ] {
        let row_start = ROW_START.replace("NGN", currency);
        let text = format!("{HEADER},net_amount\n{row_start},3,{price},1000000\n");
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
        let imported_amount = imported.documents[0].amount.unwrap();
        assert_eq!(imported_amount.to_string(), amount, "{currency} {price}");
    }
}
