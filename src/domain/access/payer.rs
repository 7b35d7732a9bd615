//! The account that pays. Limits apply to this account first: an integrator can create any number of taxpayers and
//! keys, so a limit for each taxpayer or key alone would not limit the integrator.

use crate::domain::access::api_key::KeyOwner;
use crate::domain::kernel::ids::IntegratorId;

/// The account of a key, with the integrator that pays for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PayingAccount {
    /// An integrator pays for itself and for its taxpayers. Nobody pays for an operator.
    pub integrator: Option<IntegratorId>,
    pub owner: KeyOwner,
}

/// The account whose use is counted for a limit that several keys share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payer {
    Integrator(IntegratorId),
    /// The account of a key for which no integrator pays.
    Alone(KeyOwner),
}

impl PayingAccount {
    pub fn payer(self) -> Payer {
        self.integrator
            .map_or(Payer::Alone(self.owner), Payer::Integrator)
    }
}
