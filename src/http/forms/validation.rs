//! Validate (spec.md): checks the document of Submit without submitting it. Validate requires more fields than Submit,
//! but accepts telephone numbers and email addresses in any format. One body can be sent to both endpoints.

use serde_json::{Map, Value};

use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::{Category, DeclaredPaymentStatus, is_self_billed};
use crate::domain::kernel::fault::Faults;
use crate::domain::party::Taxpayer;
use crate::domain::party::email::is_email;
use crate::domain::party::normal_form::is_same_tin;
use crate::domain::pipeline::authority_document::AuthorityDocument;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::document::{self, ValidDocument, is_telephone};
use crate::http::forms::document_header;
use crate::http::forms::field::{LONG_TEXT_CHARS_MAX, TEXT_CHARS_MAX};
use crate::http::forms::normalized::normalize;
use crate::http::forms::ownership::{self, ExpectedParties};
use crate::http::forms::reader::{self, AcceptedForm, Reader};
use crate::http::forms::references;

const SUPPLIER_FIELD: &str = "accounting_supplier_party";
const CUSTOMER_FIELD: &str = "accounting_customer_party";
/// Replaces an invalid email address, at which the authority would stop without checking the other fields.
const PLACEHOLDER_EMAIL: &str = "not-checked@example.invalid";

/// The values from the body that `read` needs to build the document for the authority.
pub(crate) struct ValidationFields {
    irn: Irn,
    category: Option<Category>,
    status: Option<DeclaredPaymentStatus>,
}

pub(crate) fn read(
    body: &Map<String, Value>,
    taxpayer: Option<&Taxpayer>,
    catalog: &Catalog,
) -> Result<AcceptedForm<ValidDocument>, Faults> {
    let (accepted, unknown_paths) =
        reader::read_with_unknown_paths(body, catalog, |reader| read_fields(reader, taxpayer))?;
    let mut fields = normalize(body.clone(), &unknown_paths);
    // The authority accepts a missing customer only for B2C, so B2C is assumed if the category is missing too.
    let assumed_category = (!fields.contains_key(CUSTOMER_FIELD)).then_some(Category::B2C);
    for party in [SUPPLIER_FIELD, CUSTOMER_FIELD] {
        if let Some(Value::Object(party)) = fields.get_mut(party) {
            replace_invalid_contacts(party);
        }
    }
    let document = AuthorityDocument::new(
        fields,
        accepted.value.category.or(assumed_category),
        accepted.value.status,
    );
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
) -> Option<ValidationFields> {
    ownership::read_required_business_id(reader, taxpayer);
    let irn = ownership::read_signable_irn(reader, taxpayer);
    let issued = document_header::read_dates(reader, true).issued;
    document_header::compare_irn_date(reader, issued, irn.as_ref());
    let type_code = reader
        .required("invoice_type_code")
        .code(ReferenceList::InvoiceTypes);
    reader.required("document_currency_code").currency();
    reader.required("tax_currency_code").currency();
    reader
        .optional("order_reference")
        .identifier(TEXT_CHARS_MAX);
    let is_self_billed = type_code.as_deref().is_some_and(is_self_billed);
    let expected = ExpectedParties::new(taxpayer, is_self_billed);
    reader
        .required(SUPPLIER_FIELD)
        .object(|reader| check_party(reader, SUPPLIER_FIELD, expected.supplier));
    reader
        .optional(CUSTOMER_FIELD)
        .object(|reader| check_party(reader, CUSTOMER_FIELD, expected.customer));
    reader
        .required("payment_means")
        .objects(1, check_dated_payment_means);
    reader
        .required("tax_total")
        .objects(1, document::check_tax_total);
    let totals = reader
        .required("legal_monetary_total")
        .object(document::read_totals);
    document::check_lines(
        reader,
        totals,
        document::read_line_with_optional_description,
    );
    references::read(
        reader,
        type_code
            .as_deref()
            .is_some_and(document_header::is_correction),
    );
    document_header::read_optional_fields(reader);
    reader
        .optional("invoice_reference")
        .identifier(TEXT_CHARS_MAX);
    let category = reader
        .optional("invoice_category")
        .word(Category::parse, Category::allowed_words);
    let status = reader.optional("payment_status").word(
        DeclaredPaymentStatus::parse,
        DeclaredPaymentStatus::allowed_words,
    );
    Some(ValidationFields {
        irn: irn?,
        category,
        status,
    })
}

