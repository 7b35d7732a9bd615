//! Portal ids, reserved in blocks, so that a writer knows the ids of new rows before its transaction begins.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query};
use tokio::sync::Mutex;

use crate::store::db::error::StoreError;
use crate::store::db::group_commit::WriterPool;

/// The number of ids in a block.
const BLOCK: i64 = 256;

/// The kind of row that an id is for. Each kind has its own sequence of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

    /// Returns how many ids to reserve at once: one by one for accounts, so that their ids stay small and in order.
    fn block(self) -> i64 {
        match self {
            Self::Customer | Self::Invoice | Self::Item => BLOCK,
            _ => 1,
        }
    }
}

/// Assigns portal ids. Take ids before you begin a transaction, because reserving a block is a transaction of its own.
#[derive(Clone)]
pub struct Ids {
    writer: WriterPool,
    blocks: Arc<Mutex<HashMap<IdKind, Range<i64>>>>,
}

impl Ids {
    pub(crate) fn new(writer: WriterPool) -> Self {
        Self { writer, blocks: Arc::default() }
    }

    pub async fn next(&self, kind: IdKind) -> Result<i64, StoreError> {
        Ok(self.take(kind, 1).await?.start)
    }

    /// Returns `count` consecutive ids.
    pub async fn take(&self, kind: IdKind, count: usize) -> Result<Range<i64>, StoreError> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let mut blocks = self.blocks.lock().await;
        let block = blocks.entry(kind).or_insert(0..0);
        if block.end - block.start < count {
            let size = std::cmp::max(count, kind.block());
            let end = self.reserve(kind, size).await?;
            *block = end - size..end;
        }
        let taken = block.start..block.start + count;
        block.start = taken.end;
        Ok(taken)
    }

    /// Reserves `size` ids in the table `counters`. Returns the first id after the reserved ids.
    async fn reserve(&self, kind: IdKind, size: i64) -> Result<i64, StoreError> {
        let statement = Query::insert()
            .into_table("counters")
            .columns(["name", "next"])
            .values_panic([kind.name().into(), (size + 1).into()])
            .on_conflict(
                OnConflict::column("name")
                    .value("next", ExprTrait::add(Expr::col(("counters", "next")), size))
                    .to_owned(),
            )
            .returning_col("next")
            .to_owned();
        let statement = self.writer.backend().build(&statement);
        let row = self.writer.query_one_alone(statement).await?.ok_or(StoreError::Stale)?;
        Ok(row.try_get("", "next")?)
    }
}
