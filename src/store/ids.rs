//! Ids of rows, as callers see them. They are reserved in blocks, so that a writer knows the ids of new rows before its
//! transaction begins.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use database::{Database, StoreError};
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query};
use tokio::sync::Mutex;

/// The number of ids in a block. It is large because each block costs a commit, and each line of an invoice takes an id
/// for the case that its item is new.
const IDS_PER_BLOCK: i64 = 4_096;

/// The kind of row that an id is for. Each kind has its own sequence of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdKind {
    Integrator,
    Operator,
    Taxpayer,
    Contact,
    Customer,
    Invoice,
    Item,
    Webhook,
}

impl IdKind {
    const COUNT: usize = Self::Webhook as usize + 1;

    fn name(self) -> &'static str {
        match self {
            Self::Integrator => "integrator",
            Self::Operator => "operator",
            Self::Taxpayer => "taxpayer",
            Self::Contact => "contact",
            Self::Customer => "customer",
            Self::Invoice => "invoice",
            Self::Item => "item",
            Self::Webhook => "webhook",
        }
    }

    /// Returns the minimum number of ids to reserve at once. For accounts only the requested number of ids is reserved,
    /// so that the ids stay small and in the order of creation.
    fn block_size(self) -> i64 {
        match self {
            Self::Customer | Self::Invoice | Self::Item => IDS_PER_BLOCK,
            _ => 1,
        }
    }
}

/// Assigns ids to new rows. Take ids before you begin a transaction, because reserving a block is a transaction of its
/// own.
#[derive(Clone)]
pub struct IdAllocator {
    database: Database,
    sequences: Arc<[Sequence; IdKind::COUNT]>,
}

/// The sequence of ids of one kind, with the block of ids that this process has reserved.
#[derive(Default)]
struct Sequence {
    /// The ids that are reserved and not yet assigned.
    block: Mutex<Range<i64>>,
    /// The total number of ids that the current callers of `take` want.
    wanted: AtomicI64,
}

/// Counts the ids that one caller wants until it gets them or gives up.
struct WantedCount<'a> {
    sequence: &'a Sequence,
    count: i64,
}

impl<'a> WantedCount<'a> {
    fn new(sequence: &'a Sequence, count: i64) -> Self {
        sequence.wanted.fetch_add(count, Ordering::Relaxed);
        Self { sequence, count }
    }
}

impl Drop for WantedCount<'_> {
    fn drop(&mut self) {
        self.sequence
            .wanted
            .fetch_sub(self.count, Ordering::Relaxed);
    }
}

impl IdAllocator {
    pub(crate) fn new(database: Database) -> Self {
        Self {
            database,
            sequences: Arc::default(),
        }
    }

    pub async fn next(&self, kind: IdKind) -> Result<i64, StoreError> {
        Ok(self.take(kind, 1).await?.start)
    }

    /// Returns `count` consecutive ids. One reservation serves all callers that wait at the same time.
    pub async fn take(&self, kind: IdKind, count: usize) -> Result<Range<i64>, StoreError> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let sequence = &self.sequences[kind as usize];
        let wanted = WantedCount::new(sequence, count);
        let mut block = sequence.block.lock().await;
        if block.end - block.start < count {
            let size = std::cmp::max(sequence.wanted.load(Ordering::Relaxed), kind.block_size());
            let end = self.reserve_block(kind, size).await?;
            *block = end - size..end;
        }
        drop(wanted);
        let taken = block.start..block.start + count;
        block.start = taken.end;
        Ok(taken)
    }

    /// Reserves `size` ids in the table `counters`. Returns the first id after the reserved ids.
    async fn reserve_block(&self, kind: IdKind, size: i64) -> Result<i64, StoreError> {
        let statement = Query::insert()
            .into_table("counters")
            .columns(["name", "next"])
            .values_panic([kind.name().into(), (size + 1).into()])
            .on_conflict(
                OnConflict::column("name")
                    .value(
                        "next",
                        ExprTrait::add(Expr::col(("counters", "next")), size),
                    )
                    .to_owned(),
            )
            .returning_col("next")
            .to_owned();
        let statement = self.database.backend().build(&statement);
        let row = self
            .database
            .execute_and_commit(statement)
            .await?
            .ok_or(StoreError::Stale)?;
        Ok(row.try_get("", "next")?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use futures_util::future::join_all;

    use super::*;
    use crate::store::testing::stores;

    #[tokio::test]
    async fn ids_of_accounts_are_unique_small_and_reserved_together() {
        for test in stores().await {
            let ids = test.store.ids();
            let taken = join_all((0..200).map(|_| ids.next(IdKind::Taxpayer))).await;
            let taken: BTreeSet<_> = taken.into_iter().map(Result::unwrap).collect();
            assert_eq!(taken, (1..=200).collect());
            assert_eq!(ids.next(IdKind::Taxpayer).await.unwrap(), 201);
            assert_eq!(ids.take(IdKind::Contact, 3).await.unwrap(), 1..4);
        }
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_takes_no_id() {
        for test in stores().await {
            let ids = test.store.ids();
            let leaves =
                tokio::time::timeout(std::time::Duration::ZERO, ids.next(IdKind::Taxpayer));
            let (first, _, second) = tokio::join!(
                ids.next(IdKind::Taxpayer),
                leaves,
                ids.next(IdKind::Taxpayer)
            );
            assert_eq!((first.unwrap(), second.unwrap()), (1, 2));
            let sequence = &ids.sequences[IdKind::Taxpayer as usize];
            assert_eq!(sequence.wanted.load(Ordering::Relaxed), 0);
        }
    }
}
