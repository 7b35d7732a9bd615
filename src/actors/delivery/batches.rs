//! Runs the database work of all endpoints of this process (reading due deliveries, writing outcomes) in batches. A
//! request that arrives while a batch runs waits for the next batch. A request that fails or panics does not fail the
//! others of its batch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use database::StoreError;
use supervision::{Arbiters, Node, RestartPolicy, Tree, hash_key, supervise, survive_panic};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::yield_now;

use crate::actors::delivery::error::DeliveryError;
use crate::actors::kinds;

/// Work that handles several requests in one query or transaction.
pub(super) trait BatchWork: Send + Sync + 'static {
    type Request: Send + 'static;
    type Answer: Send + 'static;

    /// The name of the actor.
    const NAME: &'static str;
    /// The name of a request in the metrics.
    const COMMAND: &'static str;
    /// The maximum number of requests in one batch.
    const BATCH_MAX: usize;

    /// Returns one result for each request, in the order of `requests`. The outer error concerns the whole batch.
    async fn run(
        &self,
        requests: &[&Self::Request],
    ) -> Result<Vec<Result<Self::Answer, StoreError>>, StoreError>;
}

/// A request with the time at which it was queued, and the channel for its answer.
struct QueuedRequest<W: BatchWork> {
    request: W::Request,
    at: Instant,
    answer: oneshot::Sender<Result<W::Answer, DeliveryError>>,
}

/// Sends requests to the actor that runs the batches.
pub(super) struct BatchSender<W: BatchWork> {
    queue: mpsc::UnboundedSender<QueuedRequest<W>>,
    _actor: Addr<BatchRunner<W>>,
}

impl<W: BatchWork> BatchSender<W> {
    /// Starts the actor under supervision.
    pub(super) fn start(work: W, tree: &Tree, arbiters: &Arbiters) -> Self {
        let (queue, requests) = mpsc::unbounded_channel();
        let (shard, arbiter) = arbiters.for_key(hash_key(W::NAME));
        let node = tree.add_node(kinds::WEBHOOK, shard, W::NAME);
        let runner = BatchRunner {
            work: Arc::new(work),
            requests: Arc::new(Mutex::new(requests)),
            node: node.clone(),
        };
        Self {
            queue,
            _actor: supervise(arbiter, node, RestartPolicy::default(), |_| runner),
        }
    }

    /// Waits until a batch has handled the request, and returns the answer. Fails with `Unsettled` if the actor has
    /// ended, and with `Panic` if the request panics even when it runs separately.
    pub(super) async fn ask(&self, request: W::Request) -> Result<W::Answer, DeliveryError> {
        let (answer, answered) = oneshot::channel();
        let asked = QueuedRequest {
            request,
            at: Instant::now(),
            answer,
        };
        if self.queue.send(asked).is_err() {
            return Err(StoreError::Unsettled.into());
        }
        answered.await.unwrap_or(Err(StoreError::Unsettled.into()))
    }
}

type Requests<W> = mpsc::UnboundedReceiver<QueuedRequest<W>>;

/// Runs one batch after the other.
struct BatchRunner<W: BatchWork> {
    work: Arc<W>,
    requests: Arc<Mutex<Requests<W>>>,
    node: Node,
}

impl<W: BatchWork> Actor for BatchRunner<W> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let running = run_batches(
            Arc::clone(&self.work),
            Arc::clone(&self.requests),
            self.node.clone(),
        );
        ctx.spawn(running.into_actor(self));
    }
}

impl<W: BatchWork> Supervised for BatchRunner<W> {}

async fn run_batches<W: BatchWork>(work: Arc<W>, requests: Arc<Mutex<Requests<W>>>, node: Node) {
    let mut requests = requests.lock().await;
    while let Some(first) = requests.recv().await {
        // Lets requests that arrive at the same time join the batch.
        yield_now().await;
        let mut batch = vec![first];
        while batch.len() < W::BATCH_MAX
            && let Ok(next) = requests.try_recv()
        {
            batch.push(next);
        }
        // The channel does not show when its oldest request was queued. That request was queued right after the last
        // request of this batch, so the time of the last one is recorded instead.
        let last = batch.last().filter(|_| !requests.is_empty());
        let waiting_since = last.map(|asked| asked.at);
        node.record_queue(batch.len() + requests.len(), waiting_since);
        run_batch(&*work, batch, &node).await;
        node.record_queue(requests.len(), None);
    }
}

