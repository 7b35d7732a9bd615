//! Runs periodic tasks on the background arbiter.
//!
//! A task that panics ends the current round for all tasks; the janitor is restarted like any actor.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, Addr, AsyncContext, Context, Supervised};

use super::arbiters::Arbiters;
use super::guard::supervise;
use super::node::Node;
use super::policy::RestartPolicy;
use super::tree::{NodeKind, Tree};

/// Work to do at the given time, without blocking.
pub type PeriodicTask = Box<dyn FnMut(Instant) + Send>;

pub struct Janitor {
    node: Node,
    every: Duration,
    tasks: Vec<PeriodicTask>,
    /// Its own address keeps the actor alive, because nobody sends to it.
    _address: Addr<Self>,
}

/// Starts the janitor on the background arbiter.
pub fn start(
    tree: &Tree,
    arbiters: &Arc<Arbiters>,
    every: Duration,
    tasks: Vec<PeriodicTask>,
) -> Addr<Janitor> {
    let node = tree.node(NodeKind::Janitor, 0, "janitor");
    let heartbeat = node.clone();
    supervise(arbiters.background(), node, RestartPolicy::default(), move |ctx| Janitor {
        node: heartbeat,
        every,
        tasks,
        _address: ctx.address(),
    })
}

impl Actor for Janitor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.run_interval(self.every, |janitor, _| {
            janitor.node.batch_started();
            for task in &mut janitor.tasks {
                task(Instant::now());
            }
            janitor.node.batch_finished();
        });
    }
}

impl Supervised for Janitor {}
