//! A trade document as the body of Create Invoice (Standard).

use serde_json::{Map, Value, json};
use trade_document::{ItemKind, Line, Party, ReferenceKind, TradeDocument};

use crate::domain::import::body_members::{
    add_members, json_number, optional_value, party_name, value_if_filled,
};
use crate::domain::import::ubl_parties::counterparty_mut;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::ubl_parts::counterparty;
use crate::domain::kernel::codes::{ItemType, UniqueNoType};

/// Returns the body of a document without charges of its own. Each of its lines has at most one discount.
pub(super) fn standard_invoice_body(
    document: &TradeDocument,
    warnings: &mut Vec<String>,
) -> Map<String, Value> {
    let mut body = Map::new();
    let original = corrected_invoice_id(document);
    let kind = original.map(|id| match Irn::parse(id) {
        Ok(_) => UniqueNoType::Irn,
        Err(_) => UniqueNoType::ExternalInvoiceNo,
    });
    let lines = document.lines.iter().enumerate();
    let lines: Vec<_> = lines
        .map(|(index, one)| line(index, one, warnings))
        .collect();
    add_members(
        &mut body,
        [
            ("invoice_no", value_if_filled(&document.number)),
            (
                "invoice_type_code",
                value_if_filled(&document.document_type.code),
            ),
            ("original_invoice_reference", original.map(Value::from)),
            (
                "original_invoice_reference_type",
                kind.map(|kind| json!(kind)),
            ),
            ("invoice_date", Some(json!(document.issue_date.to_string()))),
            (
                "due_date",
                document.due_date.map(|date| json!(date.to_string())),
            ),
            ("currency", value_if_filled(&document.currency)),
            (
                "customer",
                Some(Value::Object(customer(counterparty(document)))),
            ),
            ("invoice_lines", Some(Value::Array(lines))),
        ],
    );
    warnings.extend(tax_point_warning(document));
    let kept = unsent_part_names(document);
    if !kept.is_empty() {
        warnings.push(format!(
            "Create Standard has no field for {}: kept for the UBL of the invoice.",
            kept.join(", ")
        ));
    }
    body
}

/// Returns a warning if the tax date differs from the issue date, because a standard invoice has no tax date of its
/// own.
fn tax_point_warning(document: &TradeDocument) -> Option<String> {
    let issued = document.issue_date;
    let date = document.tax_point_date.filter(|date| *date != issued)?;
    Some(format!(
        "Create Standard has no field for the tax point date, {date}: it became the invoice date, {issued}."
    ))
}

/// Returns the document without the data for which the body of Create Invoice (Standard) has no field.
pub(super) fn without_unsent_data(document: &TradeDocument) -> TradeDocument {
    // Keeps only references by IRN: the number of an invoice that is not stored here means nothing to the authority.
    let references = document.references.iter();
    let references = references.filter(|one| one.kind == ReferenceKind::Preceding);
    let with_irn = references.filter(|one| Irn::parse(&one.id).is_ok());
    let mut emptied = TradeDocument {
        issue_time: None,
        notes: Vec::new(),
        payment_terms: None,
        payment_means: Vec::new(),
        period: None,
        delivery_date: None,
        tax_currency: None,
        buyer_reference: None,
        accounting_cost: None,
        references: with_irn.cloned().collect(),
        ..document.clone()
    };
    let customer = counterparty_mut(&mut emptied);
    customer.registration = None;
    customer.telephone = None;
    for line in &mut emptied.lines {
        line.description = None;
    }
    emptied
}

