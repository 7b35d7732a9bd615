//! Helpers for the tests of forms: valid bodies, single changes to them, and the rules that the changes violate.

use serde_json::{Map, Value, json};
pub(crate) use testkit::edit::exact as number;

use crate::domain::import::ubl_parties::ImportAccount;
use crate::domain::kernel::fault::Faults;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::reader::{self, AcceptedForm, Reader};

pub(crate) fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    let codes = |codes: &[&str]| {
        codes
            .iter()
            .map(|code| json!({ "code": code }))
            .collect::<Value>()
    };
    catalog.load(
        ReferenceList::InvoiceTypes,
        &codes(&["380", "381", "384", "385", "393", "394"]),
    );
    catalog.load(ReferenceList::QuantityCodes, &codes(&["EA", "KGM"]));
    catalog.load(ReferenceList::PaymentMeans, &codes(&["10"]));
    catalog.load(ReferenceList::ServiceCodes, &codes(&["6201"]));
    catalog.load(
        ReferenceList::ProductCodes,
        &json!([{ "hscode": "1006.30" }]),
    );
    catalog.load(ReferenceList::Countries, &json!([{ "alpha_2": "NG" }]));
    catalog.load(
        ReferenceList::Currencies,
        &json!([{ "code": "NGN", "decimal_digits": 2 }]),
    );
    let rates = r#"[{"code":"STANDARD_VAT","percent":7.5},{"code":"REDUCED_VAT","percent":5},
        {"code":"STANDARD_GST","percent":0},{"code":"ZERO_VAT","percent":0}]"#;
    catalog.load(
        ReferenceList::TaxCategories,
        &strict_json::from_trusted(rates).unwrap(),
    );
    catalog
}

/// Returns an account whose service id is in the IRN of `full_invoice`.
pub(crate) fn import_account() -> ImportAccount {
    ImportAccount {
        service_id: "94AD90FB".to_owned(),
        tin: "87654321-0001".to_owned(),
        name: "Bello Foods".to_owned(),
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("no object: {other}"),
    }
}

/// Returns the body with the member at `pointer` set to `value`, or removed if `value` is `None`.
pub(crate) fn with_member(body: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut body = body.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match (body.pointer_mut(parent).unwrap(), value) {
        (Value::Object(object), Some(value)) => drop(object.insert(name.to_owned(), value)),
        (Value::Object(object), None) => drop(object.remove(name)),
        (Value::Array(items), Some(value)) => items[name.parse::<usize>().unwrap()] = value,
        (other, _) => panic!("{pointer} is not in {other}"),
    }
    body
}

pub(crate) fn read<T>(
    body: Value,
    form: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<AcceptedForm<T>, Faults> {
    reader::read(&object(body), &catalog(), form)
}

/// Returns the violated rules of a result, each as `path: rule`.
pub(crate) fn broken_rules<T>(result: Result<AcceptedForm<T>, Faults>) -> Vec<String> {
    match result {
        Ok(_) => Vec::new(),
        Err(faults) => {
            assert!(!faults.is_empty(), "a form without a value has faults");
            faults
                .iter()
                .map(|fault| format!("{}: {}", fault.path, fault.rule()))
                .collect()
        }
    }
}

/// Checks a form. Each case changes one member of a valid body and names the rules that the changed body then violates,
/// separated by commas; the text is empty if the body stays valid.
pub(crate) fn check<T>(
    body: &Value,
    cases: &[(&str, Option<Value>, &str)],
    form: impl Fn(&mut Reader<'_>) -> Option<T>,
) {
    assert_eq!(
        broken_rules(read(body.clone(), &form)),
        [""; 0],
        "the unchanged body"
    );
    for (pointer, value, expected) in cases {
        let rules = broken_rules(read(with_member(body, pointer, value.clone()), &form));
        let expected: Vec<_> = expected
            .split(", ")
            .filter(|rule| !rule.is_empty())
            .collect();
        assert_eq!(rules, expected, "{pointer} = {value:?}");
    }
}

/// JSON numbers, as text, that no `Amount` can hold exactly: they are too large, too small or have too many digits.
pub(crate) const INEXACT: [&str; 5] = [
    "1e400",
    "-1e400",
    "1e-400",
    "1234567890123456789012345678901234567890",
    "0.1234567890123456789012345678901234567890",
];

/// Returns the texts as JSON values, for `check_refused`.
pub(crate) fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!(text)).collect()
}

/// Returns JSON numbers with exactly these digits, for `check_refused`.
pub(crate) fn numbers(numerals: &[&str]) -> Vec<Value> {
    numerals.iter().map(|digits| number(digits)).collect()
}

/// Returns `path: rule` for the member at a JSON pointer, in the form of `broken_rules`.
fn format_broken_rule(pointer: &str, rule: &str) -> String {
    format!("{}: {rule}", pointer[1..].replace('/', "."))
}

