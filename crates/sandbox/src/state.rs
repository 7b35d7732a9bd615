//! The simulator's state. Its public methods do what the control interface does over HTTP.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use serde_json::Value;
use tokio::runtime::Handle;

use crate::calls::{CallLog, CallRecord};
use crate::crypto::CryptoKeys;
use crate::dialect::Dialect;
use crate::faults::{FaultOrder, Faults};
use crate::latencies::{Latencies, LatencyOrder};
use crate::notices::Notices;
use crate::records::{InvoiceSheet, PartyEnrolment, SharedLedger};
use crate::settings::Settings;

pub struct State {
    pub(crate) settings: Settings,
    pub(crate) ledger: SharedLedger,
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
            ledger: SharedLedger::default(),
            calls: CallLog::default(),
            notices: Notices::new(runtime),
        }
    }

    /// Returns the last 100,000 calls received, oldest first.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.calls.all()
    }

    pub fn clear_calls(&self) {
        self.calls.clear();
    }

    /// Puts a fault in force and returns its id. The error says why the fault is invalid.
    pub fn add_fault(&self, order: FaultOrder) -> Result<u64, String> {
        self.faults.add(order)
    }

    pub fn clear_faults(&self) {
        self.faults.clear();
    }

    /// Puts a latency in force and returns its id. Replaces an earlier latency of the same operation.
    pub fn add_latency(&self, order: LatencyOrder) -> Result<u64, String> {
        self.latencies.add(order)
    }

    /// Removes all latencies. Calls that are already waiting or being served keep their latency.
    pub fn clear_latencies(&self) {
        self.latencies.clear();
    }

    pub fn seed(&self) -> u64 {
        self.seed.load(Ordering::Relaxed)
    }

    /// Sets the seed for the calls that follow.
    pub fn set_seed(&self, seed: u64) {
        self.seed.store(seed, Ordering::Relaxed);
    }

    pub fn dialect(&self) -> Dialect {
        *self.lock_dialect()
    }

    /// Sets the dialect for the calls that follow.
    pub fn set_dialect(&self, dialect: Dialect) {
        *self.lock_dialect() = dialect;
    }

    fn lock_dialect(&self) -> MutexGuard<'_, Dialect> {
        self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the record of a reference number; `None` if no call ever named this number.
    pub fn invoice(&self, irn: &str) -> Option<InvoiceSheet> {
        let ledger = self.ledger.lock();
        let known = ledger.invoice(irn).is_some() || ledger.tally.has_calls_for(irn);
        known.then(|| InvoiceSheet::from_ledger(irn, &ledger))
    }

    /// Returns the records of all signed invoices, ordered by time of signature.
    pub fn invoices(&self) -> Vec<InvoiceSheet> {
        let ledger = self.ledger.lock();
        ledger
            .oldest_first()
            .map(|invoice| InvoiceSheet::from_ledger(&invoice.irn, &ledger))
            .collect()
    }

    /// Enrols a business or a party. If it is already enrolled, changes the members that are given.
    pub fn enrol(&self, enrolment: &PartyEnrolment) -> Result<(), String> {
        self.ledger.lock().enrol(enrolment).map_err(str::to_owned)
    }

    /// Registers the URL of an access point. All later notices are sent there.
    pub fn register_access_point(&self, url: &str) -> Result<(), String> {
        self.notices.register(url)
    }

    /// Removes all access points. Notices that are already queued are still delivered.
    pub fn forget_access_points(&self) {
        self.notices.clear();
    }

    /// Sends a notice to every access point. The invoice need not have changed.
    pub fn notify(&self, irn: &str, message: &str) {
        self.notices.notify(irn, message);
    }

    /// Returns the keys file for QR codes: `public_key` (base64 of the PEM) and `certificate` (base64).
    pub fn crypto_keys(&self) -> Result<Value, String> {
        CryptoKeys::key_file()
    }

    /// Decrypts a QR code that was made with the simulator's keys.
    pub fn decrypt_qr(&self, qr_code: &str) -> Result<String, String> {
        CryptoKeys::decrypt_qr(qr_code)
    }
}
