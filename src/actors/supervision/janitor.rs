//! Runs periodic tasks on the background arbiter. If a task panics, the tasks after it are skipped in this round.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, Addr, AsyncContext, Context, Supervised};

use super::arbiters::Arbiters;
use super::guard::supervise;
use super::node::Node;
use super::policy::RestartPolicy;
use super::tree::{NodeKind, Tree};

/// A task that the janitor calls with the current time in each round. A task must not block.
pub type PeriodicTask = Box<dyn FnMut(Instant) + Send>;

pub struct Janitor {
    node: Node,
    every: Duration,
    tasks: Vec<PeriodicTask>,
    /// The actor's own address. actix does not stop the actor while this address exists.
    _address: Addr<Self>,
}

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
