//! Writes the parts that concern the whole document: its numbers, dates and references.

use jiff::civil::Date;
use trade_document::{PaymentMeans, Reference, ReferenceKind, TradeDocument};

use super::{line, money, party};
use crate::codes::{self, RootKind};
use crate::element::{CURRENCY, Element};
use crate::fault::UnwritableDocument;
use crate::fixed_texts::{CUSTOMIZATION, IRN_DESCRIPTION, TAX_CURRENCY_DESCRIPTION};

const TAX_CURRENCY: &str = "cbc:TaxCurrencyCode";

pub(crate) fn to_element(document: &TradeDocument) -> Result<Element, UnwritableDocument> {
    let kind = &document.document_type;
    let (root_kind, code) =
        codes::ubl_document_type(&kind.code).ok_or_else(|| UnwritableDocument::DocumentType {
            code: kind.code.clone(),
            name: kind.name.clone(),
        })?;
    if document.lines.is_empty() {
        return Err(UnwritableDocument::NoLines);
    }
    let (name, type_name) = match root_kind {
        RootKind::Invoice => ("Invoice", "cbc:InvoiceTypeCode"),
        RootKind::CreditNote => ("CreditNote", "cbc:CreditNoteTypeCode"),
    };
    let mut root = Element::new(name);
    root.push(Element::leaf("cbc:CustomizationID", CUSTOMIZATION).with_default_mark());
    root.push_text("cbc:ID", Some(&document.number));
    root.push_text("cbc:IssueDate", Some(&document.issue_date.to_string()));
    root.push_text(
        "cbc:IssueTime",
        document.issue_time.map(|time| time.to_string()).as_deref(),
    );
    let mut type_code = Element::leaf(type_name, code).with_default_mark();
    let title = codes::document_type_name(&kind.code);
    if is_ambiguous_code(root_kind, code, &kind.code) {
        type_code = type_code.with_attribute("name", title);
    } else if kind.name != title {
        type_code = type_code.with_attribute("name", &kind.name);
    }
    root.push(type_code);
    for note in &document.notes {
        root.push_text("cbc:Note", Some(note));
    }
    push_date(&mut root, "cbc:TaxPointDate", document.tax_point_date);
    root.push_text("cbc:DocumentCurrencyCode", Some(&document.currency));
    root.push_text(TAX_CURRENCY, document.tax_currency.as_deref());
    root.push_text("cbc:AccountingCost", document.accounting_cost.as_deref());
    root.push_text("cbc:BuyerReference", document.buyer_reference.as_deref());
    if let Some(period) = document.period {
        let mut element = Element::new("cac:InvoicePeriod");
        push_date(&mut element, "cbc:StartDate", period.start);
        push_date(&mut element, "cbc:EndDate", period.end);
        root.push(element);
    }
    push_references(&mut root, document)?;
    // The schemas require both elements, even if nothing is known of a party.
    root.children
        .push(party::supplier_element(&document.supplier));
    root.children
        .push(party::customer_element(&document.customer));
    let mut delivery = Element::new("cac:Delivery");
    push_date(
        &mut delivery,
        "cbc:ActualDeliveryDate",
        document.delivery_date,
    );
    root.push(delivery);
    push_payment(&mut root, document, root_kind);
    money::push_sums(&mut root, document)?;
    for (index, one) in document.lines.iter().enumerate() {
        root.push(line::to_element(
            one,
            index + 1,
            root_kind,
            &document.currency,
        )?);
    }
    Ok(root)
}

/// Keeps the currency of the tax only if a total states the tax in it, because EN 16931 demands that total (BR-53).
/// Otherwise a reference holds the currency, so that a reader gets it back.
pub(super) fn move_unstated_tax_currency(root: &mut Element) {
    let currency = root.peek_at(TAX_CURRENCY);
    if states_tax_in_currency(root, &currency) {
        return;
    }
    root.children.retain(|child| child.name != TAX_CURRENCY);
    if !currency.is_empty() {
        root.push(
            Element::new("cac:AdditionalDocumentReference")
                .with(Element::leaf("cbc:ID", currency))
                .with(Element::leaf(
                    "cbc:DocumentDescription",
                    TAX_CURRENCY_DESCRIPTION,
                )),
        );
    }
}

