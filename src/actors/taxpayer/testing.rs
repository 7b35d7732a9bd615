//! Taxpayer actors and sample data for tests.

use std::sync::Arc;

use supervision::{AdmissionLimits, Arbiters, Tree};
use timing::clock::SharedClock;

use crate::actors::kinds;
use crate::actors::notifiers::Notifiers;
use crate::actors::taxpayer::TaxpayerDeps;
use crate::actors::taxpayer::commands::Onboard;
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::actors::taxpayer::ordered_panics::OrderedPanics;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::NewContact;
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::reference::catalog::SharedCatalog;
use crate::store::Store;

impl TaxpayerHandle {
    /// Returns a handle of taxpayer actors that run on `arbiters` and use default settings.
    pub(crate) fn in_tests(store: &Store, clock: SharedClock, arbiters: &Arc<Arbiters>) -> Self {
        let deps = TaxpayerDeps {
            store: store.clone(),
            clock: clock.clone(),
            notifiers: Notifiers::default(),
            deadlines: DeadlinePolicy::default(),
            verification: VerificationPolicy::Warn,
            ordered_panics: OrderedPanics::default(),
            catalog: SharedCatalog::default(),
        };
        Self::new(
            deps,
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
