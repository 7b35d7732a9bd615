//! Builds the body of a Create Invoice (Full) request from an imported trade document.

use jiff::civil::Date;
use serde_json::{Map, Value, json};
use trade_document::{Charge, Party, Reference, ReferenceKind, TaxSubtotal, Totals, TradeDocument};

use crate::domain::import::body_members::{
    add_members, json_number, optional_value, party_name, value_if_filled,
};
use crate::domain::import::ubl_full_lines;
use crate::domain::import::ubl_parties::counterparty_mut;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::ubl_parts::counterparty;
use crate::domain::reference::catalog::Catalog;

/// The members that hold references to other documents. The flag is true for a member that is a list.
const REFERENCES: [(ReferenceKind, &str, bool); 6] = [
    (ReferenceKind::Preceding, "billing_reference", true),
    (
        ReferenceKind::Additional,
        "additional_document_reference",
        true,
    ),
    (
        ReferenceKind::Dispatch,
        "dispatch_document_reference",
        false,
    ),
    (ReferenceKind::Receipt, "receipt_document_reference", false),
    (
        ReferenceKind::Originator,
        "originator_document_reference",
        false,
    ),
    (
        ReferenceKind::Contract,
        "contract_document_reference",
        false,
    ),
];

/// Returns the body of a Create Invoice (Full) request. `after_tax` becomes its document-level charges. The caller must
/// already have moved all other document charges to the lines.
pub(super) fn full_invoice_body(
    document: &TradeDocument,
    after_tax: &[Charge],
    catalog: &Catalog,
    warnings: &mut Vec<String>,
) -> Map<String, Value> {
    let mut body = Map::new();
    let date = |date: Option<Date>| date.map(|date| json!(date.to_string()));
    let digits = catalog.currency_digits(&document.currency);
    let lines = ubl_full_lines::body_lines(document, digits, warnings);
    warnings.extend(unsent_data_warning(document));
    add_members(
        &mut body,
        [
            ("invoice_no", value_if_filled(&document.number)),
            ("irn", optional_value(document.irn.as_deref())),
            ("issue_date", Some(json!(document.issue_date.to_string()))),
            (
                "issue_time",
                document.issue_time.map(|time| json!(time.to_string())),
            ),
            ("due_date", date(document.due_date)),
            ("tax_point_date", date(document.tax_point_date)),
            ("actual_delivery_date", date(document.delivery_date)),
            (
                "invoice_type_code",
                value_if_filled(&document.document_type.code),
            ),
            ("note", value_if_filled(&document.notes.join(" "))),
            (
                "document_currency_code",
                value_if_filled(&document.currency),
            ),
            (
                "tax_currency_code",
                optional_value(document.tax_currency.as_deref()),
            ),
            ("invoice_delivery_period", delivery_period(document)),
            (
                "buyer_reference",
                optional_value(document.buyer_reference.as_deref()),
            ),
            (
                "payment_terms_note",
                optional_value(document.payment_terms.as_deref()),
            ),
            (
                "accounting_customer_party",
                Some(customer(counterparty(document))),
            ),
            ("invoice_line", Some(Value::Array(lines))),
            ("tax_total", tax_total(document)),
            ("allowance_charge", allowance_charge(after_tax)),
            ("legal_monetary_total", Some(totals(&document.totals))),
        ],
    );
    add_references(&mut body, document, warnings);
    add_payment_means(&mut body, document);
    body
}

/// Returns a warning that names the data of the document for which the body has no field; `None` if there is none.
fn unsent_data_warning(document: &TradeDocument) -> Option<String> {
    let customer = counterparty(document);
    let mut references = document.references.iter();
    let parts = [
        (
            references.any(|reference| reference.kind == ReferenceKind::Order),
            "the order",
        ),
        (
            customer.registration.is_some(),
            "the customer's registration",
        ),
        (customer.address.state.is_some(), "the customer's state"),
        (document.accounting_cost.is_some(), "the accounting cost"),
        (
            document.period.is_some() && delivery_period(document).is_none(),
            "the period",
        ),
    ];
    let parts = parts.into_iter().filter(|(is_present, _)| *is_present);
    let names: Vec<_> = parts.map(|(_, name)| name).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("Create Full has no field for {names}: kept for the UBL of the invoice.")
    })
}

fn totals(totals: &Totals) -> Value {
    json!({
        "line_extension_amount": json_number(totals.lines),
        "tax_exclusive_amount": json_number(totals.tax_exclusive),
        "tax_inclusive_amount": json_number(totals.tax_inclusive),
        "payable_amount": json_number(totals.payable),
    })
}

fn allowance_charge(charges: &[Charge]) -> Option<Value> {
    let members = charges.iter().map(|charge| {
        let amount = json_number(charge.amount);
        json!({ "charge_indicator": charge.is_fee, "amount": amount })
    });
    (!charges.is_empty()).then(|| members.collect())
}

