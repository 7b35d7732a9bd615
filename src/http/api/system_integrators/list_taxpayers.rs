//! GET /v1/system-integrators/taxpayers: the integrator's taxpayers, newest first.

use std::collections::HashMap;

use actix_web::web;

use crate::domain::access::caller::IntegratorCaller;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::{Contact, Taxpayer};
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::paginator::Paginator;
use crate::http::views::taxpayer::TaxpayerView;
use crate::store::accounts::taxpayers;

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) async fn list_taxpayers(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let (search, store) = (query.text("search"), &state.store);
    let found = taxpayers::page_owned_by(store, integrator, search, page).await?;
    let (found, total) = found;
    let ids: Vec<_> = found.iter().map(|taxpayer| taxpayer.id).collect();
    let contacts = taxpayers::contacts_of_each(store, &ids).await?;
    let items = found.iter().map(|taxpayer| view(taxpayer, &contacts)).collect();
    Ok(ApiResponse::ok("Taxpayers retrieved successfully", Paginator::new(page, total, items)))
}

fn view<'a>(taxpayer: &'a Taxpayer, contacts: &'a HashMap<TaxpayerId, Vec<Contact>>) -> TaxpayerView<'a> {
    TaxpayerView::new(taxpayer, contacts.get(&taxpayer.id).map_or(&[], Vec::as_slice))
}
