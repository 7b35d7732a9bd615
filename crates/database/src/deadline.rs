//! Deadlines on our side of the connection: over a dead connection no answer arrives, not even the error of
//! PostgreSQL's own timeout.
//!
//! The same place sees each error of the database, so it remembers that the disk was full.
//!
//! A value of the driver may need a runtime when it is dropped, to return its connection to the pool. An actor's thread
//! drops its last values after its own runtime has ended, so `DroppedInRuntime` drops them in the pool's runtime.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sea_orm::sqlx::Error as SqlxError;
use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::error::is_disk_full;

/// For this long after a call was abandoned, each connection that is returned to the pool is tested.
const DOUBTED_FOR: Duration = Duration::from_mins(1);

/// The deadlines of calls and transactions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    /// The deadline of one statement, begin, commit or rollback, including the wait for a connection.
    pub(crate) call: Duration,
    /// The deadline of all statements of one transaction together.
    pub(crate) transaction: Duration,
}

/// Holds a value of the driver and drops it inside a runtime, because the driver needs one to clean up.
pub(crate) struct DroppedInRuntime<T> {
    value: Option<T>,
    runtime: Handle,
}

impl<T> DroppedInRuntime<T> {
    pub(crate) fn new(value: T, runtime: Handle) -> Self {
        Self {
            value: Some(value),
            runtime,
        }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    pub(crate) fn take(&mut self) -> Option<T> {
        self.value.take()
    }
}

impl<T> Drop for DroppedInRuntime<T> {
    fn drop(&mut self) {
        let _inside = Handle::try_current().is_err().then(|| self.runtime.enter());
        drop(self.value.take());
    }
}

impl<F: Future> Future for DroppedInRuntime<Pin<Box<F>>> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match self.get_mut().value.as_mut() {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

/// Records whether the connections of a pool still answer.
#[derive(Debug)]
pub(crate) struct Liveness {
    opened: Instant,
    is_silent: AtomicBool,
    /// The time of the last answer, in milliseconds since `opened`.
    answered_at: AtomicU64,
    /// The time at which the last call was abandoned, in milliseconds since `opened`; `u64::MAX` if none was abandoned.
    doubted_at: AtomicU64,
    /// True if a call was answered with the error of a full disk (`is_disk_full`), and `forget_full_disk` was not called
    /// since.
    has_met_full_disk: AtomicBool,
}

impl Liveness {
    pub(crate) fn new() -> Self {
        let doubted_at = AtomicU64::new(u64::MAX);
        Self {
            opened: Instant::now(),
            is_silent: AtomicBool::new(false),
            answered_at: AtomicU64::new(0),
            doubted_at,
            has_met_full_disk: AtomicBool::new(false),
        }
    }

    /// True if a write has failed because the disk is full. Later writes may have succeeded: many need no new page.
    pub(crate) fn has_met_full_disk(&self) -> bool {
        self.has_met_full_disk.load(Ordering::Relaxed)
    }

    pub(crate) fn forget_full_disk(&self) {
        self.has_met_full_disk.store(false, Ordering::Relaxed);
    }

    /// Remembers an error of the database if it says that the disk is full.
    pub(crate) fn record_error(&self, error: &DbErr) {
        if is_disk_full(error) {
            self.has_met_full_disk.store(true, Ordering::Relaxed);
        }
    }

    /// True if a connection gave no answer before its deadline, so that all connections of the pool count as dead.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// True if a call was abandoned in the last minute. The connection of that call may be dead.
    pub(crate) fn is_doubted(&self) -> bool {
        let doubted_at = self.doubted_at.load(Ordering::Relaxed);
        doubted_at != u64::MAX && self.now_ms().saturating_sub(doubted_at) < millis(DOUBTED_FOR)
    }

    fn mark_doubted(&self) {
        self.doubted_at.store(self.now_ms(), Ordering::Relaxed);
    }

    /// True if no call on the pool was answered for at least this long.
    pub(crate) fn is_unanswered_for(&self, duration: Duration) -> bool {
        self.now_ms()
            .saturating_sub(self.answered_at.load(Ordering::Relaxed))
            >= millis(duration)
    }

    fn record_answer(&self) {
        self.answered_at.store(self.now_ms(), Ordering::Relaxed);
    }

    fn now_ms(&self) -> u64 {
        millis(self.opened.elapsed())
    }

    /// Awaits a call of the driver. Fails if no answer comes within `limit.duration`. The pool then counts as dead if
    /// `limit.tells_silence` is true.
    pub(crate) fn watch_call<T>(
        &self,
        limit: CallLimit,
        runtime: &Handle,
        call: impl Future<Output = Result<T, DbErr>>,
    ) -> impl Future<Output = Result<T, DbErr>> {
        // The box keeps the futures that await the call small.
        self.await_answer(
            limit,
            DroppedInRuntime::new(Box::pin(call), runtime.clone()),
        )
    }

