//! Taxpayer actors and sample data for tests.

use std::sync::Arc;

use jiff::Timestamp;
use supervision::{AdmissionLimits, Arbiters, Tree};
use timing::clock::{SharedClock, SystemClock};

use crate::actors::kinds;
use crate::actors::notifiers::Notifiers;
use crate::actors::taxpayer::TaxpayerDeps;
use crate::actors::taxpayer::cached_state::CachedState;
use crate::actors::taxpayer::commands::Onboard;
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::actors::taxpayer::load::{self, UnloadedMember};
use crate::actors::taxpayer::read_set::ReadSet;
use crate::actors::taxpayer::row_ids::ReservedIds;
use crate::actors::taxpayer::scheduled_panics::ScheduledPanics;
use crate::actors::taxpayer::tests::{ID, draft};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::events::event::LogHead;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::{Draft, Invoice, InvoiceIdentity};
use crate::domain::kernel::codes::WorkflowStatus;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{CustomerId, IntegratorId, InvoiceId, TaxpayerId};
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::party::{BusinessLocation, InvoiceCustomer, NewContact};
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::reference::catalog::SharedCatalog;
use crate::store::Store;

impl TaxpayerDeps {
    /// Returns the dependencies of taxpayer actors with default settings.
    pub(super) fn in_tests(store: &Store, clock: SharedClock) -> Self {
        Self {
            store: store.clone(),
            clock,
            notifiers: Notifiers::default(),
            deadlines: DeadlinePolicy::default(),
            verification: VerificationPolicy::Warn,
            scheduled_panics: ScheduledPanics::default(),
            catalog: SharedCatalog::default(),
        }
    }
}

impl CachedState {
    /// Returns the state of a taxpayer that is not onboarded yet.
    pub(super) fn without_taxpayer(version: i64) -> Self {
        Self {
            version,
            taxpayer: None,
            endpoints: Vec::new(),
            head: LogHead::default(),
        }
    }
}

impl UnitOfWork {
    /// Returns a unit of work of the taxpayer `ID`, at the beginning of 1970, that has loaded nothing.
    pub(super) async fn without_rows(store: &Store) -> Self {
        Self::with_version(store, 1).await
    }

    /// Returns such a unit of work, whose transaction gave the taxpayer's lane this version.
    pub(super) async fn with_version(store: &Store, version: i64) -> Self {
        Self::load_rows(store, version, ReadSet::default()).await
    }

    /// Returns a unit of work of the taxpayer `ID`, at the beginning of 1970, with these stored rows.
    pub(super) async fn with_rows(store: &Store, wanted: ReadSet) -> Self {
        Self::load_rows(store, 1, wanted).await
    }

    async fn load_rows(store: &Store, version: i64, wanted: ReadSet) -> Self {
        let deps = TaxpayerDeps::in_tests(store, Arc::new(SystemClock));
        let start = UnloadedMember {
            id: ID,
            wanted,
            cached: CachedState::without_taxpayer(version),
            ids: ReservedIds::default(),
        };
        let tx = store.begin().await.unwrap();
        let units = load::load(&deps, &tx, Timestamp::UNIX_EPOCH, vec![start]).await;
        tx.rollback().await.unwrap();
        units.unwrap().remove(0)
    }
}

/// Returns a submitted document over this amount, whose signature is not recorded yet.
pub(super) fn submitted_invoice(id: i64, payable: i64, currency: &str) -> Invoice {
    let document = Draft {
        currency: currency.to_owned(),
        ..draft(&format!("INV{id}"), payable)
    };
    let identity = InvoiceIdentity {
        id: InvoiceId(id),
        taxpayer_id: ID,
        irn: Irn::parse(&format!("INV{id}-94AD90FB-20260131")).unwrap(),
        customer: InvoiceCustomer {
            id: CustomerId(1),
            external_customer_no: String::new(),
            name: String::new(),
            tin: None,
            email: String::new(),
        },
        provisional_qr: String::new(),
    };
    let (invoice, _) = document.into_invoice(identity, Timestamp::UNIX_EPOCH);
    Invoice {
        status: WorkflowStatus::Submitted,
        ..invoice
    }
}

impl TaxpayerHandle {
    /// Returns a handle of taxpayer actors that run on `arbiters` and use default settings.
    pub(crate) fn in_tests(store: &Store, clock: SharedClock, arbiters: &Arc<Arbiters>) -> Self {
        Self::new(
            TaxpayerDeps::in_tests(store, clock.clone()),
            &Tree::new(clock, kinds::ALL),
            arbiters,
            AdmissionLimits::default(),
        )
    }
}

impl Onboard {
    /// Returns an onboarding whose unique values are derived from `id`, so that two ids never conflict.
    pub(crate) fn sample(id: TaxpayerId) -> Self {
        Self {
            integrator_id: IntegratorId(1),
            name: format!("Company {id}"),
            email: format!("{id}@company.example"),
            tin: format!("TIN-{id}"),
            phone: None,
            nature_of_business: None,
            service_id: format!("{:08X}", id.0),
            business_id: format!("00000000-0000-0000-0000-{:012}", id.0),
            address: "1 Road".into(),
            place: BusinessLocation::default(),
            contact: NewContact {
                first_name: "Ada".into(),
                last_name: "Obi".into(),
                email: format!("ada-{id}@company.example"),
                phone: None,
                password_hash: None,
            },
            conflicts: Faults::default(),
        }
    }
}
