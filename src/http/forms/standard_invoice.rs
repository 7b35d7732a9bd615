//! Create Invoice (Standard) and the items of Create Invoices (Bulk) (spec.md). The caller sends no totals: the payable
//! amount is computed from the lines.

use serde_json::{Map, Value};

use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::{IRN_SUFFIX_CHARS, is_submittable_number};
use crate::domain::invoice::stored_document::invoice_type_code_for;
use crate::domain::invoice::totals;
use crate::domain::invoice::{Draft, Line};
use crate::domain::kernel::codes::{
    CREDIT_NOTE_CODE, CREDIT_NOTE_WORD, Category, DeclaredPaymentStatus, UniqueNoType,
};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::Amount;
use crate::domain::party::CustomerDetails;
use crate::domain::reference::catalog::ReferenceList;
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::customer;
use crate::http::forms::document_header::{is_correction, warn_of_old_date};
use crate::http::forms::field::{IRN_CHARS_MAX, TEXT_CHARS_MAX};
use crate::http::forms::line;
use crate::http::forms::reader::Reader;
use crate::http::forms::vat_report::REPORTED_IRN_CHARS_MAX;

const NOT_SUBMITTABLE_WARNING: &str = "the authority takes only letters and digits in an invoice number: this invoice cannot be submitted to it";

/// The draft of an invoice, and the reference to the earlier invoice that it corrects (required in a credit note).
#[derive(Debug, PartialEq)]
pub(crate) struct StandardInvoiceForm {
    pub(crate) draft: Draft,
    pub(crate) original: Option<InvoiceRef>,
}

/// The endpoint that received the invoice: Create Invoice (Standard) or Create Invoices (Bulk). The rules of some
/// fields differ between the two.
#[derive(Debug, Clone, Copy)]
enum CreateEndpoint {
    Standard,
    Bulk,
}

impl CreateEndpoint {
    fn read_customer(
        self,
        reader: &mut Reader<'_>,
        category: Option<Category>,
    ) -> Option<CustomerDetails> {
        match self {
            Self::Standard => customer::read(reader, category),
            Self::Bulk => customer::read_with_tin_requirement(reader, category, false),
        }
    }

