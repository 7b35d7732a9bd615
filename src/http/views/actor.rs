//! The actor of an entry in the event feed, the payment ledger, the timeline or the activity.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::kernel::audit::{ActorKind, NamedActor};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Actor)]
pub(crate) struct ActorView {
    kind: ActorKind,
    /// The id of the key, contact person, integrator or operator; null for other kinds of actor.
    id: Option<String>,
    /// The name of the key or of the person, if it has one.
    name: Option<String>,
}

impl From<NamedActor> for ActorView {
    fn from(actor: NamedActor) -> Self {
        Self {
            kind: actor.kind,
            id: actor.id,
            name: actor.name,
        }
    }
}
