//! Create Invoice (Full) (spec.md). The caller states the totals, which must agree with each other and with the lines.

use jiff::civil::Date;
use serde_json::{Map, Value, json};

use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::{Draft, Line};
use crate::domain::kernel::codes::{Category, DeclaredPaymentStatus};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::document::{self, Totals};
use crate::http::forms::document_header::{self, is_correction};
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::full_customer;
use crate::http::forms::full_line;
use crate::http::forms::full_line::FullLine;
use crate::http::forms::full_sums;
use crate::http::forms::normalized::normalize;
use crate::http::forms::reader::{self, AcceptedForm, Reader};
use crate::http::forms::references;
use crate::http::forms::standard_invoice::warn_unless_submittable;

/// The values with which the form compares the date and the IRN of the invoice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InvoiceContext<'a> {
    /// The latest allowed issue date.
    pub(crate) today: Date,
    /// The service id that the IRN must carry. `None` skips this check; the taxpayer actor makes it later.
    pub(crate) service_id: Option<&'a str>,
}

/// The fields that are stored in columns of the invoice or of its lines. All other fields are copied to the extras,
/// which are stored as one JSON object.
const COLUMN_FIELDS: [&str; 7] = [
    "invoice_no",
    "invoice_category",
    "irn",
    "issue_date",
    "due_date",
    "document_currency_code",
    "invoice_line",
];

pub(crate) fn read(
    body: &Map<String, Value>,
    context: InvoiceContext<'_>,
    catalog: &Catalog,
) -> Result<AcceptedForm<Draft>, Faults> {
    read_completed(body, body, context, catalog)
}

/// Reads a body with the amounts that were computed for it. `sent` is the body without these amounts.
pub(crate) fn read_completed(
    sent: &Map<String, Value>,
    body: &Map<String, Value>,
    context: InvoiceContext<'_>,
    catalog: &Catalog,
) -> Result<AcceptedForm<Draft>, Faults> {
    let (mut form, unknown_paths) = reader::read_with_unknown_paths(body, catalog, |reader| {
        read_with_context(reader, context)
    })?;
    form.value.extras = fields_without_column(body, &form.value, &unknown_paths);
    form.warnings
        .extend(full_sums::warnings(&form.value, sent, catalog));
    Ok(form)
}

/// Reads the draft without its extras, which `read_completed` adds.
pub(crate) fn read_with_context(
    reader: &mut Reader<'_>,
    context: InvoiceContext<'_>,
) -> Option<Draft> {
    let invoice_no = reader.required("invoice_no").identifier(TEXT_CHARS_MAX);
    warn_unless_submittable(reader, invoice_no.as_deref());
    let category = reader
        .required("invoice_category")
        .word(Category::parse, Category::allowed_words);
    let irn = reader.required("irn").irn();
    let dates = document_header::read_dates(reader, false);
    check_irn(
        reader,
        irn.as_ref(),
        context,
        invoice_no.as_deref(),
        dates.issued,
    );
    refuse_future_issue_date(reader, dates.issued, context.today);
    let invoice_type = reader
        .required("invoice_type_code")
        .code(ReferenceList::InvoiceTypes);
    let declared = reader
        .optional("payment_status")
        .word(
            DeclaredPaymentStatus::parse,
            DeclaredPaymentStatus::allowed_words,
        )
        .unwrap_or(DeclaredPaymentStatus::Pending);
    let currency = reader.required("document_currency_code").currency();
    reader.optional("tax_currency_code").currency();
    document_header::read_optional_fields(reader);
    let customer = reader.required("accounting_customer_party");
    let customer = customer.object(|reader| full_customer::read(reader, category));
    references::read(reader, false);
    reader
        .optional("payment_means")
        .objects(0, references::check_payment_means);
    let is_correction = invoice_type.as_deref().is_some_and(is_correction);
    if is_correction && !reader.has("billing_reference") {
        reader.warn(
            "the authority wants the billing_reference of a credit or debit note when it is submitted",
        );
    }
    let totals = reader.required("legal_monetary_total").object(read_totals);
    let lines = read_lines(reader, totals);
    reader.optional("tax_total").objects(0, check_tax_total);
    Some(Draft {
        invoice_no: invoice_no?,
        irn: Some(irn?),
        category: category?,
        invoice_type: invoice_type?,
        invoice_date: dates.issued?,
        due_date: dates.due,
        currency: currency?,
        customer: customer?,
        lines: lines?,
        payable: totals?.payable,
        declared,
        extras: Map::new(),
        batch_no: None,
    })
}

