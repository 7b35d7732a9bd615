//! The deliveries that a caller or a person chose to send again, as the range of a replay.

use crate::domain::events::replay::ReplayRange;
use crate::domain::events::selection::{DeliveryConditions, DeliverySelection};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};
use crate::http::forms::delivery_selection::{MatchForm, SelectionForm};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::events;
use crate::store::webhooks::delivery_log;
use crate::store::webhooks::delivery_selection::find_sequences_by_ids;
use uuid::Uuid;

/// Returns the range of the selected deliveries to an endpoint. Fails if a chosen delivery belongs to another endpoint.
pub(crate) async fn selected_range(
    state: &ApiState,
    taxpayer: TaxpayerId,
    endpoint: EndpointKey,
    form: SelectionForm,
) -> Result<ReplayRange, ApiError> {
    match form {
        SelectionForm::Chosen(ids) => range_from_ids(state, endpoint, &ids).await,
        SelectionForm::Matching(form) => matching_range(state, taxpayer, form).await,
    }
}

async fn range_from_ids(
    state: &ApiState,
    endpoint: EndpointKey,
    ids: &[Uuid],
) -> Result<ReplayRange, ApiError> {
    let sequences = find_sequences_by_ids(&state.store, endpoint, ids).await?;
    let unknown = ids.iter().enumerate();
    let unknown = unknown.filter(|(_, id)| !sequences.contains_key(*id));
    let faults: Faults = unknown
        .map(|(index, id)| {
            let sentence = format!("{id} is the id of no delivery to this endpoint: leave it out.");
            Fault::new(format!("delivery_ids.{index}"), "exists", sentence)
        })
        .collect();
    if !faults.is_empty() {
        return Err(ApiError::invalid(faults));
    }
    Ok(ReplayRange::for_deliveries(
        sequences.into_values().collect(),
    ))
}

async fn matching_range(
    state: &ApiState,
    taxpayer: TaxpayerId,
    form: MatchForm,
) -> Result<ReplayRange, ApiError> {
    let first = match form.since {
        Some(since) => events::sequence_at_position(&state.store, taxpayer, since).await?,
        None => 1,
    };
    let irns = match form.irn {
        Some(irn) => Some(delivery_log::find_irn_spellings(&state.store, taxpayer, irn).await?),
        None => None,
    };
    let selection = DeliverySelection::Matching(DeliveryConditions {
        state: form.state,
        event: form.event,
        irns,
    });
    Ok(ReplayRange::for_selection(selection, first, i64::MAX))
}
