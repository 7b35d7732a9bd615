//! Who acted, as events, ledgers, timelines and the activity name it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::kernel::audit::{ActorKind, NamedActor};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Actor)]
pub(crate) struct ActorView {
    kind: ActorKind,
    /// The actor's id within its kind: of a key, a contact person, an integrator or an operator; null for the others.
    id: Option<String>,
    /// The name of the key or of the person, if it has one.
    name: Option<String>,
}

impl From<NamedActor> for ActorView {
    fn from(actor: NamedActor) -> Self {
        Self { kind: actor.kind, id: actor.id, name: actor.name }
    }
}
