//! Work for all endpoints in one go, which must not fail for all because of what only one of them brings.

use crate::actors::supervision::{Batch, CommandId, Limits};
use crate::store::failure::StoreError;

/// Works for several at once.
pub(super) trait Together {
    type One;
    type Answer;

    /// An answer for each, in their order.
    async fn together(&self, all: &[&Self::One])
    -> Result<Vec<Result<Self::Answer, StoreError>>, StoreError>;
}

/// As many wait as there are endpoints at work: who is at work is limited before.
pub(super) fn limits() -> Limits {
    Limits { per_key_max: 16_384, process_max: 16_384, ..Limits::default() }
}

/// Answers a batch, of which each is tried alone where it fails because of one of them.
pub(super) async fn or_one_by_one<W: Together>(
    worker: &W,
    batch: &Batch<W::One>,
) -> Vec<(CommandId, Result<W::Answer, StoreError>)> {
    let all: Vec<&W::One> = batch.tasks().iter().map(|task| &**task).collect();
    let results = match worker.together(&all).await {
        Ok(results) => results,
        Err(StoreError::Duplicate(_) | StoreError::Corrupt { .. }) if all.len() > 1 => {
            let mut results = Vec::with_capacity(all.len());
            for one in all {
                results.push(alone(worker, one).await);
            }
            results
        }
        // A database that is not there is not there for each of them either.
        Err(error) => all.iter().map(|_| Err(error.clone())).collect(),
    };
    batch.tasks().iter().map(|task| task.id).zip(results).collect()
}

async fn alone<W: Together>(worker: &W, one: &W::One) -> Result<W::Answer, StoreError> {
    worker.together(&[one]).await?.pop().unwrap_or(Err(StoreError::Stale))
}