/// Checks that each of these fields is required. A text without visible characters counts as absent, like null.
pub(crate) fn check_required<T>(
    body: &Value,
    pointers: &[&str],
    form: impl Fn(&mut Reader<'_>) -> Option<T>,
) {
    for pointer in pointers {
        let rule = format_broken_rule(pointer, "required");
        check(
            body,
            &[
                (*pointer, None, &rule),
                (*pointer, Some(Value::Null), &rule),
            ],
            &form,
        );
        for blank in ["", "  ", "\u{200b}\u{3164}"] {
            check(body, &[(*pointer, Some(json!(blank)), &rule)], &form);
        }
    }
}

/// Checks that each of these values violates this rule of its field, and no other rule.
pub(crate) fn check_refused<T>(
    body: &Value,
    cases: &[(&str, &str, Vec<Value>)],
    form: impl Fn(&mut Reader<'_>) -> Option<T>,
) {
    for (pointer, rule, values) in cases {
        let rule = format_broken_rule(pointer, rule);
        for value in values {
            check(body, &[(*pointer, Some(value.clone()), &rule)], &form);
        }
    }
}

/// Checks text fields, each with its minimum and maximum length in characters: texts of these lengths are accepted, and
/// shorter texts, longer texts, control characters and noncharacters are refused.
pub(crate) fn check_texts<T>(
    body: &Value,
    limits: &[(&str, usize, usize)],
    form: impl Fn(&mut Reader<'_>) -> Option<T>,
) {
    for (pointer, min, max) in limits {
        let [shortest, longest] = [min, max].map(|length| Some(json!("\u{e9}".repeat(*length))));
        check(
            body,
            &[(*pointer, shortest, ""), (*pointer, longest, "")],
            &form,
        );
        let too_long = ["x", "\u{e9}"].map(|letter| json!(letter.repeat(max + 1)));
        let control = texts(&[
            "a\u{0}bcdef",
            "abcdef\u{0}",
            "abc\u{1b}def",
            "abcdef\u{7f}",
            "abc\u{fffe}def",
            "abcdef\u{ffff}",
        ]);
        let cases = [
            (*pointer, "max", too_long.to_vec()),
            (*pointer, "control_characters", control),
        ];
        check_refused(body, &cases, &form);
        if *min > 1 {
            let too_short = vec![json!("x".repeat(min - 1))];
            check_refused(body, &[(*pointer, "min", too_short)], &form);
        }
    }
}

/// Checks that each of these fields refuses invisible characters and characters that change the text direction.
pub(crate) fn check_identifiers<T>(
    body: &Value,
    pointers: &[&str],
    form: impl Fn(&mut Reader<'_>) -> Option<T>,
) {
    let hidden = [
        "\u{200b}",
        "\u{202e}",
        "\u{2067}",
        "\u{200d}",
        "\u{feff}",
        "\u{ad}",
        "\u{3164}",
        "\u{e0041}",
    ];
    let values = hidden.map(|letter| json!(format!("A{letter}1")));
    for pointer in pointers {
        check_refused(
            body,
            &[(*pointer, "invisible_characters", values.to_vec())],
            &form,
        );
    }
}

pub(crate) fn standard_invoice() -> Value {
    json!({
        "invoice_no": "INV001",
        "invoice_category": "B2B",
        "invoice_type_code": "381",
        "invoice_date": "2026-11-21",
        "due_date": "2026-12-21",
        "currency": "NGN",
        "customer": {
            "no": "C1", "name": "Dangoyaro Mills", "email": "books@example.com", "tin": "12345678-0001",
            "business_description": "Flour mills", "address_street_name": "1 Marina",
            "address_city": "Lagos", "address_state": "Lagos", "address_postal_code": "100001",
            "address_country": "NG"
        },
        "invoice_lines": [{
            "item_name": "Rice", "item_no": "R1", "item_type": "PRODUCT", "unit_price": 100, "quantity": 2,
            "price_unit": "KGM", "tax_category": "STANDARD_VAT", "product_category": "1006.30"
        }]
    })
}

pub(crate) fn full_invoice() -> Value {
    json!({
        "invoice_no": "INV001",
        "invoice_category": "B2B",
        "irn": "INV001-94AD90FB-20261121",
        "issue_date": "2026-11-21",
        "due_date": "2026-12-21",
        "invoice_type_code": "381",
        "document_currency_code": "NGN",
        "accounting_customer_party": {
            "customer_no": "C1", "party_name": "Dangoyaro Mills", "email": "books@example.com",
            "tin": "12345678-0001", "business_description": "Flour mills", "telephone": "+234 (803) 000-0000",
            "postal_address":
                { "street_name": "1 Marina", "city_name": "Lagos", "postal_zone": "100001", "country": "NG" },
        },
        "legal_monetary_total": {
            "line_extension_amount": 200, "tax_exclusive_amount": 200,
            "tax_inclusive_amount": 215, "payable_amount": 215,
        },
        "invoice_line": [{
            "item": {
                "name": "Rice", "description": "Parboiled", "sellers_item_identification": "R1",
                "type": "PRODUCT",
            },
            "price": { "price_amount": 100, "base_quantity": 1, "price_unit": "KGM" },
            "invoiced_quantity": 2, "line_extension_amount": 200, "product_category": "1006.30",
            "hsn_code": "1006.30", "tax_category": "STANDARD_VAT", "total_tax": 15,
        }],
    })
}

pub(crate) fn update_invoice() -> Value {
    json!({
        "unique_no": "INV001",
        "unique_no_type": "INTERNAL_INVOICE_NO",
        "customer": standard_invoice()["customer"],
        "invoice_category": "B2B",
        "invoice_type": "381",
        "due_date": "2026-12-21",
        "lines": [{
            "item_name": "Rice", "item_no": "R1", "item_type": "PRODUCT", "tax_category": "STANDARD_VAT",
            "product_category": "1006.30", "quantity": 2, "unit_price": 100, "price_unit": "KGM",
        }],
    })
}

/// The fields that both Submit and Validate require of the authority's document.
pub(crate) const DOCUMENT_REQUIRED: &[&str] = &[
    "/business_id",
    "/irn",
    "/issue_date",
    "/invoice_type_code",
    "/document_currency_code",
    "/accounting_supplier_party",
    "/accounting_supplier_party/party_name",
    "/accounting_supplier_party/tin",
    "/accounting_supplier_party/email",
    "/accounting_supplier_party/postal_address",
    "/accounting_supplier_party/postal_address/street_name",
    "/accounting_supplier_party/postal_address/city_name",
    "/accounting_supplier_party/postal_address/country",
    "/accounting_customer_party/party_name",
    "/accounting_customer_party/tin",
    "/accounting_customer_party/email",
    "/accounting_customer_party/postal_address",
    "/accounting_customer_party/postal_address/street_name",
    "/accounting_customer_party/postal_address/city_name",
    "/accounting_customer_party/postal_address/country",
    "/legal_monetary_total",
    "/legal_monetary_total/line_extension_amount",
    "/legal_monetary_total/tax_exclusive_amount",
    "/legal_monetary_total/tax_inclusive_amount",
    "/legal_monetary_total/payable_amount",
    "/invoice_line",
    "/invoice_line/0/hsn_code",
    "/invoice_line/0/product_category",
    "/invoice_line/0/invoiced_quantity",
    "/invoice_line/0/line_extension_amount",
    "/invoice_line/0/item",
    "/invoice_line/0/item/name",
    "/invoice_line/0/price",
    "/invoice_line/0/price/price_amount",
    "/invoice_line/0/price/base_quantity",
    "/invoice_line/0/price/price_unit",
];

pub(crate) fn submission() -> Value {
    let party = json!({
        "party_name": "Dangoyaro Mills", "tin": "12345678-0001", "email": "books@example.com",
        "telephone": "+2348030000000",
        "postal_address":
            { "street_name": "1 Marina", "city_name": "Lagos", "postal_zone": "100001", "country": "NG" },
    });
    json!({
        "invoice_reference": "INV001",
        "business_id": "bb99420d-d6bb-422c-b371-b9f6d6009aae",
        "irn": "INV001-94AD90FB-20261121",
        "issue_date": "2026-11-21",
        "invoice_type_code": "381",
        "document_currency_code": "NGN",
        "invoice_category": "B2B",
        "accounting_supplier_party": party,
        "accounting_customer_party": party,
        "legal_monetary_total": {
            "line_extension_amount": 100, "tax_exclusive_amount": 100,
            "tax_inclusive_amount": number("107.50"), "payable_amount": number("107.50"),
        },
        "invoice_line": [{
            "hsn_code": "1006.30", "product_category": "1006.30", "invoiced_quantity": 10,
            "line_extension_amount": 100, "item": { "name": "Rice", "description": "Parboiled" },
            "price": { "price_amount": 10, "base_quantity": 1, "price_unit": "KGM" },
        }],
    })
}

/// Returns a valid body of Validate: the valid body of Submit with the fields that only Validate requires.
pub(crate) fn validation() -> Value {
    let mut body = submission();
    body["due_date"] = json!("2026-11-21");
    body["tax_point_date"] = json!("2026-11-21");
    body["tax_currency_code"] = json!("NGN");
    body["payment_means"] =
        json!([{ "payment_means_code": "10", "payment_due_date": "2026-12-21" }]);
    let category = json!({ "id": "STANDARD_VAT", "percent": number("7.5") });
    let part =
        json!({ "taxable_amount": 100, "tax_amount": number("7.5"), "tax_category": category });
    body["tax_total"] = json!([{ "tax_amount": number("7.50"), "tax_subtotal": [part] }]);
    body["invoice_line"][0]["item"] = json!({ "name": "Rice" });
    body
}
