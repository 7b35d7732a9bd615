//! Lists of deliveries with their attempts, for integrators and operators.

use std::collections::HashMap;

use database::StoreError;
use database::column::RowRef;
use database::page::{self, Page};
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use crate::domain::events::delivery::{Delivery, DeliveryAttempt, DeliveryState};
use crate::domain::events::event::EventKind;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};
use crate::store::Store;
use crate::store::events::event_row;
use crate::store::invoices;
use crate::store::operations::supplier_invoices;
use crate::store::webhooks::attempt_row;
use crate::store::webhooks::delivery_row::{Column, Entity, Model};
use crate::store::webhooks::select_endpoint_keys;

/// The maximum number of attempts that a list shows for each delivery.
const ATTEMPTS_SHOWN_MAX: i32 = 50;

/// The condition of dead letters. The state is a literal, because with a parameter SQLite could not use the index of
/// dead letters and would read all deliveries.
const DEAD_CONDITION: &str = "state = 'dead'";

/// The filter of the list of deliveries. A field that is `None` does not filter.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    pub state: Option<DeliveryState>,
    /// The name of an event, in any case. An unknown name matches no delivery.
    pub event: Option<String>,
    /// The IRN of the event, in any spelling. An invalid IRN matches no delivery.
    pub irn: Option<String>,
    /// The sequence of the first event to include.
    pub since: Option<i64>,
    /// An endpoint of the taxpayer; `None` for its default endpoint.
    pub endpoint: Option<EndpointKey>,
}

/// A delivery with the kind of its event and its last attempts, oldest first.
#[derive(Debug, Clone)]
pub struct LoggedDelivery {
    pub delivery: Delivery,
    pub kind: EventKind,
    pub attempts: Vec<DeliveryAttempt>,
}

/// Loads one page of the matching deliveries of one endpoint of a taxpayer, newest events first, and the number of all
/// matches.
pub async fn page_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    filter: DeliveryFilter,
    page: Page,
) -> Result<(Vec<LoggedDelivery>, u64), StoreError> {
    let endpoint = filter.endpoint.unwrap_or_else(|| taxpayer.into());
    let mut found = Entity::find().filter(Column::EndpointKey.eq(endpoint.0));
    if let Some(state) = filter.state {
        found = found.filter(Column::State.eq(state.as_str()));
    }
    if let Some(event) = filter.event {
        found = found.filter(event_kind_condition(
            stored_event_name(&event),
            filter.state,
        ));
    }
    if let Some(irn) = filter.irn {
        let irns = find_irn_spellings(store, taxpayer, irn).await?;
        found = found.filter(Column::Sequence.in_subquery(select_event_sequences(taxpayer, irns)));
    }
    if let Some(since) = filter.since {
        found = found.filter(Column::Sequence.gte(since));
    }
    load_page(store, found.order_by_desc(Column::Sequence), page).await
}

/// Returns the spellings of an IRN to search for: the text itself and, if it is an IRN, its key and its stored
/// spellings.
pub(crate) async fn find_irn_spellings(
    store: &Store,
    taxpayer: TaxpayerId,
    text: String,
) -> Result<Vec<String>, StoreError> {
    let Ok(irn) = Irn::parse(&text) else {
        return Ok(vec![text]);
    };
    let invoice =
        invoices::find_owned_by_unique_no(store, taxpayer, UniqueNoType::Irn, &text).await?;
    let received = supplier_invoices::find_owned_by_irn(store, taxpayer, &irn).await?;
    let stored = [invoice.map(|one| one.irn), received.map(|one| one.irn)]
        .into_iter()
        .flatten();
    Ok([text, irn.key()]
        .into_iter()
        .chain(stored.map(|irn| irn.to_string()))
        .collect())
}

/// Selects the sequences of the events about these IRNs. Deliveries are then found by sequence, because their table has
/// no index on the IRN.
pub(crate) fn select_event_sequences(
    taxpayer: TaxpayerId,
    irns: impl IntoIterator<Item = String>,
) -> SelectStatement {
    Query::select()
        .column(event_row::Column::Sequence)
        .from(event_row::Entity)
        .and_where(Expr::col(event_row::Column::TaxpayerId).eq(taxpayer.0))
        .and_where(Expr::col(event_row::Column::Irn).is_in(irns))
        .to_owned()
}

