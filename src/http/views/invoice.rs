//! An invoice, with its lines, its payment ledger, its credit notes and the address of its public page if the caller
//! requests them.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::{InvoiceObject, precise_time};
use crate::domain::invoice::{Invoice, Line};
use crate::domain::kernel::codes::{PaymentStatus, words};
use crate::domain::kernel::ids::ItemId;
use crate::domain::money::Amount;
use crate::domain::payment::LedgerEntry;
use crate::http::views::actor::ActorView;
use crate::http::views::credits::CreditsView;

words! {
    /// A part of an invoice that the `include` parameter of a request adds.
    IncludedPart {
        Lines = "lines",
        Ledger = "ledger",
        Credits = "credits",
        VerifyLink = "verify_link",
    }
}

/// The parts of an invoice that the `include` parameter of a request names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IncludedParts {
    parts: BTreeSet<IncludedPart>,
    /// The words in `include` that are not names of parts of an invoice. The response warns about each of them.
    pub(crate) unknown_words: Vec<String>,
}

impl IncludedParts {
    pub(crate) fn only(part: IncludedPart) -> Self {
        Self {
            parts: BTreeSet::from([part]),
            unknown_words: Vec::new(),
        }
    }

    pub(crate) fn has(&self, part: IncludedPart) -> bool {
        self.parts.contains(&part)
    }

    /// Parses the value of `include`: words separated by commas, in upper or lower case.
    pub(crate) fn from_text(text: &str) -> Self {
        let mut included = Self::default();
        for word in text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            match IncludedPart::parse(word) {
                Some(part) => drop(included.parts.insert(part)),
                None => included.unknown_words.push(word.to_owned()),
            }
        }
        included
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InvoiceWithParts)]
pub(crate) struct InvoiceView<'a> {
    #[serde(flatten)]
    object: InvoiceObject<'a>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<Vec<LineView<'a>>>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger: Option<LedgerView>,
    /// The credit notes and the corrections of the invoice, and what they leave to pay.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    credits: Option<CreditsView<'a>>,
    /// The address of the public page on which anybody sees that the invoice is signed.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    verify_link: Option<String>,
}

impl<'a> InvoiceView<'a> {
    /// Creates the view. The ledger is shown only if `entries` is given.
    pub(crate) fn new(
        invoice: &'a Invoice,
        included: &IncludedParts,
        entries: Option<Vec<LedgerEntry>>,
    ) -> Self {
        let lines = invoice.lines.iter().map(LineView::from);
        Self {
            object: InvoiceObject::from(invoice),
            lines: included.has(IncludedPart::Lines).then(|| lines.collect()),
            ledger: entries
                .map(|entries| LedgerView::new(invoice.payment.payable_as_signed(), entries)),
            credits: None,
            verify_link: None,
        }
    }

    pub(crate) fn with_credits(self, credits: Option<CreditsView<'a>>) -> Self {
        Self { credits, ..self }
    }

    pub(crate) fn with_verify_link(self, verify_link: Option<String>) -> Self {
        Self {
            verify_link,
            ..self
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct LineView<'a> {
    item_id: Option<ItemId>,
    item_name: &'a str,
    item_no: Option<&'a str>,
    item_type: String,
    unit_price: Amount,
    quantity: Amount,
    price_unit: &'a str,
    tax_category: &'a str,
    product_category: Option<&'a str>,
    service_category: Option<&'a str>,
    discount_rate: Option<Amount>,
    discount_amount: Option<Amount>,
    #[serde(flatten)]
    extras: &'a Map<String, Value>,
}

impl<'a> From<&'a Line> for LineView<'a> {
    fn from(line: &'a Line) -> Self {
        Self {
            item_id: line.item_id,
            item_name: &line.item_name,
            item_no: line.item_no.as_deref(),
            item_type: line.item_type.as_str().to_ascii_lowercase(),
            unit_price: line.unit_price,
            quantity: line.quantity,
            price_unit: &line.price_unit,
            tax_category: &line.tax_category,
            product_category: line.product_category.as_deref(),
            service_category: line.service_category.as_deref(),
            discount_rate: line.discount_rate,
            discount_amount: line.discount_amount,
            extras: &line.extras,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct LedgerView {
    payable_amount: Amount,
    amount_paid: Amount,
    entries: Vec<EntryView>,
}

impl LedgerView {
    /// Creates the ledger. The paid amount is the sum of the entries, so the two agree even if a payment arrives now.
    fn new(payable: Amount, entries: Vec<LedgerEntry>) -> Self {
        let amounts = entries.iter().map(|entry| entry.posting.amount);
        Self {
            payable_amount: payable,
            amount_paid: Amount::sum(amounts).unwrap_or_default(),
            entries: entries.into_iter().map(EntryView::from).collect(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct EntryView {
    at: String,
    status: PaymentStatus,
    amount: Amount,
    /// The day of the payment, as it was sent; null if none was sent, so that the day of `at` counts.
    payment_date: Option<String>,
    reference: Option<String>,
    remark: Option<String>,
    /// The actor that recorded the payment; null for old payments, for which no actor was stored.
    actor: Option<ActorView>,
}

impl From<LedgerEntry> for EntryView {
    fn from(entry: LedgerEntry) -> Self {
        Self {
            at: precise_time(entry.at),
            status: entry.posting.status,
            amount: entry.posting.amount,
            payment_date: entry.payment_date.map(|date| date.to_string()),
            reference: entry.reference,
            remark: entry.remark,
            actor: entry.actor.map(ActorView::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_included_parts_are_named_by_words() {
        let both = IncludedParts {
            parts: BTreeSet::from([IncludedPart::Lines, IncludedPart::Ledger]),
            unknown_words: Vec::new(),
        };
        assert_eq!(IncludedParts::from_text("lines,ledger"), both);
        assert_eq!(IncludedParts::from_text(" Ledger ,LINES,lines,"), both);
        assert_eq!(IncludedParts::from_text(""), IncludedParts::default());
        assert_eq!(
            IncludedParts::from_text("line,ledger").unknown_words,
            ["line"]
        );
    }
}
