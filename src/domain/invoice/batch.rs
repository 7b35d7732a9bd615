//! A batch is a list of invoices in one request. Each is validated on its own; the valid ones share a transaction.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::{Draft, Invoice};
use crate::domain::kernel::codes::{WorkflowStatus, words};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};

/// The maximum number of invoices in a batch.
pub const INVOICES_MAX: usize = 1_000;
/// The maximum number of faults that are stored for one item. This limits the size of a stored result.
pub const ITEM_FAULTS_MAX: usize = 20;
/// The maximum number of warnings that are stored for one item, and the maximum length of each, in characters.
const ITEM_WARNINGS_MAX: usize = 20;
const WARNING_CHARS_MAX: usize = 200;
/// The path of a fault that concerns a whole item and not one of its fields.
pub const WHOLE_ITEM_PATH: &str = "invoice";

words! {
    /// The result of one item of a batch.
    ItemOutcome { Created = "created", Duplicate = "duplicate", Failed = "failed" }
}

words! {
    /// The contents of an existing invoice, compared with those that were sent under its number.
    Duplicate { Identical = "identical", Different = "different" }
}

/// One item of a batch, as parsed from the request.
#[derive(Debug, Clone)]
pub struct BatchCandidate {
    /// The invoice number that the caller sent. `None` if it is missing or malformed.
    pub invoice_no: Option<String>,
    pub draft: Result<Box<Draft>, Faults>,
    /// The warnings about an item without faults.
    pub warnings: Vec<String>,
}

/// A batch and the results of its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub taxpayer_id: TaxpayerId,
    pub batch_no: String,
    /// The items, in the order of the request.
    pub items: Vec<BatchItem>,
    pub created_at: Timestamp,
}

/// The result of one item of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchItem {
    pub invoice_no: Option<String>,
    pub outcome: ItemOutcome,
    /// The id of the created invoice, or of the existing invoice with the same number.
    pub id: Option<InvoiceId>,
    pub irn: Option<String>,
    /// Set for a duplicate; `None` in results that an older version stored.
    pub duplicate: Option<Duplicate>,
    /// True if the existing invoice is cancelled. True for a created invoice that replaced a cancelled one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub existing_cancelled: bool,
    /// The error messages of a failed item. The key is the dot path of a field within the item.
    pub errors: Option<BTreeMap<String, Vec<String>>>,
    /// Empty in results that an older version stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Batch {
    pub fn count(&self, outcome: ItemOutcome) -> usize {
        self.items
            .iter()
            .filter(|item| item.outcome == outcome)
            .count()
    }

    /// Returns the number of duplicates whose contents differ from those of the existing invoice.
    pub fn count_different_duplicates(&self) -> usize {
        let items = self.items.iter();
        items
            .filter(|item| item.duplicate == Some(Duplicate::Different))
            .count()
    }
}

impl BatchItem {
    /// Returns the result for a new invoice, or for an existing invoice whose number was sent again.
    pub fn for_invoice(invoice: &Invoice, duplicate: Option<Duplicate>) -> Self {
        Self {
            invoice_no: Some(invoice.invoice_no.clone()),
            id: Some(invoice.id),
            existing_cancelled: duplicate.is_some() && invoice.status == WorkflowStatus::Cancelled,
            ..Self::for_irn(&invoice.irn, duplicate)
        }
    }

    /// Returns the result for an invoice that replaces the contents of this cancelled invoice, or has replaced them.
    pub fn for_replaced(invoice: &Invoice) -> Self {
        Self {
            existing_cancelled: true,
            ..Self::for_invoice(invoice, None)
        }
    }

    /// Returns the result for an invoice that has no id, because it is not stored, or not yet.
    pub fn for_irn(irn: &Irn, duplicate: Option<Duplicate>) -> Self {
        Self {
            invoice_no: None,
            outcome: match duplicate {
                Some(_) => ItemOutcome::Duplicate,
                None => ItemOutcome::Created,
            },
            id: None,
            irn: Some(irn.to_string()),
            duplicate,
            existing_cancelled: false,
            errors: None,
            warnings: Vec::new(),
        }
    }

