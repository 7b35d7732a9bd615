//! The ledger, behind one lock.
//!
//! A decision and its effect happen under the same lock: of two concurrent signatures one succeeds.
//! Deliberately absent: removal. An authority does not forget.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{Business, Invoice, Party, Tally};

#[derive(Default)]
pub(crate) struct Books(Mutex<Ledger>);

impl Books {
    pub(crate) fn open(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
pub(crate) struct Ledger {
    invoices: HashMap<String, Invoice>,
    /// Reference numbers in the order of signature.
    order: Vec<String>,
    pub(crate) businesses: BTreeMap<String, Business>,
    pub(crate) parties: BTreeMap<String, Party>,
    pub(crate) tally: Tally,
    /// The last report of each reference number, signed or not, and the number of different ones.
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

    /// Signed invoices in the order of signature.
    pub(crate) fn oldest_first(&self) -> impl DoubleEndedIterator<Item = &Invoice> {
        self.order.iter().filter_map(|irn| self.invoices.get(irn))
    }

    /// Replaces the previous report. An identical report does not count as another.
    pub(crate) fn report(&mut self, irn: &str, report: String) {
        let (kept, count) = self.reports.entry(irn.to_owned()).or_default();
        if *kept != report {
            *kept = report;
            *count += 1;
        }
    }

    pub(crate) fn report_count(&self, irn: &str) -> u32 {
        self.reports.get(irn).map_or(0, |(_, count)| *count)
    }

    /// Commits a signature. Returns false and changes nothing if the reference number is taken.
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
