//! Property tests: break valid bodies at random and patch them.

use std::sync::LazyLock;

use jiff::tz::Offset;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

use super::totals;
use crate::domain::kernel::fault::Faults;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::testing::{number, object, validation as sample, with_member};
use crate::http::forms::validation;
use crate::http::suggest_patch::patch_builder::{PatchBuilder, PatchContext, Violation};

/// The reference lists of the simulator.
static CATALOG: LazyLock<Catalog> = LazyLock::new(lists);

fn catalog() -> &'static Catalog {
    &CATALOG
}

fn lists() -> Catalog {
    let lists = [
        (
            ReferenceList::InvoiceTypes,
            include_str!("../../../crates/sandbox/data/invoice-types.json"),
        ),
        (
            ReferenceList::PaymentMeans,
            include_str!("../../../crates/sandbox/data/payment-means.json"),
        ),
        (
            ReferenceList::TaxCategories,
            include_str!("../../../crates/sandbox/data/tax-categories.json"),
        ),
        (
            ReferenceList::Currencies,
            include_str!("../../../crates/sandbox/data/currencies.json"),
        ),
        (
            ReferenceList::QuantityCodes,
            include_str!("../../../crates/sandbox/data/invoice-quantity-codes.json"),
        ),
        (
            ReferenceList::Countries,
            include_str!("../../../crates/sandbox/data/countries.json"),
        ),
    ];
    let mut catalog = Catalog::default();
    for (list, text) in lists {
        catalog.load(list, &strict_json::from_trusted(text).unwrap());
    }
    catalog
}

fn amount(hundredths: u32) -> Amount {
    Amount::parse(&format!("{}.{:02}", hundredths / 100, hundredths % 100)).unwrap()
}

/// One line: the quantity, the price in hundredths, and true if the line sells a service.
type Sold = (u32, u32, bool);

/// Returns a valid body for the Validate endpoint, with these invoice lines.
fn body(sold: &[Sold]) -> Value {
    let line = |(quantity, price, is_service): &Sold| {
        let sum = Amount::from(i64::from(*quantity))
            .times(amount(*price))
            .unwrap();
        let price = json!({
            "price_amount": amount(*price), "base_quantity": 1, "price_unit": if *is_service { "HUR" } else { "KGM" },
        });
        let mut line = json!({
            "invoiced_quantity": quantity, "line_extension_amount": sum, "item": { "name": "Rice" }, "price": price,
        });
        let names = if *is_service {
            ["isic_code", "service_category"]
        } else {
            ["hsn_code", "product_category"]
        };
        for name in names {
            line[name] = json!(if *is_service { "6201" } else { "1006.30" });
        }
        (line, sum)
    };
    let (lines, sums): (Vec<Value>, Vec<Amount>) = sold.iter().map(line).unzip();
    let sum = Amount::sum(sums).unwrap();
    let tax = Amount::parse("7.5")
        .unwrap()
        .percent_of(sum)
        .unwrap()
        .round_half_up(2);
    let whole = sum.plus(tax).unwrap();
    let mut body = sample();
    for (name, day) in [
        ("issue_date", "2026-01-15"),
        ("tax_point_date", "2026-01-15"),
        ("due_date", "2026-02-25"),
    ] {
        body[name] = json!(day);
    }
    body["payment_means"] =
        json!([{ "payment_means_code": "30", "payment_due_date": "2026-02-25" }]);
    body["invoice_line"] = json!(lines);
    body["tax_total"] = json!([{ "tax_amount": tax, "tax_subtotal": [{
        "taxable_amount": sum, "tax_amount": tax, "tax_category": { "id": "STANDARD_VAT", "percent": number("7.5") },
    }] }]);
    body["legal_monetary_total"] = json!({
        "line_extension_amount": sum, "tax_exclusive_amount": sum, "tax_inclusive_amount": whole,
        "payable_amount": whole,
    });
    body
}

