//! Settings as they were when a page showed them. A page sends all its settings, also those that its user did not
//! change. So a command from an outdated page would undo what somebody else has changed since, and it is refused.

use crate::actors::taxpayer::commands::if_unchanged::SeenData;
use crate::actors::taxpayer::read_set::ReadSet;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::integration::Integration;
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::EndpointKey;
use crate::domain::kernel::refusal::Refusal;

/// Settings as somebody has read them.
pub enum SeenSettings {
    /// The endpoint with this key; `None` if there was none.
    Endpoint(EndpointKey, Option<Box<Endpoint>>),
    /// The integration; the default one if there was none.
    Integration(Box<Integration>),
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

impl SeenData for SeenSettings {
    fn add_reads(&self, wanted: &mut ReadSet) {
        if matches!(self, Self::Integration(_)) {
            wanted.add_integration();
        }
    }

    fn check(&self, uow: &UnitOfWork) -> Result<(), Refusal> {
        if self.are_current(uow) {
            return Ok(());
        }
        let message = "Somebody else changed these settings at the same moment: save yours again.";
        Err(Fault::new("", "changed", message).into())
    }
}