fn refuse_future_issue_date(reader: &mut Reader<'_>, issued: Option<Date>, today: Date) {
    if issued.is_some_and(|issued| issued > today) {
        reader.report_fault("issue_date", FieldRule::NOT_IN_FUTURE);
    }
}

/// Reports a fault if the IRN does not have the service id of the context. Warns if the number or the date in the IRN
/// differs from the number or the date in the body.
fn check_irn(
    reader: &Reader<'_>,
    irn: Option<&Irn>,
    context: InvoiceContext<'_>,
    invoice_no: Option<&str>,
    issued: Option<Date>,
) {
    let Some(irn) = irn else { return };
    if context
        .service_id
        .is_some_and(|service_id| !irn.has_service_id(service_id))
    {
        reader.report_fault(
            "irn",
            FieldRule::other(
                "irn_service_id_mismatch",
                "must carry this account's authority_service_id",
            ),
        );
    }
    if invoice_no.is_some_and(|no| no != irn.invoice_no()) {
        reader.warn("invoice_no is not the invoice number of the irn");
    }
    if issued.is_some_and(|issued| irn.date() != Some(issued)) {
        reader.warn("issue_date is not the date of the irn");
    }
}

fn read_totals(reader: &mut Reader<'_>) -> Option<Totals> {
    let totals = document::read_totals(reader)?;
    if !totals.tax_exclusive.is_within_tolerance(totals.lines) {
        reader.report_fault(
            "tax_exclusive_amount",
            FieldRule::with_expected(
                "same",
                "must equal line_extension_amount within 0.01",
                "line_extension_amount within 0.01",
            ),
        );
    }
    Some(totals)
}

fn read_lines(reader: &mut Reader<'_>, totals: Option<Totals>) -> Option<Vec<Line>> {
    let lines = reader
        .required("invoice_line")
        .objects(1, full_line::read)?;
    let sum = Amount::sum(lines.iter().map(|line| line.amount));
    if let Some(totals) = totals {
        document::check_lines_sum(reader, sum, totals);
    }
    Some(
        lines
            .into_iter()
            .map(|FullLine { line, .. }| line)
            .collect(),
    )
}

fn check_tax_total(reader: &mut Reader<'_>) -> Option<()> {
    let amount = reader
        .required("tax_amount")
        .amount(AmountBounds::NOT_NEGATIVE);
    let subtotals = reader
        .required("tax_subtotal")
        .objects(0, document::read_tax_subtotal);
    amount.zip(subtotals).map(drop)
}

