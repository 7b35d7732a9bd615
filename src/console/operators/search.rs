//! The search of the navigation: leads to the run, the invoice or the taxpayer that the text names, or lists taxpayers.

use actix_web::web;

use crate::console::operators::invoice::address_of_irn;
use crate::console::page::{Answer, redirect};
use crate::console::session::operators::Viewer;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::{TaxpayerId, parse_number};
use crate::http::endpoint::{Path, path};
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::webhooks::delivery_log;
use crate::store::{operations, runs};

pub(super) fn endpoints() -> Vec<Path> {
    vec![path("/console/search").page(search)]
}

/// GET /console/search?q=: leads to what the text names.
async fn search(state: web::Data<ApiState>, _: Viewer, query: Query) -> Answer {
    let text = query.phrase("q").unwrap_or_default();
    let address = match named(&state, &text).await? {
        Some(address) => address,
        None => format!("/console/taxpayers?{}", encoded("q", &text)),
    };
    Ok(redirect(&address))
}

/// Returns the page of the one thing that the text names: a run, a dead letter, a reconciliation, an IRN or a taxpayer.
async fn named(state: &ApiState, text: &str) -> Result<Option<String>, ApiError> {
    let store = &state.store;
    if let Some(id) = path_ids::uuid(text) {
        if runs::with_id(store, id).await?.is_some() {
            return Ok(Some(format!("/console/runs/{id}")));
        }
        if operations::reconciliations::with_id(store, id).await?.is_some() {
            return Ok(Some(format!("/console/reconciliations/{id}")));
        }
        let dead = delivery_log::dead_with_id(store, id).await?;
        return Ok(
            dead.map(|dead| format!("/console/deliveries/dead-letters?taxpayer_id={}", dead.taxpayer_id))
        );
    }
    if let Ok(irn) = Irn::parse(text) {
        let owner = taxpayers::with_service_id(store, irn.service_id()).await?;
        return Ok(owner.map(|owner| address_of_irn(owner, &irn)));
    }
    let by_id = match parse_number(text).map(TaxpayerId) {
        Some(id) => taxpayers::with_id(store.reader(), id).await?,
        None => None,
    };
    let found = match by_id {
        Some(found) => Some(found),
        None => taxpayers::with_tin(store, text).await?,
    };
    Ok(found.map(|found| format!("/console/taxpayers/{}", found.id)))
}

fn encoded(name: &str, value: &str) -> String {
    url::form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish()
}