/// Returns the name of an event as it is stored with deliveries. `event` may be in upper or lower case. An unknown name
/// is returned unchanged.
fn stored_event_name(event: &str) -> &str {
    match EventKind::parse(event) {
        Some(kind) => kind.as_str(),
        None => event,
    }
}

/// Returns the condition that the event of a delivery is of this kind. `state` is the state that the deliveries must
/// also have. Few deliveries are pending or dead letters. For these states, the expression keeps SQLite from using the
/// index of kinds, in which it would read all deliveries of this kind.
pub(super) fn event_kind_condition(kind: &str, state: Option<DeliveryState>) -> Expr {
    match state {
        Some(DeliveryState::Pending | DeliveryState::Dead) => {
            ExprTrait::eq(Expr::cust("kind || ''"), kind)
        }
        Some(DeliveryState::Delivered) | None => Column::Kind.eq(kind),
    }
}

/// Returns the condition that a delivery is to an endpoint of this taxpayer.
fn is_owned_by(taxpayer: TaxpayerId) -> Expr {
    Column::EndpointKey.in_subquery(select_endpoint_keys(taxpayer))
}

/// Loads one page of dead letters, of one taxpayer or, if it is `None`, of all, newest first, and their total number.
pub async fn dead_letter_page(
    store: &Store,
    taxpayer: Option<TaxpayerId>,
    page: Page,
) -> Result<(Vec<LoggedDelivery>, u64), StoreError> {
    let dead = Entity::find().filter(Expr::cust(DEAD_CONDITION));
    let Some(taxpayer) = taxpayer else {
        return load_page(store, dead.order_by_desc(Column::Id), page).await;
    };
    let owned = dead.filter(is_owned_by(taxpayer));
    let newest_first = owned
        .order_by_desc(Column::Sequence)
        .order_by_desc(Column::Id);
    load_page(store, newest_first, page).await
}

/// Loads up to `limit` of the oldest dead letters, without their attempts, and the total number of matches. `taxpayer`
/// and `ids` restrict them if they are not `None`.
pub async fn oldest_dead_letters(
    store: &Store,
    taxpayer: Option<TaxpayerId>,
    ids: Option<&[uuid::Uuid]>,
    limit: u64,
) -> Result<(Vec<Delivery>, u64), StoreError> {
    let has_id = |ids: &[uuid::Uuid]| Column::Id.is_in(ids.iter().map(ToString::to_string));
    let dead = Condition::all()
        .add(Expr::cust(DEAD_CONDITION))
        .add_option(taxpayer.map(is_owned_by))
        .add_option(ids.map(has_id));
    let first = Page {
        number: 1,
        per_page: limit,
    };
    page::load(
        store,
        Entity::find().filter(dead).order_by_asc(Column::Id),
        first,
    )
    .await
}

/// Finds a delivery to any endpoint of a taxpayer.
pub async fn find_owned_by_id(
    store: &Store,
    taxpayer: TaxpayerId,
    id: uuid::Uuid,
) -> Result<Option<Delivery>, StoreError> {
    let found = find_delivery_row(store, taxpayer, id).await?;
    found.map(Delivery::try_from).transpose()
}

async fn find_delivery_row(
    store: &Store,
    taxpayer: TaxpayerId,
    id: uuid::Uuid,
) -> Result<Option<Model>, StoreError> {
    let found = Entity::find()
        .filter(is_owned_by(taxpayer))
        .filter(Column::Id.eq(id.to_string()));
    Ok(found.one(store.reader()).await?)
}

/// Loads a delivery of a taxpayer with its last attempts and their headers.
pub async fn find_logged_owned_by_id(
    store: &Store,
    taxpayer: TaxpayerId,
    id: uuid::Uuid,
) -> Result<Option<LoggedDelivery>, StoreError> {
    let found = find_delivery_row(store, taxpayer, id).await?;
    let Some(row) = found else { return Ok(None) };
    load_with_headers(store, row).await.map(Some)
}

