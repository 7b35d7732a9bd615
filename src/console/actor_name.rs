//! The names of actors, as the pages of an account show them.

use crate::domain::kernel::audit::{ActorKind, NamedActor};

/// Returns the name under which the people of an account see an actor. Operators of the service stay anonymous.
pub(crate) fn actor_name(actor: &NamedActor) -> String {
    let id = actor.id.as_deref().unwrap_or_default();
    let name = actor.name.as_deref();
    match actor.kind {
        ActorKind::Contact => name.map_or_else(|| format!("contact person {id}"), str::to_owned),
        ActorKind::Integrator => name.map_or_else(
            || "your integrator".to_owned(),
            |name| format!("{name} (integrator)"),
        ),
        ActorKind::TaxpayerKey => format!("API key {}", name.unwrap_or(id)),
        ActorKind::Operator => "an operator of this service".to_owned(),
        ActorKind::CommandLine => "an operator at the command line".to_owned(),
        ActorKind::Authority => "the tax authority".to_owned(),
        ActorKind::Service => "this service".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_actor_has_words() {
        let joined_names = |name: Option<&str>| {
            let words = ActorKind::ALL.iter().map(|kind| {
                let name = name.map(str::to_owned);
                actor_name(&NamedActor {
                    kind: *kind,
                    id: Some("7".to_owned()),
                    name,
                })
            });
            words.collect::<Vec<_>>().join("; ")
        };
        insta::assert_snapshot!(joined_names(Some("Ada")), @"an operator of this service; Ada (integrator); Ada; API key Ada; an operator at the command line; the tax authority; this service");
        insta::assert_snapshot!(joined_names(None), @"an operator of this service; your integrator; contact person 7; API key 7; an operator at the command line; the tax authority; this service");
    }
}
