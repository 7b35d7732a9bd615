//! Serves the businesses of an entity, and the reference lists.

use serde_json::{Value, json};

use super::answer::OperationResult;
use crate::call::Call;
use crate::lists;
use crate::records::{Business, Ledger, ServiceId};
use crate::reply::Refusal;
use crate::route::Subject;
use crate::state::State;

/// Prefixes of entity ids for tests: `entity` answers the first with 404, the second with a wrong tax number, and the
/// third with 503.
const UNKNOWN_ENTITY_PREFIX: &str = "00000404-";
const CONTRADICTING_ENTITY_PREFIX: &str = "00000409-";
const SILENT_ENTITY_PREFIX: &str = "00000503-";
const ANOTHER_TIN: &str = "00000000-0409";

/// Answers with the business that has this id, as if it were an entity. For any other id without one of the prefixes
/// above, answers with all enrolled businesses.
pub(super) fn show_entity(call: &Call, state: &State) -> OperationResult {
    let Subject::Entity(id) = &call.subject else {
        return Err(Refusal::unknown_route());
    };
    if id.starts_with(UNKNOWN_ENTITY_PREFIX) {
        return Err(Refusal::new(404, "entity not found"));
    }
    if id.starts_with(SILENT_ENTITY_PREFIX) {
        return Err(Refusal::server_error(503, "service unavailable"));
    }
    if id.starts_with(CONTRADICTING_ENTITY_PREFIX) {
        let mut ledger = state.ledger.lock();
        ledger.business(id).tin = Some(ANOTHER_TIN.to_owned());
    }
    let ledger = state.ledger.lock();
    let businesses: Vec<Value> = match ledger.businesses.get(&id.to_lowercase()) {
        Some(business) => vec![business_json(business, &ledger)],
        None => ledger
            .businesses
            .values()
            .map(|business| business_json(business, &ledger))
            .collect(),
    };
    Ok(json!({ "id": id, "businesses": businesses }))
}

fn business_json(business: &Business, ledger: &Ledger) -> Value {
    let party = business
        .tin
        .as_ref()
        .and_then(|tin| ledger.parties.get(tin));
    let service_id = business
        .service_id
        .as_ref()
        .map_or("00000000", ServiceId::text);
    json!({
        "id": business.id,
        "name": party.map(|party| &party.name),
        "tin": business.tin,
        "irn_template": format!("{{{{invoice_id}}}}-{service_id}-{{{{YYYYMMDD}}}}"),
    })
}

pub(super) fn show_reference_list(call: &Call) -> OperationResult {
    let Subject::List(name) = &call.subject else {
        return Err(Refusal::unknown_route());
    };
    lists::list_rows(name).ok_or_else(Refusal::unknown_route)
}
