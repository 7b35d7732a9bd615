//! Runs long computations on a thread of their own. Actors share the threads of their arbiters: while one actor
//! computes, the others on its thread wait.

use std::future::Future;
use std::panic::resume_unwind;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::{JoinError, spawn_blocking};

use super::panics::{CaughtPanic, catch};

/// Runs a future on a thread of its own. If the future panics, the caller panics with the same text. If the caller is
/// dropped, the future is dropped at its next await. Returns an error if the runtime ends before the future has begun.
pub async fn run_on_own_thread<T, F>(
    make_future: impl FnOnce() -> F + Send + 'static,
) -> Result<T, JoinError>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let runtime = Handle::current();
    let (caller, caller_gone) = oneshot::channel::<()>();
    let ended = spawn_blocking(move || {
        let ended = async {
            tokio::select! {
                result = make_future() => Some(result),
                _ = caller_gone => None,
            }
        };
        catch(|| runtime.block_on(ended))
    })
    .await?;
    drop(caller);
    match ended {
        Ok(Some(result)) => Ok(result),
        // Never happens: the future ends with `None` only if the caller was dropped.
        Ok(None) => std::future::pending().await,
        Err(CaughtPanic { text }) => resume_unwind(Box::new(text)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use tokio::time::{Duration, sleep, timeout};

    use super::*;

    #[tokio::test]
    async fn the_work_runs_on_another_thread_and_its_result_comes_back() {
        let here = thread::current().id();
        let there = run_on_own_thread(|| async {
            sleep(Duration::from_millis(1)).await;
            thread::current().id()
        });
        assert_ne!(there.await.unwrap(), here);
    }

    #[tokio::test]
    async fn a_panic_goes_on_in_the_caller_with_its_text() {
        let work = tokio::spawn(run_on_own_thread(|| async { panic!("as ordered") }));
        let payload = work
            .await
            .map(|ended| ended.unwrap())
            .unwrap_err()
            .into_panic();
        assert!(
            payload
                .downcast_ref::<String>()
                .unwrap()
                .starts_with("as ordered")
        );
    }

    #[tokio::test]
    async fn work_whose_caller_is_gone_is_dropped() {
        let held = Arc::new(());
        let for_work = Arc::clone(&held);
        let work = run_on_own_thread(move || async move {
            std::future::pending::<()>().await;
            drop(for_work);
        });
        assert!(timeout(Duration::from_millis(20), work).await.is_err());
        while Arc::strong_count(&held) > 1 {
            sleep(Duration::from_millis(1)).await;
        }
    }
}
