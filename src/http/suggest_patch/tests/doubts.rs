//! Tests that ambiguous values stay unchanged.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::{amount, are_equal, body, catalog, repair, sold_lines, with_changed_amount};
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::testing::with_member;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn an_ambiguous_value_is_never_changed(
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
        has_wrong_date in any::<bool>(),
    ) {
        let catalog = catalog();
        let mut odd = with_member(&body(&sold), pointer, Some(json!(text)));
        let repairable_pointer = "/payment_means/0/payment_due_date";
        if has_wrong_date {
            odd = with_member(&odd, repairable_pointer, Some(json!("25/02/2026")));
        }
        let (is_valid, operations, patched) = repair(&odd, catalog);
        prop_assert!(!is_valid);
        prop_assert_eq!(patched.pointer(pointer), Some(&json!(text)));
        let paths: Vec<_> = operations.iter().map(|operation| operation["path"].as_str().unwrap()).collect();
        prop_assert_eq!(paths, if has_wrong_date { vec![repairable_pointer] } else { vec![] });
    }

    #[test]
    fn the_amount_owed_is_changed_only_if_all_amounts_prove_it(sold in sold_lines(), difference in 2..100_000_u32) {
        let catalog = catalog();
        let right = body(&sold);
        let difference = amount(difference).to_string();
        // The line's amount, quantity or price may be wrong, so there is no patch.
        let odd = with_changed_amount(&right, "/invoice_line/0/line_extension_amount", &difference);
        let (is_valid, operations, _) = repair(&odd, catalog);
        prop_assert_eq!((is_valid, operations), (false, vec![]));
        // Without stated prepayments, a payable amount that differs from the total with tax may be right.
        let prepaid = with_member(&right, "/legal_monetary_total/payable_amount", Some(json!(0)));
        prop_assert_eq!(repair(&prepaid, catalog).1, Vec::<Value>::new());
        let taxed_total = with_changed_amount(&right, "/legal_monetary_total/tax_inclusive_amount", &difference);
        let both = with_changed_amount(&taxed_total, "/legal_monetary_total/payable_amount", &difference);
        let (is_valid, operations, patched) = repair(&both, catalog);
        prop_assert!(is_valid && are_equal(&patched, &right), "lines and taxes prove it: {operations:#?}");
        // With a discount the line's amount is not proven, because the order of discounts is unknown.
        let reduced = with_member(&both, "/invoice_line/0/discount_rate", Some(json!(5)));
        prop_assert_eq!(repair(&reduced, catalog).1, Vec::<Value>::new());
        // If the stated base of the tax differs from the sum of the lines, the tax does not prove the total.
        let taxed = with_changed_amount(&both, "/tax_total/0/tax_subtotal/0/taxable_amount", "500");
        prop_assert_eq!(repair(&taxed, catalog).1, Vec::<Value>::new());
    }
}

#[test]
fn goods_with_a_code_of_a_service_stay_unchanged() {
    let catalog = catalog();
    let right = body(&[(10, 1_000, false)]);
    let odd = with_member(&right, "/invoice_line/0/product_category", None);
    for code in ["6201", "620", "1006", "abc"] {
        let odd = with_member(&odd, "/invoice_line/0/service_category", Some(json!(code)));
        assert_eq!(repair(&odd, catalog).1, Vec::<Value>::new(), "{code}");
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
    assert_eq!(repair(&odd, catalog).1, Vec::<Value>::new());
}