    fn read_line(self, reader: &mut Reader<'_>) -> Option<Line> {
        match self {
            Self::Standard => line::read(reader),
            Self::Bulk => line::read_with_quantity_bounds(reader, AmountBounds::AtLeast(1.into())),
        }
    }
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<StandardInvoiceForm> {
    read_for_endpoint(reader, CreateEndpoint::Standard)
}

/// Reads an item of Create Invoices (Bulk).
pub(crate) fn read_in_batch(reader: &mut Reader<'_>) -> Option<StandardInvoiceForm> {
    read_for_endpoint(reader, CreateEndpoint::Bulk)
}

fn read_for_endpoint(
    reader: &mut Reader<'_>,
    endpoint: CreateEndpoint,
) -> Option<StandardInvoiceForm> {
    let invoice_no = reader.required("invoice_no").identifier(TEXT_CHARS_MAX);
    warn_unless_submittable(reader, invoice_no.as_deref());
    let category = reader
        .required("invoice_category")
        .word(Category::parse, Category::allowed_words);
    let invoice_type = InvoiceType::read(reader);
    let original = read_original_reference(reader, invoice_type.is_credit_note());
    invoice_type.warn_of_likely_refusals(reader, original.is_some());
    let invoice_date = reader.required("invoice_date").date();
    warn_of_old_date(reader, "invoice_date", invoice_date);
    let due_date = reader.required("due_date").date();
    let currency = reader.required("currency").currency();
    let customer = reader
        .required("customer")
        .object(|reader| endpoint.read_customer(reader, category));
    let lines = reader
        .required("invoice_lines")
        .objects(1, |reader| endpoint.read_line(reader));
    if due_date
        .zip(invoice_date)
        .is_some_and(|(due, issued)| due < issued)
    {
        reader.warn("due_date is before invoice_date");
    }
    let payable = payable_amount(reader, lines.as_deref()?, currency.as_deref()?)?;
    let extras = extra_fields(&invoice_type, original.as_ref());
    let draft = Draft {
        invoice_no: invoice_no?,
        irn: None,
        category: category?,
        invoice_type: invoice_type.text.or(invoice_type.code)?,
        invoice_date: invoice_date?,
        due_date: Some(due_date?),
        currency: currency?,
        customer: customer?,
        lines: lines?,
        payable,
        declared: DeclaredPaymentStatus::Pending,
        extras,
        batch_no: None,
    };
    Some(StandardInvoiceForm { draft, original })
}

/// Warns if the authority would refuse this invoice number, or may refuse its IRN. Such a number is no fault, because
/// some callers never submit. The taxpayer actor refuses the number if the account has the setting `strict_numbers` and
/// the number has other characters than letters and digits.
pub(crate) fn warn_unless_submittable(reader: &Reader<'_>, invoice_no: Option<&str>) {
    if invoice_no.is_some_and(|no| !is_submittable_number(no)) {
        reader.warn(NOT_SUBMITTABLE_WARNING);
    }
    let chars_max = REPORTED_IRN_CHARS_MAX - IRN_SUFFIX_CHARS;
    if invoice_no.is_some_and(|no| no.chars().count() > chars_max) {
        reader.warn(format!(
            "invoice_no has more than {chars_max} characters: the authority takes no report of its IRN, and the QR code \
             of a signature may be too small for it"
        ));
    }
}

/// The type of the invoice, which the caller states as free text, as a code of the authority, or as both.
struct InvoiceType {
    text: Option<String>,
    code: Option<String>,
}

impl InvoiceType {
    fn read(reader: &mut Reader<'_>) -> Self {
        if !reader.has("invoice_type") && !reader.has("invoice_type_code") {
            for (name, sentence) in [
                ("invoice_type", "is required; or send invoice_type_code"),
                ("invoice_type_code", "is required; or send invoice_type"),
            ] {
                let rule = FieldRule::with_expected("required", sentence, "a value");
                reader.report_fault(name, rule);
            }
        }
        // `required_if` makes the API document list the field as conditional. Its absence is reported above.
        let text = reader
            .required_if(false, "invoice_type")
            .text(TEXT_CHARS_MAX);
        let code = reader
            .optional("invoice_type_code")
            .code(ReferenceList::InvoiceTypes);
        Self { text, code }
    }

    /// Warns of values that the authority would refuse. Such values are no faults, because some callers never submit.
    fn warn_of_likely_refusals(&self, reader: &Reader<'_>, has_original: bool) {
        let catalog = reader.catalog();
        let text = self.text.as_deref().unwrap_or_default();
        let code = self
            .code
            .clone()
            .or_else(|| invoice_type_code_for(text, catalog));
        match code {
            Some(code) if is_correction(&code) && !has_original => reader.warn(format!(
                "the authority wants the original_invoice_reference of a document of type {code} when it is submitted"
            )),
            None if catalog.has(ReferenceList::InvoiceTypes, text) == Some(false) => reader.warn(
                "invoice_type names no type of the authority, so the invoice cannot be submitted: send invoice_type_code",
            ),
            _ => {}
        }
    }

