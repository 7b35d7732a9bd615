//! An invoice as it was after an event, with what the event changed, and links to the events before and after.

use actix_web::web;
use askama::Template;
use url::form_urlencoded::Serializer;

use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::operators::taxpayer::of_path;
use crate::console::page::{Answer, show};
use crate::console::session::operators::Viewer;
use crate::domain::invoice::history::{History, Moment};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::Taxpayer;
use crate::http::endpoint::{Path, path};
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::respond::error::ApiError;
use crate::http::search::page_of_irn;
use crate::http::state::ApiState;
use crate::store::events;

pub(super) fn endpoints() -> Vec<Path> {
    vec![path("/console/taxpayers/{taxpayer}/history").page(history)]
}

#[derive(Template)]
#[template(path = "operators/history.html")]
struct HistoryPage {
    frame: Frame,
    taxpayer: Taxpayer,
    irn: Irn,
    invoice_page: String,
    /// The addresses of this page after the events before and after this one.
    earlier: Option<String>,
    later: Option<String>,
    moment: Moment,
    document: String,
}

/// Returns the address of the page.
pub(super) fn address(taxpayer: TaxpayerId, irn: &Irn) -> String {
    let query = Serializer::new(String::new()).append_pair("irn", irn.as_str()).finish();
    format!("/console/taxpayers/{taxpayer}/history?{query}")
}

/// GET `/console/taxpayers/{taxpayer}/history?irn=&as_of=`: shows the invoice after one of its events.
async fn history(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    taxpayer: web::Path<String>,
    query: Query,
) -> Answer {
    let taxpayer = of_path(&state, &taxpayer).await?;
    let irn = path_ids::irn(&query.equal("irn").unwrap_or_default())?;
    let as_of = query.whole("as_of", 1).map_err(ApiError::from)?;
    let events = events::owned_by_with_irn(&state.store, taxpayer.id, &irn).await?;
    let history = History::new(&events).map_err(ApiError::internal)?;
    let moment = history.as_of(as_of).ok_or_else(ApiError::invoice_not_found)?;
    let after = |sequence: i64| format!("{}&as_of={sequence}", address(taxpayer.id, &irn));
    show(&HistoryPage {
        frame: Frame::operator(&session, "History of an invoice"),
        invoice_page: page_of_irn(taxpayer.id, &irn),
        document: serde_json::to_string_pretty(&moment.version.invoice).map_err(ApiError::internal)?,
        earlier: moment.earlier.map(after),
        later: moment.later.map(after),
        taxpayer,
        irn,
        moment,
    })
}
