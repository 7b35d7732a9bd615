//! The documents that are printed at once: half as many as the machine has cores, because printing computes all the time
//! and everybody else must go on.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub struct PrintingPlaces(Arc<Semaphore>);

impl Default for PrintingPlaces {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        Self(Arc::new(Semaphore::new((cores / 2).max(1))))
    }
}

impl PrintingPlaces {
    /// Waits for a place, first come, first served.
    pub(crate) async fn acquire(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        Arc::clone(&self.0).acquire_owned().await
    }
}
