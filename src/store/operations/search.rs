//! Searches across all taxpayers: for an invoice by its number, for an event by its id, and for the events of a trace.
//!
//! The indexes of invoices and events begin with the taxpayer, so a search looks into an index once for each of the
//! newest `TAXPAYERS_MAX` taxpayers. An index that begins with the number or the id would need only one look-up, but it
//! would make each creation slower.

use std::ops::RangeInclusive;
use std::time::Duration;

use database::StoreError;
use database::sql::{self, AliasedTable, Dialect, Join, SqlOnce};
use jiff::Timestamp;
use sea_orm::{EntityTrait, FromQueryResult, Statement, Value};
use uuid::Uuid;

use crate::domain::events::event::Event;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::events::event_row;
use crate::store::invoices::invoice_row;

/// The number of taxpayers, the newest ones, among whose invoices and events a search looks.
pub const TAXPAYERS_MAX: u64 = 10_000;
/// The maximum number of invoices, and of events, that a search returns.
const FOUND_MAX: u64 = 20;
/// The maximum difference between the time of an event and the time that its id contains.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(10);
/// The time after the beginning of a trace in which its events are searched. Events that its runs cause later are found
/// through the runs.
const TRACE_LENGTH: Duration = Duration::from_mins(2);

fn newest_taxpayers_join_sql<E: EntityTrait>(
    dialect: &dyn Dialect,
    rows: AliasedTable,
    condition: &str,
) -> String {
    let joined = dialect.lateral_join(Join::Inner, rows, condition);
    let newest = format!("SELECT id FROM taxpayers ORDER BY id DESC LIMIT {TAXPAYERS_MAX}");
    let found = sql::columns::<E>(rows.alias);
    format!("SELECT {found} FROM ({newest}) AS t {joined} LIMIT {FOUND_MAX}")
}

static INVOICES: SqlOnce = SqlOnce::new(|dialect| {
    let rows = AliasedTable {
        table: "invoices",
        alias: "i",
    };
    newest_taxpayers_join_sql::<invoice_row::Entity>(
        dialect,
        rows,
        "i.taxpayer_id = t.id AND i.invoice_no = $1",
    )
});

static EVENTS: SqlOnce = SqlOnce::new(|dialect| {
    let rows = AliasedTable {
        table: "events",
        alias: "e",
    };
    newest_taxpayers_join_sql::<event_row::Entity>(
        dialect,
        rows,
        "e.taxpayer_id = t.id AND e.at BETWEEN $2 AND $3 AND e.id = $1",
    )
});

static EVENTS_OF_TRACE: SqlOnce = SqlOnce::new(|dialect| {
    let rows = AliasedTable {
        table: "events",
        alias: "e",
    };
    newest_taxpayers_join_sql::<event_row::Entity>(
        dialect,
        rows,
        "e.taxpayer_id = t.id AND e.at BETWEEN $2 AND $3 AND substr(e.trace, 4, 32) = $1",
    )
});

static EVENTS_OWNED: SqlOnce = SqlOnce::new(|_| {
    let found = sql::columns::<event_row::Entity>("e");
    format!(
        "SELECT {found} FROM events AS e WHERE id = $1 AND at BETWEEN $2 AND $3 AND taxpayer_id = $4"
    )
});

/// Finds the invoices of any taxpayer that have this number.
pub async fn find_invoices_by_number(
    store: &Store,
    number: &str,
) -> Result<Vec<Invoice>, StoreError> {
    let backend = store.backend();
    let statement = Statement::from_sql_and_values(backend, INVOICES.get(backend), [number.into()]);
    let rows = invoice_row::Model::find_by_statement(statement)
        .all(store.reader())
        .await?;
    rows.into_iter().map(Invoice::try_from).collect()
}

