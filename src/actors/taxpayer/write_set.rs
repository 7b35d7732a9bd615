//! Everything that a batch writes to the database, apart from the rows that it has loaded and changed.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;
use webhook_client::SigningSecret;

use crate::domain::access::api_key::NewKey;
use crate::domain::correction::record::Correction;
use crate::domain::events::delivery::Delivery;
use crate::domain::events::event::{Event, EventKind};
use crate::domain::events::replay::Replay;
use crate::domain::import::profile::ImportProfile;
use crate::domain::import::record::Import;
use crate::domain::invoice::batch::Batch;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::ubl_parts::UblParts;
use crate::domain::kernel::audit::AuditEntry;
use crate::domain::kernel::ids::{EndpointKey, InvoiceId, RunId};
use crate::domain::notice::Notice;
use crate::domain::party::NewContact;
use crate::domain::party::settings::{LogoFile, SettingChange};
use crate::domain::supplier_invoice::SupplierInvoice;
use crate::store::idempotency::KeyEntry;
use crate::store::invoices::corrections::StoredCorrection;
use crate::store::invoices::import_pieces::ImportedPiece;
use crate::store::invoices::imports::StoredImport;
use crate::store::invoices::payments;
use crate::store::lanes::leases::LaneRelease;
use crate::store::operations::outages::OutageEvent;
use crate::store::runs::step_log::StepAttempt;

#[derive(Debug, Default)]
pub struct WriteSet {
    pub(crate) batches: Vec<Batch>,
    pub(crate) imports: Vec<StoredImport>,
    pub(crate) imported_pieces: Vec<ImportedPiece>,
    /// The imports that the batch has cancelled.
    pub(crate) cancelled_imports: Vec<Import>,
    /// The parts of imported UBL files for which an invoice has no field, by invoice.
    pub(crate) ubl_parts: Vec<(InvoiceId, UblParts)>,
    /// The invoices whose stored UBL parts belong to contents that were replaced.
    pub(crate) outdated_ubl_parts: Vec<InvoiceId>,
    pub(crate) new_corrections: Vec<StoredCorrection>,
    /// The new states of corrections that the batch has advanced, in the order of the commands.
    pub(crate) corrections: Vec<Correction>,
    /// The new import profile; `None` if it does not change.
    pub(crate) import_profile: Option<ImportProfile>,
    pub(crate) first_contact: Option<FirstContact>,
    pub(crate) logo: SettingChange<LogoFile>,
    pub(crate) events: Vec<Event>,
    pub(crate) deliveries: Vec<(Delivery, EventKind)>,
    pub(crate) postings: Vec<payments::Model>,
    pub(crate) step_attempts: Vec<StepAttempt>,
    /// New supplier invoices with their documents.
    pub(crate) received: Vec<(SupplierInvoice, Value)>,
    pub(crate) acknowledged: Vec<(Irn, Timestamp)>,
    pub(crate) replays: Vec<Replay>,
    pub(crate) cancelled_replays: Vec<Replay>,
    pub(crate) audit: Vec<AuditEntry>,
    /// The notices that people are to get by mail.
    pub(crate) notices: Vec<Notice>,
    /// The outage events that were emitted, with their sequence numbers in the event log.
    pub(crate) sent_outages: Vec<(OutageEvent, i64)>,
    /// The runs whose lanes become due. A set, because PostgreSQL rejects a statement that upserts the same key twice.
    pub(crate) due_runs: BTreeSet<RunId>,
    pub(crate) released: Vec<LaneRelease>,
    /// New API keys in the order of the commands.
    pub(crate) keys: Vec<NewKey>,
    /// The ids of revoked API keys.
    pub(crate) revoked_keys: Vec<String>,
    /// New signing secrets of endpoints in order; each one replaces the previous secret of its endpoint.
    pub(crate) secrets: Vec<(EndpointKey, SigningSecret)>,
    /// The first secrets of endpoints that were added.
    pub(crate) first_secrets: Vec<(EndpointKey, SigningSecret)>,
    pub(crate) removed_endpoints: Vec<EndpointKey>,
    /// The idempotency keys of the executed commands, including commands that changed nothing.
    pub(crate) used_keys: Vec<KeyEntry>,
}

/// The first contact person of a taxpayer, stored when the taxpayer is onboarded.
#[derive(Debug)]
pub(crate) struct FirstContact {
    pub(crate) id: i64,
    pub(crate) person: NewContact,
}
