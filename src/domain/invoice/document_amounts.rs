//! The lines and the amounts in the document of a stored invoice.

use serde_json::{Map, Value, json};

use crate::domain::invoice::breakdown::{Breakdown, TaxSubtotal};
use crate::domain::invoice::totals::TotalTooLarge;
use crate::domain::invoice::{Invoice, Line};
use crate::domain::kernel::codes::ItemType;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

/// Returns the members of the document that hold its lines and amounts, except charges and allowances on the whole
/// document.
pub fn amount_members(
    invoice: &Invoice,
    catalog: &Catalog,
) -> Result<Map<String, Value>, TotalTooLarge> {
    let breakdown = Breakdown::from_invoice(invoice, catalog)?;
    let mut members = sum_members(&breakdown);
    let currency = json!(invoice.currency);
    members.insert("document_currency_code".to_owned(), currency);
    let lines = lines(invoice, &breakdown);
    members.insert("invoice_line".to_owned(), lines);
    Ok(members)
}

/// Returns the members of a document that state its totals and its taxes.
pub(crate) fn sum_members(breakdown: &Breakdown) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("legal_monetary_total".to_owned(), totals(breakdown));
    if !breakdown.taxes.is_empty() {
        members.insert("tax_total".to_owned(), tax_total(breakdown));
    }
    members
}

fn totals(breakdown: &Breakdown) -> Value {
    let totals = breakdown.totals;
    json!({
        "line_extension_amount": totals.line_extension_amount,
        "tax_exclusive_amount": totals.tax_exclusive_amount,
        "tax_inclusive_amount": totals.tax_inclusive_amount,
        "payable_amount": totals.payable_amount,
    })
}

fn tax_total(breakdown: &Breakdown) -> Value {
    let subtotal = |part: &TaxSubtotal| {
        json!({
            "taxable_amount": part.base,
            "tax_amount": part.tax,
            "tax_category": { "id": part.category, "percent": part.percent },
        })
    };
    json!([{
        "tax_amount": breakdown.tax(),
        "tax_subtotal": breakdown.taxes.iter().map(subtotal).collect::<Vec<_>>(),
    }])
}

fn lines(invoice: &Invoice, breakdown: &Breakdown) -> Value {
    let lines = invoice.lines.iter().zip(&breakdown.lines);
    lines
        .map(|(line, amount)| document_line(line, *amount))
        .collect()
}

fn document_line(line: &Line, amount: Amount) -> Value {
    let stored = |name: &str| line.extras.get(name).cloned();
    let mut item = json!({
        "name": line.item_name,
        "description": stored("description").unwrap_or_else(|| json!(line.item_name)),
    });
    if let Some(number) = &line.item_no {
        item["sellers_item_identification"] = json!(number);
    }
    let mut document = json!({
        "invoiced_quantity": line.quantity,
        "line_extension_amount": amount,
        "tax_category": line.tax_category,
        "item": item,
        "price": {
            "price_amount": line.unit_price,
            "base_quantity": stored("base_quantity").unwrap_or_else(|| json!(1)),
            "price_unit": line.price_unit,
        },
    });
    // Create Invoice (Standard) has one code, which the document states both as the code and as the category.
    let (category, category_name, code_name) = match line.item_type {
        ItemType::Product => (&line.product_category, "product_category", "hsn_code"),
        ItemType::Service => (&line.service_category, "service_category", "isic_code"),
    };
    let code = stored(code_name).or_else(|| category.as_ref().map(|code| json!(code)));
    let rest = [
        (category_name, category.as_ref().map(|code| json!(code))),
        (code_name, code),
        ("discount_rate", line.discount_rate.map(|rate| json!(rate))),
        (
            "discount_amount",
            line.discount_amount.map(|sum| json!(sum)),
        ),
        ("fee_rate", stored("fee_rate")),
        ("fee_amount", stored("fee_amount")),
        ("total_tax", stored("total_tax")),
    ];
    for (name, value) in rest {
        if let Some(value) = value {
            document[name] = value;
        }
    }
    document
}
