//! The event log: appended to in the transaction of the change, read in the order of its numbers.

use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    QuerySelect,
};

use crate::domain::event::{Event, Head};
use crate::domain::ids::{CommandId, TaxpayerId};
use crate::store::database::{Store, portions};
use crate::store::entity::event::{Column, Entity, Model};
use crate::store::failure::StoreError;

/// The end of a taxpayer's log.
pub async fn head(connection: &impl ConnectionTrait, taxpayer: TaxpayerId) -> Result<Head, StoreError> {
    let last = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .order_by_desc(Column::Sequence)
        .one(connection)
        .await?;
    Ok(last.map_or_else(Head::default, |event| Head { sequence: event.sequence, hash: event.hash }))
}

pub async fn append(tx: &DatabaseTransaction, events: &[Event]) -> Result<(), StoreError> {
    for chunk in portions(events) {
        let rows = chunk.iter().map(|event| Model::from(event).into_active_model());
        Entity::insert_many(rows).exec_without_returning(tx).await?;
    }
    Ok(())
}

/// The events of a taxpayer after a number, in order.
pub async fn owned_by_after(
    store: &Store,
    taxpayer: TaxpayerId,
    after: i64,
    limit: u64,
) -> Result<Vec<Event>, StoreError> {
    let rows = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Sequence.gt(after))
        .order_by_asc(Column::Sequence)
        .limit(limit)
        .all(store.reader())
        .await?;
    rows.into_iter().map(Event::try_from).collect()
}

/// The events with these numbers.
pub async fn owned_by_with_sequences(
    store: &Store,
    taxpayer: TaxpayerId,
    sequences: Vec<i64>,
) -> Result<Vec<Event>, StoreError> {
    let rows = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Sequence.is_in(sequences))
        .all(store.reader())
        .await?;
    rows.into_iter().map(Event::try_from).collect()
}

/// The number of the first event at or after a moment; one beyond the log where there is none.
pub async fn first_at_or_after(
    store: &Store,
    taxpayer: TaxpayerId,
    moment: Timestamp,
) -> Result<i64, StoreError> {
    let first = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::At.gte(moment.as_microsecond()))
        .order_by_asc(Column::At)
        .order_by_asc(Column::Sequence)
        .one(store.reader())
        .await?;
    Ok(first.map_or(i64::MAX, |event| event.sequence))
}

/// Whether a command has left an event: how an interrupted commit is told from one that never was.
pub async fn any_of_commands(
    tx: &DatabaseTransaction,
    taxpayer: TaxpayerId,
    commands: &[CommandId],
) -> Result<bool, StoreError> {
    let ids = commands.iter().map(ToString::to_string);
    let found = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::CommandId.is_in(ids))
        .one(tx)
        .await?;
    Ok(found.is_some())
}
