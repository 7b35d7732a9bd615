//! The documents that are printed at once, and the workbooks that are written at once: of each half as many as the
//! machine has cores, because both compute all the time and everybody else must go on.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::http::respond::error::ApiError;

#[derive(Debug)]
pub struct PrintingPlaces(Arc<Semaphore>);

impl Default for PrintingPlaces {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        Self(Arc::new(Semaphore::new((cores / 2).max(1))))
    }
}

impl PrintingPlaces {
    /// Computes on a thread of its own, after waiting for a place, first come, first served. The place is kept even
    /// if the caller hangs up, because the thread goes on.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let place = Arc::clone(&self.0).acquire_owned().await;
        let place = place.map_err(ApiError::internal)?;
        let computed = spawn_blocking(move || {
            let result = task();
            drop(place);
            result
        });
        computed.await.map_err(ApiError::internal)
    }
}
