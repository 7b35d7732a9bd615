//! What a command of a taxpayer's actor is. All checks that need no stored data are made before a command is sent. If
//! the stored data forbids the command, it is refused.

use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIds;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::Size;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::refusal::Refusal;
use crate::store::lanes::Lease;

/// A command that changes the data of one taxpayer. It names the rows that it needs and is then decided on them, without
/// I/O. It makes all checks before its first change, so a refused command changes nothing.
pub trait TaxpayerCommand: Send + Sync + 'static {
    /// What the sender gets once the change is stored.
    type Output: Send + Sync + 'static;

    /// The name in logs, metrics and the quarantine.
    const NAME: &'static str;
    /// True if the command is large whatever its size. A large command has a transaction of its own and takes turns with
    /// other large ones.
    const IS_LARGE: bool = false;
    /// True if the command sets values that are unique among all taxpayers. It may then wait for another transaction, so
    /// it shares none.
    const SETS_UNIQUE_VALUES: bool = false;
    /// True if the command ends API keys. Its sender gets the output only when no process accepts them any more.
    const ENDS_KEYS: bool = false;

    /// Returns who acts if no request names an actor.
    fn own_actor(&self) -> Actor {
        Actor::Service
    }

    fn size(&self) -> Size {
        Size::default()
    }

    /// Asks for the ids of rows that the command may add.
    fn new_ids(&self, _: &mut WantedIds) {}

    /// Returns the lease without which the command may not be executed.
    fn run_lease(&self) -> Option<&Lease> {
        None
    }

    /// Returns what a replay of the quarantined command needs, as JSON. `None` if it cannot be replayed: it might count
    /// twice or overwrite a newer change.
    fn contents(&self) -> Option<String> {
        None
    }

    /// Asks for the rows on which the command is decided.
    fn reads(&self, _: &mut ReadSet, _: &ReadContext<'_>) {}

    /// Decides the command. If its transaction fails or panics, the command is executed again on newly loaded rows.
    fn execute(&self, uow: &mut UnitOfWork) -> Result<Self::Output, Refusal>;
}
