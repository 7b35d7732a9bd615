//! The actor of a request, as the audit records it: the person or the API key that acts. The code that checks the key
//! or the session names the actor, and every command that the request sends carries it, so that no handler can forget
//! it. Work that no request started has no such actor.

use std::cell::RefCell;
use std::future::Future;

use crate::domain::kernel::audit::ActorWithName;

tokio::task_local! {
    static ACTING: RefCell<Option<ActorWithName>>;
}

/// Runs a request. `set_request_actor` has an effect only inside such a request.
pub async fn run_request<F: Future>(request: F) -> F::Output {
    ACTING.scope(RefCell::new(None), request).await
}

/// Names the actor of this request.
pub fn set_request_actor(acting: ActorWithName) {
    // Outside a request this does nothing; a command is then recorded under `TaxpayerCommand::default_audit_actor`.
    let _ = ACTING.try_with(|named| named.replace(Some(acting)));
}

/// Returns the actor of this request. `None` if no actor was named, or outside a request.
pub(super) fn current_actor() -> Option<ActorWithName> {
    ACTING
        .try_with(|named| named.borrow().clone())
        .ok()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::audit::Actor;

    #[tokio::test]
    async fn an_actor_is_named_for_its_own_request_only() {
        let named = |id| async move {
            set_request_actor(Actor::Operator(id).into());
            tokio::task::yield_now().await;
            current_actor().map(|acting| acting.actor)
        };
        let (one, other) = tokio::join!(run_request(named(1)), run_request(named(2)));
        assert_eq!(
            (one, other),
            (Some(Actor::Operator(1)), Some(Actor::Operator(2)))
        );
        assert_eq!(named(3).await, None);
    }
}
