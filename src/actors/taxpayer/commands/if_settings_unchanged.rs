//! A change of settings from a page that shows them all. The page also sends the values that its user left as they
//! were. If somebody has changed the settings since the page read them, the command is refused, because it would undo
//! that change.

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::Size;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::integration::Integration;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::EndpointKey;
use crate::domain::kernel::refusal::Refusal;
use crate::store::lanes::Lease;

/// Settings as somebody has read them.
pub enum SeenSettings {
    /// The endpoint with this key; `None` if there was none.
    Endpoint(EndpointKey, Option<Box<Endpoint>>),
    /// The integration; the default one if there was none.
    Integration(Box<Integration>),
}

/// Executes the command only if the settings have not changed since its sender read them (`seen`).
pub struct IfSettingsUnchanged<C> {
    pub seen: SeenSettings,
    pub command: C,
}

impl SeenSettings {
    fn are_current(&self, uow: &UnitOfWork) -> bool {
        match self {
            Self::Endpoint(key, seen) => match (uow.endpoint(*key), seen.as_deref()) {
                (None, None) => true,
                (Some(stored), Some(seen)) => stored.changed_fields_since(Some(seen)).is_empty(),
                (None, Some(_)) | (Some(_), None) => false,
            },
            Self::Integration(seen) => {
                let default = Integration::default();
                let stored = uow.integration.as_ref().unwrap_or(&default);
                stored.changed_fields_since(seen).is_empty()
            }
        }
    }
}

impl<C: TaxpayerCommand> TaxpayerCommand for IfSettingsUnchanged<C> {
    type Output = C::Output;

    const NAME: &'static str = C::NAME;
    const IS_LARGE: bool = C::IS_LARGE;
    const SETS_UNIQUE_VALUES: bool = C::SETS_UNIQUE_VALUES;
    const ENDS_KEYS: bool = C::ENDS_KEYS;

    fn own_actor(&self) -> Actor {
        self.command.own_actor()
    }

    fn size(&self) -> Size {
        self.command.size()
    }

    fn run_lease(&self) -> Option<&Lease> {
        self.command.run_lease()
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        self.command.add_wanted_id_counts(wanted);
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        self.command.add_reads(wanted, context);
        if matches!(self.seen, SeenSettings::Integration(_)) {
            wanted.add_integration();
        }
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<C::Output, Refusal> {
        if !self.seen.are_current(uow) {
            let message =
                "Somebody else changed these settings at the same moment: save yours again.";
            return Err(Fault::new("", "changed", message).into());
        }
        self.command.execute(uow)
    }
}
