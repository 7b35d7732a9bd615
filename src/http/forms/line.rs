//! Reads a line of the standard endpoints (spec.md, "Create Invoice (Standard)"), and the codes that lines use.

use serde_json::Map;

use crate::domain::invoice::Line;
use crate::domain::kernel::codes::ItemType;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::reference::catalog::ReferenceList;
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::field::{Field, TEXT_CHARS_MAX};
use crate::http::forms::reader::Reader;

/// The maximum length of the code of a unit of quantity, in characters.
const UNIT_CHARS_MAX: usize = 3;

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Line> {
    read_with_quantity_bounds(reader, AmountBounds::POSITIVE)
}

/// Reads a line. `quantity_bounds` is the allowed range of the quantity.
pub(crate) fn read_with_quantity_bounds(
    reader: &mut Reader<'_>,
    quantity_bounds: AmountBounds,
) -> Option<Line> {
    let item_name = reader.required("item_name").text(TEXT_CHARS_MAX);
    let item_no = reader.required("item_no").identifier(TEXT_CHARS_MAX);
    let item_type = reader
        .required("item_type")
        .word(ItemType::parse, ItemType::allowed_words);
    let unit_price = reader
        .required("unit_price")
        .amount(AmountBounds::NOT_NEGATIVE);
    let quantity = reader.required("quantity").amount(quantity_bounds);
    let price_unit = read_unit(reader.required("price_unit"));
    let tax_category = reader
        .required("tax_category")
        .code(ReferenceList::TaxCategories);
    let product_category = read_product_code(reader.optional("product_category"));
    let service_category = read_service_code(reader.optional("service_category"));
    let discount_rate = reader
        .optional("discount_rate")
        .amount(AmountBounds::PERCENTAGE);
    let discount_amount = reader
        .optional("discount_amount")
        .amount(AmountBounds::NOT_NEGATIVE);
    refuse_category_for_other_type(reader, item_type);
    Some(Line {
        item_id: None,
        item_name: item_name?,
        item_no: Some(item_no?),
        item_type: item_type?,
        unit_price: unit_price?,
        quantity: quantity?,
        price_unit: price_unit?,
        tax_category: tax_category?,
        product_category,
        service_category,
        discount_rate,
        discount_amount,
        extras: Map::new(),
    })
}

/// Reports a fault if a product line has a service category or a service line has a product category.
pub(crate) fn refuse_category_for_other_type(reader: &Reader<'_>, item_type: Option<ItemType>) {
    let refused_field = match item_type {
        Some(ItemType::Product) => "service_category",
        Some(ItemType::Service) => "product_category",
        None => return,
    };
    if reader.has(refused_field) {
        let sentence = if refused_field == "service_category" {
            "is for SERVICE lines"
        } else {
            "is for PRODUCT lines"
        };
        reader.report_fault(refused_field, FieldRule::other("prohibited", sentence));
    }
}

/// Reads a unit of quantity: a code from the authority's list. The authority also limits the code's length.
pub(crate) fn read_unit(field: Field<'_>) -> Option<String> {
    field.short_code(UNIT_CHARS_MAX, ReferenceList::QuantityCodes)
}

/// The patterns of product codes and service codes (spec.md). Each 9 stands for one digit.
pub(crate) const PRODUCT_CODE: &str = "9999.99";
pub(crate) const SERVICE_CODE: &str = "9999";

pub(crate) fn read_product_code(field: Field<'_>) -> Option<String> {
    field.text_with_pattern(PRODUCT_CODE)
}

pub(crate) fn read_service_code(field: Field<'_>) -> Option<String> {
    field.text_with_pattern(SERVICE_CODE)
}
