//! Runs an actor and survives the actor's panics. actix's own supervisor neither keeps the mailbox nor restarts after a
//! panic.
//!
//! A panic ends only the work in progress: the mailbox, the address and the actor struct stay. The guard calls
//! `ContextFut::restart` at once. This cancels the futures that the actor has spawned and calls
//! `Supervised::restarting`, where the actor recovers its queue and drops its cached state. Then the guard waits for
//! the restart delay, and actix calls `Actor::started` again. If the actor panics too often, the guard escalates: the
//! node fails, the mailbox closes, and queued commands return to their senders.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Polling, Poll, ready};
use std::time::Instant;

use actix::dev::{ContextFut, channel};
use actix::{Actor, Addr, ArbiterHandle, Context, Supervised};
use tokio::time::{Sleep, sleep};

use super::node::Node;
use super::panics::{self, CaughtPanic};
use super::policy::{RestartBudget, RestartPolicy};

/// Starts an actor on `arbiter`. The actor runs until it stops, panics too often, or loses its last address.
pub fn supervise<A>(
    arbiter: &ArbiterHandle,
    node: Node,
    policy: RestartPolicy,
    build: impl FnOnce(&mut Context<A>) -> A + Send + 'static,
) -> Addr<A>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    let (sender, receiver) = channel::channel(policy.mailbox_capacity);
    let unstarted = node.clone();
    let is_started = arbiter.spawn_fn(move || {
        let result = panics::catch(|| {
            let mut context = Context::with_receiver(receiver);
            let actor = build(&mut context);
            context.into_future(actor)
        });
        match result {
            Ok(actor) => drop(actix::spawn(Guard::new(actor, node, policy))),
            Err(CaughtPanic { text }) => node.mark_failed(&format!("could not be built: {text}")),
        }
    });
    if !is_started {
        unstarted.mark_stopped();
    }
    Addr::new(sender)
}

struct Guard<A>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    /// `None` after the actor has stopped or escalated.
    actor: Option<ContextFut<A, Context<A>>>,
    node: Node,
    budget: RestartBudget,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<A> Guard<A>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    fn new(actor: ContextFut<A, Context<A>>, node: Node, policy: RestartPolicy) -> Self {
        node.tree().counters().actors_started.increment();
        node.mark_running();
        Self {
            actor: Some(actor),
            node,
            budget: RestartBudget::new(policy),
            pause: None,
        }
    }

    /// Restarts the actor after a panic, including a panic during a restart. Escalates if the restart budget is spent.
    fn restart_after(&mut self, mut panic: CaughtPanic) {
        while let Some(actor) = &mut self.actor {
            self.node.record_panic(&panic.text);
            let Some(wait) = self.budget.spend_restart(Instant::now()) else {
                return self.escalate(&panic);
            };
            match panics::catch(|| actor.restart()) {
                Ok(true) => {
                    self.node.record_restart(wait);
                    self.pause = Some(Box::pin(sleep(wait)));
                    return;
                }
                // The last address was dropped. No message can arrive any more, so the actor ends.
                Ok(false) => return self.close(),
                Err(again) => panic = again,
            }
        }
    }

    /// Marks the node as failed before the mailbox closes, so that a sender that finds the mailbox closed also sees the
    /// failure.
    fn escalate(&mut self, panic: &CaughtPanic) {
        self.node
            .mark_failed(&format!("panicked too often, last: {}", panic.text));
        self.close();
    }

    /// Drops the actor and its context. This closes the mailbox, and queued commands return to their senders.
    fn close(&mut self) {
        let actor = self.actor.take();
        if let Err(panic) = panics::catch(|| drop(actor)) {
            tracing::error!(
                actor = self.node.name(),
                panic = panic.text,
                "actor panicked as it was closed"
            );
        }
    }
}

impl<A> Future for Guard<A>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, polling: &mut Polling<'_>) -> Poll<()> {
        let guard = self.get_mut();
        loop {
            if let Some(pause) = &mut guard.pause {
                ready!(pause.as_mut().poll(polling));
                guard.pause = None;
                guard.node.mark_running();
            }
            let Some(actor) = &mut guard.actor else {
                return Poll::Ready(());
            };
            match panics::catch(|| Pin::new(actor).poll(polling)) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(())) => guard.close(),
                Err(panic) => guard.restart_after(panic),
            }
        }
    }
}

/// Marks the node as stopped, unless it has failed. This also runs when the arbiter ends and drops the guard.
impl<A> Drop for Guard<A>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    fn drop(&mut self) {
        self.close();
        self.node.mark_stopped();
    }
}
