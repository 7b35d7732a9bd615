//! Update Invoice (spec.md). The taxpayer actor later checks the rules that depend on stored data.

use std::sync::Arc;

use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::revision::{RevisedLine, Revision};
use crate::domain::kernel::codes::{CREDIT_NOTE_CODE, Category, ItemType};
use crate::domain::kernel::ids::ItemId;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::customer;
use crate::http::forms::document_header::is_correction;
use crate::http::forms::field::{IRN_CHARS_MAX, LONG_TEXT_CHARS_MAX, TEXT_CHARS_MAX};
use crate::http::forms::line::{
    read_product_code, read_service_code, read_unit, refuse_category_for_other_type,
};
use crate::http::forms::reader::Reader;
use crate::http::forms::unique_no;

#[derive(Debug)]
pub(crate) struct UpdateInvoice {
    pub(crate) invoice: InvoiceRef,
    pub(crate) revision: Revision,
}

pub(crate) fn read(reader: &mut Reader<'_>, catalog: &Arc<Catalog>) -> Option<UpdateInvoice> {
    let invoice = unique_no::read(reader);
    let category = reader
        .required("invoice_category")
        .word(Category::parse, Category::allowed_words);
    let customer = reader
        .required("customer")
        .object(|reader| customer::read(reader, category));
    let invoice_type = reader
        .required("invoice_type")
        .code(ReferenceList::InvoiceTypes);
    let is_credit_note = invoice_type.as_deref() == Some(CREDIT_NOTE_CODE);
    let original = reader
        .required_if(is_credit_note, "original_invoice_reference")
        .identifier(IRN_CHARS_MAX);
    if original.is_none() && invoice_type.as_deref().is_some_and(is_correction) {
        reader.warn(
            "the authority wants the original_invoice_reference of a credit or debit note when it is submitted",
        );
    }
    let due_date = reader.required("due_date").date();
    let note = reader.optional("note").long_text(0, LONG_TEXT_CHARS_MAX);
    let lines = reader.required("lines").objects(1, read_line);
    let revision = Revision {
        category: category?,
        invoice_type: invoice_type?,
        original,
        due_date: due_date?,
        note,
        customer: customer?,
        lines: lines?,
        catalog: Arc::clone(catalog),
    };
    Some(UpdateInvoice {
        invoice: invoice?,
        revision,
    })
}