/// Returns the fields that have no database column. Adds the payment status, and defaults for absent fields.
fn fields_without_column(
    body: &Map<String, Value>,
    draft: &Draft,
    unknown_paths: &[Vec<String>],
) -> Map<String, Value> {
    let fields = body
        .iter()
        .filter(|(name, _)| !COLUMN_FIELDS.contains(&name.as_str()));
    let fields = fields
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut extras = normalize(fields, unknown_paths);
    extras.insert("payment_status".to_owned(), json!(draft.declared));
    for (name, default) in [
        ("tax_point_date", json!(draft.invoice_date.to_string())),
        ("tax_currency_code", json!(draft.currency)),
        ("accounting_cost", json!(0)),
    ] {
        extras.entry(name).or_insert(default);
    }
    extras
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::forms::testing::{
        self, INEXACT, broken_rules, catalog, number, numbers, object, texts, with_member,
    };

    fn context() -> InvoiceContext<'static> {
        InvoiceContext {
            today: "2026-11-21".parse().unwrap(),
            service_id: Some("94ad90fb"),
        }
    }

    fn read_body(body: Value) -> Result<AcceptedForm<Draft>, Faults> {
        read(&object(body), context(), &catalog())
    }

    fn check(cases: &[(&str, Option<Value>, &str)]) {
        testing::check(&testing::full_invoice(), cases, |reader| {
            read_with_context(reader, context())
        });
    }

    fn check_refused(cases: &[(&str, &str, Vec<Value>)]) {
        testing::check_refused(&testing::full_invoice(), cases, |reader| {
            read_with_context(reader, context())
        });
    }

    fn with(pointer: &str, value: impl Into<Value>) -> Value {
        with_member(&testing::full_invoice(), pointer, Some(value.into()))
    }

    #[test]
    fn every_required_field_is_required() {
        let fields = [
            "/invoice_no",
            "/invoice_category",
            "/irn",
            "/issue_date",
            "/invoice_type_code",
            "/document_currency_code",
            "/accounting_customer_party",
            "/accounting_customer_party/customer_no",
            "/accounting_customer_party/party_name",
            "/accounting_customer_party/email",
            "/accounting_customer_party/tin",
            "/accounting_customer_party/business_description",
            "/accounting_customer_party/postal_address",
            "/accounting_customer_party/postal_address/street_name",
            "/accounting_customer_party/postal_address/city_name",
            "/accounting_customer_party/postal_address/postal_zone",
            "/accounting_customer_party/postal_address/country",
            "/legal_monetary_total",
            "/legal_monetary_total/line_extension_amount",
            "/legal_monetary_total/tax_exclusive_amount",
            "/legal_monetary_total/tax_inclusive_amount",
            "/legal_monetary_total/payable_amount",
            "/invoice_line",
            "/invoice_line/0/item",
            "/invoice_line/0/item/name",
            "/invoice_line/0/item/description",
            "/invoice_line/0/item/type",
            "/invoice_line/0/price",
            "/invoice_line/0/price/price_amount",
            "/invoice_line/0/price/base_quantity",
            "/invoice_line/0/price/price_unit",
            "/invoice_line/0/invoiced_quantity",
            "/invoice_line/0/line_extension_amount",
            "/invoice_line/0/product_category",
            "/invoice_line/0/tax_category",
            "/invoice_line/0/total_tax",
        ];
        let form = |reader: &mut Reader<'_>| read_with_context(reader, context());
        testing::check_required(&testing::full_invoice(), &fields, form);
    }

    #[test]
    fn a_text_has_its_limits() {
        let limits = [
            ("/invoice_no", 1, 255),
            ("/note", 1, 1_000),
            ("/buyer_reference", 1, 255),
            ("/payment_terms_note", 1, 1_000),
            ("/accounting_customer_party/customer_no", 1, 255),
            ("/accounting_customer_party/party_name", 1, 255),
            ("/accounting_customer_party/tin", 1, 50),
            ("/accounting_customer_party/business_description", 5, 500),
            (
                "/accounting_customer_party/postal_address/street_name",
                1,
                255,
            ),
            (
                "/accounting_customer_party/postal_address/city_name",
                1,
                100,
            ),
            (
                "/accounting_customer_party/postal_address/postal_zone",
                1,
                50,
            ),
            ("/invoice_line/0/item/name", 1, 255),
            ("/invoice_line/0/item/description", 1, 1_000),
            ("/invoice_line/0/item/sellers_item_identification", 1, 255),
        ];
        let form = |reader: &mut Reader<'_>| read_with_context(reader, context());
        testing::check_texts(&testing::full_invoice(), &limits, form);
        let identifiers = [
            "/invoice_no",
            "/buyer_reference",
            "/accounting_customer_party/customer_no",
            "/accounting_customer_party/tin",
            "/invoice_line/0/item/sellers_item_identification",
        ];
        testing::check_identifiers(&testing::full_invoice(), &identifiers, form);
    }

    #[test]
    fn a_number_that_cannot_be_kept_exactly_is_refused() {
        for pointer in [
            "/legal_monetary_total/line_extension_amount",
            "/legal_monetary_total/tax_exclusive_amount",
            "/legal_monetary_total/tax_inclusive_amount",
            "/legal_monetary_total/payable_amount",
            "/accounting_cost",
            "/invoice_line/0/price/price_amount",
            "/invoice_line/0/price/base_quantity",
            "/invoice_line/0/invoiced_quantity",
            "/invoice_line/0/line_extension_amount",
            "/invoice_line/0/total_tax",
            "/invoice_line/0/discount_rate",
            "/invoice_line/0/discount_amount",
            "/invoice_line/0/fee_rate",
            "/invoice_line/0/fee_amount",
        ] {
            check_refused(&[
                (pointer, "digits", numbers(&INEXACT)),
                (pointer, "type", texts(&["NaN"])),
            ]);
        }
    }

    #[test]
    fn an_irn_has_its_format() {
        let malformed = texts(&[
            "INV1",
            "INV001-94AD90FB",
            "-94AD90FB-20261121",
            "INV1-94AD90FB-20261315",
            "INV1-94AD90FB-2026112",
            "INV1-94AD90FX-20261121",
            "INV1-94AD90FB-20261121-",
            "INV1-94AD90FB-\u{ff12}0261121",
            "IN\u{0}V1-94AD90FB-20261121",
            "A\u{200b}1-94AD90FB-20261121",
            "A\u{202e}1-94AD90FB-20261121",
            "A\u{2067}1-94AD90FB-20261121",
            "A\u{200d}1-94AD90FB-20261121",
            "A\u{feff}1-94AD90FB-20261121",
            "A\u{ad}1-94AD90FB-20261121",
            "A\u{3164}1-94AD90FB-20261121",
            "A\u{e0041}1-94AD90FB-20261121",
        ]);
        check_refused(&[("/irn", "irn_malformed", malformed)]);
    }

    #[test]
    fn optional_fields_may_be_left_out() {
        for pointer in [
            "/due_date",
            "/accounting_customer_party/telephone",
            "/invoice_line/0/hsn_code",
            "/invoice_line/0/item/sellers_item_identification",
        ] {
            check(&[(pointer, None, "")]);
        }
        assert_eq!(
            read_body(with_member(&testing::full_invoice(), "/due_date", None))
                .unwrap()
                .value
                .due_date,
            None
        );
    }

    #[test]
    fn each_field_of_the_head_keeps_its_rule() {
        let cases = [
            (
                "/irn",
                Some(json!("INV001-94AD90FC-20261121")),
                "irn: irn_service_id_mismatch",
            ),
            ("/irn", Some(json!("A-B-C-94AD90fb-20261121")), ""),
            ("/irn", Some(json!("INV/%2f%-94AD90FB-20261121")), ""),
            (
                "/issue_date",
                Some(json!("2026-11-22")),
                "issue_date: before_or_equal",
            ),
            ("/issue_date", Some(json!("2026-11-20")), ""),
            (
                "/due_date",
                Some(json!("2026-11-20")),
                "due_date: after_or_equal",
            ),
            ("/due_date", Some(json!("2026-11-21")), ""),
            ("/issue_time", Some(json!("23:59:59")), ""),
            ("/issue_time", Some(json!("24:00:00")), "issue_time: time"),
            ("/issue_time", Some(json!(" 9:00:00")), "issue_time: time"),
            (
                "/invoice_type_code",
                Some(json!(381)),
                "invoice_type_code: type",
            ),
            ("/payment_status", Some(json!("paid")), ""),
            ("/payment_status", Some(json!("CANCELLED")), ""),
            ("/note", Some(json!("several\nlines")), ""),
            ("/accounting_cost", Some(number("12.5")), ""),
        ];
        check(&cases);
        check_refused(&[
            ("/invoice_category", "one_of", texts(&["Blank", "B2X"])),
            (
                "/issue_date",
                "date",
                texts(&["15-01-2026", "2026-02-30", "2026-01-15T00:00:00Z"]),
            ),
            ("/due_date", "date", texts(&["soon"])),
            (
                "/issue_time",
                "time",
                texts(&["25:00:00", "9:00:00", "10:00", "10:00:00Z"]),
            ),
            (
                "/invoice_type_code",
                "exists",
                texts(&["999", "Commercial"]),
            ),
            (
                "/payment_status",
                "one_of",
                texts(&["REJECTED", "PARTIAL", "approved"]),
            ),
            (
                "/tax_point_date",
                "date",
                texts(&["2026-1-1", "2026-13-01"]),
            ),
            ("/tax_point_date", "type", vec![json!(20_260_101)]),
            (
                "/document_currency_code",
                "currency",
                texts(&["NG", "NAIRA"]),
            ),
            ("/document_currency_code", "exists", texts(&["QQQ"])),
            ("/tax_currency_code", "currency", texts(&["NAIRA"])),
            ("/tax_currency_code", "exists", texts(&["QQQ"])),
            ("/accounting_cost", "type", vec![json!("0"), json!(true)]),
            (
                "/actual_delivery_date",
                "date",
                texts(&["soon", "2026-02-30"]),
            ),
            ("/note", "type", vec![json!(7)]),
            ("/invoice_delivery_period", "type", vec![json!([])]),
            ("/billing_reference", "type", vec![json!({})]),
            ("/dispatch_document_reference", "type", vec![json!([])]),
            ("/receipt_document_reference", "type", vec![json!("x")]),
            ("/originator_document_reference", "type", vec![json!(7)]),
            ("/contract_document_reference", "type", vec![json!(true)]),
            ("/additional_document_reference", "type", vec![json!({})]),
            ("/payment_means", "type", vec![json!({})]),
            ("/allowance_charge", "type", vec![json!("x")]),
            ("/tax_total", "type", vec![json!({})]),
            (
                "/legal_monetary_total/payable_amount",
                "type",
                vec![json!("1075")],
            ),
            ("/invoice_line", "min", vec![json!([])]),
            ("/invoice_line", "type", vec![json!({})]),
        ]);
    }

    #[test]
    fn each_field_of_the_customer_keeps_its_rule() {
        let cases = [
            ("email", Some(json!("books")), "email"),
            ("email", Some(json!("a@b")), "email"),
            ("telephone", Some(json!("08030")), "telephone"),
            ("telephone", Some(json!("080300")), ""),
            ("telephone", Some(json!("+12345")), ""),
            ("telephone", Some(json!("1".repeat(20))), ""),
            ("telephone", Some(json!("1".repeat(21))), "telephone"),
            ("telephone", Some(json!("(080) 300-00")), ""),
            ("telephone", Some(json!("0803+000")), "telephone"),
            ("telephone", Some(json!("0803x000")), "telephone"),
            ("telephone", Some(json!("--------")), "telephone"),
            ("telephone", Some(json!("12345")), "telephone"),
            ("telephone", Some(json!("0803 CALL ME")), "telephone"),
            ("telephone", Some(json!("080+3000000")), "telephone"),
            ("telephone", Some(json!("080\u{0}3000")), "telephone"),
            ("postal_address/country", Some(json!("ng")), ""),
            ("postal_address/country", Some(json!("NGA")), "country"),
            ("postal_address/country", Some(json!("N")), "country"),
            ("postal_address/country", Some(json!("N1")), "country"),
            ("postal_address/country", Some(json!("ZZ")), "exists"),
        ];
        for (name, value, rule) in cases {
            let pointer = format!("/accounting_customer_party/{name}");
            let rule = if rule.is_empty() {
                String::new()
            } else {
                format!("{}: {rule}", pointer[1..].replace('/', "."))
            };
            check(&[(&pointer, value, &rule)]);
        }
    }

    #[test]
    fn a_business_needs_a_tax_number_and_a_description_and_a_consumer_does_not() {
        let mut body = with("/invoice_category", "B2C");
        for name in ["tin", "business_description"] {
            body = with_member(&body, &format!("/accounting_customer_party/{name}"), None);
        }
        for category in ["B2B", "B2G"] {
            let business = with_member(&body, "/invoice_category", Some(json!(category)));
            let faults = ["tin", "business_description"]
                .map(|name| format!("accounting_customer_party.{name}: required"));
            assert_eq!(broken_rules(read_body(business)), faults, "{category}");
        }
        assert_eq!(broken_rules(read_body(body.clone())), [""; 0]);
        let short = with_member(
            &body,
            "/accounting_customer_party/business_description",
            Some(json!("Mill")),
        );
        assert_eq!(
            broken_rules(read_body(short)),
            ["accounting_customer_party.business_description: min"]
        );
    }

    /// Checks one member of the first line in each case. The rules that it violates have paths inside the line.
    fn check_line(cases: &[(&str, Option<Value>, &str)]) {
        for (name, value, rules) in cases {
            let rules: Vec<_> = rules.split(", ").filter(|rule| !rule.is_empty()).collect();
            let rules: Vec<_> = rules
                .iter()
                .map(|rule| format!("invoice_line.0.{rule}"))
                .collect();
            let pointer = format!("/invoice_line/0/{name}");
            check(&[(&pointer, value.clone(), &rules.join(", "))]);
        }
    }

    #[test]
    fn each_code_of_a_line_keeps_its_rule() {
        check_line(&[
            ("item/type", Some(json!("GOODS")), "item.type: one_of"),
            (
                "price/price_unit",
                Some(json!("KGMS")),
                "price.price_unit: max",
            ),
            (
                "price/price_unit",
                Some(json!("ZZ")),
                "price.price_unit: exists",
            ),
            (
                "product_category",
                Some(json!("1006.3")),
                "product_category: format",
            ),
            (
                "product_category",
                Some(json!("9999.99")),
                "product_category: exists",
            ),
            (
                "service_category",
                Some(json!("6201")),
                "service_category: prohibited",
            ),
            ("hsn_code", Some(json!("100630")), "hsn_code: format"),
            ("hsn_code", Some(json!("9999.99")), ""),
            ("isic_code", Some(json!("6201")), "isic_code: prohibited"),
            (
                "isic_code",
                Some(json!("62")),
                "isic_code: format, isic_code: prohibited",
            ),
            ("tax_category", Some(json!("VAT")), "tax_category: exists"),
        ]);
        check_refused(&[
            ("/invoice_line/0/price/price_unit", "max", texts(&["EACH"])),
            (
                "/invoice_line/0/price/price_unit",
                "exists",
                texts(&["QQQ"]),
            ),
            (
                "/invoice_line/0/product_category",
                "format",
                texts(&["8471", "84713.0"]),
            ),
            ("/invoice_line/0/hsn_code", "format", texts(&["8471"])),
        ]);
    }

    #[test]
    fn each_number_of_a_line_keeps_its_rule() {
        check_line(&[
            (
                "price/price_amount",
                Some(json!(-1)),
                "price.price_amount: min",
            ),
            (
                "price/base_quantity",
                Some(number("0.009")),
                "price.base_quantity: min",
            ),
            ("price/base_quantity", Some(number("0.01")), ""),
            (
                "invoiced_quantity",
                Some(number("0.009")),
                "invoiced_quantity: min",
            ),
            ("invoiced_quantity", Some(number("0.01")), ""),
            (
                "line_extension_amount",
                Some(json!(0)),
                "line_extension_amount: min",
            ),
            ("total_tax", Some(json!(-1)), "total_tax: min"),
            ("total_tax", Some(json!(0)), ""),
            ("discount_rate", Some(json!(100)), ""),
            (
                "discount_rate",
                Some(number("100.01")),
                "discount_rate: max",
            ),
            ("discount_amount", Some(json!(-1)), "discount_amount: min"),
            ("fee_rate", Some(json!(-1)), "fee_rate: min"),
            ("fee_rate", Some(json!(101)), "fee_rate: max"),
            ("fee_amount", Some(json!("1")), "fee_amount: type"),
        ]);
        check_refused(&[
            (
                "/invoice_line/0/price/price_amount",
                "min",
                numbers(&["-0.01"]),
            ),
            (
                "/invoice_line/0/price/base_quantity",
                "min",
                numbers(&["0"]),
            ),
            ("/invoice_line/0/invoiced_quantity", "min", numbers(&["0"])),
            (
                "/invoice_line/0/line_extension_amount",
                "min",
                numbers(&["-1"]),
            ),
            ("/invoice_line/0/total_tax", "min", numbers(&["-0.01"])),
            ("/invoice_line/0/discount_rate", "min", numbers(&["-0.01"])),
            (
                "/invoice_line/0/discount_amount",
                "min",
                numbers(&["-0.01"]),
            ),
            ("/invoice_line/0/fee_rate", "min", numbers(&["-0.01"])),
            ("/invoice_line/0/fee_rate", "max", numbers(&["100.01"])),
            ("/invoice_line/0/fee_amount", "min", numbers(&["-0.01"])),
        ]);
    }

    #[test]
    fn a_service_line_carries_the_codes_of_a_service() {
        let service = with("/invoice_line/0/item/type", "SERVICE");
        let faults = [
            "invoice_line.0.service_category: required",
            "invoice_line.0.product_category: prohibited",
            "invoice_line.0.hsn_code: prohibited",
        ];
        assert_eq!(broken_rules(read_body(service.clone())), faults);
        let mut body = with_member(
            &service,
            "/invoice_line/0/service_category",
            Some(json!("6201")),
        );
        for name in ["product_category", "hsn_code"] {
            body = with_member(&body, &format!("/invoice_line/0/{name}"), None);
        }
        let body = with_member(&body, "/invoice_line/0/isic_code", Some(json!("9999")));
        assert_eq!(broken_rules(read_body(body.clone())), [""; 0]);
        for (category, rule) in [("620", "format"), ("9999", "exists")] {
            let odd = with_member(
                &body,
                "/invoice_line/0/service_category",
                Some(json!(category)),
            );
            assert_eq!(
                broken_rules(read_body(odd)),
                [format!("invoice_line.0.service_category: {rule}")]
            );
        }
    }

    #[test]
    fn the_totals_fit_each_other_and_the_lines_within_a_hundredth() {
        let cases = [
            ("line_extension_amount", "200.01", ""),
            ("line_extension_amount", "199.99", ""),
            (
                "line_extension_amount",
                "0",
                "legal_monetary_total.tax_exclusive_amount: same, invoice_line: sum",
            ),
            (
                "line_extension_amount",
                "200.02",
                "legal_monetary_total.tax_exclusive_amount: same, invoice_line: sum",
            ),
            (
                "tax_exclusive_amount",
                "199.98",
                "legal_monetary_total.tax_exclusive_amount: same",
            ),
            ("tax_exclusive_amount", "200.01", ""),
            ("tax_exclusive_amount", "199.99", ""),
            (
                "tax_exclusive_amount",
                "200.02",
                "legal_monetary_total.tax_exclusive_amount: same",
            ),
            (
                "tax_inclusive_amount",
                "199.99",
                "legal_monetary_total.tax_inclusive_amount: min",
            ),
            ("tax_inclusive_amount", "200", ""),
            (
                "payable_amount",
                "-0.01",
                "legal_monetary_total.payable_amount: min",
            ),
            (
                "payable_amount",
                "-1",
                "legal_monetary_total.payable_amount: min",
            ),
            ("payable_amount", "0", ""),
        ];
        for (name, digits, rules) in cases {
            check(&[(
                &format!("/legal_monetary_total/{name}"),
                Some(number(digits)),
                rules,
            )]);
        }
        let line = testing::full_invoice()["invoice_line"][0].clone();
        assert_eq!(
            broken_rules(read_body(with("/invoice_line", json!([line, line])))),
            ["invoice_line: sum"]
        );
    }

    #[test]
    fn the_lines_add_up_exactly() {
        let line = testing::full_invoice()["invoice_line"][0].clone();
        let line = with_member(&line, "/line_extension_amount", Some(number("0.1")));
        let body = with("/invoice_line", json!([line, line, line]));
        let faults = |digits: &str| {
            let amount = number(digits);
            let totals = json!({
                "line_extension_amount": amount, "tax_exclusive_amount": amount,
                "tax_inclusive_amount": amount, "payable_amount": amount,
            });
            broken_rules(read_body(with_member(
                &body,
                "/legal_monetary_total",
                Some(totals),
            )))
        };
        assert_eq!(faults("0.3"), [""; 0]);
        for digits in ["0.311", "0.289"] {
            assert_eq!(faults(digits), ["invoice_line: sum"], "{digits}");
        }
    }

    #[test]
    fn each_optional_part_keeps_its_rule() {
        let reference = json!({ "irn": "INV000-94AD90FB-20261101", "issue_date": "2026-11-01" });
        let undated = json!({ "irn": "INV000-94AD90FB-20261101" });
        let tax = |id: &str| {
            let category = json!({ "id": id, "percent": 7 });
            let part = json!({ "taxable_amount": 200, "tax_amount": 15, "tax_category": category });
            json!([{ "tax_amount": 15, "tax_subtotal": [part] }])
        };
        let cases = [
            (
                "/invoice_delivery_period",
                json!({ "start_date": "2026-11-01", "end_date": "2026-11-02" }),
                "",
            ),
            (
                "/invoice_delivery_period",
                json!({ "start_date": "2026-11-02", "end_date": "2026-11-01" }),
                "invoice_delivery_period.end_date: after_or_equal",
            ),
            ("/billing_reference", json!([reference]), ""),
            (
                "/billing_reference",
                json!([undated]),
                "billing_reference.0.issue_date: required",
            ),
            ("/dispatch_document_reference", reference.clone(), ""),
            (
                "/receipt_document_reference",
                undated.clone(),
                "receipt_document_reference.issue_date: required",
            ),
            (
                "/originator_document_reference",
                json!([]),
                "originator_document_reference: type",
            ),
            (
                "/contract_document_reference",
                json!({}),
                "contract_document_reference.irn: required, contract_document_reference.issue_date: required",
            ),
            (
                "/additional_document_reference",
                json!([reference, reference]),
                "",
            ),
            (
                "/additional_document_reference",
                reference.clone(),
                "additional_document_reference: type",
            ),
            (
                "/payment_means",
                json!([{ "payment_means_code": "10", "payment_due_date": "2026-12-01" }]),
                "",
            ),
            (
                "/payment_means",
                json!([{ "payment_means_code": "11" }]),
                "payment_means.0.payment_means_code: exists",
            ),
            (
                "/allowance_charge",
                json!([{ "charge_indicator": false, "amount": 1 }]),
                "",
            ),
            (
                "/allowance_charge",
                json!([{ "charge_indicator": "no", "amount": 1 }]),
                "allowance_charge.0.charge_indicator: type",
            ),
            ("/tax_total", tax("STANDARD_VAT"), ""),
            (
                "/tax_total",
                tax("VAT"),
                "tax_total.0.tax_subtotal.0.tax_category.id: exists",
            ),
            (
                "/tax_total",
                json!([{ "tax_subtotal": [] }]),
                "tax_total.0.tax_amount: required",
            ),
        ];
        check(&cases.map(|(pointer, value, rules)| (pointer, Some(value), rules)));
    }

    #[test]
    fn all_faults_are_reported_at_once() {
        let rules = broken_rules(read_body(
            json!({ "invoice_line": [{ "item": { "type": "SERVICE" } }, 1] }),
        ));
        assert_eq!(rules.len(), 8 + 8 + 1, "{rules:?}");
        let odd = with_member(
            &with("/irn", "INV001-00000000-20261121"),
            "/issue_date",
            Some(json!("2027-01-01")),
        );
        assert_eq!(
            broken_rules(read_body(odd)),
            [
                "due_date: after_or_equal",
                "irn: irn_service_id_mismatch",
                "issue_date: before_or_equal"
            ]
        );
    }

    #[test]
    fn another_number_or_day_in_the_irn_is_a_warning() {
        let warnings = read_body(with("/irn", "INV002-94AD90FB-20261120"))
            .unwrap()
            .warnings;
        let expected = [
            "invoice_no is not the invoice number of the irn",
            "issue_date is not the date of the irn",
        ];
        assert_eq!(warnings, expected);
    }

    #[test]
    fn a_credit_note_without_a_billing_reference_is_a_warning() {
        let note = with("/invoice_type_code", "380");
        assert_eq!(read_body(note.clone()).unwrap().warnings.len(), 1);
        let empty = with_member(&note, "/billing_reference", Some(json!([])));
        assert_eq!(read_body(empty).unwrap().warnings.len(), 1);
        let reference = json!([{ "irn": "INV000-94AD90FB-20261101", "issue_date": "2026-11-01" }]);
        let referring = with_member(&note, "/billing_reference", Some(reference));
        assert_eq!(read_body(referring).unwrap().warnings, [""; 0]);
    }

    #[test]
    fn every_field_that_was_sent_is_kept() {
        let body = with_member(&with("/note", " As agreed "), "/colour", Some(json!("red")));
        let body = with_member(&body, "/accounting_customer_party/fax", Some(json!("1")));
        let body = with_member(&body, "/invoice_line/0/fee_rate", Some(number("2.50")));
        let draft = read_body(body).unwrap().value;
        let kept: Vec<_> = draft.extras.keys().map(String::as_str).collect();
        let expected = [
            "accounting_cost",
            "accounting_customer_party",
            "invoice_type_code",
            "legal_monetary_total",
            "note",
            "payment_status",
            "tax_currency_code",
            "tax_point_date",
        ];
        assert_eq!(kept, expected);
        assert_eq!(
            (&draft.extras["note"], &draft.extras["tax_point_date"]),
            (&json!("As agreed"), &json!("2026-11-21"))
        );
        assert_eq!(draft.extras["accounting_customer_party"].get("fax"), None);
        let line = &draft.lines[0];
        assert_eq!(
            (line.item_no.as_deref(), line.unit_price, line.quantity),
            (Some("R1"), 100.into(), 2.into())
        );
        let extras = Value::Object(line.extras.clone()).to_string();
        assert_eq!(
            extras,
            r#"{"base_quantity":1,"description":"Parboiled","fee_rate":2.50,"hsn_code":"1006.30","line_extension_amount":200,"total_tax":15}"#
        );
    }

    #[test]
    fn a_sent_default_value_does_not_change_the_digest() {
        let without_defaults = read_body(testing::full_invoice()).unwrap().value;
        let mut with_defaults = with("/tax_point_date", "2026-11-21");
        for (pointer, value) in [
            ("/tax_currency_code", json!("NGN")),
            ("/accounting_cost", number("0.00")),
            ("/payment_status", json!("pending")),
            ("/note", json!("  ")),
            ("/billing_reference", json!([])),
            ("/payment_means", Value::Null),
            ("/allowance_charge", json!([])),
        ] {
            with_defaults = with_member(&with_defaults, pointer, Some(value));
        }
        assert_eq!(
            read_body(with_defaults).unwrap().value.digest(),
            without_defaults.digest()
        );
        assert_ne!(
            read_body(with("/note", "x")).unwrap().value.digest(),
            without_defaults.digest()
        );
    }

    #[test]
    fn without_a_service_id_in_the_context_any_irn_is_accepted() {
        let body = object(with("/irn", "INV001-00000000-20261121"));
        assert!(
            read(
                &body,
                InvoiceContext {
                    service_id: None,
                    ..context()
                },
                &catalog()
            )
            .is_ok()
        );
    }
}
