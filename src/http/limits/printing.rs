//! Limits the documents that are printed at the same time. A separate limit applies to the workbooks and the files of
//! ZIP archives that are written. Each is half the number of cores, because this work keeps a core busy and other
//! requests need the rest.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::task::spawn_blocking;

use crate::actors::turn_gate::TurnGate;
use crate::domain::access::payer::Payer;
use crate::http::respond::error::ApiError;

#[derive(Debug)]
pub struct PrintingLimit(Arc<TurnGate>);

impl Default for PrintingLimit {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        Self(TurnGate::new((cores / 2).max(1)))
    }
}

impl PrintingLimit {
    /// Runs `task` on a blocking thread as soon as a slot is free. Payers take turns, so a payer that asks for a
    /// hundred documents does not delay the others. The slot is kept even if the caller disconnects, because the thread
    /// continues.
    pub(crate) async fn compute_in_payer_turn<T: Send + 'static>(
        &self,
        payer: Payer,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        self.compute_with_slot(Some(payer), task).await
    }

    /// Runs a short `task` on a blocking thread as soon as a slot is free: first come, first served, without turns of
    /// payers.
    pub(crate) async fn compute_in_arrival_order<T: Send + 'static>(
        &self,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        self.compute_with_slot(None, task).await
    }

    async fn compute_with_slot<T: Send + 'static>(
        &self,
        payer: Option<Payer>,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let slot = self.0.take(payer, 1).await;
        let running = spawn_blocking(move || {
            let result = task();
            drop(slot);
            result
        });
        running.await.map_err(ApiError::internal)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use futures_util::future::{join, join_all};

    use super::*;
    use crate::domain::kernel::ids::IntegratorId;

    #[tokio::test]
    async fn a_payer_with_many_documents_does_not_delay_another() {
        let printing = PrintingLimit(TurnGate::new(1));
        let (sender, printed) = channel();
        let print = |id| {
            let sender = sender.clone();
            printing
                .compute_in_payer_turn(Payer::Integrator(IntegratorId(id)), move || sender.send(id))
        };
        let many = join_all((0..5).map(|_| print(1)));
        let (many, one) = join(many, print(2)).await;
        for sent in many.into_iter().chain([one]) {
            sent.unwrap().unwrap();
        }
        let order: Vec<_> = printed.try_iter().collect();
        assert_eq!(order, [1, 2, 1, 1, 1, 1], "one was being printed");
    }
}
