//! An actor that processes its commands in batches, one batch at a time.
//!
//! The `Worker` is moved into the future that processes a batch and comes back with the replies. If the batch panics,
//! the worker is dropped and the next batch gets a new worker from `make`. The actor itself survives and keeps its
//! queue.

use std::collections::HashMap;
use std::future::Future;
use std::time::Instant;

use actix::fut::ActorFutureExt;
use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Supervised, WrapFuture};
use timing::CommandId;

use secrecy::SecretString;

use super::guard::supervise;
use super::mailbox::{Envelope, Mailbox, Passivate};
use super::node::Node;
use super::queue::{BatchLimits, CommandBatch, WorkQueue};
use super::registry::StartContext;

/// The default limit of commands in one batch.
pub const BATCH_MAX: usize = 64;

/// The part of a batch actor that executes the commands.
pub trait Worker: Sized + 'static {
    type Command: Send + Sync + 'static;
    type Reply: Send + 'static;

    /// Returns the name of the command in metrics, figures and the quarantine.
    fn name(command: &Self::Command) -> &'static str;

    /// Returns the outcome of a reply, as a label in the metrics.
    fn outcome(_: &Self::Reply) -> &'static str {
        "done"
    }

    /// The weight at which a batch takes no further commands.
    const WEIGHT_MAX: usize = usize::MAX;

    /// Returns the approximate amount of work for a command, relative to other commands of this worker.
    fn weight(_: &Self::Command) -> usize {
        1
    }

    /// Returns true if the command must be processed in a batch of its own.
    fn is_large(_: &Self::Command) -> bool {
        false
    }

    /// Returns what a later replay of the quarantined command needs. `None` if the command cannot be replayed.
    fn contents(_: &Self::Command) -> Option<SecretString> {
        None
    }

    /// Runs the commands in order and returns one reply for each. Must call `batch.start_commit()` right before the
    /// commit: a panic before this call has changed nothing, so the commands are tried again one by one.
    fn work(
        self,
        batch: CommandBatch<Self::Command>,
    ) -> impl Future<Output = (Self, Vec<(CommandId, Self::Reply)>)> + 'static;
}

/// Starts a batch actor. `make` creates a worker without cached state, before the first batch and after each panic.
pub fn start<W: Worker>(
    context: StartContext,
    batch_max: usize,
    make: impl Fn() -> W + Send + 'static,
) -> Mailbox<W::Command, W::Reply> {
    let arbiter = context.arbiter.clone();
    let node = context.node.clone();
    let policy = context.policy;
    let address = supervise(&arbiter, node, policy, move |_| BatchActor {
        context,
        limits: BatchLimits {
            commands_max: batch_max,
            weight_max: W::WEIGHT_MAX,
            weight: W::weight,
            is_large: W::is_large,
        },
        make: Box::new(make),
        worker: None,
        queue: WorkQueue::default(),
        is_scheduled: false,
    });
    address.into()
}

/// The commands of a batch in progress, to measure how long they took.
struct StartedBatch {
    node: Node,
    at: Instant,
    commands: HashMap<CommandId, &'static str>,
}

impl StartedBatch {
    /// Records the start of a batch, and the wait of each of its commands.
    fn record_start<C>(
        batch: &CommandBatch<C>,
        command_name: fn(&C) -> &'static str,
        node: &Node,
    ) -> Self {
        let metrics = &node.tree().counters().by_kind;
        let tasks = batch.tasks();
        metrics.record_batch(node.kind(), tasks.len());
        let longest_wait = tasks.iter().map(|task| task.waited).max();
        let first = tasks.first().map_or("", |task| command_name(&task.command));
        node.mark_batch_started(first, tasks.len(), longest_wait.unwrap_or_default());
        let commands = tasks.iter().map(|task| {
            let command = command_name(&task.command);
            metrics.record_wait(node.kind(), command, task.waited);
            (task.id, command)
        });
        Self {
            commands: commands.collect(),
            node: node.clone(),
            at: Instant::now(),
        }
    }

