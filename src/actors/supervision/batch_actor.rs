//! An actor that processes its commands in batches, one batch at a time.
//!
//! A `Worker` is moved into its own future and returned with the replies. So its state cannot be touched meanwhile and
//! is dropped if the work panics; the next batch starts with a new worker from `make`. The actor does the rest: queue,
//! batches, replies, heartbeat, passivation and recovery.

use std::future::Future;

use actix::fut::ActorFutureExt;
use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Supervised, WrapFuture};

use super::guard::supervise;
use super::queue::{CommandBatch, WorkQueue};
use super::registry::{Mailbox, Passivate, StartContext};
use super::reply::Envelope;
use crate::domain::kernel::ids::CommandId;

/// The default size of a batch, in commands.
pub const BATCH_MAX: usize = 64;

/// The logic of a batch actor.
pub trait Worker: Sized + 'static {
    type Command: Send + Sync + 'static;
    type Reply: Send + 'static;

    /// The name of a command in the quarantine.
    fn name(command: &Self::Command) -> &'static str;

    /// True if a command needs its own batch.
    fn is_large(_: &Self::Command) -> bool {
        false
    }

    /// Processes a batch in order and replies to each command. Calls `batch.committing()` right before the commit. After
    /// a panic before that, each command is tried again on its own.
    fn work(
        self,
        batch: CommandBatch<Self::Command>,
    ) -> impl Future<Output = (Self, Vec<(CommandId, Self::Reply)>)> + 'static;
}

/// Starts a batch actor. `make` creates a worker without cached state, at the start and after a panic.
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
    /// `None` during a batch and before the first one.
    worker: Option<W>,
    queue: WorkQueue<W::Command, W::Reply>,
    scheduled: bool,
}

// The worker is moved, never pinned.
impl<W: Worker> Unpin for BatchActor<W> {}

impl<W: Worker> BatchActor<W> {
    /// Takes the next batch after yielding once, so that other actors of the arbiter run and arriving commands join the
    /// batch.
    fn schedule(&mut self, ctx: &mut Context<Self>) {
        if self.scheduled || !self.queue.is_due() {
            return;
        }
        self.scheduled = true;
        let yielded = tokio::task::yield_now().into_actor(self);
        ctx.spawn(yielded.map(|(), actor, ctx| actor.run(ctx)));
    }

    fn run(&mut self, ctx: &mut Context<Self>) {
        self.scheduled = false;
        // Creates the worker before a batch is in flight, so that a panic of `make` is not blamed on commands.
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
        let unanswered = self.queue.answer(replies);
        if unanswered > 0 {
            tracing::error!(actor = self.context.node.name(), unanswered, "batch left commands unanswered");
        }
        self.schedule(ctx);
    }
}

impl<W: Worker> Actor for BatchActor<W> {
    type Context = Context<Self>;

    /// Also called after a restart, where it continues with the kept queue.
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