/// Loads a delivery to an endpoint with its last attempts and their headers. Use this only for a caller with a valid
/// link to the delivery.
pub async fn find_logged_by_id(
    store: &Store,
    endpoint: EndpointKey,
    id: uuid::Uuid,
) -> Result<Option<LoggedDelivery>, StoreError> {
    let key = (endpoint.0, id.to_string());
    match Entity::find_by_id(key).one(store.reader()).await? {
        Some(row) => load_with_headers(store, row).await.map(Some),
        None => Ok(None),
    }
}

/// Adds the last attempts of a delivery with their headers, oldest first.
async fn load_with_headers(store: &Store, row: Model) -> Result<LoggedDelivery, StoreError> {
    let attempts = attempt_row::Entity::find()
        .filter(is_shown_attempt(&row))
        .order_by_asc(attempt_row::Column::Attempt)
        .all(store.reader())
        .await?;
    let attempts: Result<_, _> = attempts
        .into_iter()
        .map(DeliveryAttempt::try_from)
        .collect();
    to_logged_delivery(row, attempts?)
}

/// Returns the condition that a row is one of the last `ATTEMPTS_SHOWN_MAX` attempts of a delivery.
fn is_shown_attempt(row: &Model) -> Condition {
    Condition::all()
        .add(attempt_row::Column::EndpointKey.eq(row.endpoint_key))
        .add(attempt_row::Column::DeliveryId.eq(row.id.as_str()))
        .add(attempt_row::Column::Attempt.gt(row.attempts.saturating_sub(ATTEMPTS_SHOWN_MAX)))
}

/// The numbers of an endpoint's deliveries that were not delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UndeliveredCounts {
    pub pending: i64,
    pub dead: i64,
}

/// Counts the pending deliveries and the dead letters of each endpoint of a taxpayer. Endpoints that have neither are
/// left out.
pub async fn count_undelivered_by_endpoint(
    store: &Store,
    taxpayer: TaxpayerId,
) -> Result<HashMap<EndpointKey, UndeliveredCounts>, StoreError> {
    let states = [DeliveryState::Pending, DeliveryState::Dead].map(DeliveryState::as_str);
    let rows: Vec<(i64, String, i64)> = Entity::find()
        .select_only()
        .column(Column::EndpointKey)
        .column(Column::State)
        .column_as(Column::Id.count(), "deliveries")
        .filter(is_owned_by(taxpayer))
        .filter(Column::State.is_in(states))
        .group_by(Column::EndpointKey)
        .group_by(Column::State)
        .into_tuple()
        .all(store.reader())
        .await?;
    let mut counts: HashMap<_, UndeliveredCounts> = HashMap::new();
    for (endpoint, state, count) in rows {
        let open = counts.entry(EndpointKey(endpoint)).or_default();
        if state == DeliveryState::Dead.as_str() {
            open.dead = count;
        } else {
            open.pending = count;
        }
    }
    Ok(counts)
}

/// Finds a dead letter of a taxpayer by its id.
pub async fn find_dead_owned_by_id(
    store: &Store,
    taxpayer: TaxpayerId,
    id: uuid::Uuid,
) -> Result<Option<Delivery>, StoreError> {
    let found = find_owned_by_id(store, taxpayer, id).await?;
    Ok(found.filter(|delivery| delivery.state == DeliveryState::Dead))
}

/// Finds a dead letter of any taxpayer by its id. Use this only for operators, who may see all dead letters.
pub async fn find_dead_by_id(
    store: &Store,
    id: uuid::Uuid,
) -> Result<Option<Delivery>, StoreError> {
    let found = select_dead_by_id(id).one(store.reader()).await?;
    found.map(Delivery::try_from).transpose()
}

fn select_dead_by_id(id: uuid::Uuid) -> Select<Entity> {
    Entity::find()
        .filter(Expr::cust(DEAD_CONDITION))
        .filter(Column::Id.eq(id.to_string()))
}

