//! Tests of faults that may have been meant otherwise: they stay as they are.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::{amount, body, catalog, mend, off, same, sold_lines};
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::testing::with_member;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_may_be_meant_otherwise_is_never_changed(
        sold in sold_lines(),
        (pointer, text) in select(&[
            ("/issue_date", "03/04/2026"),
            ("/due_date", "11-12-2027"),
            ("/tax_point_date", "soon"),
            ("/issue_date", "2026-01-14T23:30:00Z"),
            ("/document_currency_code", "GBX"),
            ("/document_currency_code", "USX"),
            ("/tax_currency_code", "GBp"),
            ("/invoice_type_code", "382"),
            ("/invoice_type_code", "Note"),
            ("/payment_means/0/payment_means_code", "95"),
            ("/tax_total/0/tax_subtotal/0/tax_category/id", "VAT"),
            ("/tax_total/0/tax_subtotal/0/tax_category/id", "REDUCED_VTA"),
            ("/tax_total/0/tax_subtotal/0/tax_category/id", "zero_vat"),
            ("/accounting_customer_party/postal_address/country", "Nigera"),
            ("/invoice_line/0/price/price_unit", "gm"),
            ("/invoice_line/0/price/price_unit", "ton"),
            ("/irn", "INV001"),
            ("/business_id", "bb99420d"),
            ("/accounting_supplier_party/tin", ""),
        ][..]),
        date in any::<bool>(),
    ) {
        let catalog = catalog();
        let mut odd = with_member(&body(&sold), pointer, Some(json!(text)));
        let mendable = "/payment_means/0/payment_due_date";
        if date {
            odd = with_member(&odd, mendable, Some(json!("25/02/2026")));
        }
        let (is_right, operations, patched) = mend(&odd, catalog);
        prop_assert!(!is_right);
        prop_assert_eq!(patched.pointer(pointer), Some(&json!(text)));
        let paths: Vec<_> = operations.iter().map(|operation| operation["path"].as_str().unwrap()).collect();
        prop_assert_eq!(paths, if date { vec![mendable] } else { vec![] });
    }

    #[test]
    fn what_is_owed_is_changed_only_where_everything_proves_it(sold in sold_lines(), by in 2..100_000_u32) {
        let catalog = catalog();
        let right = body(&sold);
        let by = amount(by).to_string();
        // The line's amount, quantity or price may be wrong, so there is no patch.
        let odd = off(&right, "/invoice_line/0/line_extension_amount", &by);
        let (is_right, operations, _) = mend(&odd, catalog);
        prop_assert_eq!((is_right, operations), (false, vec![]));
        // Without stated prepayments, a payable amount that differs from the total with tax may be right.
        let prepaid = with_member(&right, "/legal_monetary_total/payable_amount", Some(json!(0)));
        prop_assert_eq!(mend(&prepaid, catalog).1, Vec::<Value>::new());
        let both = off(&off(&right, "/legal_monetary_total/tax_inclusive_amount", &by), "/legal_monetary_total/payable_amount", &by);
        let (is_right, operations, patched) = mend(&both, catalog);
        prop_assert!(is_right && same(&patched, &right), "lines and taxes prove it: {operations:#?}");
        // With a discount the line's amount is not proven, because the order of discounts is unknown.
        let reduced = with_member(&both, "/invoice_line/0/discount_rate", Some(json!(5)));
        prop_assert_eq!(mend(&reduced, catalog).1, Vec::<Value>::new());
        // If the stated base of the tax differs from the sum of the lines, the tax does not prove the total.
        let taxed = off(&both, "/tax_total/0/tax_subtotal/0/taxable_amount", "500");
        prop_assert_eq!(mend(&taxed, catalog).1, Vec::<Value>::new());
    }
}

#[test]
fn goods_that_are_called_a_service_are_neither() {
    let catalog = catalog();
    let right = body(&[(10, 1_000, false)]);
    let odd = with_member(&right, "/invoice_line/0/product_category", None);
    for code in ["6201", "620", "1006", "abc"] {
        let odd = with_member(&odd, "/invoice_line/0/service_category", Some(json!(code)));
        assert_eq!(mend(&odd, catalog).1, Vec::<Value>::new(), "{code}");
    }
}

#[test]
fn without_the_lists_no_code_is_guessed() {
    let catalog = &Catalog::default();
    let odd = with_member(
        &body(&[(10, 1_000, false)]),
        "/invoice_line/0/price/price_unit",
        Some(json!("each")),
    );
    assert_eq!(mend(&odd, catalog).1, Vec::<Value>::new());
}
