//! The dependencies that the actors of all taxpayers share.

use timing::clock::SharedClock;

use crate::actors::notifiers::Notifiers;
use crate::actors::taxpayer::scheduled_panics::ScheduledPanics;
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::reference::catalog::SharedCatalog;
use crate::store::Store;

#[derive(Clone)]
pub struct TaxpayerDeps {
    pub store: Store,
    pub clock: SharedClock,
    pub notifiers: Notifiers,
    pub deadlines: DeadlinePolicy,
    pub verification: VerificationPolicy,
    pub scheduled_panics: ScheduledPanics,
    /// The authority's reference lists, against which the countries of customers are checked.
    pub catalog: SharedCatalog,
}
