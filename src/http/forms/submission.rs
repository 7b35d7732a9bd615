//! Submit (spec.md). Makes all checks of the authority at once, and derives absent fields that the authority requires.

use jiff::civil::Date;
use serde_json::{Map, Value, json};

use crate::domain::invoice::irn::{IRN_SUFFIX_CHARS, Irn};
use crate::domain::invoice::stored_document::{party_field_names, taxpayer_party};
use crate::domain::kernel::codes::{Category, DeclaredPaymentStatus, is_self_billed};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::party::Taxpayer;
use crate::domain::pipeline::authority_document::AuthorityDocument;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::document::{self, ValidDocument};
use crate::http::forms::document_header;
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::normalized::normalize;
use crate::http::forms::ownership::{self, ExpectedParties};
use crate::http::forms::reader::{self, AcceptedForm, Reader};
use crate::http::forms::references;
use crate::http::forms::taxes;

/// The values read from the body that are needed to complete the document for the authority.
#[derive(Debug)]
pub(crate) struct Submission {
    irn: Irn,
    category: Category,
    status: DeclaredPaymentStatus,
    currency: String,
    has_tax_currency: bool,
    /// The taxes derived from the totals; `None` if the caller sent the taxes.
    tax_total: Option<Value>,
}

/// The origin of a document: the body of the call, or a stored invoice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentSource {
    Caller,
    StoredInvoice,
}

/// The rule for the postal code of the taxpayer. A taxpayer's profile has no postal code and the authority requires
/// none, so a document that was made from the profile may lack it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PostalZoneRule {
    Required,
    Optional,
}

impl PostalZoneRule {
    fn for_document(
        source: DocumentSource,
        body: &Map<String, Value>,
        taxpayer: Option<&Taxpayer>,
        catalog: &Catalog,
    ) -> Self {
        let is_from_profile = source == DocumentSource::StoredInvoice
            || taxpayer
                .is_some_and(|taxpayer| has_taxpayer_party_from_profile(body, taxpayer, catalog));
        if is_from_profile {
            Self::Optional
        } else {
            Self::Required
        }
    }

    /// Returns true if a party must have a postal code: the other party always, the taxpayer only under `Required`.
    fn needs_postal_zone(self, is_taxpayer: bool) -> bool {
        self == Self::Required || !is_taxpayer
    }
}

/// Returns true if the document has the same data of the taxpayer as documents that are made from its stored invoices
/// (`GET …/{id}/json`), except for the telephone.
fn has_taxpayer_party_from_profile(
    body: &Map<String, Value>,
    taxpayer: &Taxpayer,
    catalog: &Catalog,
) -> bool {
    let type_code = body.get("invoice_type_code").and_then(Value::as_str);
    let sent_party = body.get(party_field_names(type_code).taxpayer);
    let without_telephone = |party: &Value| {
        let mut members = party.as_object().cloned().unwrap_or_default();
        members.remove("telephone");
        members
    };
    let profile = without_telephone(&taxpayer_party(taxpayer, catalog));
    sent_party.is_some_and(|sent_party| without_telephone(sent_party) == profile)
}

/// Reads a submission. `taxpayer` is `None` if the request names no taxpayer; the handler refuses such a request.
pub(crate) fn read(
    source: DocumentSource,
    body: &Map<String, Value>,
    taxpayer: Option<&Taxpayer>,
    catalog: &Catalog,
) -> Result<AcceptedForm<ValidDocument>, Faults> {
    let zone_rule = PostalZoneRule::for_document(source, body, taxpayer, catalog);
    let form = |reader: &mut Reader<'_>| read_fields_with_zone_rule(zone_rule, reader, taxpayer);
    let (accepted, unknown_paths) = match source {
        DocumentSource::Caller => reader::read_with_unknown_paths(body, catalog, form)?,
        DocumentSource::StoredInvoice => reader::read_generated_document(body, catalog, form)?,
    };
    let document = to_authority_document(body, &accepted.value, &unknown_paths);
    let value = ValidDocument {
        irn: accepted.value.irn,
        document,
    };
    Ok(AcceptedForm {
        value,
        warnings: accepted.warnings,
    })
}