fn read_line(reader: &mut Reader<'_>) -> Option<RevisedLine> {
    let item_id = reader.optional("item_id").id().map(ItemId);
    let has_no_item_id = !reader.has("item_id");
    let item_name = reader
        .required_if(has_no_item_id, "item_name")
        .text(TEXT_CHARS_MAX);
    let item_no = reader.optional("item_no").identifier(TEXT_CHARS_MAX);
    let item_type = reader
        .required_if(has_no_item_id, "item_type")
        .word(ItemType::parse, ItemType::allowed_words);
    let tax_category = reader
        .required_if(has_no_item_id, "tax_category")
        .code(ReferenceList::TaxCategories);
    let is_new_item = |kind: ItemType| has_no_item_id && item_type == Some(kind);
    let product_category =
        read_product_code(reader.required_if(is_new_item(ItemType::Product), "product_category"));
    let service_category =
        read_service_code(reader.required_if(is_new_item(ItemType::Service), "service_category"));
    let quantity = reader
        .required("quantity")
        .amount(AmountBounds::AT_LEAST_HUNDREDTH);
    let unit_price = reader
        .required("unit_price")
        .amount(AmountBounds::NOT_NEGATIVE);
    let price_unit = read_unit(reader.required("price_unit"));
    let description = reader
        .optional("description")
        .long_text(0, LONG_TEXT_CHARS_MAX);
    let discount_rate = reader
        .optional("discount_rate")
        .amount(AmountBounds::PERCENTAGE);
    let discount_amount = reader
        .optional("discount_amount")
        .amount(AmountBounds::NOT_NEGATIVE);
    refuse_category_for_other_type(reader, item_type);
    Some(RevisedLine {
        item_id,
        item_name,
        item_no,
        item_type,
        unit_price: unit_price?,
        quantity: quantity?,
        price_unit: price_unit?,
        tax_category,
        product_category,
        service_category,
        discount_rate,
        discount_amount,
        description,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::http::forms::testing::{
        self, INEXACT, broken_rules, number, numbers, read as read_with, texts, with_member,
    };

    fn form(reader: &mut Reader<'_>) -> Option<UpdateInvoice> {
        read(reader, &Arc::new(testing::catalog()))
    }

    fn check(cases: &[(&str, Option<Value>, &str)]) {
        testing::check(&testing::update_invoice(), cases, form);
    }

    #[test]
    fn every_required_field_is_required() {
        let fields = [
            "/unique_no",
            "/unique_no_type",
            "/customer",
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
            "/invoice_category",
            "/invoice_type",
            "/due_date",
            "/lines",
            "/lines/0/item_name",
            "/lines/0/item_type",
            "/lines/0/tax_category",
            "/lines/0/product_category",
            "/lines/0/quantity",
            "/lines/0/unit_price",
            "/lines/0/price_unit",
        ];
        testing::check_required(&testing::update_invoice(), &fields, form);
    }

    #[test]
    fn a_text_has_its_limits() {
        let limits = [
            ("/unique_no", 1, 273),
            ("/note", 1, 1_000),
            ("/customer/business_description", 5, 1_000),
            ("/lines/0/item_name", 1, 255),
            ("/lines/0/item_no", 1, 255),
            ("/lines/0/description", 1, 1_000),
        ];
        testing::check_texts(&testing::update_invoice(), &limits, form);
        testing::check_identifiers(
            &testing::update_invoice(),
            &["/unique_no", "/lines/0/item_no"],
            form,
        );
    }

    #[test]
    fn a_value_outside_what_its_field_takes_is_refused() {
        let beyond_ids = numbers(&["-1", "1e400", INEXACT[3]]);
        let cases = [
            ("/unique_no", "type", vec![json!(7)]),
            ("/unique_no_type", "one_of", texts(&["ID", "NUMBER"])),
            ("/invoice_category", "one_of", texts(&["Blank", "B2X"])),
            ("/invoice_type", "exists", texts(&["STANDARD", "999"])),
            ("/due_date", "date", texts(&["2026-02-30", "15-01-2026"])),
            ("/note", "type", vec![json!(7)]),
            ("/customer/email", "email", texts(&["plain"])),
            ("/lines", "type", vec![json!({}), json!("x")]),
            ("/lines/0", "type", vec![json!(7)]),
            ("/lines/0/item_id", "integer", beyond_ids),
            ("/lines/0/item_no", "type", vec![json!(7)]),
            (
                "/lines/0/product_category",
                "format",
                texts(&["8528", "852852"]),
            ),
            ("/lines/0/quantity", "min", numbers(&["0", "-1"])),
            ("/lines/0/quantity", "digits", numbers(&INEXACT)),
            ("/lines/0/quantity", "type", texts(&["two"])),
            ("/lines/0/unit_price", "min", numbers(&["-0.01"])),
            ("/lines/0/unit_price", "digits", numbers(&INEXACT)),
            ("/lines/0/price_unit", "max", texts(&["EACH"])),
            ("/lines/0/price_unit", "exists", texts(&["QQQ"])),
            ("/lines/0/discount_rate", "min", numbers(&["-0.01"])),
            ("/lines/0/discount_rate", "max", numbers(&["100.01"])),
            ("/lines/0/discount_amount", "min", numbers(&["-0.01"])),
        ];
        testing::check_refused(&testing::update_invoice(), &cases, form);
    }

    #[test]
    fn each_field_keeps_its_rule() {
        let cases = [
            (
                "/invoice_type",
                Some(json!("380")),
                "original_invoice_reference: required",
            ),
            ("/due_date", Some(json!("21-12-2026")), "due_date: date"),
            ("/lines", Some(json!([])), "lines: min"),
            (
                "/lines/0/item_id",
                Some(json!("7")),
                "lines.0.item_id: type",
            ),
            (
                "/lines/0/item_id",
                Some(json!(0)),
                "lines.0.item_id: integer",
            ),
            (
                "/lines/0/item_id",
                Some(number("1.5")),
                "lines.0.item_id: integer",
            ),
            (
                "/lines/0/item_id",
                Some(number("99999999999999999999")),
                "lines.0.item_id: integer",
            ),
            ("/lines/0/item_no", None, ""),
            (
                "/lines/0/item_type",
                Some(json!("GOODS")),
                "lines.0.item_type: one_of",
            ),
            (
                "/lines/0/tax_category",
                Some(json!("VAT")),
                "lines.0.tax_category: exists",
            ),
            (
                "/lines/0/product_category",
                Some(json!("1006")),
                "lines.0.product_category: format",
            ),
            ("/lines/0/product_category", Some(json!("9999.99")), ""),
            (
                "/lines/0/service_category",
                Some(json!("6201")),
                "lines.0.service_category: prohibited",
            ),
            (
                "/lines/0/quantity",
                Some(number("0.009")),
                "lines.0.quantity: min",
            ),
            ("/lines/0/quantity", Some(number("0.01")), ""),
            (
                "/lines/0/unit_price",
                Some(json!(-1)),
                "lines.0.unit_price: min",
            ),
            ("/lines/0/unit_price", Some(json!(0)), ""),
            (
                "/lines/0/price_unit",
                Some(json!("KGMS")),
                "lines.0.price_unit: max",
            ),
            (
                "/lines/0/price_unit",
                Some(json!("ZZ")),
                "lines.0.price_unit: exists",
            ),
            (
                "/lines/0/discount_rate",
                Some(json!(101)),
                "lines.0.discount_rate: max",
            ),
            ("/lines/0/discount_rate", Some(json!(100)), ""),
            (
                "/lines/0/description",
                Some(json!("\u{202e}several\nlines")),
                "",
            ),
            (
                "/lines/0/discount_amount",
                Some(json!(-1)),
                "lines.0.discount_amount: min",
            ),
        ];
        check(&cases);
    }

    #[test]
    fn an_item_id_replaces_name_type_and_tax_category() {
        let line = json!({ "item_id": 7, "quantity": 1, "unit_price": 5, "price_unit": "EA" });
        let body = with_member(&testing::update_invoice(), "/lines/0", Some(line));
        let form = read_with(body, form).unwrap().value;
        assert_eq!(form.revision.lines[0].item_id, Some(ItemId(7)));
        assert_eq!(form.revision.lines[0].item_name, None);
    }

    #[test]
    fn a_service_needs_its_own_category() {
        let body = with_member(
            &testing::update_invoice(),
            "/lines/0/item_type",
            Some(json!("SERVICE")),
        );
        let faults = [
            "lines.0.service_category: required",
            "lines.0.product_category: prohibited",
        ];
        assert_eq!(broken_rules(read_with(body.clone(), form)), faults);
        let body = with_member(&body, "/lines/0/product_category", None);
        let body = with_member(&body, "/lines/0/service_category", Some(json!("6201")));
        assert_eq!(broken_rules(read_with(body, form)), [""; 0]);
    }

    #[test]
    fn a_consumer_needs_no_tax_number() {
        let mut body = with_member(
            &testing::update_invoice(),
            "/invoice_category",
            Some(json!("b2c")),
        );
        for pointer in ["/customer/tin", "/customer/business_description"] {
            body = with_member(&body, pointer, None);
        }
        assert_eq!(broken_rules(read_with(body, form)), [""; 0]);
    }
}
