//! Loads the timeline of an invoice: its newest events, calls of steps, and delivery attempts.

use std::collections::BTreeSet;

use database::StoreError;
use database::column::RowRef;
use database::sql::dialect;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, DbBackend, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect,
    Select,
};
use serde_json::{Map, Value};

use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::timeline::{ENTRIES_MAX, EntryKind, Timeline, TimelineEntry};
use crate::domain::kernel::audit::{Actor, ActorWithName, NamedActor};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::{Operation, Run};
use crate::store::Store;
use crate::store::events::event_row;
use crate::store::runs;
use crate::store::runs::step_row;
use crate::store::webhooks;
use crate::store::webhooks::attempt_row;
use crate::store::webhooks::delivery_log::select_event_sequences;
use crate::store::webhooks::delivery_row;

/// The number of entries to read from each log. It is one more than a timeline may have, to find out whether there are
/// older entries.
const ENTRIES_READ_MAX: u64 = ENTRIES_MAX as u64 + 1;

pub async fn find_owned_by_irn(
    store: &Store,
    taxpayer: TaxpayerId,
    irn: &Irn,
) -> Result<Timeline, StoreError> {
    Ok(Timeline::from_logs([
        event_entries(store, taxpayer, irn).await?,
        step_entries(store, taxpayer, irn).await?,
        attempt_entries(store, taxpayer, irn).await?,
    ]))
}

/// The fields of an event that the timeline shows. The fields from `previous_status` to `payment_date` are members of
/// the event's data, as JSON texts.
#[derive(FromQueryResult)]
struct EventRow {
    sequence: i64,
    id: String,
    kind: String,
    at: i64,
    previous_status: Option<String>,
    status: Option<String>,
    remark: Option<String>,
    reference: Option<String>,
    amount: Option<String>,
    differences: Option<String>,
    not_submitted: Option<String>,
    payment_date: Option<String>,
    actor: Option<String>,
}

const FIELDS_OF_DATA: [&str; 8] = [
    "previous_status",
    "status",
    "remark",
    "reference",
    "amount",
    "differences",
    "not_submitted",
    "payment_date",
];

async fn event_entries(
    store: &Store,
    taxpayer: TaxpayerId,
    irn: &Irn,
) -> Result<Vec<TimelineEntry>, StoreError> {
    let newest = select_newest_events(store.backend(), taxpayer, irn).into_model::<EventRow>();
    let rows = newest.all(store.reader()).await?;
    rows.into_iter()
        .rev()
        .map(|row| to_event_entry(taxpayer, row))
        .collect()
}

fn select_newest_events(
    backend: DbBackend,
    taxpayer: TaxpayerId,
    irn: &Irn,
) -> Select<event_row::Entity> {
    use event_row::Column;
    let columns = [
        Column::Sequence,
        Column::Id,
        Column::Kind,
        Column::At,
        Column::Actor,
    ];
    let mut newest = event_row::Entity::find().select_only().columns(columns);
    for name in FIELDS_OF_DATA {
        newest = newest.expr_as(data_field(backend, name), name);
    }
    newest
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Irn.eq(irn.as_str()))
        .order_by_desc(Column::Sequence)
        .limit(ENTRIES_READ_MAX)
}

/// Selects a field of an event's data as JSON text. A number keeps all its digits.
fn data_field(backend: DbBackend, name: &str) -> Expr {
    Expr::cust(dialect(backend).json_member("data", name))
}

fn to_event_entry(taxpayer: TaxpayerId, row: EventRow) -> Result<TimelineEntry, StoreError> {
    let at = RowRef {
        table: "events",
        id: format!("{taxpayer}/{}", row.sequence),
    };
    let json = |text: Option<String>| text.map(|text| at.parse_json::<Value>(&text)).transpose();
    let detail = [
        ("event_id", Some(row.id.into())),
        ("sequence", Some(row.sequence.into())),
        ("previous_status", json(row.previous_status)?),
        ("status", json(row.status)?),
        ("remark", json(row.remark)?),
        ("reference", json(row.reference)?),
        ("amount", json(row.amount)?),
        ("differences", json(row.differences)?),
        ("not_submitted", json(row.not_submitted)?),
        ("payment_date", json(row.payment_date)?),
    ];
    Ok(TimelineEntry {
        at: at.moment(row.at)?,
        kind: EntryKind::Event,
        name: row.kind,
        outcome: None,
        attempt: None,
        duration_ms: None,
        actor: row.actor.as_deref().and_then(NamedActor::parse),
        detail: non_null_fields(detail),
    })
}

