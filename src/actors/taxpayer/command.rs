//! The trait of the commands of a taxpayer's actor. All checks that need no stored data are made before a command is
//! sent. If the stored data forbids the command, it is refused.

use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::CommandSize;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::refusal::Refusal;
use crate::store::lanes::Lease;

/// A command that changes the data of one taxpayer. It asks for the rows that it needs. When they are loaded, `execute`
/// decides the command on them, without I/O. It makes all checks before its first change, so a refused command changes
/// nothing.
pub trait TaxpayerCommand: Send + Sync + 'static {
    /// The value that the sender gets once the change is stored.
    type Output: Send + Sync + 'static;

    /// The name in logs, metrics and the quarantine.
    const NAME: &'static str;
    /// True if the command is large whatever its size. A large command has a transaction of its own and takes turns
    /// with other large ones.
    const IS_LARGE: bool = false;
    /// True if the command sets values that are unique among all taxpayers. Its transaction may have to wait for
    /// another one that sets the same value, so it is not shared with other taxpayers.
    const SETS_UNIQUE_VALUES: bool = false;
    /// True if the command replaces or revokes API keys. Its sender gets the output only when no process accepts the
    /// old keys any more.
    const ENDS_KEYS: bool = false;

    /// Returns the actor that audit entries and events name if the command comes from no request, or from a request
    /// that names no actor.
    fn default_audit_actor(&self) -> Actor {
        Actor::Service
    }

    fn size(&self) -> CommandSize {
        CommandSize::default()
    }

    /// Adds, for each kind of row, the number of ids that the command needs for new rows.
    fn add_wanted_id_counts(&self, _: &mut WantedIdCounts) {}

    /// Returns the lease that must still be held when the command is executed. `None` if the command needs no lease.
    fn run_lease(&self) -> Option<&Lease> {
        None
    }

    /// Returns what a replay of the quarantined command needs, as JSON. `None` if the command must not be replayed,
    /// because it might count twice or overwrite a newer change.
    fn contents_for_replay(&self) -> Option<String> {
        None
    }

    /// Adds the rows that `execute` needs to decide the command.
    fn add_reads(&self, _: &mut ReadSet, _: &ReadContext<'_>) {}

    /// Decides the command. If its transaction fails or panics, the command may be executed again on newly loaded rows.
    fn execute(&self, uow: &mut UnitOfWork) -> Result<Self::Output, Refusal>;
}
