//! The state of the simulator, shared by its workers and by tests in the same process.
//!
//! The control interface and these methods have the same capabilities.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use serde_json::Value;
use tokio::runtime::Handle;

use crate::books::{Books, Invoice, InvoiceSheet, PartyEnrolment};
use crate::calls::{CallLog, CallRecord};
use crate::crypto::CryptoKeys;
use crate::dialect::Dialect;
use crate::faults::{FaultOrder, Faults};
use crate::latencies::{Latencies, LatencyOrder};
use crate::notices::Notices;
use crate::server::Settings;

/// The simulator's memory.
pub struct State {
    pub(crate) settings: Settings,
    pub(crate) books: Books,
    seed: AtomicU64,
    dialect: Mutex<Dialect>,
    pub(crate) faults: Faults,
    pub(crate) latencies: Latencies,
    pub(crate) calls: CallLog,
    pub(crate) notices: Notices,
}

impl State {
    pub(crate) fn new(settings: Settings, runtime: Handle) -> Self {
        Self {
            seed: AtomicU64::new(settings.seed),
            dialect: Mutex::default(),
            faults: Faults::default(),
            latencies: Latencies::default(),
            settings,
            books: Books::default(),
            calls: CallLog::default(),
            notices: Notices::new(runtime),
        }
    }

    /// Every call received, oldest first, the last 100,000.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.calls.all()
    }

    pub fn clear_calls(&self) {
        self.calls.clear();
    }

    /// Puts a fault in force and returns its id; the error describes an invalid fault.
    pub fn add_fault(&self, order: FaultOrder) -> Result<u64, String> {
        self.faults.add(order)
    }

    pub fn clear_faults(&self) {
        self.faults.clear();
    }

    /// Replaces the latency of the same operation and returns its id.
    pub fn add_latency(&self, order: LatencyOrder) -> Result<u64, String> {
        self.latencies.add(order)
    }

    /// Calls being served or waiting are still served.
    pub fn clear_latencies(&self) {
        self.latencies.clear();
    }

    /// The seed of all randomness.
    pub fn seed(&self) -> u64 {
        self.seed.load(Ordering::Relaxed)
    }

    /// Changes the seed from the next call on.
    pub fn set_seed(&self, seed: u64) {
        self.seed.store(seed, Ordering::Relaxed);
    }

    /// The dialect of the answers.
    pub fn dialect(&self) -> Dialect {
        *self.spoken()
    }

    /// Changes the dialect from the next call on.
    pub fn set_dialect(&self, dialect: Dialect) {
        *self.spoken() = dialect;
    }

    fn spoken(&self) -> MutexGuard<'_, Dialect> {
        self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of a reference number; `None` if no call ever named it.
    pub fn invoice(&self, irn: &str) -> Option<InvoiceSheet> {
        let ledger = self.books.open();
        let known = ledger.invoice(irn).is_some() || ledger.tally.knows(irn);
        known.then(|| InvoiceSheet::of(irn, &ledger))
    }

    /// Every signed invoice, in the order of signature.
    pub fn invoices(&self) -> Vec<InvoiceSheet> {
        let ledger = self.books.open();
        let sheet = |invoice: &Invoice| InvoiceSheet::of(&invoice.irn, &ledger);
        ledger.oldest_first().map(sheet).collect()
    }

    /// Enrols a business or a party, or updates it.
    pub fn enrol(&self, enrolment: &PartyEnrolment) -> Result<(), String> {
        self.books.open().enrol(enrolment).map_err(str::to_owned)
    }

    /// Registers the URL of an access point for notices.
    pub fn register_access_point(&self, url: &str) -> Result<(), String> {
        self.notices.register(url)
    }

    /// Removes every access point; queued notices are still delivered.
    pub fn forget_access_points(&self) {
        self.notices.clear();
    }

    /// Sends a notice to every access point, independent of any change.
    pub fn notify(&self, irn: &str, message: &str) {
        self.notices.tell(irn, message);
    }

    /// The keys file: `public_key` (base64 of the PEM) and `certificate` (base64).
    pub fn crypto_keys(&self) -> Result<Value, String> {
        CryptoKeys::file()
    }

    /// Decrypts a QR code that was made with the simulator's keys.
    pub fn open_qr(&self, qr_code: &str) -> Result<String, String> {
        CryptoKeys::open_qr(qr_code)
    }
}
