//! Taxpayers for the tests of whoever sends them commands.

use std::sync::Arc;

use crate::actors::supervision::{AdmissionLimits, Arbiters, Tree};
use crate::actors::taxpayer::Desktop;
use crate::actors::taxpayer::command::{NewContact, Onboarding};
use crate::actors::taxpayer::door::Taxpayers;
use crate::actors::wake::Wakers;
use crate::domain::kernel::clock::SharedClock;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::store::db::connections::Store;

impl Taxpayers {
    /// The door to actors that work on these arbiters.
    pub(crate) fn in_tests(store: &Store, clock: SharedClock, arbiters: &Arc<Arbiters>) -> Self {
        let desktop = Desktop {
            store: store.clone(),
            clock: clock.clone(),
            wakers: Wakers::default(),
            deadlines: DeadlinePolicy::default(),
            verification: VerificationPolicy::Warn,
        };
        Self::new(desktop, &Tree::new(clock), arbiters, AdmissionLimits::default())
    }
}

impl Onboarding {
    /// What onboards the taxpayer of an id, with names that no other has.
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
                password_hash: "$argon2id$".into(),
                must_change_password: true,
            },
            taken: Faults::default(),
        }
    }
}
