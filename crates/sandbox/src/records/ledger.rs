//! The authority's ledger. Its one lock lets only one of two concurrent calls sign an IRN.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{Business, CallTally, Invoice, Party};

#[derive(Default)]
pub(crate) struct SharedLedger(Mutex<Ledger>);

impl SharedLedger {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
pub(crate) struct Ledger {
    invoices: HashMap<String, Invoice>,
    /// The IRNs of the signed invoices in order of signature.
    order: Vec<String>,
    pub(crate) businesses: BTreeMap<String, Business>,
    pub(crate) parties: BTreeMap<String, Party>,
    pub(crate) tally: CallTally,
    /// For each IRN, signed or not: the last report, and how many reports differed from the report before them.
    reports: HashMap<String, (String, u32)>,
}

impl Ledger {
    pub(crate) fn invoice(&self, irn: &str) -> Option<&Invoice> {
        self.invoices.get(irn)
    }

    pub(crate) fn invoice_mut(&mut self, irn: &str) -> Option<&mut Invoice> {
        self.invoices.get_mut(irn)
    }

    pub(crate) fn invoice_count(&self) -> usize {
        self.order.len()
    }

    /// Returns all signed invoices, ordered by time of signature.
    pub(crate) fn oldest_first(&self) -> impl DoubleEndedIterator<Item = &Invoice> {
        self.order.iter().filter_map(|irn| self.invoices.get(irn))
    }

    /// Replaces the previous report for this IRN. Counts the new report only if it differs.
    pub(crate) fn add_report(&mut self, irn: &str, report: String) {
        let (kept, count) = self.reports.entry(irn.to_owned()).or_default();
        if *kept != report {
            *kept = report;
            *count += 1;
        }
    }

    pub(crate) fn report_count(&self, irn: &str) -> u32 {
        self.reports.get(irn).map_or(0, |(_, count)| *count)
    }

    /// Adds a signed invoice. Returns false and changes nothing if an invoice with this IRN is already signed.
    pub(crate) fn sign(&mut self, invoice: Invoice) -> bool {
        let irn = invoice.irn.clone();
        if self.invoices.contains_key(&irn) {
            return false;
        }
        self.order.push(irn.clone());
        self.invoices.entry(irn).or_insert(invoice).sign_count += 1;
        true
    }
}
