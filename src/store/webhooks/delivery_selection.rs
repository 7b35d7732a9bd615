//! The deliveries that a caller selected for a replay: their number, a list of them, and the SQL condition that finds
//! them.

use std::collections::HashMap;

use database::StoreError;
use database::column::RowRef;
use database::page::Page;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::domain::events::delivery::DeliveryState;
use crate::domain::events::replay::ReplayRange;
use crate::domain::events::selection::DeliverySelection;
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};
use crate::store::Store;
use crate::store::webhooks::delivery_log::{
    LoggedDelivery, event_kind_condition, load_page, select_event_sequences,
};
use crate::store::webhooks::delivery_row::{Column, Entity};

/// The number of selected deliveries in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SelectedDeliveryCounts {
    pub pending: i64,
    pub delivered: i64,
    pub dead: i64,
}

impl SelectedDeliveryCounts {
    pub fn total(self) -> i64 {
        self.pending + self.delivered + self.dead
    }
}

/// Returns the condition that a delivery is selected. The caller adds the conditions for the endpoint and the range.
pub(super) fn is_selected(taxpayer: TaxpayerId, selection: &DeliverySelection) -> Condition {
    let wanted = match selection {
        DeliverySelection::Chosen(sequences) => {
            let chosen = Column::Sequence.is_in(sequences.iter().copied());
            return Condition::all().add(chosen);
        }
        DeliverySelection::Matching(wanted) => wanted,
    };
    let about = |irns: &Vec<String>| select_event_sequences(taxpayer, irns.iter().cloned());
    let sequences = wanted.irns.as_ref().map(about);
    Condition::all()
        .add_option(wanted.state.map(|state| Column::State.eq(state.as_str())))
        .add_option(
            wanted
                .event
                .map(|event| event_kind_condition(event.as_str(), wanted.state)),
        )
        .add_option(sequences.map(|about| Column::Sequence.in_subquery(about)))
}

fn is_in_range(taxpayer: TaxpayerId, endpoint: EndpointKey, range: &ReplayRange) -> Condition {
    let selection = range.selection.as_ref();
    Condition::all()
        .add(Column::EndpointKey.eq(endpoint.0))
        .add(Column::Sequence.gt(range.after))
        .add(Column::Sequence.lte(range.until))
        .add_option(selection.map(|selection| is_selected(taxpayer, selection)))
}

/// Counts the selected deliveries of an endpoint.
pub async fn count_by_state(
    store: &Store,
    taxpayer: TaxpayerId,
    endpoint: EndpointKey,
    range: &ReplayRange,
) -> Result<SelectedDeliveryCounts, StoreError> {
    let rows: Vec<(String, i64)> = Entity::find()
        .select_only()
        .column(Column::State)
        .column_as(Column::Id.count(), "deliveries")
        .filter(is_in_range(taxpayer, endpoint, range))
        .group_by(Column::State)
        .into_tuple()
        .all(store.reader())
        .await?;
    let mut counts = SelectedDeliveryCounts::default();
    for (state, count) in rows {
        let at = RowRef {
            table: "deliveries",
            id: endpoint.0,
        };
        match at.parse(&state)? {
            DeliveryState::Pending => counts.pending = count,
            DeliveryState::Delivered => counts.delivered = count,
            DeliveryState::Dead => counts.dead = count,
        }
    }
    Ok(counts)
}

/// Loads the newest deliveries in a range, up to `limit`, newest first.
pub async fn load_newest(
    store: &Store,
    taxpayer: TaxpayerId,
    endpoint: EndpointKey,
    range: &ReplayRange,
    limit: u64,
) -> Result<Vec<LoggedDelivery>, StoreError> {
    let selected = Entity::find()
        .filter(is_in_range(taxpayer, endpoint, range))
        .order_by_desc(Column::Sequence);
    let page = Page {
        number: 1,
        per_page: limit,
    };
    Ok(load_page(store, selected, page).await?.0)
}

/// Returns the event sequences of the deliveries with these ids, by id. Ids of deliveries to other endpoints are left
/// out.
pub async fn find_sequences_by_ids(
    store: &Store,
    endpoint: EndpointKey,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, i64>, StoreError> {
    let rows: Vec<(String, i64)> = Entity::find()
        .select_only()
        .columns([Column::Id, Column::Sequence])
        .filter(Column::EndpointKey.eq(endpoint.0))
        .filter(Column::Id.is_in(ids.iter().map(Uuid::to_string)))
        .into_tuple()
        .all(store.reader())
        .await?;
    rows.into_iter()
        .map(|(id, sequence)| {
            let at = RowRef {
                table: "deliveries",
                id: &id,
            };
            Ok((at.parse(&id)?, sequence))
        })
        .collect()
}