    fn record_end<R>(&self, replies: &[(CommandId, R)], outcome: fn(&R) -> &'static str) {
        let metrics = &self.node.tree().counters().by_kind;
        let took = self.at.elapsed();
        for (id, reply) in replies {
            if let Some(command) = self.commands.get(id) {
                metrics.record_duration(self.node.kind(), command, outcome(reply), took);
            }
        }
    }
}

struct BatchActor<W: Worker> {
    context: StartContext,
    limits: BatchLimits<W::Command>,
    make: Box<dyn Fn() -> W>,
    /// `None` before the first batch, while a batch has the worker, and after a panic.
    worker: Option<W>,
    queue: WorkQueue<W::Command, W::Reply>,
    is_scheduled: bool,
}

// Moving the actor is safe even if its worker is not `Unpin`, because the actor never pins its worker.
impl<W: Worker> Unpin for BatchActor<W> {}

impl<W: Worker> BatchActor<W> {
    /// Takes the next batch after one yield, so that other actors run and newly arrived commands join the batch.
    fn schedule_batch(&mut self, ctx: &mut Context<Self>) {
        if self.is_scheduled || !self.queue.is_due() {
            return;
        }
        self.is_scheduled = true;
        let yielded = tokio::task::yield_now().into_actor(self);
        ctx.spawn(yielded.map(|(), actor, ctx| actor.run_next_batch(ctx)));
    }

    fn run_next_batch(&mut self, ctx: &mut Context<Self>) {
        self.is_scheduled = false;
        // Creates the worker first, so that a panic in `make` does not count as a panic of the commands.
        let worker = self.worker.take().unwrap_or_else(|| (self.make)());
        let Some(batch) = self.queue.take_batch(&self.limits) else {
            return;
        };
        self.record_queue();
        let started = StartedBatch::record_start(&batch, W::name, &self.context.node);
        let work = worker.work(batch).into_actor(self);
        ctx.spawn(work.map(move |(worker, replies), actor, ctx| {
            actor.worker = Some(worker);
            started.record_end(&replies, W::outcome);
            actor.finish_batch(replies, ctx);
        }));
    }

    /// Records for operators how many commands are in the queue, and since when the oldest of them waits.
    fn record_queue(&self) {
        let waiting_since = self.queue.waiting_since();
        self.context
            .node
            .record_queue(self.queue.depth(), waiting_since);
    }

    fn finish_batch(&mut self, replies: Vec<(CommandId, W::Reply)>, ctx: &mut Context<Self>) {
        self.context.node.mark_batch_finished();
        let unanswered = self.queue.answer(replies);
        self.record_queue();
        if unanswered > 0 {
            tracing::error!(
                actor = self.context.node.name(),
                unanswered,
                "batch left commands unanswered"
            );
        }
        self.schedule_batch(ctx);
    }
}

impl<W: Worker> Actor for BatchActor<W> {
    type Context = Context<Self>;

    /// actix calls this again after a restart. The actor then continues with the commands that are still in the queue.
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.schedule_batch(ctx);
    }
}

impl<W: Worker> Supervised for BatchActor<W> {
    fn restarting(&mut self, _: &mut Context<Self>) {
        self.is_scheduled = false;
        self.worker = None;
        let node = &self.context.node;
        self.queue.recover(|reference, command| {
            node.record_quarantine(reference, W::name(command), W::contents(command));
        });
        self.record_queue();
    }
}

impl<W: Worker> Handler<Envelope<W::Command, W::Reply>> for BatchActor<W> {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<W::Command, W::Reply>, ctx: &mut Context<Self>) {
        self.queue.push(envelope);
        self.record_queue();
        self.schedule_batch(ctx);
    }
}

impl<W: Worker> Handler<Passivate> for BatchActor<W> {
    type Result = ();

    fn handle(&mut self, asked: Passivate, ctx: &mut Context<Self>) {
        if self.queue.is_empty() && self.context.leave_registry(&asked) {
            ctx.stop();
        }
    }
}
