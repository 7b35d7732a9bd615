//! The event log of each taxpayer, without gaps. Events are appended in the transaction of the change that they report.

pub mod checkpoint_file;
pub mod event_row;

use std::borrow::Borrow;
use std::collections::HashMap;

use database::column::json;
use database::insert::Insert;
use database::sql::{AliasedTable, Join, dialect};
use database::{StoreError, Transaction, statement_portions};
use jiff::Timestamp;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Statement,
};

use crate::domain::events::checkpoint::TaxpayerLogHead;
use crate::domain::events::event::{Event, EventKind, LogHead};
use crate::domain::events::log_position::LogPosition;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::audit::NamedActor;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::outage::CLOCK_DIFFERENCE_MAX;
use crate::store::Store;
use crate::store::events::event_row::{Column, Entity, Model};

/// The maximum number of events of one invoice that are read at once.
const EVENTS_OF_INVOICE_MAX: u64 = 1_000;

/// The maximum total size of the events on one page of the feed, in bytes.
const FEED_PAGE_BYTES_MAX: i64 = 8 * 1024 * 1024;

/// Returns the sequence and the hash of the last event of a taxpayer's log; `LogHead::default` if the log is empty.
pub async fn log_head(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
) -> Result<LogHead, StoreError> {
    let last = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .order_by_desc(Column::Sequence)
        .one(connection)
        .await?;
    Ok(last.map_or_else(LogHead::default, |event| LogHead {
        sequence: event.sequence,
        hash: event.hash,
    }))
}

/// Returns the sequence and the hash of the last event of each of these taxpayers. Taxpayers without events are left
/// out.
pub async fn log_heads(
    connection: &impl ConnectionTrait,
    taxpayers: &[TaxpayerId],
) -> Result<HashMap<TaxpayerId, LogHead>, StoreError> {
    let last = "e.taxpayer_id = given.value AND e.sequence = \
        (SELECT MAX(x.sequence) FROM events AS x WHERE x.taxpayer_id = given.value)";
    let given = format!(
        "{} AS given",
        dialect(connection.get_database_backend()).json_numbers("$1")
    );
    load_joined_heads(connection, &given, last, json(&taxpayers)).await
}

/// Loads, for each head in `wanted`, the stored event with the same sequence. Returns its sequence and hash by
/// taxpayer. Missing events are left out.
pub async fn stored_hashes_at(
    store: &Store,
    wanted: &[TaxpayerLogHead],
) -> Result<HashMap<TaxpayerId, LogHead>, StoreError> {
    let condition = "e.taxpayer_id = CAST(given.value ->> 0 AS BIGINT) \
        AND e.sequence = CAST(given.value ->> 1 AS BIGINT)";
    let given = dialect(store.backend()).json_elements("$1", "given");
    let wanted: Vec<_> = wanted
        .iter()
        .map(|one| (one.taxpayer_id, one.head.sequence))
        .collect();
    load_joined_heads(store.reader(), &given, condition, json(&wanted)).await
}

/// Joins the table expression `given_rows` with the events by `condition`. Returns the sequence and the hash of the
/// matching event of each taxpayer. `list` is the value of the parameter `$1` of `given_rows`.
async fn load_joined_heads(
    connection: &impl ConnectionTrait,
    given_rows: &str,
    condition: &str,
    list: String,
) -> Result<HashMap<TaxpayerId, LogHead>, StoreError> {
    let events = AliasedTable {
        table: "events",
        alias: "e",
    };
    let backend = connection.get_database_backend();
    let joined = dialect(backend).lateral_join(Join::Inner, events, condition);
    let sql = format!("SELECT e.taxpayer_id, e.sequence, e.hash FROM {given_rows} {joined}");
    let statement = Statement::from_sql_and_values(backend, sql, [list.into()]);
    let rows = connection.query_all_raw(statement).await?;
    rows.iter()
        .map(|row| {
            let head = LogHead {
                sequence: row.try_get("", "sequence")?,
                hash: row.try_get("", "hash")?,
            };
            Ok((TaxpayerId(row.try_get("", "taxpayer_id")?), head))
        })
        .collect()
}

static INSERT: Insert<Entity> = Insert::new();