    pub fn from_faults(invoice_no: Option<String>, faults: &Faults) -> Self {
        let mut errors: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for fault in faults.iter().take(ITEM_FAULTS_MAX) {
            errors
                .entry(fault.path.clone())
                .or_default()
                .push(fault.to_string());
        }
        if faults.iter().count() >= ITEM_FAULTS_MAX {
            let more = format!("Only the first {ITEM_FAULTS_MAX} errors are listed.");
            errors
                .entry(WHOLE_ITEM_PATH.to_owned())
                .or_default()
                .push(more);
        }
        Self {
            invoice_no,
            outcome: ItemOutcome::Failed,
            id: None,
            irn: None,
            duplicate: None,
            existing_cancelled: false,
            errors: Some(errors),
            warnings: Vec::new(),
        }
    }

    /// Adds the warnings about the item. Keeps the first of many, and the beginning of long ones.
    #[must_use]
    pub fn with_warnings(self, warnings: &[String]) -> Self {
        let kept = warnings.iter().take(ITEM_WARNINGS_MAX);
        let kept = kept.map(|warning| warning.chars().take(WARNING_CHARS_MAX).collect::<String>());
        let further_count = warnings.len().saturating_sub(ITEM_WARNINGS_MAX);
        let further = format!("There are {further_count} more warnings.");
        Self {
            warnings: kept.chain((further_count > 0).then_some(further)).collect(),
            ..self
        }
    }
}

/// Creates a batch number from the day and a random part that nobody can guess.
pub fn draw_batch_number(now: Timestamp, chance: &mut impl rand::CryptoRng) -> String {
    format!(
        "B{}-{:016X}",
        now.strftime("%Y%m%d"),
        chance.random::<u64>()
    )
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;
    use crate::domain::kernel::fault::Fault;

    #[test]
    fn a_number_begins_with_its_day_and_is_never_drawn_twice() {
        let mut chance = StdRng::from_seed([7; 32]);
        let one = draw_batch_number(Timestamp::UNIX_EPOCH, &mut chance);
        assert_eq!((&one[..10], one.len()), ("B19700101-", 26));
        assert_ne!(one, draw_batch_number(Timestamp::UNIX_EPOCH, &mut chance));
    }

    #[test]
    fn an_item_lists_its_first_warnings_and_says_so() {
        for (count, kept, last) in [
            (0, 0, None),
            (20, 20, Some("n".repeat(WARNING_CHARS_MAX))),
            (23, 21, Some("There are 3 more warnings.".to_owned())),
        ] {
            let item = BatchItem::from_faults(None, &Faults::default());
            let item = item.with_warnings(&vec!["n".repeat(999); count]);
            assert_eq!(item.warnings.len(), kept);
            assert_eq!(item.warnings.last().cloned(), last);
            let stored = serde_json::to_value(&item).unwrap();
            assert_eq!(stored.get("warnings").is_some(), kept > 0);
            let read: BatchItem = serde_json::from_value(stored).unwrap();
            assert_eq!(read, item);
        }
    }

    #[test]
    fn a_failed_item_lists_its_first_errors_and_says_so() {
        let faults = |count| {
            let mut faults = Faults::with_max(ITEM_FAULTS_MAX);
            (0..count)
                .for_each(|n| faults.push(Fault::new(format!("f{n}"), "required", "Missing.")));
            BatchItem::from_faults(None, &faults).errors.unwrap()
        };
        assert_eq!(faults(19).len(), 19);
        let many = faults(1_000);
        assert_eq!(many.len(), 20 + 1);
        assert_eq!(
            many[WHOLE_ITEM_PATH],
            ["Only the first 20 errors are listed."]
        );
    }
}