    fn is_credit_note(&self) -> bool {
        self.code.as_deref() == Some(CREDIT_NOTE_CODE)
            || self
                .text
                .as_deref()
                .is_some_and(|text| text.eq_ignore_ascii_case(CREDIT_NOTE_WORD))
    }
}

fn read_original_reference(reader: &mut Reader<'_>, is_credit_note: bool) -> Option<InvoiceRef> {
    let text = reader
        .required_if(is_credit_note, "original_invoice_reference")
        .identifier(IRN_CHARS_MAX);
    let kind = reader
        .required_if(text.is_some(), "original_invoice_reference_type")
        .word(UniqueNoType::parse, UniqueNoType::allowed_words);
    Some(InvoiceRef {
        kind: kind?,
        text: text?,
    })
}

fn payable_amount(reader: &Reader<'_>, lines: &[Line], currency: &str) -> Option<Amount> {
    let payable = totals::payable_amount(lines, currency, reader.catalog());
    if payable.is_err() {
        reader.report_fault(
            "invoice_lines",
            FieldRule::other("max", "comes to a total that is too large"),
        );
    }
    payable.ok()
}

fn extra_fields(invoice_type: &InvoiceType, original: Option<&InvoiceRef>) -> Map<String, Value> {
    let code = invoice_type
        .code
        .clone()
        .map(|code| ("invoice_type_code", code));
    let reference =
        original.map(|invoice_ref| ("original_invoice_reference", invoice_ref.text.clone()));
    let reference_type = original.map(|invoice_ref| {
        (
            "original_invoice_reference_type",
            invoice_ref.kind.to_string(),
        )
    });
    let fields = [code, reference, reference_type];
    fields
        .into_iter()
        .flatten()
        .map(|(name, text)| (name.to_owned(), Value::String(text)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::{
        INEXACT, broken_rules, check, check_identifiers, check_refused, check_required,
        check_texts, number, numbers, read as read_with, standard_invoice, texts, with_member,
    };

    const REQUIRED: [&str; 24] = [
        "/invoice_no",
        "/invoice_category",
        "/invoice_date",
        "/due_date",
        "/currency",
        "/customer",
        "/invoice_lines",
        "/customer/no",
        "/customer/name",
        "/customer/email",
        "/customer/tin",
        "/customer/business_description",
        "/customer/address_street_name",
        "/customer/address_city",
        "/customer/address_state",
        "/customer/address_postal_code",
        "/customer/address_country",
        "/invoice_lines/0/item_name",
        "/invoice_lines/0/item_no",
        "/invoice_lines/0/item_type",
        "/invoice_lines/0/unit_price",
        "/invoice_lines/0/quantity",
        "/invoice_lines/0/price_unit",
        "/invoice_lines/0/tax_category",
    ];

    fn check_rules(cases: &[(&str, Option<Value>, String)]) {
        let cases: Vec<_> = cases
            .iter()
            .map(|(pointer, value, rule)| (*pointer, value.clone(), rule.as_str()))
            .collect();
        check(&standard_invoice(), &cases, read);
    }

    #[test]
    fn every_required_field_is_required() {
        check_required(&standard_invoice(), &REQUIRED, read);
        let untyped = with_member(&standard_invoice(), "/invoice_type_code", None);
        assert_eq!(
            broken_rules(read_with(untyped, read)),
            ["invoice_type: required", "invoice_type_code: required"]
        );
    }

    #[test]
    fn a_text_has_its_limits() {
        let limits = [
            ("/invoice_no", 1, 255),
            ("/invoice_type", 1, 255),
            ("/customer/no", 1, 255),
            ("/customer/name", 1, 255),
            ("/customer/tin", 1, 255),
            ("/customer/business_description", 5, 1_000),
            ("/customer/address_street_name", 1, 255),
            ("/customer/address_city", 1, 255),
            ("/customer/address_state", 1, 255),
            ("/customer/address_postal_code", 1, 255),
            ("/customer/address_country", 1, 255),
            ("/invoice_lines/0/item_name", 1, 255),
            ("/invoice_lines/0/item_no", 1, 255),
        ];
        check_texts(&standard_invoice(), &limits, read);
        let identifiers = [
            "/invoice_no",
            "/customer/no",
            "/customer/tin",
            "/invoice_lines/0/item_no",
        ];
        check_identifiers(&standard_invoice(), &identifiers, read);
    }

    #[test]
    fn a_value_outside_what_its_field_takes_is_refused() {
        let dates = texts(&[
            "15-01-2026",
            "2026-1-5",
            "2026-02-30",
            "2026-01-15T00:00:00",
            "2026/01/15",
            "today",
        ]);
        let emails = texts(&[
            "plain",
            "@x.example",
            "a@",
            "a b@x.example",
            "a@b@x.example",
            "a@retail",
        ]);
        let products = texts(&["8471.3", "847.30", "84713.00", "abcd.ef", "8471,30"]);
        let cases = [
            (
                "/invoice_category",
                "one_of",
                texts(&["B2X", "Blank", "B2", "B2B,B2C"]),
            ),
            ("/invoice_type_code", "exists", texts(&["999999", "three"])),
            ("/invoice_date", "date", dates.clone()),
            ("/due_date", "date", dates),
            ("/currency", "currency", texts(&["NG", "NGNN", "N1N"])),
            ("/currency", "exists", texts(&["QQQ"])),
            ("/customer/email", "email", emails),
            (
                "/invoice_lines/0/item_type",
                "one_of",
                texts(&["GOODS", "PRODUCTS"]),
            ),
            ("/invoice_lines/0/price_unit", "exists", texts(&["QQQ"])),
            ("/invoice_lines/0/price_unit", "max", texts(&["EACH"])),
            (
                "/invoice_lines/0/tax_category",
                "exists",
                texts(&["NO_SUCH_TAX"]),
            ),
            ("/invoice_lines/0/product_category", "format", products),
            ("/invoice_lines/0/discount_rate", "min", numbers(&["-0.01"])),
            (
                "/invoice_lines/0/discount_rate",
                "max",
                numbers(&["100.01"]),
            ),
            ("/invoice_lines/0/discount_rate", "type", texts(&["12"])),
            (
                "/invoice_lines/0/discount_amount",
                "digits",
                numbers(&INEXACT),
            ),
            (
                "/invoice_lines/0/unit_price",
                "min",
                numbers(&["-0.01", "-1"]),
            ),
            ("/invoice_lines/0/unit_price", "digits", numbers(&INEXACT)),
            (
                "/invoice_lines/0/quantity",
                "greater_than",
                numbers(&["-0.01", "-1"]),
            ),
            ("/invoice_lines/0/quantity", "digits", numbers(&INEXACT)),
            ("/invoice_lines/0/quantity", "type", texts(&["12", "two"])),
        ];
        check_refused(&standard_invoice(), &cases, read);
    }

    #[test]
    fn a_value_of_another_json_type_is_refused() {
        let further_pointers = ["/invoice_type_code", "/invoice_lines/0/discount_rate"];
        for pointer in REQUIRED.into_iter().chain(further_pointers) {
            check_refused(
                &standard_invoice(),
                &[(pointer, "type", vec![json!(true)])],
                read,
            );
            let pointer = if pointer == "/invoice_lines" {
                "/invoice_lines/0"
            } else {
                pointer
            };
            check_refused(
                &standard_invoice(),
                &[(pointer, "type", vec![json!([[]])])],
                read,
            );
        }
    }

    #[test]
    fn the_fault_of_a_later_line_is_named_by_its_position() {
        let line = standard_invoice()["invoice_lines"][0].clone();
        let unquantified = with_member(&line, "/quantity", Some(Value::Null));
        let lines = json!([line, unquantified, 7]);
        let body = with_member(&standard_invoice(), "/invoice_lines", Some(lines));
        let faults = [
            "invoice_lines.1.quantity: required",
            "invoice_lines.2: type",
        ];
        assert_eq!(broken_rules(read_with(body, read)), faults);
    }

    #[test]
    fn a_line_carries_the_category_of_its_type_only() {
        let service = with_member(
            &standard_invoice(),
            "/invoice_lines/0/item_type",
            Some(json!("SERVICE")),
        );
        let faults = ["invoice_lines.0.product_category: prohibited"];
        assert_eq!(broken_rules(read_with(service.clone(), read)), faults);
        let service = with_member(&service, "/invoice_lines/0/product_category", None);
        let category = "/invoice_lines/0/service_category";
        check(&service, &[(category, Some(json!("6201")), "")], read);
        let odd = texts(&["620", "62011", "abcd", "62.1"]);
        check_refused(&service, &[(category, "format", odd)], read);
    }

    #[test]
    fn each_field_keeps_its_rule() {
        let cases = [
            ("/invoice_no", json!(7), "invoice_no: type"),
            (
                "/invoice_type_code",
                json!("999"),
                "invoice_type_code: exists",
            ),
            ("/invoice_date", json!("2026-2-01"), "invoice_date: date"),
            ("/invoice_date", json!("0000-01-01"), "invoice_date: date"),
            ("/due_date", json!("0000-01-01"), "due_date: date"),
            (
                "/invoice_date",
                json!("2026-02-03T00:00:00"),
                "invoice_date: date",
            ),
            ("/due_date", json!(20_261_221), "due_date: type"),
            ("/currency", json!("NAIRA"), "currency: currency"),
            ("/currency", json!("XXX"), "currency: exists"),
            ("/customer/email", json!("books"), "customer.email: email"),
            ("/invoice_lines", json!([]), "invoice_lines: min"),
            ("/invoice_lines", json!({}), "invoice_lines: type"),
            (
                "/invoice_lines/0/item_type",
                json!("THING"),
                "invoice_lines.0.item_type: one_of",
            ),
            (
                "/invoice_lines/0/unit_price",
                json!("100"),
                "invoice_lines.0.unit_price: type",
            ),
            (
                "/invoice_lines/0/unit_price",
                number("0.0000001"),
                "invoice_lines.0.unit_price: digits",
            ),
            (
                "/invoice_lines/0/unit_price",
                number("1e15"),
                "invoice_lines.0.unit_price: digits",
            ),
            (
                "/invoice_lines/0/quantity",
                json!(0),
                "invoice_lines.0.quantity: greater_than",
            ),
            (
                "/invoice_lines/0/price_unit",
                json!("KGMS"),
                "invoice_lines.0.price_unit: max",
            ),
            (
                "/invoice_lines/0/price_unit",
                json!("ZZ"),
                "invoice_lines.0.price_unit: exists",
            ),
            (
                "/invoice_lines/0/tax_category",
                json!("VAT"),
                "invoice_lines.0.tax_category: exists",
            ),
            (
                "/invoice_lines/0/product_category",
                json!("1006.3"),
                "invoice_lines.0.product_category: format",
            ),
            (
                "/invoice_lines/0/service_category",
                json!("0111"),
                "invoice_lines.0.service_category: prohibited",
            ),
            (
                "/invoice_lines/0/discount_rate",
                json!(""),
                "invoice_lines.0.discount_rate: type",
            ),
            (
                "/invoice_lines/0/discount_rate",
                json!(101),
                "invoice_lines.0.discount_rate: max",
            ),
            (
                "/invoice_lines/0/discount_rate",
                json!(-1),
                "invoice_lines.0.discount_rate: min",
            ),
            (
                "/invoice_lines/0/discount_amount",
                json!(-1),
                "invoice_lines.0.discount_amount: min",
            ),
        ];
        check_rules(&cases.map(|(pointer, value, rule)| (pointer, Some(value), rule.to_owned())));
    }

    #[test]
    fn a_code_in_another_spelling_is_refused_with_a_suggestion() {
        for (pointer, sent, meant) in [
            ("/currency", "ngn", Some("NGN")),
            ("/currency", "QQQ", None),
            ("/invoice_lines/0/price_unit", "ea", Some("EA")),
            (
                "/invoice_lines/0/tax_category",
                "standard_vat",
                Some("STANDARD_VAT"),
            ),
        ] {
            let faults = read_with(
                with_member(&standard_invoice(), pointer, Some(json!(sent))),
                read,
            )
            .unwrap_err();
            let suggestion = meant.map(|code| format!("(did you mean {code}?)"));
            let summary = faults.summary();
            assert_eq!(
                summary.contains("did you mean"),
                suggestion.is_some_and(|suggestion| summary.contains(&suggestion)),
                "{summary}"
            );
            assert_eq!(
                summary.contains("did you mean"),
                meant.is_some(),
                "{summary}"
            );
        }
    }

    #[test]
    fn limits_themselves_are_accepted() {
        let cases = [
            ("/invoice_category", json!("b2b")),
            ("/customer/business_description", json!("several\nlines")),
            ("/invoice_lines/0/unit_price", json!(0)),
            ("/invoice_lines/0/quantity", number("0.000001")),
            ("/invoice_lines/0/discount_rate", json!(100)),
            ("/invoice_lines/0/discount_rate", json!(0)),
            ("/invoice_lines/0/discount_amount", number("0.5")),
            ("/invoice_lines/0/item_type", json!("product")),
            ("/invoice_date", json!("2024-02-29")),
        ];
        check_rules(&cases.map(|(pointer, value)| (pointer, Some(value), String::new())));
    }

    #[test]
    fn all_faults_are_reported_at_once() {
        let rules = broken_rules(read_with(json!({ "invoice_lines": [{}, 1] }), read));
        assert_eq!(rules.len(), 7 + 7 + 1 + 1, "{rules:?}");
        assert!(rules.contains(&"invoice_type: required".to_owned()));
    }

    #[test]
    fn a_business_needs_a_tax_number_and_a_description_and_a_consumer_does_not() {
        let mut body = standard_invoice();
        for field in ["/customer/tin", "/customer/business_description"] {
            body = with_member(&body, field, None);
        }
        let in_category =
            |category: &str| with_member(&body, "/invoice_category", Some(json!(category)));
        let faults = [
            "customer.tin: required",
            "customer.business_description: required",
        ];
        for category in ["B2B", "B2G"] {
            assert_eq!(
                broken_rules(read_with(in_category(category), read)),
                faults,
                "{category}"
            );
        }
        assert_eq!(broken_rules(read_with(in_category("B2C"), read)), [""; 0]);
    }

    #[test]
    fn a_credit_note_names_its_original() {
        let as_code = with_member(
            &standard_invoice(),
            "/invoice_type_code",
            Some(json!("380")),
        );
        let both = with_member(
            &standard_invoice(),
            "/invoice_type",
            Some(json!("CREDIT_NOTE")),
        );
        let text = with_member(&standard_invoice(), "/invoice_type_code", None);
        let as_text = with_member(&text, "/invoice_type", Some(json!("credit_note")));
        for note in [as_code, both, as_text] {
            assert_eq!(
                broken_rules(read_with(note.clone(), read)),
                ["original_invoice_reference: required"]
            );
            let body = with_member(&note, "/original_invoice_reference", Some(json!("INV000")));
            assert_eq!(
                broken_rules(read_with(body.clone(), read)),
                ["original_invoice_reference_type: required"]
            );
            let typed = |kind: &str| {
                with_member(&body, "/original_invoice_reference_type", Some(json!(kind)))
            };
            assert_eq!(
                broken_rules(read_with(typed("NUMBER"), read)),
                ["original_invoice_reference_type: one_of"]
            );
            for kind in [
                "IRN",
                "EXTERNAL_INVOICE_NO",
                "internal_invoice_no",
                "PORTAL_ID",
            ] {
                let form = read_with(typed(kind), read).unwrap().value;
                assert_eq!(Some(form.original.unwrap().kind), UniqueNoType::parse(kind));
                assert_eq!(form.draft.extras["original_invoice_reference"], "INV000");
            }
        }
    }

    #[test]
    fn the_invoice_type_is_the_text_if_the_caller_sent_one() {
        let draft = |body| read_with(body, read).unwrap().value.draft;
        assert_eq!(draft(standard_invoice()).invoice_type, "381");
        let both = with_member(
            &standard_invoice(),
            "/invoice_type",
            Some(json!("Commercial")),
        );
        assert_eq!(draft(both.clone()).invoice_type, "Commercial");
        assert_eq!(draft(both).extras["invoice_type_code"], "381");
    }

    #[test]
    fn the_payable_follows_from_the_lines() {
        let form = read_with(standard_invoice(), read).unwrap();
        assert_eq!(form.value.draft.payable.to_string(), "215.00");
        assert_eq!(form.warnings, [""; 0]);
        let huge = number("999999999999999");
        let body = with_member(
            &standard_invoice(),
            "/invoice_lines/0/unit_price",
            Some(huge),
        );
        assert_eq!(broken_rules(read_with(body, read)), ["invoice_lines: max"]);
    }

    #[test]
    fn an_unusual_but_accepted_value_is_a_warning() {
        let body = with_member(&standard_invoice(), "/due_date", Some(json!("2026-01-01")));
        let body = with_member(&body, "/customer/fax", Some(json!("1")));
        let body = with_member(&body, "/colour", Some(json!({ "a": 1 })));
        let form = read_with(body, read).unwrap();
        assert_eq!(
            form.warnings,
            [
                "due_date is before invoice_date",
                "unknown field: customer.fax, colour"
            ]
        );
    }

    #[test]
    fn a_type_or_a_year_that_the_authority_would_refuse_is_a_warning() {
        let no_code = with_member(&standard_invoice(), "/invoice_type_code", None);
        for (path, value, expected) in [
            ("/invoice_type", json!("Commercial"), ""),
            ("/invoice_type", json!("invoice"), ""),
            (
                "/invoice_type",
                json!("Credit Note"),
                "document of type 380",
            ),
            ("/invoice_type", json!("380"), "document of type 380"),
            ("/invoice_type", json!("384"), "document of type 384"),
            ("/invoice_type", json!("whatever"), "names no type"),
            ("/invoice_date", json!("0001-01-01"), "in the year 0001"),
            ("/invoice_date", json!("1900-01-01"), ""),
        ] {
            let is_type = path == "/invoice_type" && value != "Commercial";
            let base = if is_type {
                no_code.clone()
            } else {
                standard_invoice()
            };
            let form = read_with(with_member(&base, path, Some(value.clone())), read).unwrap();
            let warnings = form.warnings;
            assert_eq!(
                warnings.len(),
                usize::from(!expected.is_empty()),
                "{warnings:?}"
            );
            assert!(
                warnings.concat().contains(expected),
                "{value}: {warnings:?}"
            );
        }
    }

    #[test]
    fn a_number_whose_irn_may_be_too_long_is_a_warning() {
        for (chars, expected) in [(82, false), (83, true), (255, true)] {
            let no = json!("7".repeat(chars));
            let body = with_member(&standard_invoice(), "/invoice_no", Some(no));
            let warnings = read_with(body, read).unwrap().warnings.concat();
            let has_warning = warnings.contains("more than 82 characters");
            assert_eq!(has_warning, expected, "{chars}: {warnings}");
        }
    }

    #[test]
    fn a_number_that_the_authority_does_not_take_is_a_warning() {
        for no in ["INV-001", "INV 001", "INV\u{e9}1", "A/1"] {
            let form = read_with(
                with_member(&standard_invoice(), "/invoice_no", Some(json!(no))),
                read,
            )
            .unwrap();
            assert_eq!(
                (form.value.draft.invoice_no.as_str(), form.warnings),
                (no, vec![NOT_SUBMITTABLE_WARNING.to_owned()])
            );
        }
        let blanks = with_member(&standard_invoice(), "/invoice_no", Some(json!(" INV001\n")));
        let form = read_with(blanks, read).unwrap();
        assert_eq!(
            (form.value.draft.invoice_no.as_str(), form.warnings.len()),
            ("INV001", 0)
        );
    }

    #[test]
    fn a_list_that_was_never_fetched_accepts_with_a_warning() {
        let body = crate::http::forms::testing::object(standard_invoice());
        let form = crate::http::forms::reader::read(
            &body,
            &crate::domain::reference::catalog::Catalog::default(),
            read,
        )
        .unwrap();
        assert_eq!(form.warnings.len(), 4, "{:?}", form.warnings);
        assert!(form.warnings.contains(
            &"not checked against currencies: the list has not been fetched yet".to_owned()
        ));
    }
}