pub(crate) fn read_fields(
    reader: &mut Reader<'_>,
    taxpayer: Option<&Taxpayer>,
) -> Option<Submission> {
    read_fields_with_zone_rule(PostalZoneRule::Required, reader, taxpayer)
}

fn read_fields_with_zone_rule(
    zone_rule: PostalZoneRule,
    reader: &mut Reader<'_>,
    taxpayer: Option<&Taxpayer>,
) -> Option<Submission> {
    let irn = read_irn(reader, taxpayer);
    let type_code = reader
        .required("invoice_type_code")
        .code(ReferenceList::InvoiceTypes);
    let issued = document_header::read_dates(reader, false).issued;
    document_header::compare_irn_date(reader, issued, irn.as_ref());
    let status = reader
        .optional("payment_status")
        .word(
            DeclaredPaymentStatus::parse,
            DeclaredPaymentStatus::allowed_words,
        )
        .unwrap_or(DeclaredPaymentStatus::Pending);
    let currency = reader.required("document_currency_code").currency();
    let has_tax_currency = reader.optional("tax_currency_code").currency().is_some();
    document_header::read_optional_fields(reader);
    let category = reader
        .required("invoice_category")
        .word(Category::parse, Category::allowed_words);
    let is_self_billed = type_code.as_deref().is_some_and(is_self_billed);
    // If the IRN has another taxpayer's service id, the IRN is at fault. The tax number is then not compared, because
    // its fault would only repeat the same mistake.
    let expected_taxpayer = taxpayer.filter(|taxpayer| {
        irn.as_ref()
            .is_none_or(|irn| irn.has_service_id(&taxpayer.service_id))
    });
    let needs_customer = is_self_billed || category.is_none_or(Category::needs_tin);
    let expected = ExpectedParties::new(expected_taxpayer, is_self_billed);
    reader
        .required("accounting_supplier_party")
        .object(|reader| {
            let needs_zone = zone_rule.needs_postal_zone(!is_self_billed);
            document::check_party(reader, expected.supplier, needs_zone)
        });
    reader
        .required_if(needs_customer, "accounting_customer_party")
        .object(|reader| {
            let needs_zone = zone_rule.needs_postal_zone(is_self_billed);
            document::check_party(reader, expected.customer, needs_zone)
        });
    references::read(
        reader,
        type_code
            .as_deref()
            .is_some_and(document_header::is_correction),
    );
    reader
        .optional("payment_means")
        .objects(0, references::check_payment_means);
    let totals = reader
        .required("legal_monetary_total")
        .object(document::read_totals);
    document::check_lines(reader, totals, document::read_line_with_description);
    let tax_total = taxes::derive_omitted_tax_total(reader, totals, currency.as_deref());
    Some(Submission {
        irn: irn?,
        category: category?,
        status,
        currency: currency?,
        has_tax_currency,
        tax_total,
    })
}

/// Reads the invoice reference, the business id and the IRN, and returns the IRN.
fn read_irn(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) -> Option<Irn> {
    let reference = reader
        .required("invoice_reference")
        .identifier(TEXT_CHARS_MAX);
    ownership::read_required_business_id(reader, taxpayer);
    let irn = ownership::read_signable_irn(reader, taxpayer)?;
    if reference.is_some_and(|reference| reference != irn.invoice_no()) {
        reader.warn("invoice_reference is not the invoice number of the irn");
    }
    Some(irn)
}

/// The terms that a document must meet to be signed, in addition to the rules of its form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SigningTerms {
    /// The last day that is not in the future.
    pub(crate) latest_day: Date,
    /// The length of the longest IRN that fits into the QR code of a signature; `None` if no QR codes are made.
    pub(crate) irn_chars_max: Option<usize>,
}

/// Makes the checks of Submit and Validate that their forms do not make: refuses an IRN that is too long to be signed,
/// and warns of an issue date in the future.
pub(crate) fn check_signing_terms(
    mut form: AcceptedForm<ValidDocument>,
    terms: SigningTerms,
) -> Result<AcceptedForm<ValidDocument>, Faults> {
    check_irn_length(&form.value.irn, terms.irn_chars_max)?;
    let issued = form.value.document.issue_date;
    form.warnings.extend(issued.and_then(|issued| {
        document_header::future_date_warning("issue_date", issued, terms.latest_day)
    }));
    Ok(form)
}