pub async fn append<E: Borrow<Event>>(tx: &Transaction, events: &[E]) -> Result<(), StoreError> {
    INSERT
        .execute(tx, events.iter().map(|event| Model::from(event.borrow())))
        .await?;
    Ok(())
}

/// Loads the actors of the events with these sequences, by sequence. Events from before actors were recorded are left
/// out.
pub async fn load_event_actors(
    store: &Store,
    taxpayer: TaxpayerId,
    sequences: &[i64],
) -> Result<HashMap<i64, NamedActor>, StoreError> {
    let mut actors = HashMap::new();
    for portion in statement_portions(sequences) {
        let rows: Vec<(i64, Option<String>)> = Entity::find()
            .select_only()
            .columns([Column::Sequence, Column::Actor])
            .filter(Column::TaxpayerId.eq(taxpayer.0))
            .filter(Column::Sequence.is_in(portion.iter().copied()))
            .into_tuple()
            .all(store.reader())
            .await?;
        actors.extend(rows.into_iter().filter_map(|(sequence, actor)| {
            NamedActor::parse(actor.as_deref()?).map(|actor| (sequence, actor))
        }));
    }
    Ok(actors)
}

/// Loads the newest `EVENTS_OF_INVOICE_MAX` events about an IRN, oldest first.
pub async fn find_owned_by_irn(
    store: &Store,
    taxpayer: TaxpayerId,
    irn: &Irn,
) -> Result<Vec<Event>, StoreError> {
    let newest = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Irn.eq(irn.as_str()))
        .order_by_desc(Column::Sequence)
        .limit(EVENTS_OF_INVOICE_MAX);
    newest
        .all(store.reader())
        .await?
        .into_iter()
        .rev()
        .map(Event::try_from)
        .collect()
}

/// Loads up to `limit` events of a taxpayer after a sequence, in the order of their sequence.
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

/// One page of the feed of a taxpayer's events.
pub struct FeedPage {
    pub events: Vec<Event>,
    /// True if there are events after this page.
    pub has_more: bool,
}

/// Loads up to `limit` events after a sequence, but only as many as `FEED_PAGE_BYTES_MAX` allows.
pub async fn feed_page_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    after: i64,
    limit: usize,
) -> Result<FeedPage, StoreError> {
    let sizes: Vec<(i64, i64)> = Entity::find()
        .select_only()
        .column(Column::Sequence)
        .expr(Expr::cust("CAST(octet_length(data) AS BIGINT)"))
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Sequence.gt(after))
        .order_by_asc(Column::Sequence)
        .limit(limit as u64 + 1)
        .into_tuple()
        .all(store.reader())
        .await?;
    let wanted = count_fitting_on_page(sizes.iter().take(limit).map(|(_, size)| *size));
    let events = owned_by_after(store, taxpayer, after, wanted as u64).await?;
    Ok(FeedPage {
        events,
        has_more: wanted < sizes.len(),
    })
}

/// Returns how many of the first events fit into one page. It is at least one, so that a reader gets past a large
/// event.
fn count_fitting_on_page(sizes: impl Iterator<Item = i64>) -> usize {
    let sums = sizes.scan(0_i64, |sum, size| {
        *sum = sum.saturating_add(size);
        Some(*sum)
    });
    let (fit, all) = sums.fold((0, 0), |(fit, all), sum| {
        (fit + usize::from(sum <= FEED_PAGE_BYTES_MAX), all + 1)
    });
    fit.max(all.min(1))
}

/// Converts a position in the log, which is a sequence or a time, to a sequence. For a time, returns the sequence of
/// the first event at or after it, or `i64::MAX` if there is no such event.
pub(crate) async fn sequence_at_position(
    store: &Store,
    taxpayer: TaxpayerId,
    position: LogPosition,
) -> Result<i64, StoreError> {
    match position {
        LogPosition::Sequence(sequence) => Ok(sequence),
        LogPosition::Moment(moment) => first_sequence_at_or_after(store, taxpayer, moment).await,
    }
}