async fn run_batch<W: BatchWork>(work: &W, batch: Vec<QueuedRequest<W>>, node: &Node) {
    let begun = Instant::now();
    let waits: Vec<Duration> = batch
        .iter()
        .map(|asked| begun.duration_since(asked.at))
        .collect();
    let longest_wait = waits.iter().max().copied().unwrap_or_default();
    node.mark_batch_started(W::COMMAND, waits.len(), longest_wait);
    let requests: Vec<_> = batch.iter().map(|asked| &asked.request).collect();
    let answers = answer_all(work, &requests, node).await;
    node.mark_batch_finished();
    node.measure_batch(W::COMMAND, &waits, begun.elapsed());
    for (asked, answer) in batch.into_iter().zip(answers) {
        // An endpoint that has stopped meanwhile needs no answer.
        let _ = asked.answer.send(answer);
    }
}

/// Runs a batch. If a single request may have caused the whole batch to fail or panic, runs each request separately.
async fn answer_all<W: BatchWork>(
    work: &W,
    all: &[&W::Request],
    node: &Node,
) -> Vec<Result<W::Answer, DeliveryError>> {
    match survive_panic(node, work.run(all)).await {
        Some(Ok(answers)) => answers
            .into_iter()
            .map(|answer| answer.map_err(Into::into))
            .collect(),
        // An error that no single request has caused, such as a lost connection, would also occur for each request
        // alone. So every request gets this error.
        Some(Err(error))
            if all.len() == 1 || !error.may_concern_one_member() || error.is_timeout() =>
        {
            all.iter().map(|_| Err(error.clone().into())).collect()
        }
        None if all.len() == 1 => vec![Err(DeliveryError::Panic)],
        Some(Err(_)) | None => {
            let mut answers = Vec::with_capacity(all.len());
            for one in all {
                answers.push(answer_one(work, one, node).await);
            }
            answers
        }
    }
}

async fn answer_one<W: BatchWork>(
    work: &W,
    one: &W::Request,
    node: &Node,
) -> Result<W::Answer, DeliveryError> {
    let ran = survive_panic(node, work.run(&[one]))
        .await
        .ok_or(DeliveryError::Panic)?;
    Ok(ran?.pop().unwrap_or(Err(StoreError::Unsettled))?)
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use jiff::Timestamp;
    use supervision::install_hook;
    use timing::clock::MockClock;

    use super::*;

    /// Halves numbers. Fails the whole batch if one number is negative, and panics if one is zero.
    struct Halves;

    impl BatchWork for Halves {
        type Request = i32;
        type Answer = i32;

        const NAME: &'static str = "halves";
        const COMMAND: &'static str = "halve";
        const BATCH_MAX: usize = 4;

        async fn run(&self, all: &[&i32]) -> Result<Vec<Result<i32, StoreError>>, StoreError> {
            assert!(all.len() <= Self::BATCH_MAX && !all.contains(&&0));
            if let Some(bad) = all.iter().find(|one| ***one < 0) {
                let id = bad.to_string();
                let reason = "negative".to_owned();
                return Err(StoreError::Corrupt {
                    table: "numbers",
                    id,
                    reason,
                });
            }
            Ok(all.iter().map(|one| Ok(**one / 2)).collect())
        }
    }

    #[actix::test]
    async fn a_request_that_fails_or_panics_does_so_alone() {
        install_hook();
        let arbiters = Arbiters::start(1);
        let tree = Tree::new(Arc::new(MockClock::at(Timestamp::UNIX_EPOCH)), kinds::ALL);
        let batches = BatchSender::start(Halves, &tree, &arbiters);
        let halves = async |numbers: [i32; 6]| {
            let answers = join_all(numbers.map(|number| batches.ask(number))).await;
            answers.into_iter().map(Result::ok).collect::<Vec<_>>()
        };
        let all = halves([2, 4, 6, 8, 10, 12]).await;
        assert_eq!(all, [Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)]);
        let one_fails = halves([4, -1, 6, 8, 10, 12]).await;
        assert_eq!(
            one_fails,
            [Some(2), None, Some(3), Some(4), Some(5), Some(6)]
        );
        let one_panics = halves([4, 0, 6, 8, 10, 12]).await;
        assert_eq!(
            one_panics,
            [Some(2), None, Some(3), Some(4), Some(5), Some(6)]
        );
        for _ in 0..9 {
            assert!(matches!(batches.ask(0).await, Err(DeliveryError::Panic)));
        }
        assert_eq!(
            batches.ask(12).await.unwrap(),
            6,
            "it goes on, however often one panics"
        );
        assert_eq!(
            tree.counters().snapshot().panics,
            2 + 9,
            "in its batch, and alone"
        );
        arbiters.stop();
        assert!(arbiters.join().await);
        let late = batches.ask(14).await;
        assert!(matches!(
            late,
            Err(DeliveryError::Store(StoreError::Unsettled))
        ));
    }
}
