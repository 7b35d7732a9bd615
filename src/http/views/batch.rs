//! The response of Create Invoices (Bulk), and the outcome of each invoice of a batch.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::batch::{Batch, BatchItem, Duplicate, ItemOutcome};
use crate::domain::kernel::ids::InvoiceId;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchCreated<'a> {
    batch_no: &'a str,
    created: usize,
}

impl<'a> From<&'a Batch> for BatchCreated<'a> {
    fn from(batch: &'a Batch) -> Self {
        Self {
            batch_no: &batch.batch_no,
            created: batch.count(ItemOutcome::Created),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Batch)]
pub(crate) struct BatchView<'a> {
    batch_no: &'a str,
    created: usize,
    duplicates: usize,
    failed: usize,
    items: Vec<ItemView<'a>>,
}

impl BatchView<'_> {
    /// Returns the outcome of each invoice, in the order of the request.
    pub(crate) fn items(&self) -> impl Iterator<Item = &impl Serialize> {
        self.items.iter()
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct ItemView<'a> {
    /// Position of the invoice in the request, counted from 0, as in the dotted paths of errors.
    index: usize,
    invoice_no: Option<&'a str>,
    outcome: ItemOutcome,
    id: Option<InvoiceId>,
    irn: Option<&'a str>,
    /// For a duplicate, tells whether the existing invoice has the contents that were sent.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate: Option<Duplicate>,
    errors: Option<&'a BTreeMap<String, Vec<String>>>,
    /// The first 20 warnings about the invoice; empty for one that failed because of its fields.
    warnings: &'a [String],
}

impl<'a> From<&'a Batch> for BatchView<'a> {
    fn from(batch: &'a Batch) -> Self {
        let items = batch.items.iter().enumerate();
        Self {
            batch_no: &batch.batch_no,
            created: batch.count(ItemOutcome::Created),
            duplicates: batch.count(ItemOutcome::Duplicate),
            failed: batch.count(ItemOutcome::Failed),
            items: items.map(ItemView::from).collect(),
        }
    }
}

impl<'a> From<(usize, &'a BatchItem)> for ItemView<'a> {
    fn from((index, item): (usize, &'a BatchItem)) -> Self {
        Self {
            index,
            invoice_no: item.invoice_no.as_deref(),
            outcome: item.outcome,
            id: item.id,
            irn: item.irn.as_deref(),
            duplicate: item.duplicate,
            errors: item.errors.as_ref(),
            warnings: &item.warnings,
        }
    }
}
