//! Writes one line.

use rust_decimal::Decimal;
use trade_document::{ItemKind, Line};

use super::money::{amount_element, charge_element, plain_number, tax_category_element};
use crate::codes::{RootKind, is_time_unit};
use crate::element::{Element, UNIT};
use crate::fault::UnwritableDocument;
use crate::fixed_texts::{ITEM_TYPE, ITEM_TYPES, PRODUCT_LIST, SERVICE_LIST};

pub(super) fn to_element(
    line: &Line,
    number: usize,
    root: RootKind,
    currency: &str,
) -> Result<Element, UnwritableDocument> {
    let (name, quantity_name) = match root {
        RootKind::Invoice => ("cac:InvoiceLine", "cbc:InvoicedQuantity"),
        RootKind::CreditNote => ("cac:CreditNoteLine", "cbc:CreditedQuantity"),
    };
    let mut element = Element::new(name);
    element.push(Element::leaf("cbc:ID", number.to_string()).with_default_mark());
    element.push(quantity_element(quantity_name, line.quantity, line));
    element.push(amount_element(
        "cbc:LineExtensionAmount",
        line.amount,
        currency,
    ));
    for charge in &line.charges {
        element.push(charge_element(charge, charge.tax.as_ref(), currency)?);
    }
    element.push(item_element(line)?);
    let mut price =
        Element::new("cac:Price").with(amount_element("cbc:PriceAmount", line.price, currency));
    if line.base_quantity != Decimal::ONE {
        price.push(quantity_element(
            "cbc:BaseQuantity",
            line.base_quantity,
            line,
        ));
    }
    element.push(price);
    Ok(element)
}

fn quantity_element(name: &str, value: Decimal, line: &Line) -> Element {
    Element::leaf(name, plain_number(value)).with_attribute(UNIT, &line.unit.code)
}

fn item_element(line: &Line) -> Result<Element, UnwritableDocument> {
    let mut item = Element::new("cac:Item");
    item.push_text("cbc:Description", line.description.as_deref());
    item.push_text("cbc:Name", Some(&line.name));
    if let Some(number) = &line.item_number {
        item.push(
            Element::new("cac:SellersItemIdentification").with(Element::leaf("cbc:ID", number)),
        );
    }
    if let Some(code) = &line.classification {
        let list = match line.item_kind {
            ItemKind::Product => PRODUCT_LIST,
            ItemKind::Service => SERVICE_LIST,
        };
        let code = Element::leaf("cbc:ItemClassificationCode", code).with_attribute("listID", list);
        item.push(Element::new("cac:CommodityClassification").with(code));
    }
    item.push(tax_category_element(
        "cac:ClassifiedTaxCategory",
        &line.tax,
        false,
    )?);
    let is_plain_product = line.item_kind == ItemKind::Product && !is_time_unit(&line.unit.code);
    let word = ITEM_TYPES.iter().find(|(_, kind)| *kind == line.item_kind);
    if let (false, Some((word, _))) = (is_plain_product, word) {
        item.push(
            Element::new("cac:AdditionalItemProperty")
                .with(Element::leaf("cbc:Name", ITEM_TYPE))
                .with(Element::leaf("cbc:Value", *word)),
        );
    }
    Ok(item)
}
