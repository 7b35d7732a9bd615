//! The pause of a taxpayer, which an operator orders and every replica obeys. Commands of the taxpayer are refused, and
//! no worker takes one of its runs. Work in progress is completed, and no accepted work is lost.

use jiff::Timestamp;

use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::TaxpayerId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaxpayerPause {
    pub taxpayer_id: TaxpayerId,
    pub since: Timestamp,
    /// The reason that the operator gave, for other operators.
    pub reason: Option<String>,
}

/// True if a pause of the taxpayer holds back the commands of this actor. Operators and the service itself are not held
/// back, so that work in progress can be completed.
pub fn is_held_back(actor: Actor) -> bool {
    match actor {
        Actor::Integrator(_) | Actor::Contact(_) | Actor::TaxpayerKey(_) => true,
        Actor::Operator(_) | Actor::CommandLine | Actor::Authority | Actor::Service => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::ids::{ContactId, IntegratorId, KeyId};

    #[test]
    fn a_pause_holds_back_those_who_act_for_the_taxpayer_and_nobody_else() {
        for (actor, expected) in [
            (Actor::Integrator(IntegratorId(1)), true),
            (Actor::Contact(ContactId(1)), true),
            (Actor::TaxpayerKey(KeyId::from_digest(&[1; 32])), true),
            (Actor::Operator(1), false),
            (Actor::CommandLine, false),
            (Actor::Authority, false),
            (Actor::Service, false),
        ] {
            assert_eq!(is_held_back(actor), expected, "{actor:?}");
        }
    }
}