async fn step_entries(
    store: &Store,
    taxpayer: TaxpayerId,
    irn: &Irn,
) -> Result<Vec<TimelineEntry>, StoreError> {
    let runs = runs::find_owned_by_irn_keys(store.reader(), taxpayer, vec![irn.key()]).await?;
    let rows = step_row::Entity::find()
        .filter(step_row::Column::TaxpayerId.eq(taxpayer.0))
        .filter(step_row::Column::RunId.is_in(runs.iter().map(|run| run.id.to_string())))
        .order_by_desc(step_row::Column::StartedAt)
        .order_by_desc(step_row::Column::Id)
        .limit(ENTRIES_READ_MAX)
        .all(store.reader())
        .await?;
    let entries = rows.into_iter().rev().map(|row| {
        let run = runs.iter().find(|run| run.id.to_string() == row.run_id);
        to_step_entry(run.map(Run::operation), row)
    });
    entries.collect()
}

fn to_step_entry(
    operation: Option<Operation>,
    row: step_row::Model,
) -> Result<TimelineEntry, StoreError> {
    let at = RowRef {
        table: "pipeline_steps",
        id: row.id.clone(),
    };
    let operation = operation.map(|operation| operation.as_str().into());
    Ok(TimelineEntry {
        at: at.moment(row.started_at)?,
        kind: EntryKind::Step,
        attempt: Some(at.to_count(row.attempt)?),
        actor: Some(NamedActor::from(&ActorWithName::from(Actor::Service))),
        detail: non_null_fields([
            ("operation", operation),
            ("error", row.error.map(Value::from)),
        ]),
        name: row.step,
        outcome: row.outcome,
        duration_ms: row.duration_ms,
    })
}

async fn attempt_entries(
    store: &Store,
    taxpayer: TaxpayerId,
    irn: &Irn,
) -> Result<Vec<TimelineEntry>, StoreError> {
    let about = select_event_sequences(taxpayer, [irn.as_str().to_owned()]);
    let deliveries = delivery_row::Entity::find()
        .filter(
            delivery_row::Column::EndpointKey.in_subquery(webhooks::select_endpoint_keys(taxpayer)),
        )
        .filter(delivery_row::Column::Sequence.in_subquery(about))
        .order_by_desc(delivery_row::Column::Sequence)
        .limit(ENTRIES_READ_MAX)
        .all(store.reader())
        .await?;
    let keys: BTreeSet<i64> = deliveries.iter().map(|row| row.endpoint_key).collect();
    let made = attempt_row::select_without_headers()
        .filter(attempt_row::Column::EndpointKey.is_in(keys))
        .filter(attempt_row::Column::DeliveryId.is_in(deliveries.iter().map(|row| row.id.as_str())))
        .order_by_desc(attempt_row::Column::At)
        .limit(ENTRIES_READ_MAX)
        .all(store.reader())
        .await?;
    let entries = made.into_iter().rev().filter_map(|attempt| {
        let delivery = deliveries
            .iter()
            .find(|row| row.id == attempt.delivery_id)?;
        Some(to_attempt_entry(delivery, attempt))
    });
    entries.collect()
}

fn to_attempt_entry(
    delivery: &delivery_row::Model,
    made: attempt_row::Model,
) -> Result<TimelineEntry, StoreError> {
    let at = RowRef {
        table: "attempts",
        id: format!("{}/{}", made.delivery_id, made.attempt),
    };
    let outcome = if made.failure.is_none() {
        "delivered"
    } else {
        "failed"
    };
    let detail = [
        ("delivery_id", Some(made.delivery_id.into())),
        ("event_id", Some(delivery.event_id.as_str().into())),
        ("sequence", Some(delivery.sequence.into())),
        ("status", made.status.map(Value::from)),
        ("failure", made.failure.map(Value::from)),
    ];
    Ok(TimelineEntry {
        at: at.moment(made.at)?,
        kind: EntryKind::Delivery,
        name: delivery.kind.clone(),
        outcome: Some(outcome.to_owned()),
        attempt: Some(at.to_count(made.attempt)?),
        duration_ms: Some(made.duration_ms),
        actor: Some(NamedActor::from(&ActorWithName::from(Actor::Service))),
        detail: non_null_fields(detail),
    })
}

/// Returns those fields that have a value other than null.
fn non_null_fields<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let said = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    said.filter(|(_, value)| !value.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use sea_orm::QueryTrait;

    use super::*;
    use crate::store::testing::{query_plan, stores};

    #[tokio::test]
    async fn the_events_of_an_invoice_are_found_without_a_look_at_those_of_others() {
        // SQLite only: PostgreSQL's plan depends on the number of events.
        for test in stores().await.into_iter().take(1) {
            let irn = Irn::parse("INV001-94AD90FB-20261121").unwrap();
            let newest = select_newest_events(test.store.backend(), TaxpayerId(7), &irn)
                .build(test.store.backend());
            let values = newest.values.map(|values| values.0).unwrap_or_default();
            let steps = query_plan(&test.store, &newest.sql, values).await;
            assert_eq!(
                steps,
                [
                    "SEARCH events USING INDEX events_by_taxpayer_id_irn_sequence (taxpayer_id=? AND irn=?)"
                ]
            );
        }
    }
}