/// A fault to put into a body: the JSON Pointer of a field, and the invalid texts that the field may get.
type Break = (&'static str, &'static [&'static str]);

/// The faults that can be repaired. Fields on which a repair relies are not in this list, so they stay valid.
const MENDABLE: &[Break] = &[
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

fn off(body: &Value, pointer: &str, by: &str) -> Value {
    let right = Amount::parse(&body.pointer(pointer).unwrap().to_string()).unwrap();
    with_member(
        body,
        pointer,
        Some(json!(right.plus(Amount::parse(by).unwrap()).unwrap())),
    )
}

fn wrong(body: &Map<String, Value>, catalog: &Catalog) -> Vec<Violation> {
    let faults = validation::read(body, None, catalog).err();
    faults
        .iter()
        .flat_map(Faults::iter)
        .map(Violation::from)
        .collect()
}

fn passes(body: &Value, catalog: &Catalog) -> bool {
    wrong(&object(body.clone()), catalog).is_empty()
        && totals::inclusive_total_violation(body).is_none()
}

/// Repairs a body. Returns true if the repaired body is valid, the patch, and the body that an RFC 6902 library makes
/// of the patch.
fn mend(body: &Value, catalog: &Catalog) -> (bool, Vec<Value>, Value) {
    let context = PatchContext {
        catalog,
        zone: Offset::constant(1),
    };
    let mut builder = PatchBuilder::new(&object(body.clone()), context);
    let is_right = builder.repair_body(|body| wrong(body, catalog));
    let patch: json_patch::Patch = serde_json::from_value(json!(builder.operations())).unwrap();
    let mut patched = body.clone();
    json_patch::patch(&mut patched, &patch).unwrap();
    assert_eq!(
        patched.as_object(),
        builder.body(),
        "the patch says what was done"
    );
    (is_right, builder.operations(), patched)
}

/// Returns true if two bodies are equal. Numbers are equal if their values are, such as `1` and `1.0`.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            Amount::parse(&one.to_string()).unwrap() == Amount::parse(&other.to_string()).unwrap()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, value)| other.get(name).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

fn sold_lines() -> impl Strategy<Value = Vec<Sold>> {
    prop::collection::vec((1..50_u32, 100..1_000_000_u32, any::<bool>()), 1..4)
}

/// Puts each fault into the body. The number next to a fault selects one of its invalid texts.
fn break_body(base: Value, breaks: &[(Break, usize)]) -> Value {
    breaks.iter().fold(base, |body, ((pointer, texts), which)| {
        with_member(&body, pointer, Some(json!(texts[which % texts.len()])))
    })
}

/// Breaks a line. The unit becomes a common word, and one code is put into the field for the other kind of sale.
fn break_line(body: &Value, place: usize, which: usize) -> Value {
    let line = format!("/invoice_line/{place}");
    let unit = body
        .pointer(&format!("{line}/price/price_unit"))
        .unwrap()
        .as_str()
        .unwrap();
    let (_, words) = UNITS.iter().find(|(code, _)| *code == unit).unwrap();
    let mut body = with_member(
        body,
        &format!("{line}/price/price_unit"),
        Some(json!(words[which % words.len()])),
    );
    let pairs = [
        ("hsn_code", "isic_code"),
        ("product_category", "service_category"),
    ];
    let (goods, service) = pairs[which % 2];
    let (from, to) = if unit == "KGM" {
        (goods, service)
    } else {
        (service, goods)
    };
    let code = body.pointer(&format!("{line}/{from}")).cloned();
    body = with_member(&body, &format!("{line}/{to}"), code);
    // In a third of the cases the code is in both fields, otherwise only in the wrong one.
    if which.is_multiple_of(3) {
        body
    } else {
        with_member(&body, &format!("{line}/{from}"), None)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_patch_applied_validation_passes_and_nothing_else_has_changed(
        sold in sold_lines(),
        breaks in subsequence(MENDABLE, 0..=MENDABLE.len()),
        totals in subsequence(&TOTALS[..], 0..=TOTALS.len()),
        which in prop::collection::vec(0..12_usize, MENDABLE.len() + 1),
        has_broken_line in any::<bool>(),
    ) {
        let catalog = catalog();
        let right = body(&sold);
        prop_assert!(passes(&right, catalog));
        let chosen: Vec<_> = breaks.into_iter().zip(which.iter().copied()).collect();
        let mut odd = break_body(right.clone(), &chosen);
        for (pointer, by) in totals {
            odd = off(&odd, pointer, by);
        }
        if has_broken_line {
            odd = break_line(&odd, which[0] % sold.len(), which[MENDABLE.len()]);
        }
        let (is_right, operations, patched) = mend(&odd, catalog);
        prop_assert!(is_right, "{odd:#}\n{operations:#?}");
        prop_assert!(passes(&patched, catalog));
        prop_assert!(same(&patched, &right), "{operations:#?}");
        prop_assert!(operations.iter().all(|operation| operation["why"].as_str().is_some_and(|why| !why.is_empty())));
        prop_assert_eq!(operations.is_empty(), passes(&odd, catalog) || same(&odd, &right));
    }

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

    #[test]
    fn whatever_stands_anywhere_nothing_breaks(
        sold in sold_lines(),
        place in 0..200_usize,
        odd in select(vec![
            json!(null), json!(true), json!([]), json!({}), json!([[]]), json!("\u{0}"), json!("é"), json!(-1),
            number("1e400"), number("0.0000000001"), number("999999999999999"), json!("2026-01-15T"), json!("0"),
        ]),
    ) {
        let catalog = catalog();
        let right = body(&sold);
        let all = pointers(&right, "");
        let pointer = &all[place % all.len()];
        let mut body = right.clone();
        *body.pointer_mut(pointer).unwrap() = odd;
        let (is_right, _, patched) = mend(&body, catalog);
        prop_assert_eq!(is_right, passes(&patched, catalog));
    }
}

fn pointers(value: &Value, here: &str) -> Vec<String> {
    let below = |name: &str, value: &Value| {
        let here = format!("{here}/{name}");
        let mut all = pointers(value, &here);
        all.push(here);
        all
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| below(name, value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(place, item)| below(&place.to_string(), item))
            .collect(),
        _ => Vec::new(),
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
    let (is_right, operations, _) = mend(&odd, catalog);
    assert!(is_right);
    insta::assert_snapshot!(serde_json::to_string_pretty(&operations).unwrap());
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
