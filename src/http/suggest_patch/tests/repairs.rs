//! Tests of unambiguous faults, which are repaired.

use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Value, json};

use super::{are_equal, body, catalog, is_valid_body, repair, sold_lines, with_changed_amount};
use crate::http::forms::testing::with_member;

/// A fault to put into a body: the JSON Pointer of a field, and the invalid texts that the field may get.
type Break = (&'static str, &'static [&'static str]);

/// The faults that can be repaired. Fields on which a repair relies are not in this list, so they stay valid.
const REPAIRABLE: &[Break] = &[
    (
        "/issue_date",
        &[
            "15/01/2026",
            "2026/01/15",
            "2026-1-15",
            "01/15/2026",
            "15 January 2026",
            "2026-01-15T09:00:00Z",
        ],
    ),
    (
        "/due_date",
        &[
            "25.02.2026",
            "20260225",
            "25-Feb-2026",
            "2026-02-25T10:30:00+01:00",
        ],
    ),
    ("/tax_point_date", &["2026.01.15", "2026-01-15 00:00:00"]),
    (
        "/payment_means/0/payment_due_date",
        &["25/2/2026", "Feb 25, 2026"],
    ),
    (
        "/document_currency_code",
        &["ngn", "NGM", "NNG", "Nigerian Naira", "Ngn"],
    ),
    (
        "/invoice_type_code",
        &[
            "Commercial Invoice",
            "commercial invoice",
            "Comercial Invoice",
        ],
    ),
    (
        "/payment_means/0/payment_means_code",
        &["Credit Transfer", "credit transfer", "Credit Trnasfer"],
    ),
    (
        "/tax_total/0/tax_subtotal/0/tax_category/id",
        &[
            "standard_vat",
            "STANDARD VAT",
            "STANDARD_VTA",
            "Standard Value-Added Tax",
        ],
    ),
    (
        "/accounting_supplier_party/postal_address/country",
        &["Nigeria", "NGA", "nigeria"],
    ),
    (
        "/accounting_customer_party/postal_address/country",
        &["NIGERIA", "nga"],
    ),
];
const UNITS: [(&str, &[&str]); 2] = [
    ("KGM", &["kg", "kgm", "Kilogram", "kilograms"]),
    ("HUR", &["hour", "Hours", "hrs", "hur"]),
];
/// The totals and how much a test adds to each. The amounts differ so that two wrong totals never agree by chance.
const TOTALS: [(&str, &str); 4] = [
    ("/legal_monetary_total/line_extension_amount", "11"),
    ("/legal_monetary_total/tax_exclusive_amount", "3"),
    ("/legal_monetary_total/tax_inclusive_amount", "7"),
    ("/tax_total/0/tax_amount", "1.3"),
];

/// Puts each fault into the body. The number next to a fault selects one of its invalid texts.
fn break_body(base: Value, breaks: &[(Break, usize)]) -> Value {
    breaks
        .iter()
        .fold(base, |body, ((pointer, texts), choice)| {
            with_member(&body, pointer, Some(json!(texts[choice % texts.len()])))
        })
}

/// Breaks a line. The unit becomes a common word, and one code is put into the field for the other kind of sale.
fn break_line(body: &Value, index: usize, choice: usize) -> Value {
    let line = format!("/invoice_line/{index}");
    let unit = body
        .pointer(&format!("{line}/price/price_unit"))
        .unwrap()
        .as_str()
        .unwrap();
    let (_, words) = UNITS.iter().find(|(code, _)| *code == unit).unwrap();
    let mut body = with_member(
        body,
        &format!("{line}/price/price_unit"),
        Some(json!(words[choice % words.len()])),
    );
    let pairs = [
        ("hsn_code", "isic_code"),
        ("product_category", "service_category"),
    ];
    let (goods, service) = pairs[choice % 2];
    let (from, to) = if unit == "KGM" {
        (goods, service)
    } else {
        (service, goods)
    };
    let code = body.pointer(&format!("{line}/{from}")).cloned();
    body = with_member(&body, &format!("{line}/{to}"), code);
    // In a third of the cases the code is in both fields, otherwise only in the wrong one.
    if choice.is_multiple_of(3) {
        body
    } else {
        with_member(&body, &format!("{line}/{from}"), None)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_patched_body_is_valid_and_has_no_other_changes(
        sold in sold_lines(),
        breaks in subsequence(REPAIRABLE, 0..=REPAIRABLE.len()),
        totals in subsequence(&TOTALS[..], 0..=TOTALS.len()),
        choices in prop::collection::vec(0..12_usize, REPAIRABLE.len() + 1),
        has_broken_line in any::<bool>(),
    ) {
        let catalog = catalog();
        let right = body(&sold);
        prop_assert!(is_valid_body(&right, catalog));
        let chosen_breaks: Vec<_> = breaks.into_iter().zip(choices.iter().copied()).collect();
        let mut odd = break_body(right.clone(), &chosen_breaks);
        for (pointer, difference) in totals {
            odd = with_changed_amount(&odd, pointer, difference);
        }
        if has_broken_line {
            odd = break_line(&odd, choices[0] % sold.len(), choices[REPAIRABLE.len()]);
        }
        let (is_valid, operations, patched) = repair(&odd, catalog);
        prop_assert!(is_valid, "{odd:#}\n{operations:#?}");
        prop_assert!(is_valid_body(&patched, catalog));
        prop_assert!(are_equal(&patched, &right), "{operations:#?}");
        prop_assert!(operations.iter().all(|operation| operation["why"].as_str().is_some_and(|why| !why.is_empty())));
        prop_assert_eq!(operations.is_empty(), is_valid_body(&odd, catalog) || are_equal(&odd, &right));
    }
}

#[test]
fn each_operation_says_what_it_does_and_why() {
    let catalog = catalog();
    let right = body(&[(10, 1_000, false)]);
    let odd = with_member(&right, "/issue_date", Some(json!("15/01/2026")));
    let odd = with_member(&odd, "/legal_monetary_total/line_extension_amount", None);
    let odd = with_member(&odd, "/invoice_line/0/product_category", None);
    let odd = with_member(
        &odd,
        "/invoice_line/0/service_category",
        Some(json!("1006.30")),
    );
    let (is_valid, operations, _) = repair(&odd, catalog);
    assert!(is_valid);
    insta::assert_snapshot!(serde_json::to_string_pretty(&operations).unwrap());
}