/// Finds an event by its id, of this taxpayer or, if it is `None`, of any taxpayer. An id that contains no time finds
/// nothing.
pub async fn find_event_by_id(
    store: &Store,
    taxpayer: Option<TaxpayerId>,
    id: Uuid,
) -> Result<Option<Event>, StoreError> {
    let Some(created) = creation_micros(id, CLOCK_DIFFERENCE) else {
        return Ok(None);
    };
    let backend = store.backend();
    let mut values: Vec<Value> = vec![
        id.to_string().into(),
        (*created.start()).into(),
        (*created.end()).into(),
    ];
    let sql = match taxpayer {
        Some(taxpayer) => {
            values.push(taxpayer.0.into());
            EVENTS_OWNED.get(backend)
        }
        None => EVENTS.get(backend),
    };
    let statement = Statement::from_sql_and_values(backend, sql, values);
    let row = event_row::Model::find_by_statement(statement)
        .one(store.reader())
        .await?;
    row.map(Event::try_from).transpose()
}

/// Finds the events, of any taxpayer, that the request with this trace caused within `TRACE_LENGTH`. The id of a trace
/// that this service began contains the time; for any other trace nothing is found.
pub async fn find_events_by_trace_id(store: &Store, trace: Uuid) -> Result<Vec<Event>, StoreError> {
    let Some(created) = creation_micros(trace, TRACE_LENGTH) else {
        return Ok(Vec::new());
    };
    let backend = store.backend();
    let trace_id = trace.simple().to_string();
    let values = [
        trace_id.into(),
        (*created.start()).into(),
        (*created.end()).into(),
    ];
    let sql = EVENTS_OF_TRACE.get(backend);
    let statement = Statement::from_sql_and_values(backend, sql, values);
    let rows = event_row::Model::find_by_statement(statement)
        .all(store.reader())
        .await?;
    rows.into_iter().map(Event::try_from).collect()
}

/// Returns the range of times, in microseconds since 1970, from `CLOCK_DIFFERENCE` before the creation of the id until
/// `after` later. `None` if the id contains no time.
fn creation_micros(id: Uuid, after: Duration) -> Option<RangeInclusive<i64>> {
    let made = id_timestamp(id)?;
    let first = made.checked_sub(CLOCK_DIFFERENCE).unwrap_or(made);
    let last = made.checked_add(after).unwrap_or(made);
    Some(first.as_microsecond()..=last.as_microsecond())
}

fn id_timestamp(id: Uuid) -> Option<Timestamp> {
    let (seconds, nanoseconds) = id.get_timestamp()?.to_unix();
    let seconds = seconds.try_into().ok()?;
    Timestamp::new(seconds, nanoseconds.try_into().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use sea_orm::DbBackend;

    use super::*;
    use crate::store::testing::{query_plan, stores};

    #[test]
    fn the_time_of_an_id_is_read() {
        let id = Uuid::parse_str("017f22e2-79b0-7cc3-98c4-dc0c0c07398f").unwrap();
        assert_eq!(
            id_timestamp(id).unwrap().to_string(),
            "2022-02-22T19:22:22Z"
        );
        assert_eq!(id_timestamp(Uuid::nil()), None);
    }

    #[tokio::test]
    async fn a_search_looks_each_taxpayers_index_up() {
        for test in stores().await {
            let backend = test.store.backend();
            let number = ["INV-1".into()];
            let id = ["x".into(), 0_i64.into(), 1_i64.into()];
            for (sql, values, index) in [
                (
                    INVOICES.get(backend),
                    number.to_vec(),
                    "invoices_by_taxpayer_id_invoice_no",
                ),
                (EVENTS.get(backend), id.to_vec(), "events_by_taxpayer_id_at"),
                (
                    EVENTS_OF_TRACE.get(backend),
                    id.to_vec(),
                    "events_by_taxpayer_id_at",
                ),
            ] {
                // PostgreSQL has several indexes that begin with the taxpayer. The number of rows decides which one it
                // uses.
                let wanted = match backend {
                    DbBackend::Postgres => "(taxpayer_id = taxpayers.id)",
                    _ => index,
                };
                let steps = query_plan(&test.store, sql, values).await;
                assert!(steps.iter().any(|step| step.contains(wanted)), "{steps:#?}");
                assert!(
                    !steps.iter().any(|step| step.contains("Seq Scan")),
                    "{steps:#?}"
                );
            }
        }
    }
}