/// Refuses an IRN that is too long for the QR code of its signature. `chars_max` is `SigningTerms::irn_chars_max`.
pub(crate) fn check_irn_length(irn: &Irn, chars_max: Option<usize>) -> Result<(), Fault> {
    let Some(max) = chars_max.filter(|max| irn.as_str().len() > *max) else {
        return Ok(());
    };
    let sentence = format!(
        "must have at most {max} characters, because the QR code of its signature holds no more: its invoice number \
         has at most {}",
        max.saturating_sub(IRN_SUFFIX_CHARS)
    );
    Err(Fault::field("irn", FieldRule::other("max", sentence)))
}

/// Returns the document for the authority: the body with the authority's field names and with the derived fields.
fn to_authority_document(
    body: &Map<String, Value>,
    submission: &Submission,
    unknown_paths: &[Vec<String>],
) -> AuthorityDocument {
    let mut fields = normalize(body.clone(), unknown_paths);
    if !submission.has_tax_currency {
        fields.insert("tax_currency_code".to_owned(), json!(submission.currency));
    }
    if let Some(tax_total) = &submission.tax_total {
        fields.insert("tax_total".to_owned(), tax_total.clone());
    }
    AuthorityDocument::new(fields, Some(submission.category), Some(submission.status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::fault::FAULTS_MAX;
    use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
    use crate::http::forms::testing::{
        self, DOCUMENT_REQUIRED, INEXACT, broken_rules, catalog, number, numbers, object, texts,
        with_member,
    };

    fn read_body(body: Value) -> Result<AcceptedForm<ValidDocument>, Faults> {
        read(DocumentSource::Caller, &object(body), None, &catalog())
    }

    fn sent_document(body: Value) -> Value {
        read_body(body).unwrap().value.document.as_json().clone()
    }

    #[test]
    fn an_irn_that_is_too_long_for_its_qr_code_is_refused_with_the_longest_number() {
        let irn_chars = read_body(testing::submission())
            .unwrap()
            .value
            .irn
            .as_str()
            .len();
        for (irn_chars_max, expected) in [
            (None, ""),
            (Some(irn_chars), ""),
            (Some(irn_chars - 1), "irn: max"),
        ] {
            let terms = SigningTerms {
                latest_day: Date::MAX,
                irn_chars_max,
            };
            let form = read_body(testing::submission()).unwrap();
            let checked = check_signing_terms(form, terms);
            if let Err(faults) = &checked {
                let invoice_no_chars = irn_chars - 1 - IRN_SUFFIX_CHARS;
                let summary = faults.summary();
                assert!(
                    summary.ends_with(&format!("at most {invoice_no_chars}.")),
                    "{summary}"
                );
            }
            assert_eq!(broken_rules(checked).concat(), expected);
        }
    }

    #[test]
    fn an_issue_date_in_the_future_is_a_warning() {
        let issued = read_body(testing::submission())
            .unwrap()
            .value
            .document
            .issue_date
            .unwrap();
        for (latest_day, expected) in [
            (issued, false),
            (issued.yesterday().unwrap(), true),
            (Date::MIN, true),
        ] {
            let terms = SigningTerms {
                latest_day,
                irn_chars_max: None,
            };
            let form = read_body(testing::submission()).unwrap();
            let warnings = check_signing_terms(form, terms).unwrap().warnings.concat();
            assert_eq!(
                warnings.contains("issue_date is in the future"),
                expected,
                "{latest_day}: {warnings}"
            );
        }
    }

    fn check(cases: &[(&str, Option<Value>, &str)]) {
        testing::check(&testing::submission(), cases, |reader| {
            read_fields(reader, None)
        });
    }

    #[test]
    fn every_required_field_is_required() {
        let own = [
            "/invoice_reference",
            "/invoice_category",
            "/accounting_supplier_party/postal_address/postal_zone",
            "/accounting_customer_party",
            "/accounting_customer_party/postal_address/postal_zone",
            "/invoice_line/0/item/description",
        ];
        for paths in [DOCUMENT_REQUIRED, &own[..]] {
            testing::check_required(&testing::submission(), paths, |reader| {
                read_fields(reader, None)
            });
        }
    }

    #[test]
    fn a_value_outside_what_its_field_takes_is_refused() {
        let malformed = texts(&[
            "INV1",
            "INV1-20260115",
            "INV1-XYZ-20260115",
            "INV1-94AD90FB-20261345",
            "-94AD90FB-20260115",
        ]);
        let telephones = texts(&["08010000000", "+12345", "+1234567890123456", "+12 345 678"]);
        let long = vec![json!("x".repeat(1_001))];
        let cases = [
            ("/business_id", "uuid", texts(&["not-a-uuid"])),
            ("/irn", "irn_malformed", malformed),
            ("/issue_date", "date", texts(&["15/01/2026", "0000-01-01"])),
            ("/due_date", "date", texts(&["2026-02-30", "0000-01-01"])),
            ("/issue_time", "time", texts(&["25:00:00", "9:00"])),
            ("/tax_point_date", "date", texts(&["soon", "0000-01-01"])),
            ("/invoice_type_code", "exists", texts(&["999999"])),
            ("/payment_status", "one_of", texts(&["REJECTED", "PARTIAL"])),
            ("/document_currency_code", "exists", texts(&["QQQ"])),
            ("/document_currency_code", "currency", texts(&["NG"])),
            ("/tax_currency_code", "exists", texts(&["QQQ"])),
            ("/invoice_category", "one_of", texts(&["Blank"])),
            ("/buyer_reference", "max", vec![json!("x".repeat(256))]),
            ("/note", "max", long.clone()),
            ("/payment_terms_note", "max", long),
            ("/accounting_cost", "type", texts(&["12"])),
            (
                "/accounting_supplier_party/email",
                "email",
                texts(&["plain"]),
            ),
            (
                "/accounting_supplier_party/telephone",
                "telephone",
                telephones.clone(),
            ),
            (
                "/accounting_supplier_party/postal_address/country",
                "country",
                texts(&["NGA"]),
            ),
            (
                "/accounting_customer_party/postal_address/country",
                "exists",
                texts(&["UK"]),
            ),
            (
                "/accounting_customer_party/telephone",
                "telephone",
                telephones,
            ),
            (
                "/legal_monetary_total/payable_amount",
                "type",
                texts(&["1075"]),
            ),
            (
                "/legal_monetary_total/payable_amount",
                "digits",
                numbers(&INEXACT),
            ),
            (
                "/legal_monetary_total/tax_exclusive_amount",
                "min",
                numbers(&["-1"]),
            ),
            ("/invoice_line", "min", vec![json!([])]),
            ("/invoice_line/0", "type", texts(&["a line"])),
            ("/invoice_line/0/price/price_unit", "max", texts(&["EACH"])),
            (
                "/invoice_line/0/price/price_unit",
                "exists",
                texts(&["QQQ"]),
            ),
            ("/invoice_line/0/discount_rate", "max", numbers(&["100.01"])),
            ("/invoice_line/0/fee_rate", "min", numbers(&["-0.01"])),
            ("/payment_means", "type", vec![json!({})]),
            ("/allowance_charge", "type", texts(&["none"])),
            ("/billing_reference", "type", texts(&["none"])),
        ];
        testing::check_refused(&testing::submission(), &cases, |reader| {
            read_fields(reader, None)
        });
    }

    #[test]
    fn each_field_keeps_its_rule() {
        let cases = [
            (
                "/irn",
                Some(json!("INV-001-94AD90FB-20261121")),
                "irn: irn_invoice_no",
            ),
            (
                "/due_date",
                Some(json!("2026-11-20")),
                "due_date: after_or_equal",
            ),
            ("/issue_time", Some(json!("10:61:00")), "issue_time: time"),
            ("/issue_time", Some(json!("10:01:00")), ""),
            ("/issue_time", Some(json!("10:01:60")), "issue_time: time"),
            (
                "/invoice_type_code",
                Some(json!("380")),
                "billing_reference: required",
            ),
            (
                "/invoice_type_code",
                Some(json!("384")),
                "billing_reference: required",
            ),
        ];
        check(&cases);
    }

    #[test]
    fn each_part_keeps_its_rule() {
        let cases = [
            ("/accounting_supplier_party/telephone", None, ""),
            (
                "/accounting_supplier_party/telephone",
                Some(json!("0803")),
                "accounting_supplier_party.telephone: telephone",
            ),
            (
                "/accounting_supplier_party/telephone",
                Some(json!("+123456")),
                "",
            ),
            (
                "/accounting_customer_party/postal_address/country",
                Some(json!("NGA")),
                "accounting_customer_party.postal_address.country: country",
            ),
            (
                "/legal_monetary_total/tax_exclusive_amount",
                Some(json!(-1)),
                "legal_monetary_total.tax_exclusive_amount: min",
            ),
            (
                "/legal_monetary_total/tax_inclusive_amount",
                Some(json!(99)),
                "legal_monetary_total.tax_inclusive_amount: min",
            ),
            (
                "/legal_monetary_total/tax_inclusive_amount",
                Some(json!(199)),
                "tax_total: required",
            ),
            (
                "/legal_monetary_total/line_extension_amount",
                Some(json!(101)),
                "invoice_line: sum",
            ),
            (
                "/legal_monetary_total/line_extension_amount",
                Some(number("100.01")),
                "",
            ),
            (
                "/invoice_line/0/price/price_unit",
                Some(json!("KGMS")),
                "invoice_line.0.price.price_unit: max",
            ),
            (
                "/invoice_line/0/invoiced_quantity",
                Some(json!(0)),
                "invoice_line.0.invoiced_quantity: greater_than",
            ),
            (
                "/invoice_line/0/fee_rate",
                Some(json!(101)),
                "invoice_line.0.fee_rate: max",
            ),
            (
                "/payment_means",
                Some(json!([{ "payment_means_code": "11" }])),
                "payment_means.0.payment_means_code: exists",
            ),
            (
                "/allowance_charge",
                Some(json!([{ "charge_indicator": 1, "amount": 1 }])),
                "allowance_charge.0.charge_indicator: type",
            ),
        ];
        check(&cases);
    }

    #[test]
    fn nested_lists_of_empty_objects_do_not_multiply_the_faults() {
        let total = json!({ "tax_amount": 1, "tax_subtotal": vec![json!({}); 1_000] });
        let body = with_member(
            &testing::submission(),
            "/tax_total",
            Some(Value::Array(vec![total; 20])),
        );
        let faults = read_body(body).unwrap_err();
        assert_eq!(faults.iter().count(), FAULTS_MAX);
        assert_eq!(
            faults.summary(),
            "The tax_total.0.tax_subtotal.0.taxable_amount field is required. (and at least 999 more errors)"
        );
    }

    #[test]
    fn a_service_line_may_stand_in_place_of_a_product_line() {
        let line = "/invoice_line/0";
        let mut body = testing::submission();
        for (name, value) in [
            ("hsn_code", None),
            ("product_category", None),
            ("isic_code", Some("0111")),
        ] {
            body = with_member(&body, &format!("{line}/{name}"), value.map(Value::from));
        }
        assert_eq!(
            broken_rules(read_body(body.clone())),
            ["invoice_line.0.service_category: required"]
        );
        body = with_member(
            &body,
            "/invoice_line/0/service_category",
            Some(json!("0111")),
        );
        assert_eq!(broken_rules(read_body(body)), [""; 0]);
    }

    #[test]
    fn a_consumer_need_not_be_named_and_a_business_must() {
        let body = with_member(&testing::submission(), "/accounting_customer_party", None);
        assert_eq!(
            broken_rules(read_body(with_member(
                &body,
                "/invoice_category",
                Some(json!("b2c"))
            ))),
            [""; 0]
        );
        for category in ["B2B", "B2G"] {
            let business = with_member(&body, "/invoice_category", Some(json!(category)));
            assert_eq!(
                broken_rules(read_body(business)),
                ["accounting_customer_party: required"]
            );
        }
    }

    #[test]
    fn the_document_has_the_names_and_words_of_the_authority() {
        let document = sent_document(with_member(
            &testing::submission(),
            "/payment_status",
            Some(json!("cancelled")),
        ));
        assert_eq!(document["invoice_kind"], "B2B");
        assert_eq!(document.get("invoice_category"), None);
        assert_eq!(document["payment_status"], "REJECTED");
        assert_eq!(document["tax_currency_code"], "NGN");
        assert_eq!(
            sent_document(testing::submission())["payment_status"],
            "PENDING"
        );
    }

    #[test]
    fn an_absent_tax_total_is_derived_from_the_totals() {
        let derived = sent_document(testing::submission())["tax_total"].to_string();
        assert_eq!(
            derived,
            r#"[{"tax_amount":7.50,"tax_subtotal":[{"tax_amount":7.50,"tax_category":{"id":"STANDARD_VAT","percent":7.5},"taxable_amount":100}]}]"#
        );
        let untaxed = with_member(
            &testing::submission(),
            "/legal_monetary_total/tax_inclusive_amount",
            Some(json!(100)),
        );
        assert_eq!(
            sent_document(untaxed)["tax_total"][0]["tax_subtotal"][0]["tax_category"]["id"],
            "ZERO_VAT"
        );
    }

    #[test]
    fn a_sent_tax_total_is_not_changed() {
        let category = json!({ "id": "REDUCED_VAT", "percent": 5 });
        let part = json!({ "taxable_amount": 100, "tax_amount": number("5.00"), "tax_category": category });
        let given = json!([{ "tax_amount": number("5.00"), "tax_subtotal": [part] }]);
        let body = with_member(&testing::submission(), "/tax_total", Some(given.clone()));
        assert_eq!(sent_document(body)["tax_total"], given);
        let wrong = json!([{ "tax_amount": 6, "tax_subtotal": given[0]["tax_subtotal"] }]);
        let body = with_member(&testing::submission(), "/tax_total", Some(wrong));
        assert_eq!(
            broken_rules(read_body(body)),
            ["tax_total.0.tax_amount: sum"]
        );
    }

    /// Taxes that were sent are not derived, so no fault says that taxes are missing.
    #[test]
    fn a_fault_of_a_sent_tax_total_is_reported_alone() {
        let category = json!({ "id": "STANDARD_VAT", "percent": number("7.5") });
        let part = json!({ "taxable_amount": 100, "tax_amount": 99, "tax_category": category });
        let inclusive = "/legal_monetary_total/tax_inclusive_amount";
        let body = with_member(&testing::submission(), inclusive, Some(json!(199)));
        for (sent, expected) in [
            (json!([]), "tax_total: required"),
            (
                json!([{ "tax_amount": "99", "tax_subtotal": [part] }]),
                "tax_total.0.tax_amount: type",
            ),
            (
                json!([{ "tax_subtotal": [part] }]),
                "tax_total.0.tax_amount: required",
            ),
            (json!({ "tax_amount": 99 }), "tax_total: type"),
            (json!([{ "tax_amount": 99, "tax_subtotal": [part] }]), ""),
        ] {
            let body = with_member(&body, "/tax_total", Some(sent));
            let rules = broken_rules(read_body(body.clone())).join(", ");
            assert_eq!(rules, expected, "{body}");
        }
    }

    #[test]
    fn unknown_fields_and_empty_fields_are_not_sent() {
        let mut body = testing::submission();
        for (pointer, value) in [
            ("/colour", json!("red")),
            ("/invoice_line/0/item/colour", json!("red")),
            ("/note", Value::Null),
            ("/buyer_reference", json!(" ")),
        ] {
            body = with_member(&body, pointer, Some(value));
        }
        let form = read_body(body).unwrap();
        assert_eq!(
            form.warnings,
            ["unknown field: invoice_line.0.item.colour, colour"]
        );
        let document = form.value.document.as_json();
        assert!(!document.to_string().contains("colour"));
        assert_eq!(
            (document.get("note"), document.get("buyer_reference")),
            (None, None)
        );
    }

    #[test]
    fn countries_are_sent_in_capital_letters() {
        let country = "/accounting_supplier_party/postal_address/country";
        let document = sent_document(with_member(
            &testing::submission(),
            country,
            Some(json!("ng")),
        ));
        assert_eq!(document.pointer(country), Some(&json!("NG")));
    }

    #[test]
    fn an_irn_of_another_day_or_number_is_a_warning() {
        let body = with_member(
            &testing::submission(),
            "/issue_date",
            Some(json!("2026-11-20")),
        );
        let body = with_member(&body, "/invoice_reference", Some(json!("INV002")));
        let warnings = read_body(body).unwrap().warnings;
        assert_eq!(
            warnings,
            [
                "invoice_reference is not the invoice number of the irn",
                "issue_date is not the date of the irn"
            ]
        );
    }

    #[test]
    fn blanks_around_a_text_are_not_sent() {
        let plain = testing::submission();
        let mut body = with_member(&plain, "/irn", Some(json!(" INV001-94AD90FB-20261121 ")));
        for name in [
            "/invoice_line/0/item/name",
            "/accounting_supplier_party/party_name",
        ] {
            let text = format!("{} ", plain.pointer(name).and_then(Value::as_str).unwrap());
            body = with_member(&body, name, Some(json!(text)));
        }
        assert_eq!(sent_document(body), sent_document(plain));
    }

    #[test]
    fn only_a_document_that_names_the_taxpayer_as_its_profile_may_lack_the_postal_code() {
        let mut taxpayer = Taxpayer::sample(TaxpayerId(7), IntegratorId(1));
        taxpayer.place.country = Some("NG".into());
        taxpayer.phone = Some("0803 000 0000".into());
        let profile = taxpayer_party(&taxpayer, &catalog());
        let supplier = "/accounting_supplier_party";
        let without_telephone =
            with_member(&testing::submission(), supplier, Some(profile.clone()));
        let without_telephone =
            with_member(&without_telephone, &format!("{supplier}/telephone"), None);
        let changed = |path: &str, value: Value| with_member(&without_telephone, path, Some(value));
        let customer_zone = "/accounting_customer_party/postal_address/postal_zone";
        let supplier_zone = "accounting_supplier_party.postal_address.postal_zone: required";
        let cases = [
            (without_telephone.clone(), None),
            (
                changed(&format!("{supplier}/telephone"), json!("+2348030000000")),
                None,
            ),
            (
                changed(&format!("{supplier}/party_name"), json!("Another name")),
                Some(supplier_zone),
            ),
            (
                changed(
                    &format!("{supplier}/postal_address/city_name"),
                    json!("Another city"),
                ),
                Some(supplier_zone),
            ),
            (
                with_member(&without_telephone, customer_zone, None),
                Some("accounting_customer_party.postal_address.postal_zone: required"),
            ),
        ];
        for (body, expected) in cases {
            let source = DocumentSource::Caller;
            let form = read(source, &object(body.clone()), Some(&taxpayer), &catalog());
            let expected: Vec<_> = expected.into_iter().map(str::to_owned).collect();
            assert_eq!(broken_rules(form), expected, "{body}");
        }
    }

    #[test]
    fn only_fields_that_the_caller_sent_are_reported_as_unknown() {
        let body = with_member(
            &testing::submission(),
            "/invoice_line/0/tax_category",
            Some(json!("STANDARD_VAT")),
        );
        let cases = [
            (
                DocumentSource::Caller,
                vec!["unknown field: invoice_line.0.tax_category"],
            ),
            (DocumentSource::StoredInvoice, vec![]),
        ];
        for (source, expected) in cases {
            let form = read(source, &object(body.clone()), None, &catalog()).unwrap();
            assert_eq!(form.warnings, expected, "{source:?}");
            let document = form.value.document;
            let sent = document.as_json().pointer("/invoice_line/0/tax_category");
            assert_eq!(sent, None, "{source:?}");
        }
    }

    #[test]
    fn amounts_keep_their_digits() {
        let body = with_member(
            &testing::submission(),
            "/invoice_line/0/price/price_amount",
            Some(number("10.500")),
        );
        assert_eq!(
            sent_document(body)["invoice_line"][0]["price"]["price_amount"].to_string(),
            "10.500"
        );
    }
}
