//! The account that pays. Limits count it first: an integrator creates as many taxpayers and keys as it likes, so a
//! limit that counts only taxpayers or keys bounds nothing.

use crate::domain::access::api_key::KeyOwner;
use crate::domain::kernel::ids::IntegratorId;

/// The account of a key, with the integrator that pays for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PayingAccount {
    /// An integrator pays for itself and for its taxpayers. Nobody pays for an operator.
    pub integrator: Option<IntegratorId>,
    pub owner: KeyOwner,
}

/// The account that a limit shared by several keys is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payer {
    Integrator(IntegratorId),
    /// The account of a key for which no integrator pays.
    Alone(KeyOwner),
}

impl PayingAccount {
    pub fn payer(self) -> Payer {
        self.integrator.map_or(Payer::Alone(self.owner), Payer::Integrator)
    }
}
