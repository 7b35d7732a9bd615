//! The facts in the head of a document: its dates, and the documents that it refers to.

use trade_document::{CodeAndName, Reference, ReferenceKind, TradeDocument};

use crate::dates::{write_date, write_issue_date, write_period};
use crate::labelled::LabelledText;
use crate::text::{TextSpace, fit_text, printable_text};

/// The space for a fact in a quarter of the page's width.
pub const FACT: TextSpace = TextSpace {
    characters_max: 120,
    word_max: 11_000,
};
/// The space for a sentence in at least half of the page's width.
pub const SENTENCE: TextSpace = TextSpace {
    characters_max: 2_000,
    word_max: 14_000,
};

/// Returns the title, such as "Credit note".
pub fn document_title(document_type: &CodeAndName) -> String {
    if document_type.name.is_empty() {
        printable_text(&format!("Document of type {}", document_type.code), FACT)
    } else {
        printable_text(&document_type.name, FACT)
    }
}

/// Returns a sentence for each document that this one corrects.
pub fn list_corrected_invoices(references: &[Reference]) -> Vec<String> {
    references
        .iter()
        .filter(|reference| reference.kind == ReferenceKind::Preceding)
        .map(|reference| {
            printable_text(
                &format!("Corrects {}", write_reference(reference)),
                SENTENCE,
            )
        })
        .collect()
}

/// Returns the dates and other short facts.
pub fn list_facts(document: &TradeDocument) -> Vec<LabelledText> {
    let dated = [
        (
            "Issued",
            Some(write_issue_date(document.issue_date, document.issue_time)),
        ),
        ("Due", document.due_date.map(write_date)),
        ("Delivered", document.delivery_date.map(write_date)),
        ("Tax point", document.tax_point_date.map(write_date)),
        ("Period", document.period.and_then(write_period)),
        ("Currency", Some(document.currency.clone())),
        ("Tax currency", document.tax_currency.clone()),
        ("Your reference", document.buyer_reference.clone()),
        ("Cost centre", document.accounting_cost.clone()),
    ];
    let referred = document
        .references
        .iter()
        .filter(|reference| reference.kind != ReferenceKind::Preceding)
        .map(|reference| {
            (
                reference_label(reference.kind),
                Some(write_reference(reference)),
            )
        });
    dated
        .into_iter()
        .chain(referred)
        .filter_map(|(label, text)| LabelledText::new(label, &text?, FACT))
        .collect()
}

fn write_reference(reference: &Reference) -> String {
    let id = fit_text(&reference.id, FACT.characters_max);
    match reference.issue_date {
        Some(date) => format!("{id} of {}", write_date(date)),
        None => id,
    }
}

const fn reference_label(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Preceding => "Corrects",
        ReferenceKind::Order => "Order",
        ReferenceKind::Dispatch => "Dispatch note",
        ReferenceKind::Receipt => "Receipt",
        ReferenceKind::Originator => "Tender",
        ReferenceKind::Contract => "Contract",
        ReferenceKind::Additional => "Other document",
    }
}