/// Checks the supplier or the customer. Only the supplier needs a telephone. An invalid telephone, an invalid email and
/// a tax number other than the taxpayer's only cause a warning that Submit refuses the value.
fn check_party(reader: &mut Reader<'_>, name: &str, taxpayer: Option<&Taxpayer>) -> Option<()> {
    reader.required("party_name").text(TEXT_CHARS_MAX);
    let tin = reader.required("tin").identifier(TEXT_CHARS_MAX);
    if tin
        .zip(taxpayer)
        .is_some_and(|(tin, taxpayer)| !is_same_tin(&tin, &taxpayer.tin))
    {
        reader.warn(format!(
            "{name}.tin is not the tax number of this taxpayer; Submit refuses it"
        ));
    }
    let email = reader.required("email").text(TEXT_CHARS_MAX);
    if email.is_some_and(|email| !is_email(&email)) {
        reader.warn(format!(
            "{name}.email is no email address; Submit refuses it"
        ));
    }
    let telephone = reader
        .required_if(name == SUPPLIER_FIELD, "telephone")
        .text(TEXT_CHARS_MAX);
    if telephone.is_some_and(|telephone| !is_telephone(&telephone)) {
        reader.warn(format!(
            "{name}.telephone is not + and 6 to 15 digits; Submit refuses it"
        ));
    }
    reader
        .optional("business_description")
        .long_text(0, LONG_TEXT_CHARS_MAX);
    reader
        .required("postal_address")
        .object(|reader| document::check_address(reader, false))
}

fn check_dated_payment_means(reader: &mut Reader<'_>) -> Option<()> {
    let code = reader
        .required("payment_means_code")
        .code(ReferenceList::PaymentMeans);
    let due = reader.required("payment_due_date").date();
    code.zip(due).map(drop)
}