    async fn await_answer<T>(
        &self,
        limit: CallLimit,
        call: impl Future<Output = Result<T, DbErr>>,
    ) -> Result<T, DbErr> {
        let call = timeout(limit.duration, call);
        let mut guard = AbandonGuard {
            liveness: self,
            was_answered: false,
        };
        let result = call.await;
        guard.was_answered = result.is_ok();
        let Ok(result) = result else {
            if limit.tells_silence {
                self.mark_silent();
            }
            let text = format!("the database did not answer within {:?}", limit.duration);
            return Err(DbErr::Conn(RuntimeErr::Internal(text)));
        };
        if result.as_ref().map_or_else(is_database_answer, |_| true) {
            self.record_answer();
        }
        result.inspect_err(|error| self.record_error(error))
    }
}

/// Runs the calls on a connection with deadlines, and records in `liveness` whether they were answered.
#[derive(Clone)]
pub(crate) struct CallGuard {
    pub(crate) liveness: Arc<Liveness>,
    pub(crate) runtime: Handle,
    pub(crate) deadlines: Deadlines,
}

impl CallGuard {
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Awaits a call on the connection until `most` or the usual deadline has passed, whichever is earlier.
    pub(crate) fn call<T>(
        &self,
        most: Duration,
        call: impl Future<Output = Result<T, DbErr>>,
    ) -> impl Future<Output = Result<T, DbErr>> {
        let duration = most.min(self.deadlines.call);
        let limit = CallLimit {
            duration,
            tells_silence: duration == self.deadlines.call,
        };
        self.liveness.watch_call(limit, &self.runtime, call)
    }

    /// Remembers an error of a call that was made without `call`.
    pub(crate) fn record_error(&self, error: &DbErr) {
        self.liveness.record_error(error);
    }

    pub(crate) fn with_deadlines(self, deadlines: Deadlines) -> Self {
        Self { deadlines, ..self }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct CallLimit {
    pub(crate) duration: Duration,
    /// True if a live database would have answered within `duration`, so that no answer means a dead connection.
    pub(crate) tells_silence: bool,
}

/// Watches one call: if this value is dropped before the call was answered, the pool is marked as doubted.
struct AbandonGuard<'a> {
    liveness: &'a Liveness,
    was_answered: bool,
}

impl Drop for AbandonGuard<'_> {
    fn drop(&mut self) {
        if !self.was_answered {
            self.liveness.mark_doubted();
        }
    }
}

/// True if the error comes from the database itself, which shows that the connection works.
fn is_database_answer(error: &DbErr) -> bool {
    let (DbErr::Conn(cause) | DbErr::Exec(cause) | DbErr::Query(cause)) = error else {
        return false;
    };
    matches!(cause, RuntimeErr::SqlxError(error) if matches!(**error, SqlxError::Database(_) | SqlxError::RowNotFound))
}

/// True if a call failed because no connection of the pool became free before the timeout.
pub(crate) fn is_pool_exhausted(error: &DbErr) -> bool {
    matches!(error, DbErr::ConnectionAcquire(ConnAcquireErr::Timeout))
}

/// True if a call was not sent, because the pool was closed while the call waited for a connection.
pub(crate) fn is_pool_closed(error: &DbErr) -> bool {
    matches!(
        error,
        DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed)
    )
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::mpsc;

    use super::*;

    fn limit(millis: u64) -> CallLimit {
        CallLimit {
            duration: Duration::from_millis(millis),
            tells_silence: true,
        }
    }

    #[tokio::test]
    async fn a_call_without_an_answer_ends_and_its_pool_is_silent() {
        let liveness = Liveness::new();
        let runtime = Handle::current();
        assert_eq!(
            liveness
                .watch_call(limit(1_000), &runtime, async { Ok(7) })
                .await,
            Ok(7)
        );
        assert!(!liveness.is_doubted() && !liveness.is_silent());
        let error = liveness
            .watch_call(limit(1), &runtime, pending::<Result<(), _>>())
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "Connection Error: the database did not answer within 1ms"
        );
        assert!(liveness.is_doubted() && liveness.is_silent());
    }

    #[tokio::test]
    async fn a_call_that_its_caller_drops_makes_the_pool_doubted() {
        let liveness = Liveness::new();
        let runtime = Handle::current();
        let call = liveness.watch_call(limit(60_000), &runtime, pending::<Result<(), _>>());
        assert!(timeout(Duration::from_millis(1), call).await.is_err());
        assert!(liveness.is_doubted() && !liveness.is_silent());
    }

    #[test]
    fn a_drop_on_a_thread_without_a_runtime_happens_inside_one() {
        struct NeedsRuntime(mpsc::Sender<bool>);
        impl Drop for NeedsRuntime {
            fn drop(&mut self) {
                self.0.send(Handle::try_current().is_ok()).unwrap();
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let (sender, receiver) = mpsc::channel();
        drop(DroppedInRuntime::new(
            NeedsRuntime(sender),
            runtime.handle().clone(),
        ));
        assert!(receiver.recv().unwrap());
    }
}