async fn first_sequence_at_or_after(
    store: &Store,
    taxpayer: TaxpayerId,
    moment: Timestamp,
) -> Result<i64, StoreError> {
    let from_moment = || {
        Entity::find()
            .select_only()
            .filter(Column::TaxpayerId.eq(taxpayer.0))
            .filter(Column::At.gte(moment.as_microsecond()))
    };
    let earliest: Option<i64> = from_moment()
        .column(Column::At)
        .order_by_asc(Column::At)
        .into_tuple()
        .one(store.reader())
        .await?;
    let Some(earliest) = earliest else {
        return Ok(i64::MAX);
    };
    // The replicas' clocks differ, so an event with a lower sequence may have a slightly later time than the earliest
    // event. The plus keeps the databases from reading the log in the order of its sequence.
    let difference = i64::try_from(CLOCK_DIFFERENCE_MAX.as_micros()).unwrap_or(i64::MAX);
    let first: Vec<Option<i64>> = from_moment()
        .expr(Expr::cust("MIN(+sequence)"))
        .filter(Column::At.lte(earliest.saturating_add(difference)))
        .into_tuple()
        .all(store.reader())
        .await?;
    Ok(first.into_iter().flatten().next().unwrap_or(i64::MAX))
}

/// Returns those of these IRN spellings about which there is an event of this kind. The comparison is exact.
pub async fn find_irns_with_event(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    kind: EventKind,
    spellings: Vec<String>,
) -> Result<Vec<Irn>, StoreError> {
    if spellings.is_empty() {
        return Ok(Vec::new());
    }
    let found: Vec<String> = Entity::find()
        .select_only()
        .column(Column::Irn)
        .distinct()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Irn.is_in(spellings))
        .filter(Column::Kind.eq(kind.as_str()))
        .into_tuple()
        .all(connection)
        .await?;
    Ok(found
        .iter()
        .filter_map(|text| Irn::parse(text).ok())
        .collect())
}

/// True if exactly this event is stored. The transaction that appended it was then committed, even if the response to
/// the commit was lost.
pub async fn is_stored(tx: &Transaction, event: &Event) -> Result<bool, StoreError> {
    let stored = Entity::find_by_id((event.taxpayer_id.0, event.sequence))
        .one(tx)
        .await?;
    Ok(stored.is_some_and(|row| row.hash == event.hash))
}

#[cfg(test)]
mod tests {
    use timing::clock;

    use super::*;
    use crate::domain::events::event::{EventStamp, NewEvent};
    use crate::store::testing::stores;

    #[tokio::test]
    async fn no_event_from_a_moment_on_is_left_out_although_clocks_differ() {
        let owner = TaxpayerId(7);
        let second = |second: i64| Timestamp::from_second(second).unwrap();
        for test in stores().await {
            let mut head = LogHead::default();
            // The clock of the replica that wrote the second and the fifth event is ahead.
            let log = [10, 15, 12, 40, 49, 41].map(|at| {
                let occurrence = NewEvent {
                    kind: EventKind::InvoiceCreated,
                    irn: None,
                    data: "{}".to_owned(),
                    actor: None,
                };
                let stamp = EventStamp {
                    id: clock::new_id(),
                    taxpayer_id: owner,
                    command_id: clock::new_id(),
                    trace: None,
                    now: second(at),
                };
                head.append(occurrence, stamp)
            });
            let tx = test.store.begin().await.unwrap();
            append(&tx, &log).await.unwrap();
            tx.commit().await.unwrap();
            for (moment, expected) in [
                (9, 1),
                (10, 1),
                (11, 2),
                (13, 2),
                (16, 4),
                (41, 5),
                (42, 5),
                (50, i64::MAX),
            ] {
                let position = LogPosition::Moment(second(moment));
                let first = sequence_at_position(&test.store, owner, position)
                    .await
                    .unwrap();
                assert_eq!(first, expected, "from {moment} s on");
            }
        }
    }

    #[test]
    fn a_part_is_never_empty_and_never_larger_than_it_may_be() {
        let fit = |sizes: &[i64]| count_fitting_on_page(sizes.iter().copied());
        assert_eq!(
            (fit(&[]), fit(&[1, 1, 1]), fit(&[FEED_PAGE_BYTES_MAX])),
            (0, 3, 1)
        );
        assert_eq!(fit(&[FEED_PAGE_BYTES_MAX + 1, 1]), 1);
        assert_eq!(
            fit(&[FEED_PAGE_BYTES_MAX / 2, FEED_PAGE_BYTES_MAX / 2, 1]),
            2
        );
    }
}