/// Removes an invalid telephone and replaces an invalid email. The authority would stop at an invalid value and check
/// no other field.
fn replace_invalid_contacts(party: &mut Map<String, Value>) {
    let text = |name: &str| party.get(name).and_then(Value::as_str);
    let is_invalid_telephone = text("telephone").is_some_and(|text| !is_telephone(text));
    let is_invalid_email = text("email").is_some_and(|text| !is_email(text));
    if is_invalid_telephone {
        party.remove("telephone");
    }
    if is_invalid_email {
        party.insert("email".to_owned(), Value::from(PLACEHOLDER_EMAIL));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::{
        DOCUMENT_REQUIRED, catalog, check, check_refused, check_required, number, numbers, object,
        texts, validation as body, with_member,
    };

    fn document_and_warnings(body: Value) -> (Value, Vec<String>) {
        let form = super::read(&object(body), None, &catalog()).unwrap();
        (form.value.document.as_json().clone(), form.warnings)
    }

    #[test]
    fn every_required_field_is_required() {
        let validate_only = [
            "/due_date",
            "/tax_point_date",
            "/tax_currency_code",
            "/accounting_supplier_party/telephone",
            "/payment_means",
            "/payment_means/0/payment_means_code",
            "/payment_means/0/payment_due_date",
            "/tax_total",
            "/tax_total/0/tax_amount",
            "/tax_total/0/tax_subtotal",
            "/tax_total/0/tax_subtotal/0/taxable_amount",
            "/tax_total/0/tax_subtotal/0/tax_amount",
            "/tax_total/0/tax_subtotal/0/tax_category",
            "/tax_total/0/tax_subtotal/0/tax_category/id",
            "/tax_total/0/tax_subtotal/0/tax_category/percent",
        ];
        for paths in [DOCUMENT_REQUIRED, &validate_only[..]] {
            check_required(&body(), paths, |reader| read_fields(reader, None));
        }
    }

    #[test]
    fn a_value_outside_what_its_field_takes_is_refused() {
        let cases = [
            ("/business_id", "uuid", texts(&["no uuid"])),
            ("/business_id", "type", vec![json!(7)]),
            ("/irn", "irn_malformed", texts(&["INV1"])),
            ("/issue_date", "date", texts(&["15/01/2026"])),
            ("/due_date", "date", texts(&["2026-02-30"])),
            ("/tax_point_date", "date", texts(&["soon"])),
            ("/invoice_type_code", "exists", texts(&["999"])),
            ("/document_currency_code", "currency", texts(&["NG"])),
            ("/document_currency_code", "exists", texts(&["QQQ"])),
            ("/tax_currency_code", "currency", texts(&["NAIRA"])),
            ("/order_reference", "type", vec![json!({})]),
            (
                "/accounting_supplier_party",
                "type",
                texts(&["Trading Ltd"]),
            ),
            (
                "/accounting_supplier_party/telephone",
                "type",
                vec![json!(2_348_010_000_000_i64)],
            ),
            (
                "/accounting_supplier_party/postal_address/country",
                "country",
                texts(&["NGA"]),
            ),
            (
                "/accounting_customer_party/postal_address/country",
                "country",
                texts(&["N1"]),
            ),
            (
                "/accounting_customer_party/postal_address/country",
                "exists",
                texts(&["UK"]),
            ),
            (
                "/payment_means/0/payment_means_code",
                "exists",
                texts(&["QQ"]),
            ),
            (
                "/payment_means/0/payment_due_date",
                "date",
                texts(&["later"]),
            ),
            ("/tax_total/0/tax_amount", "sum", vec![json!(74)]),
            ("/tax_total/0/tax_subtotal", "min", vec![json!([])]),
            (
                "/tax_total/0/tax_subtotal/0/tax_category/id",
                "exists",
                texts(&["NO_VAT_AT_ALL"]),
            ),
            (
                "/legal_monetary_total/payable_amount",
                "type",
                texts(&["1075"]),
            ),
            (
                "/legal_monetary_total/tax_exclusive_amount",
                "min",
                numbers(&["-1"]),
            ),
            (
                "/legal_monetary_total/tax_inclusive_amount",
                "min",
                numbers(&["99"]),
            ),
            ("/invoice_line", "min", vec![json!([])]),
            (
                "/invoice_line/0/invoiced_quantity",
                "greater_than",
                vec![json!(0)],
            ),
            ("/invoice_line/0/price/price_unit", "max", texts(&["EACH"])),
            (
                "/invoice_line/0/price/price_unit",
                "exists",
                texts(&["QQQ"]),
            ),
            (
                "/invoice_line/0/price/base_quantity",
                "greater_than",
                vec![json!(0)],
            ),
            ("/invoice_category", "one_of", texts(&["Blank"])),
            ("/payment_status", "one_of", texts(&["REJECTED"])),
        ];
        check_refused(&body(), &cases, |reader| read_fields(reader, None));
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
            (
                "/order_reference",
                Some(json!("x".repeat(256))),
                "order_reference: max",
            ),
            ("/invoice_reference", None, ""),
            ("/invoice_category", None, ""),
            (
                "/accounting_supplier_party/telephone",
                Some(json!("ask Ada")),
                "",
            ),
            (
                "/accounting_supplier_party/email",
                Some(json!("the office")),
                "",
            ),
            (
                "/accounting_supplier_party/postal_address/postal_zone",
                None,
                "",
            ),
            ("/accounting_customer_party", None, ""),
            ("/accounting_customer_party/telephone", None, ""),
            (
                "/accounting_customer_party/postal_address/postal_zone",
                None,
                "",
            ),
            ("/order_reference", Some(json!("PO-1")), ""),
            ("/payment_means", Some(json!([])), "payment_means: min"),
            ("/tax_total", Some(json!([])), "tax_total: min"),
            (
                "/invoice_line/0/line_extension_amount",
                Some(number("100.02")),
                "invoice_line: sum",
            ),
            (
                "/invoice_line/0/line_extension_amount",
                Some(number("100.01")),
                "",
            ),
            (
                "/invoice_type_code",
                Some(json!("380")),
                "billing_reference: required",
            ),
        ];
        check(&body(), &cases, |reader| read_fields(reader, None));
        let note = with_member(&body(), "/invoice_type_code", Some(json!("380")));
        let original = json!([{ "irn": "OLD1-94AD90FB-20260101", "issue_date": "2026-01-01" }]);
        let note = with_member(&note, "/billing_reference", Some(original));
        check(&note, &[], |reader| read_fields(reader, None));
    }

    #[test]
    fn the_category_is_b2c_without_a_customer_and_a_category() {
        let uncategorised = with_member(&body(), "/invoice_category", None);
        assert_eq!(
            document_and_warnings(uncategorised.clone())
                .0
                .get("invoice_kind"),
            None
        );
        let unnamed = with_member(&uncategorised, "/accounting_customer_party", None);
        assert_eq!(document_and_warnings(unnamed).0["invoice_kind"], "B2C");
        let business = with_member(&body(), "/accounting_customer_party", None);
        assert_eq!(
            document_and_warnings(business).0["invoice_kind"],
            "B2B",
            "a category in the body is not changed"
        );
    }

    #[test]
    fn an_invalid_telephone_or_email_is_not_sent_to_the_authority() {
        let odd = with_member(
            &body(),
            "/accounting_supplier_party/telephone",
            Some(json!("0803")),
        );
        let odd = with_member(
            &odd,
            "/accounting_customer_party/email",
            Some(json!("the office")),
        );
        let (document, warnings) = document_and_warnings(odd);
        assert_eq!(document["accounting_supplier_party"].get("telephone"), None);
        assert_eq!(
            document["accounting_supplier_party"]["email"],
            "books@example.com"
        );
        assert_eq!(
            document["accounting_customer_party"]["telephone"],
            "+2348030000000"
        );
        assert_eq!(
            document["accounting_customer_party"]["email"],
            PLACEHOLDER_EMAIL
        );
        let first_words: Vec<_> = warnings
            .iter()
            .filter_map(|warning| warning.split(' ').next())
            .collect();
        assert_eq!(
            first_words,
            [
                "accounting_supplier_party.telephone",
                "accounting_customer_party.email"
            ]
        );
    }

    #[test]
    fn the_document_has_the_names_and_words_of_the_authority() {
        let (document, warnings) = document_and_warnings(with_member(
            &body(),
            "/payment_status",
            Some(json!("cancelled")),
        ));
        assert_eq!(
            (&document["invoice_kind"], &document["payment_status"]),
            (&json!("B2B"), &json!("REJECTED"))
        );
        assert_eq!(
            (document.get("invoice_category"), warnings.len()),
            (None, 0)
        );
        let (document, _) = document_and_warnings(with_member(&body(), "/invoice_category", None));
        assert_eq!(
            (document.get("invoice_kind"), document.get("payment_status")),
            (None, None)
        );
    }
}
