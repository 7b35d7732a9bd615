//! The account to which the use of the API is charged. Limits apply to this account first: an integrator can create any
//! number of taxpayers and keys, so limits for each taxpayer or key alone would not limit the integrator.

use crate::domain::access::api_key::KeyOwner;
use crate::domain::kernel::ids::IntegratorId;

/// The account that a key belongs to, with the integrator to which its use is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PayingAccount {
    /// The integrator for its own keys and those of its taxpayers; `None` for an operator.
    pub integrator: Option<IntegratorId>,
    pub owner: KeyOwner,
}

/// The account whose use is counted for a limit that several keys share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payer {
    Integrator(IntegratorId),
    /// An account whose use is charged to no integrator.
    Alone(KeyOwner),
}

impl PayingAccount {
    pub fn payer(self) -> Payer {
        self.integrator
            .map_or(Payer::Alone(self.owner), Payer::Integrator)
    }
}
