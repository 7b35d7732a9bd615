//! The timer that calls what is due. Duties are functions of the moment; there is no work in here.
//!
//! A duty that panics costs the others one round: the janitor is restarted like any actor.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, Addr, AsyncContext, Context, Supervised};

use super::arbiters::Arbiters;
use super::guard::supervise;
use super::node::Node;
use super::policy::RestartPolicy;
use super::tree::{ActorKind, Tree};

/// Does what is due at the given moment, without blocking.
pub type PeriodicTask = Box<dyn FnMut(Instant) + Send>;

pub struct Janitor {
    node: Node,
    every: Duration,
    duties: Vec<PeriodicTask>,
    /// Its own address: the janitor stays though nobody sends to it.
    _address: Addr<Self>,
}

/// Starts the janitor on its own arbiter.
pub fn start(
    tree: &Tree,
    arbiters: &Arc<Arbiters>,
    every: Duration,
    duties: Vec<PeriodicTask>,
) -> Addr<Janitor> {
    let node = tree.node(ActorKind::Janitor, 0, "janitor");
    let heartbeat = node.clone();
    supervise(arbiters.background(), node, RestartPolicy::default(), move |ctx| Janitor {
        node: heartbeat,
        every,
        duties,
        _address: ctx.address(),
    })
}

impl Actor for Janitor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.run_interval(self.every, |janitor, _| {
            janitor.node.batch_started();
            for duty in &mut janitor.duties {
                duty(Instant::now());
            }
            janitor.node.batch_finished();
        });
    }
}

impl Supervised for Janitor {}
