//! The shell of an actor that works its commands off, one batch at a time and never interleaved.
//!
//! A `Worker` is moved into its own work and comes back with the answers, so its state cannot be touched while
//! it works and is lost, as it must be, when the work panics: the next batch begins with a cold one from `make`.
//! The shell does the rest: queue, batches, answers, heartbeat, passivation, recovery. No domain here.

use std::future::Future;

use actix::fut::ActorFutureExt;
use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Supervised, WrapFuture};

use super::guard::supervise;
use super::queue::{Batch, WorkQueue};
use super::registry::{Mailbox, Passivate, StartContext};
use super::reply::{CommandId, Envelope};

/// Commands a batch holds unless it is told otherwise.
pub const BATCH_MAX: usize = 64;

/// What an actor does, without being one.
pub trait Worker: Sized + 'static {
    type Command: Send + Sync + 'static;
    type Reply: Send + 'static;

    /// What a command is called in the quarantine.
    fn name(command: &Self::Command) -> &'static str;

    /// Whether a command is work enough for a batch of its own.
    fn is_large(_: &Self::Command) -> bool {
        false
    }

    /// Works a batch off, in its order, and answers each of its commands. Calls `batch.committing()` right
    /// before what cannot be undone. May panic: what was not committing is then tried again, alone.
    fn work(
        self,
        batch: Batch<Self::Command>,
    ) -> impl Future<Output = (Self, Vec<(CommandId, Self::Reply)>)> + 'static;
}

/// Starts the actor of a context. `make` gives a cold worker, at the start and after a panic.
pub fn start<W: Worker>(
    context: StartContext,
    batch_max: usize,
    make: impl Fn() -> W + Send + 'static,
) -> Mailbox<W::Command, W::Reply> {
    let (arbiter, node, policy) = (context.arbiter.clone(), context.node.clone(), context.policy);
    let address = supervise(&arbiter, node, policy, move |_| BatchActor {
        context,
        batch_max,
        make: Box::new(make),
        worker: None,
        queue: WorkQueue::default(),
        scheduled: false,
    });
    address.into()
}

pub struct BatchActor<W: Worker> {
    context: StartContext,
    batch_max: usize,
    make: Box<dyn Fn() -> W>,
    /// Absent while it works, and before the first batch.
    worker: Option<W>,
    queue: WorkQueue<W::Command, W::Reply>,
    scheduled: bool,
}

// The worker is moved, never pinned in here.
impl<W: Worker> Unpin for BatchActor<W> {}

impl<W: Worker> BatchActor<W> {
    /// Takes the next batch after yielding once: neighbours on the arbiter get their turn, and what arrives
    /// meanwhile joins the batch.
    fn schedule(&mut self, ctx: &mut Context<Self>) {
        if self.scheduled || !self.queue.is_due() {
            return;
        }
        self.scheduled = true;
        let turn = tokio::task::yield_now().into_actor(self);
        ctx.spawn(turn.map(|(), actor, ctx| actor.run(ctx)));
    }

    fn run(&mut self, ctx: &mut Context<Self>) {
        self.scheduled = false;
        // The worker is made before a batch is in flight: commands are not to blame for a panic of `make`.
        let worker = self.worker.take().unwrap_or_else(|| (self.make)());
        let Some(batch) = self.queue.take_batch(self.batch_max, W::is_large) else { return };
        self.context.node.batch_started();
        let work = worker.work(batch).into_actor(self);
        ctx.spawn(work.map(|(worker, replies), actor, ctx| {
            actor.worker = Some(worker);
            actor.finish(replies, ctx);
        }));
    }

    fn finish(&mut self, replies: Vec<(CommandId, W::Reply)>, ctx: &mut Context<Self>) {
        self.context.node.batch_finished();
        let forgotten = self.queue.answer(replies);
        if forgotten > 0 {
            tracing::error!(actor = self.context.node.name(), forgotten, "batch left commands unanswered");
        }
        self.schedule(ctx);
    }
}

impl<W: Worker> Actor for BatchActor<W> {
    type Context = Context<Self>;

    /// Also called after a restart: goes on with what the queue kept.
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.schedule(ctx);
    }
}

impl<W: Worker> Supervised for BatchActor<W> {
    fn restarting(&mut self, _: &mut Context<Self>) {
        self.scheduled = false;
        self.worker = None;
        let node = &self.context.node;
        self.queue.recover(|reference, command| node.quarantined(reference, W::name(command)));
    }
}

impl<W: Worker> Handler<Envelope<W::Command, W::Reply>> for BatchActor<W> {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<W::Command, W::Reply>, ctx: &mut Context<Self>) {
        self.queue.push(envelope);
        self.schedule(ctx);
    }
}

impl<W: Worker> Handler<Passivate> for BatchActor<W> {
    type Result = ();

    fn handle(&mut self, asked: Passivate, ctx: &mut Context<Self>) {
        if self.queue.is_empty() && self.context.leave(&asked) {
            ctx.stop();
        }
    }
}
