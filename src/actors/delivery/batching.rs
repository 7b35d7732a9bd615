//! Runs work for many endpoints in one batch. A faulty item does not fail the other items of the batch.

use crate::actors::supervision::{AdmissionLimits, CommandBatch};
use crate::domain::kernel::ids::CommandId;
use crate::store::db::error::StoreError;

/// Work that handles several items in one query or transaction.
pub(super) trait BatchWork {
    type Item;
    type Output;

    /// Returns one result for each item, in the order of the items.
    async fn run(&self, all: &[&Self::Item]) -> Result<Vec<Result<Self::Output, StoreError>>, StoreError>;
}

/// Returns admission limits so high that they are never reached: the dispatcher already limits the number of active
/// endpoints.
pub(super) fn limits() -> AdmissionLimits {
    AdmissionLimits { per_key_max: 16_384, process_max: 16_384, ..AdmissionLimits::default() }
}

/// Runs a batch. If a faulty item makes the whole batch fail, runs each item separately.
pub(super) async fn run_batch<W: BatchWork>(
    worker: &W,
    batch: &CommandBatch<W::Item>,
) -> Vec<(CommandId, Result<W::Output, StoreError>)> {
    let all: Vec<&W::Item> = batch.tasks().iter().map(|task| &**task).collect();
    batch.tasks().iter().map(|task| task.id).zip(answers(worker, &all).await).collect()
}

async fn answers<W: BatchWork>(worker: &W, all: &[&W::Item]) -> Vec<Result<W::Output, StoreError>> {
    match worker.run(all).await {
        Ok(answers) => answers,
        Err(error) if all.len() > 1 && error.may_concern_one() && !error.is_timeout() => {
            let mut answers = Vec::with_capacity(all.len());
            for one in all {
                answers.push(alone(worker, one).await);
            }
            answers
        }
        // Any other error, such as a lost connection, would also occur for each item alone, so every item gets this
        // error.
        Err(error) => all.iter().map(|_| Err(error.clone())).collect(),
    }
}

async fn alone<W: BatchWork>(worker: &W, one: &W::Item) -> Result<W::Output, StoreError> {
    worker.run(&[one]).await?.pop().unwrap_or(Err(StoreError::Stale))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Halves numbers. Fails the whole batch if one number is negative.
    struct Halves;

    impl BatchWork for Halves {
        type Item = i32;
        type Output = i32;

        async fn run(&self, all: &[&i32]) -> Result<Vec<Result<i32, StoreError>>, StoreError> {
            if let Some(bad) = all.iter().find(|one| ***one < 0) {
                let (id, reason) = (bad.to_string(), "negative".to_owned());
                return Err(StoreError::Corrupt { table: "numbers", id, reason });
            }
            Ok(all.iter().map(|one| Ok(**one / 2)).collect())
        }
    }

    #[tokio::test]
    async fn a_corrupt_item_fails_alone() {
        let found: Vec<_> = answers(&Halves, &[&4, &-1, &6]).await.into_iter().map(Result::ok).collect();
        assert_eq!(found, [Some(2), None, Some(3)]);
        assert!(answers(&Halves, &[&-1]).await.remove(0).is_err());
    }
}
