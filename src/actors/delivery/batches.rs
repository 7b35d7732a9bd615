//! Work that the endpoints of this process share. A request that arrives while a batch runs waits for the next batch. A
//! faulty request does not fail the others of its batch.

use std::sync::Arc;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::actors::supervision::node::Node;
use crate::actors::supervision::{Arbiters, NodeKind, RestartPolicy, Tree, hash_of, supervise};
use crate::store::db::error::StoreError;

/// Work that handles several requests in one query or transaction.
pub(super) trait BatchWork: Send + Sync + 'static {
    type Request: Send + 'static;
    type Answer: Send + 'static;

    const NAME: &'static str;
    /// The maximum number of requests in one batch.
    const BATCH_MAX: usize;

    /// Returns one result for each request, in their order.
    async fn run(
        &self,
        requests: &[&Self::Request],
    ) -> Result<Vec<Result<Self::Answer, StoreError>>, StoreError>;
}

/// A request, and where its answer goes.
struct Asked<W: BatchWork> {
    request: W::Request,
    answer: oneshot::Sender<Result<W::Answer, StoreError>>,
}

/// Sends requests to the actor that runs the batches.
pub(super) struct Batches<W: BatchWork> {
    asked: mpsc::UnboundedSender<Asked<W>>,
    _actor: Addr<BatchRunner<W>>,
}

impl<W: BatchWork> Batches<W> {
    /// Starts the actor under supervision. After a panic it goes on with the next batch.
    pub(super) fn start(work: W, tree: &Tree, arbiters: &Arbiters) -> Self {
        let (asked, requests) = mpsc::unbounded_channel();
        let (shard, arbiter) = arbiters.for_key(hash_of(W::NAME));
        let node = tree.node(NodeKind::Webhook, shard, W::NAME);
        let runner = BatchRunner {
            work: Arc::new(work),
            requests: Arc::new(Mutex::new(requests)),
            node: node.clone(),
        };
        Self { asked, _actor: supervise(arbiter, node, RestartPolicy::default(), |_| runner) }
    }

    /// Waits until the request was part of a batch. Fails with `Unsettled` if it is not known how the batch ended.
    pub(super) async fn ask(&self, request: W::Request) -> Result<W::Answer, StoreError> {
        let (answer, answered) = oneshot::channel();
        if self.asked.send(Asked { request, answer }).is_err() {
            return Err(StoreError::Unsettled);
        }
        answered.await.unwrap_or(Err(StoreError::Unsettled))
    }
}

/// Runs one batch after the other.
struct BatchRunner<W: BatchWork> {
    work: Arc<W>,
    requests: Arc<Mutex<mpsc::UnboundedReceiver<Asked<W>>>>,
    node: Node,
}

impl<W: BatchWork> Actor for BatchRunner<W> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let running = run_batches(Arc::clone(&self.work), Arc::clone(&self.requests), self.node.clone());
        ctx.spawn(running.into_actor(self));
    }
}

impl<W: BatchWork> Supervised for BatchRunner<W> {}

async fn run_batches<W: BatchWork>(
    work: Arc<W>,
    requests: Arc<Mutex<mpsc::UnboundedReceiver<Asked<W>>>>,
    node: Node,
) {
    let mut requests = requests.lock().await;
    let mut batch = Vec::new();
    while requests.recv_many(&mut batch, W::BATCH_MAX).await > 0 {
        node.batch_started();
        let all: Vec<_> = batch.iter().map(|asked: &Asked<W>| &asked.request).collect();
        let answers = answers(&*work, &all).await;
        for (asked, answer) in batch.drain(..).zip(answers) {
            // An endpoint that has stopped meanwhile needs no answer.
            let _ = asked.answer.send(answer);
        }
        node.batch_finished();
    }
}

/// Runs a batch. If a faulty request makes the whole batch fail, runs each request separately.
async fn answers<W: BatchWork>(work: &W, all: &[&W::Request]) -> Vec<Result<W::Answer, StoreError>> {
    match work.run(all).await {
        Ok(answers) => answers,
        Err(error) if all.len() > 1 && error.may_concern_one() && !error.is_timeout() => {
            let mut answers = Vec::with_capacity(all.len());
            for one in all {
                answers.push(alone(work, one).await);
            }
            answers
        }
        // Any other error, such as a lost connection, would also occur for each request alone, so every request gets
        // this error.
        Err(error) => all.iter().map(|_| Err(error.clone())).collect(),
    }
}

async fn alone<W: BatchWork>(work: &W, one: &W::Request) -> Result<W::Answer, StoreError> {
    work.run(&[one]).await?.pop().unwrap_or(Err(StoreError::Stale))
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use jiff::Timestamp;

    use super::*;
    use crate::actors::supervision::panics;
    use crate::domain::kernel::clock::MockClock;

    /// Halves numbers. Fails the whole batch if one number is negative, and panics if one is zero.
    struct Halves;

    impl BatchWork for Halves {
        type Request = i32;
        type Answer = i32;

        const NAME: &'static str = "halves";
        const BATCH_MAX: usize = 2;

        async fn run(&self, all: &[&i32]) -> Result<Vec<Result<i32, StoreError>>, StoreError> {
            assert!(all.len() <= Self::BATCH_MAX && !all.contains(&&0));
            if let Some(bad) = all.iter().find(|one| ***one < 0) {
                let (id, reason) = (bad.to_string(), "negative".to_owned());
                return Err(StoreError::Corrupt { table: "numbers", id, reason });
            }
            Ok(all.iter().map(|one| Ok(**one / 2)).collect())
        }
    }

    #[actix::test]
    async fn a_faulty_request_fails_alone_and_a_panic_ends_only_its_batch() {
        panics::install_hook();
        let arbiters = Arbiters::start(1);
        let tree = Tree::new(Arc::new(MockClock::at(Timestamp::UNIX_EPOCH)));
        let batches = Batches::start(Halves, &tree, &arbiters);
        let answers = join_all([4, -1, 6, 8, 10].map(|number| batches.ask(number))).await;
        let halves: Vec<_> = answers.into_iter().map(Result::ok).collect();
        assert_eq!(halves, [Some(2), None, Some(3), Some(4), Some(5)]);
        assert!(matches!(batches.ask(0).await, Err(StoreError::Unsettled)));
        assert_eq!(batches.ask(12).await.unwrap(), 6, "the next batch runs after the restart");
        assert_eq!(tree.counters().snapshot().panics, 1);
        arbiters.stop();
        assert!(arbiters.join().await);
        assert!(matches!(batches.ask(14).await, Err(StoreError::Unsettled)));
    }
}
