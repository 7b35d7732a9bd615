//! Reads a line of Create Invoice (Full) (spec.md, `invoice_line[]`). Products and services need different codes.

use serde_json::{Map, Value, json};

use crate::domain::invoice::Line;
use crate::domain::kernel::codes::ItemType;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::ReferenceList;
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::field::{LONG_TEXT_CHARS_MAX, TEXT_CHARS_MAX};
use crate::http::forms::line::{
    PRODUCT_CODE, SERVICE_CODE, read_product_code, read_service_code, read_unit,
};
use crate::http::forms::reader::Reader;

/// A line, and the amount that the line adds to the sum of the lines.
#[derive(Debug, PartialEq)]
pub(crate) struct FullLine {
    pub(crate) line: Line,
    pub(crate) amount: Amount,
}

struct LineItem {
    name: String,
    no: Option<String>,
    description: String,
    item_type: ItemType,
}

struct Price {
    amount: Amount,
    base_quantity: Amount,
    unit: String,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<FullLine> {
    let mut item_type = None;
    let item = reader
        .required("item")
        .object(|reader| read_item(reader, &mut item_type));
    let price = reader.required("price").object(read_price);
    let quantity = reader
        .required("invoiced_quantity")
        .amount(AmountBounds::AT_LEAST_HUNDREDTH);
    let amount = reader
        .required("line_extension_amount")
        .amount(AmountBounds::AT_LEAST_HUNDREDTH);
    let is_product = item_type == Some(ItemType::Product);
    let is_service = item_type == Some(ItemType::Service);
    let product_category = reader
        .required_if(is_product, "product_category")
        .patterned_code(PRODUCT_CODE, ReferenceList::ProductCodes);
    let service_category = reader
        .required_if(is_service, "service_category")
        .patterned_code(SERVICE_CODE, ReferenceList::ServiceCodes);
    let hsn_code = read_product_code(reader.optional("hsn_code"));
    let isic_code = read_service_code(reader.optional("isic_code"));
    let tax_category = reader
        .required("tax_category")
        .code(ReferenceList::TaxCategories);
    let total_tax = reader
        .required("total_tax")
        .amount(AmountBounds::NOT_NEGATIVE);
    let discount_rate = reader
        .optional("discount_rate")
        .amount(AmountBounds::PERCENTAGE);
    let discount_amount = reader
        .optional("discount_amount")
        .amount(AmountBounds::NOT_NEGATIVE);
    let fee_rate = reader.optional("fee_rate").amount(AmountBounds::PERCENTAGE);
    let fee_amount = reader
        .optional("fee_amount")
        .amount(AmountBounds::NOT_NEGATIVE);
    refuse_codes_for_other_type(reader, item_type);
    let item = item?;
    let price = price?;
    let amount = amount?;
    let extras = [
        ("description", Some(json!(item.description))),
        ("base_quantity", Some(json!(price.base_quantity))),
        ("line_extension_amount", Some(json!(amount))),
        ("total_tax", Some(json!(total_tax?))),
        ("hsn_code", hsn_code.map(Value::from)),
        ("isic_code", isic_code.map(Value::from)),
        ("fee_rate", fee_rate.map(|rate| json!(rate))),
        ("fee_amount", fee_amount.map(|amount| json!(amount))),
    ];
    let line = Line {
        item_id: None,
        item_name: item.name,
        item_no: item.no,
        item_type: item.item_type,
        unit_price: price.amount,
        quantity: quantity?,
        price_unit: price.unit,
        tax_category: tax_category?,
        product_category,
        service_category,
        discount_rate,
        discount_amount,
        extras: present_fields(extras),
    };
    Some(FullLine { line, amount })
}

fn present_fields<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// Reads the item of a line. Sets `item_type` even if another field is invalid, because a later check needs the type.
fn read_item(reader: &mut Reader<'_>, item_type: &mut Option<ItemType>) -> Option<LineItem> {
    let name = reader.required("name").text(TEXT_CHARS_MAX);
    let description = reader
        .required("description")
        .long_text(0, LONG_TEXT_CHARS_MAX);
    let no = reader
        .optional("sellers_item_identification")
        .identifier(TEXT_CHARS_MAX);
    *item_type = reader
        .required("type")
        .word(ItemType::parse, ItemType::allowed_words);
    Some(LineItem {
        name: name?,
        no,
        description: description?,
        item_type: (*item_type)?,
    })
}

fn read_price(reader: &mut Reader<'_>) -> Option<Price> {
    let amount = reader
        .required("price_amount")
        .amount(AmountBounds::NOT_NEGATIVE);
    let base_quantity = reader
        .required("base_quantity")
        .amount(AmountBounds::AT_LEAST_HUNDREDTH);
    let unit = read_unit(reader.required("price_unit"));
    Some(Price {
        amount: amount?,
        base_quantity: base_quantity?,
        unit: unit?,
    })
}

fn refuse_codes_for_other_type(reader: &Reader<'_>, item_type: Option<ItemType>) {
    let (refused_fields, sentence) = match item_type {
        Some(ItemType::Product) => (["service_category", "isic_code"], "is for SERVICE lines"),
        Some(ItemType::Service) => (["product_category", "hsn_code"], "is for PRODUCT lines"),
        None => return,
    };
    for name in refused_fields.into_iter().filter(|name| reader.has(name)) {
        reader.report_fault(name, FieldRule::other("prohibited", sentence));
    }
}
