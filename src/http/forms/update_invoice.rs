//! Update Invoice (spec.md). What a line leaves to its item, and which invoice the original is, only the books can
//! tell; the rest is checked here.

use std::sync::Arc;

use crate::actors::taxpayer::command::Which;
use crate::domain::catalog::{Catalog, List};
use crate::domain::codes::{CREDIT_NOTE_CODE, Category, ItemType};
use crate::domain::ids::ItemId;
use crate::domain::revision::{RevisedLine, Revision};
use crate::http::forms::field::{Bounds, IRN_MAX, LONG_TEXT_MAX, TEXT_MAX};
use crate::http::forms::line::{product_code, refuse_other_category, service_code, unit};
use crate::http::forms::reader::Reader;
use crate::http::forms::{customer, unique_no};

#[derive(Debug)]
pub(crate) struct UpdateInvoice {
    pub(crate) which: Which,
    pub(crate) revision: Revision,
}

pub(crate) fn read(reader: &mut Reader<'_>, catalog: &Arc<Catalog>) -> Option<UpdateInvoice> {
    let which = unique_no::read(reader);
    let category = reader.required("invoice_category").word(Category::parse, Category::allowed);
    let customer = reader.required("customer").object(|reader| customer::read(reader, category));
    let invoice_type = reader.required("invoice_type").code(List::InvoiceTypes);
    let is_credit_note = invoice_type.as_deref() == Some(CREDIT_NOTE_CODE);
    let original = reader.required_if(is_credit_note, "original_invoice_reference").text(IRN_MAX);
    let due_date = reader.required("due_date").date();
    let note = reader.optional("note").long_text(0, LONG_TEXT_MAX);
    let lines = reader.required("lines").objects(1, line);
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
    Some(UpdateInvoice { which: which?, revision })
}

fn line(reader: &mut Reader<'_>) -> Option<RevisedLine> {
    let item_id = reader.optional("item_id").id().map(ItemId);
    let is_spelled_out = !reader.has("item_id");
    let item_name = reader.required_if(is_spelled_out, "item_name").text(TEXT_MAX);
    let item_no = reader.optional("item_no").text(TEXT_MAX);
    let item_type = reader.required_if(is_spelled_out, "item_type").word(ItemType::parse, ItemType::allowed);
    let tax_category = reader.required_if(is_spelled_out, "tax_category").code(List::TaxCategories);
    let is_new = |kind: ItemType| is_spelled_out && item_type == Some(kind);
    let product_category = product_code(reader.required_if(is_new(ItemType::Product), "product_category"));
    let service_category = service_code(reader.required_if(is_new(ItemType::Service), "service_category"));
    let quantity = reader.required("quantity").amount(Bounds::HUNDREDTH);
    let unit_price = reader.required("unit_price").amount(Bounds::NOT_NEGATIVE);
    let price_unit = unit(reader.required("price_unit"));
    let description = reader.optional("description").long_text(0, LONG_TEXT_MAX);
    let discount_rate = reader.optional("discount_rate").amount(Bounds::PERCENTAGE);
    let discount_amount = reader.optional("discount_amount").amount(Bounds::NOT_NEGATIVE);
    refuse_other_category(reader, item_type);
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
