//! A cached value with a lifetime. One of several callers loads a new value while the others wait.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

/// The last value and the time at which it was loaded.
#[derive(Debug)]
pub(crate) struct Cached<T> {
    cached: Mutex<Option<(Instant, T)>>,
    lifetime: Duration,
}

impl<T: Clone> Cached<T> {
    pub(crate) fn new(lifetime: Duration) -> Self {
        Self {
            cached: Mutex::default(),
            lifetime,
        }
    }

    /// Returns the cached value while it is fresh. If it is not, loads and caches a new value.
    pub(crate) async fn get_or_load(&self, load: impl Future<Output = T>) -> T {
        let mut cached = self.cached.lock().await;
        if let Some((loaded_at, value)) = cached.as_ref()
            && loaded_at.elapsed() < self.lifetime
        {
            return value.clone();
        }
        let value = load.await;
        *cached = Some((Instant::now(), value.clone()));
        value
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::future::join_all;
    use tokio::task::yield_now;

    use super::*;

    #[actix_web::test]
    async fn one_of_many_concurrent_callers_loads_the_value() {
        let cached = Cached::new(Duration::from_mins(1));
        let load_count = AtomicU32::new(0);
        let load = || async {
            yield_now().await;
            load_count.fetch_add(1, Ordering::SeqCst)
        };
        assert_eq!(
            join_all((0..9).map(|_| cached.get_or_load(load()))).await,
            [0; 9]
        );
        let stale = Cached::new(Duration::ZERO);
        stale.get_or_load(load()).await;
        assert_eq!(stale.get_or_load(load()).await, 2);
    }
}