/// Returns the delivery period. Create Invoice (Full) requires both of its days, so without one of them this is `None`.
fn delivery_period(document: &TradeDocument) -> Option<Value> {
    let period = document.period?;
    let start = period.start?;
    let end = period.end.filter(|end| *end >= start)?;
    Some(json!({ "start_date": start.to_string(), "end_date": end.to_string() }))
}

fn customer(party: &Party) -> Value {
    let mut address = Map::new();
    add_members(
        &mut address,
        [
            (
                "street_name",
                optional_value(party.address.street.as_deref()),
            ),
            ("city_name", optional_value(party.address.city.as_deref())),
            (
                "postal_zone",
                optional_value(party.address.postal_code.as_deref()),
            ),
            ("country", optional_value(party.address.country.as_deref())),
        ],
    );
    let mut customer = Map::new();
    add_members(
        &mut customer,
        [
            ("customer_no", optional_value(party.number.as_deref())),
            ("party_name", party_name(party)),
            ("email", optional_value(party.email.as_deref())),
            ("tin", optional_value(party.tin.as_deref())),
            ("telephone", optional_value(party.telephone.as_deref())),
            (
                "business_description",
                optional_value(party.description.as_deref()),
            ),
            ("postal_address", Some(Value::Object(address))),
        ],
    );
    Value::Object(customer)
}

fn tax_total(document: &TradeDocument) -> Option<Value> {
    let parts: Vec<_> = document.taxes.iter().map(tax_subtotal).collect();
    (!parts.is_empty())
        .then(|| json!([{ "tax_amount": json_number(document.tax()), "tax_subtotal": parts }]))
}

fn tax_subtotal(subtotal: &TaxSubtotal) -> Value {
    let tax = &subtotal.tax;
    json!({
        "taxable_amount": json_number(subtotal.base),
        "tax_amount": json_number(subtotal.amount),
        "tax_category": {
            "id": tax.category.code,
            "percent": json_number(tax.percent.unwrap_or_default()),
        },
    })
}

/// Returns the document without the data for which the body of the request has no field.
pub(super) fn without_unsent_data(document: &TradeDocument) -> TradeDocument {
    let mut references = Vec::new();
    for (kind, _, is_list) in REFERENCES {
        let all = document.references.iter();
        let usable = all.filter(|one| one.kind == kind && date_value(one).is_some());
        references.extend(usable.take(if is_list { usize::MAX } else { 1 }).cloned());
    }
    let mut emptied = TradeDocument {
        references,
        period: document
            .period
            .filter(|_| delivery_period(document).is_some()),
        // The authority requires an amount in this field. The file has an account code.
        accounting_cost: None,
        ..document.clone()
    };
    let customer = counterparty_mut(&mut emptied);
    customer.registration = None;
    customer.address.state = None;
    emptied
}

/// Adds the references that have a date, because Create Invoice (Full) requires one. An IRN contains its date.
fn add_references(
    body: &mut Map<String, Value>,
    document: &TradeDocument,
    warnings: &mut Vec<String>,
) {
    for (kind, name, is_list) in REFERENCES {
        let all: Vec<_> = document
            .references
            .iter()
            .filter(|reference| reference.kind == kind)
            .collect();
        let mut usable: Vec<_> = all
            .iter()
            .filter_map(|reference| date_value(reference))
            .collect();
        if usable.len() < all.len() || (!is_list && usable.len() > 1) {
            warnings.push(format!(
                "References without a date, or more than one, do not go into {name}: \
                 kept for the UBL of the invoice."
            ));
        }
        if is_list && !usable.is_empty() {
            body.insert(name.to_owned(), Value::Array(usable));
        } else if !usable.is_empty() {
            body.insert(name.to_owned(), usable.swap_remove(0));
        }
    }
}

fn date_value(reference: &Reference) -> Option<Value> {
    let irn = Irn::parse(&reference.id).ok();
    let date = reference.issue_date.or_else(|| irn?.date())?;
    Some(json!({ "irn": reference.id, "issue_date": date.to_string() }))
}

fn add_payment_means(body: &mut Map<String, Value>, document: &TradeDocument) {
    let means = document.payment_means.iter().map(|means| {
        let mut one = Map::new();
        add_members(
            &mut one,
            [
                ("payment_means_code", value_if_filled(&means.means.code)),
                (
                    "payment_due_date",
                    means.due_date.map(|date| json!(date.to_string())),
                ),
            ],
        );
        Value::Object(one)
    });
    let means: Vec<_> = means.collect();
    if !means.is_empty() {
        body.insert("payment_means".to_owned(), Value::Array(means));
    }
}