/// Returns the names of those parts of the document for which the body of Create Invoice (Standard) has no field.
fn unsent_part_names(document: &TradeDocument) -> Vec<&'static str> {
    let customer = counterparty(document);
    let mut references = document.references.iter();
    let mut lines = document.lines.iter();
    let parts = [
        (document.issue_time.is_some(), "the time of issue"),
        (
            customer.registration.is_some(),
            "the customer's registration",
        ),
        (customer.telephone.is_some(), "the customer's telephone"),
        (
            lines.any(|line| line.description.is_some()),
            "the descriptions of lines",
        ),
        (!document.notes.is_empty(), "the notes"),
        (document.payment_terms.is_some(), "the terms of payment"),
        (!document.payment_means.is_empty(), "the means of payment"),
        (document.period.is_some(), "the period"),
        (document.delivery_date.is_some(), "the date of delivery"),
        (document.tax_currency.is_some(), "the currency of the tax"),
        (document.buyer_reference.is_some(), "the buyer's reference"),
        (document.accounting_cost.is_some(), "the accounting cost"),
        (
            references.any(|reference| reference.kind != ReferenceKind::Preceding),
            "references to other documents",
        ),
    ];
    parts
        .into_iter()
        .filter_map(|(is_present, name)| is_present.then_some(name))
        .collect()
}

fn customer(party: &Party) -> Map<String, Value> {
    let mut customer = Map::new();
    add_members(
        &mut customer,
        [
            ("no", optional_value(party.number.as_deref())),
            ("name", party_name(party)),
            ("email", optional_value(party.email.as_deref())),
            ("tin", optional_value(party.tin.as_deref())),
            (
                "business_description",
                optional_value(party.description.as_deref()),
            ),
            (
                "address_street_name",
                optional_value(party.address.street.as_deref()),
            ),
            (
                "address_city",
                optional_value(party.address.city.as_deref()),
            ),
            (
                "address_state",
                optional_value(party.address.state.as_deref()),
            ),
            (
                "address_postal_code",
                optional_value(party.address.postal_code.as_deref()),
            ),
            (
                "address_country",
                optional_value(party.address.country.as_deref()),
            ),
        ],
    );
    customer
}

fn line(index: usize, line: &Line, warnings: &mut Vec<String>) -> Value {
    let discount: rust_decimal::Decimal = line.charges.iter().map(|charge| charge.amount).sum();
    let item_no = line.item_number.as_deref().and_then(value_if_filled);
    if item_no.is_none() {
        warnings.push(format!(
            "invoice_lines.{index}.item_no is the item's name, because the file has no number of it."
        ));
    }
    let (item_type, category_name, pattern) = match line.item_kind {
        ItemKind::Product => (ItemType::Product, "product_category", "9999.99"),
        ItemKind::Service => (ItemType::Service, "service_category", "9999"),
    };
    let category = matching_classification_code(line, pattern, category_name, index, warnings);
    let mut body = Map::new();
    add_members(
        &mut body,
        [
            ("item_name", value_if_filled(&line.name)),
            ("item_no", item_no.or_else(|| value_if_filled(&line.name))),
            ("item_type", Some(json!(item_type))),
            ("unit_price", Some(json_number(line.price))),
            ("quantity", Some(json_number(line.quantity))),
            ("price_unit", value_if_filled(&line.unit.code)),
            ("tax_category", value_if_filled(&line.tax.category.code)),
            (category_name, category),
            (
                "discount_amount",
                (!discount.is_zero()).then(|| json_number(discount)),
            ),
        ],
    );
    Value::Object(body)
}

/// Returns the id of the invoice that a document corrects.
fn corrected_invoice_id(document: &TradeDocument) -> Option<&str> {
    let mut references = document.references.iter();
    let found = references.find(|reference| reference.kind == ReferenceKind::Preceding);
    found.map(|reference| reference.id.as_str())
}

/// Returns the classification code of a line if it has the pattern of the authority's codes.
pub(super) fn matching_classification_code(
    line: &Line,
    pattern: &str,
    name: &str,
    index: usize,
    warnings: &mut Vec<String>,
) -> Option<Value> {
    let code = line.classification.as_deref()?;
    let fits = code.len() == pattern.len()
        && code
            .bytes()
            .zip(pattern.bytes())
            .all(|(letter, wanted)| match wanted {
                b'9' => letter.is_ascii_digit(),
                other => letter == other,
            });
    if !fits {
        warnings.push(format!(
            "The classification {code} of line {} is no {name}: left out.",
            index + 1
        ));
    }
    fits.then(|| Value::from(code))
}
