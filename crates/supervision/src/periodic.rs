//! An actor that calls one function again and again on the background arbiter. A panic ends only the current call: the
//! actor is restarted like any other and first waits for `first_after` again.

use std::fmt::Display;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use futures_util::future::{FutureExt, LocalBoxFuture};
use tokio::time::sleep;

use super::arbiters::Arbiters;
use super::guard::supervise;
use super::node_state::NodeKind;
use super::policy::RestartPolicy;
use super::tree::Tree;

/// The name of periodic work in the tree of actors, and the times of its calls.
#[derive(Debug, Clone, Copy)]
pub struct Period {
    pub kind: NodeKind,
    pub name: &'static str,
    /// The wait before the first call after a start or a restart.
    pub first_after: Duration,
    pub every: Duration,
}

impl Period {
    pub fn new(kind: NodeKind, name: &'static str, every: Duration) -> Self {
        Self {
            kind,
            name,
            first_after: every,
            every,
        }
    }
}

pub struct PeriodicActor {
    calls: Box<dyn Fn() -> LocalBoxFuture<'static, ()> + Send>,
    /// The actor's own address. actix does not stop the actor while this address exists.
    _address: Addr<Self>,
}

impl PeriodicActor {
    /// Starts the actor under supervision. `work` does what is due and returns the wait before its next call. The wait
    /// is `every` if `work` returns `None` or an error; an error is logged.
    pub fn start<W, E>(tree: &Tree, arbiters: &Arbiters, period: Period, work: W) -> Addr<Self>
    where
        W: AsyncFn() -> Result<Option<Duration>, E> + Clone + Send + 'static,
        E: Display + 'static,
    {
        let node = tree.add_node(period.kind, 0, period.name);
        supervise(
            arbiters.background(),
            node,
            RestartPolicy::default(),
            move |ctx| Self {
                calls: Box::new(move || call_repeatedly(period, work.clone()).boxed_local()),
                _address: ctx.address(),
            },
        )
    }
}

async fn call_repeatedly<W, E>(period: Period, work: W)
where
    W: AsyncFn() -> Result<Option<Duration>, E>,
    E: Display,
{
    sleep(period.first_after).await;
    loop {
        let wait = work().await.unwrap_or_else(|error| {
            tracing::warn!(work = period.name, %error, "periodic work failed; will retry");
            None
        });
        sleep(wait.unwrap_or(period.every)).await;
    }
}

impl Actor for PeriodicActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn((self.calls)().into_actor(self));
    }
}

impl Supervised for PeriodicActor {}