fn states_tax_in_currency(root: &Element, currency: &str) -> bool {
    let totals = root.children_named("cac:TaxTotal");
    let mut attributes = totals
        .filter_map(|total| total.at("cbc:TaxAmount"))
        .flat_map(|amount| &amount.attributes);
    attributes.any(|one| one.name == CURRENCY && one.value == currency)
}

/// True if a reader would read this UBL code as another document type than the authority's `authority_code`.
fn is_ambiguous_code(root: RootKind, ubl_code: &str, authority_code: &str) -> bool {
    codes::read_document_type(root, ubl_code, None).value.code != authority_code
}

fn push_date(element: &mut Element, name: &str, date: Option<Date>) {
    element.push_text(name, date.map(|date| date.to_string()).as_deref());
}

fn push_references(root: &mut Element, document: &TradeDocument) -> Result<(), UnwritableDocument> {
    let orders = document
        .references
        .iter()
        .filter(|one| one.kind == ReferenceKind::Order)
        .count();
    if orders > 1 {
        return Err(UnwritableDocument::Orders(orders));
    }
    for reference in &document.references {
        root.push(match reference.kind {
            ReferenceKind::Preceding => Element::new("cac:BillingReference")
                .with(reference_element("cac:InvoiceDocumentReference", reference)),
            ReferenceKind::Order => reference_element("cac:OrderReference", reference),
            ReferenceKind::Dispatch => {
                reference_element("cac:DespatchDocumentReference", reference)
            }
            ReferenceKind::Receipt => reference_element("cac:ReceiptDocumentReference", reference),
            ReferenceKind::Originator => {
                reference_element("cac:OriginatorDocumentReference", reference)
            }
            ReferenceKind::Contract => {
                reference_element("cac:ContractDocumentReference", reference)
            }
            ReferenceKind::Additional => {
                reference_element("cac:AdditionalDocumentReference", reference)
            }
        });
    }
    if let Some(irn) = &document.irn {
        root.push(
            Element::new("cac:AdditionalDocumentReference")
                .with(Element::leaf("cbc:ID", irn))
                .with(Element::leaf("cbc:DocumentDescription", IRN_DESCRIPTION)),
        );
    }
    Ok(())
}

fn reference_element(name: &str, reference: &Reference) -> Element {
    let mut element = Element::new(name).with(Element::leaf("cbc:ID", &reference.id));
    push_date(&mut element, "cbc:IssueDate", reference.issue_date);
    element
}

/// Adds due date, payment means and terms. UBL has no element for the due date of a credit note, so it is written in
/// the terms, unless a reader finds it as the earliest due date of the payment means.
fn push_payment(root: &mut Element, document: &TradeDocument, kind: RootKind) {
    for means in &document.payment_means {
        root.push(means_element(means));
    }
    let mut terms = Element::new("cac:PaymentTerms");
    terms.push_text("cbc:Note", document.payment_terms.as_deref());
    let of_means = document
        .payment_means
        .iter()
        .filter_map(|means| means.due_date)
        .min();
    match kind {
        RootKind::Invoice => push_date(root, "cbc:DueDate", document.due_date),
        RootKind::CreditNote if document.due_date == of_means => {}
        RootKind::CreditNote => push_date(&mut terms, "cbc:PaymentDueDate", document.due_date),
    }
    root.push(terms);
}

fn means_element(means: &PaymentMeans) -> Element {
    let code = codes::ubl_payment_means(&means.means.code);
    let mut code = Element::leaf("cbc:PaymentMeansCode", code).with_default_mark();
    if !means.means.name.is_empty() {
        code = code.with_attribute("name", &means.means.name);
    }
    let mut element = Element::new("cac:PaymentMeans").with(code);
    push_date(&mut element, "cbc:PaymentDueDate", means.due_date);
    element
}