pub(super) async fn load_page(
    store: &Store,
    found: Select<Entity>,
    page: Page,
) -> Result<(Vec<LoggedDelivery>, u64), StoreError> {
    let (rows, total) = page::load_rows(store, found, page).await?;
    let mut attempts = attempts_by_delivery(store, &rows).await?;
    let logged = rows
        .into_iter()
        .map(|row| {
            let attempts = attempts.remove(&row.id).unwrap_or_default();
            to_logged_delivery(row, attempts)
        })
        .collect::<Result<_, _>>()?;
    Ok((logged, total))
}

fn to_logged_delivery(
    row: Model,
    attempts: Vec<DeliveryAttempt>,
) -> Result<LoggedDelivery, StoreError> {
    let at = RowRef {
        table: "deliveries",
        id: row.id.clone(),
    };
    let kind = at.parse(&row.kind)?;
    Ok(LoggedDelivery {
        kind,
        attempts,
        delivery: Delivery::try_from(row)?,
    })
}

/// Loads the last attempts of each delivery, oldest first, keyed by delivery id.
async fn attempts_by_delivery(
    store: &Store,
    rows: &[Model],
) -> Result<HashMap<String, Vec<DeliveryAttempt>>, StoreError> {
    let mut any = Condition::any();
    for row in rows.iter().filter(|row| row.attempts > 0) {
        any = any.add(is_shown_attempt(row));
    }
    if any.is_empty() {
        return Ok(HashMap::new());
    }
    let found = attempt_row::select_without_headers()
        .filter(any)
        .order_by_asc(attempt_row::Column::Attempt)
        .all(store.reader())
        .await?;
    let mut attempts: HashMap<String, Vec<DeliveryAttempt>> = HashMap::new();
    for row in found {
        attempts
            .entry(row.delivery_id.clone())
            .or_default()
            .push(DeliveryAttempt::try_from(row)?);
    }
    Ok(attempts)
}

#[cfg(test)]
mod tests {
    use sea_orm::QueryTrait;

    use super::*;
    use crate::store::testing::{query_plan, stores};

    #[test]
    fn an_event_is_named_in_any_case() {
        for (event, stored) in [
            ("invoice.created", "invoice.created"),
            ("INVOICE.Created", "invoice.created"),
            ("Payment.Status-Updated", "payment.status-updated"),
            ("Invoice.Exploded", "Invoice.Exploded"),
            ("", ""),
        ] {
            assert_eq!(stored_event_name(event), stored, "{event}");
        }
    }

    #[tokio::test]
    async fn the_few_deliveries_in_a_state_are_found_without_a_look_at_all_of_their_kind() {
        // SQLite only: PostgreSQL's plan depends on the number of deliveries.
        for test in stores().await.into_iter().take(1) {
            for (state, column) in [
                (DeliveryState::Pending, "state"),
                (DeliveryState::Dead, "state"),
                (DeliveryState::Delivered, "kind"),
            ] {
                let query = Entity::find()
                    .filter(Column::EndpointKey.eq(7_i64))
                    .filter(Column::State.eq(state.as_str()))
                    .filter(event_kind_condition("invoice.created", Some(state)))
                    .order_by_desc(Column::Sequence)
                    .build(test.store.backend());
                let values = query.values.map(|values| values.0).unwrap_or_default();
                let plan = query_plan(&test.store, &query.sql, values).await;
                let index = format!("deliveries_by_taxpayer_id_{column}_sequence");
                assert!(plan.concat().contains(&index), "{state}: {plan:?}");
            }
        }
    }

    #[tokio::test]
    async fn dead_letters_are_found_without_a_look_at_all_deliveries() {
        // SQLite only: PostgreSQL's plan depends on the number of deliveries.
        for test in stores().await.into_iter().take(1) {
            let dead = Entity::find().filter(Expr::cust(DEAD_CONDITION));
            for query in [
                select_dead_by_id(uuid::Uuid::nil()),
                dead.order_by_desc(Column::Id),
            ] {
                let query = query.build(test.store.backend());
                let values = query.values.map(|values| values.0).unwrap_or_default();
                let plan = query_plan(&test.store, &query.sql, values).await;
                assert!(plan.concat().contains("deliveries_dead"), "{plan:?}");
            }
        }
    }
}
