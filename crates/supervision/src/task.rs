//! Runs one piece of work under supervision, without an actor: it has a node in the tree while it runs, and a panic
//! ends only this work.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use actix::ArbiterHandle;
use tokio::sync::oneshot;

use super::node::Node;
use super::panics::{self, CaughtPanic};

/// The way in which supervised work ended.
#[derive(Debug, PartialEq, Eq)]
pub enum TaskEnd<T> {
    Returned(T),
    Panicked,
    /// The arbiter has stopped, and the work with it.
    Stopped,
}

/// Runs the work that `start` returns on an arbiter and waits for its end. The work can report to the watchdog through
/// the node.
pub async fn run_task<T, F>(
    arbiter: &ArbiterHandle,
    node: Node,
    start: impl FnOnce(Node) -> F + Send + 'static,
) -> TaskEnd<T>
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
{
    let (end, ended) = oneshot::channel();
    arbiter.spawn_fn(move || {
        actix::spawn(async move {
            let running = RunningTask(node);
            running.0.mark_running();
            let returned = catch_panic(async { start(running.0.clone()).await }).await;
            let returned = returned.map_or_else(
                |panic| {
                    running.0.record_panic(&panic.text);
                    TaskEnd::Panicked
                },
                TaskEnd::Returned,
            );
            drop(running);
            // The send fails only if the caller no longer waits, and then nobody needs the end.
            let _ = end.send(returned);
        });
    });
    ended.await.unwrap_or(TaskEnd::Stopped)
}

/// Removes the node from the tree when the work ends or its arbiter drops it.
struct RunningTask(Node);

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.mark_stopped();
    }
}

/// Runs a part of an actor's work. A panic ends only this part: it is counted, the actor continues, and this function
/// returns `None`.
pub async fn survive_panic<T>(node: &Node, work: impl Future<Output = T>) -> Option<T> {
    match catch_panic(work).await {
        Ok(returned) => Some(returned),
        Err(panic) => {
            node.record_panic(&panic.text);
            node.mark_running();
            None
        }
    }
}

async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, CaughtPanic> {
    let mut work = pin!(work);
    poll_fn(
        |polling| match panics::catch(|| work.as_mut().poll(polling)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(returned)) => Poll::Ready(Ok(returned)),
            Err(panic) => Poll::Ready(Err(panic)),
        },
    )
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use timing::clock::MockClock;

    use super::*;
    use crate::{Arbiters, NodeKind, Tree};

    #[actix::test]
    async fn a_panic_ends_only_its_own_work_and_is_counted() {
        panics::install_hook();
        let arbiters = Arbiters::start(1);
        let clock = MockClock::at(jiff::Timestamp::UNIX_EPOCH);
        let tree = Tree::new(Arc::new(clock), &[]);
        let node = || tree.add_node(NodeKind::transient("run"), 0, "7/1");
        let (_, arbiter) = arbiters.for_key(0);
        let (go_on, waiting) = oneshot::channel();
        let other = run_task(arbiter, node(), move |_| waiting);
        let panicking = run_task(arbiter, node(), |node| async move {
            assert_eq!(node.tree().node_count(), 2, "both are shown");
            panic!("no such step");
        });
        let (panicked, returned) = tokio::join!(
            async {
                let end: TaskEnd<()> = panicking.await;
                go_on.send(5).unwrap();
                end
            },
            other
        );
        assert_eq!(
            (panicked, returned),
            (TaskEnd::Panicked, TaskEnd::Returned(Ok(5)))
        );
        assert_eq!(
            (tree.counters().snapshot().panics, tree.node_count()),
            (1, 0)
        );
        arbiters.stop();
        assert!(arbiters.join().await);
        let late: TaskEnd<()> = run_task(arbiter, node(), |_| async {}).await;
        assert_eq!(late, TaskEnd::Stopped);
    }
}
