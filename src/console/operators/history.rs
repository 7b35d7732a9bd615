//! An invoice as it was after an event, with what the event changed, and links to the events before and after.

use actix_web::web;
use askama::Template;
use serde::Deserialize;
use url::form_urlencoded::Serializer;

use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::operators::contact_data;
use crate::console::operators::taxpayer::find_taxpayer;
use crate::console::page::{Answer, Form, show};
use crate::console::session::operators::{Operator, OperatorSession, Viewer};
use crate::domain::invoice::history::{History, HistoryEntry};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::Taxpayer;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::search::irn_page_path;
use crate::http::state::ApiState;
use crate::store::events;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console/taxpayers/{taxpayer}/history").page(show_history),
        path("/console/taxpayers/{taxpayer}/history/contact-data").form(show_contact_data),
    ]
}

#[derive(Template)]
#[template(path = "operators/history.html")]
struct HistoryPage {
    frame: Frame,
    taxpayer: Taxpayer,
    irn: Irn,
    invoice_page: String,
    /// The addresses of this page for the event before this one and for the event after it.
    earlier: Option<String>,
    later: Option<String>,
    entry: HistoryEntry,
    document: String,
    /// True if contact data is shown and not hidden.
    is_contact_data_shown: bool,
}

/// Returns the address of the page.
pub(super) fn history_path(taxpayer: TaxpayerId, irn: &Irn) -> String {
    let query = Serializer::new(String::new())
        .append_pair("irn", irn.as_str())
        .finish();
    format!("/console/taxpayers/{taxpayer}/history?{query}")
}

/// GET `/console/taxpayers/{taxpayer}/history?irn=&as_of=`: shows the invoice after one of its events.
async fn show_history(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    taxpayer: web::Path<String>,
    query: Query,
) -> Answer {
    let subject = ViewedInvoice::find(&state, &taxpayer, &query).await?;
    render(&state, &session, subject, false).await
}

/// The invoice of the page, and the event after which it is shown.
struct ViewedInvoice {
    taxpayer: Taxpayer,
    irn: Irn,
    as_of: Option<i64>,
}

impl ViewedInvoice {
    async fn find(state: &ApiState, taxpayer: &str, query: &Query) -> Result<Self, ApiError> {
        Ok(Self {
            taxpayer: find_taxpayer(state, taxpayer).await?,
            irn: path_ids::parse_irn(&query.trimmed_text("irn").unwrap_or_default())?,
            as_of: query.whole_number("as_of", 1).map_err(ApiError::from)?,
        })
    }
}

#[derive(Deserialize)]
struct ContactDataForm {
    irn: String,
    as_of: i64,
    #[serde(default)]
    reason: String,
}

/// POST `/console/taxpayers/{taxpayer}/history/contact-data`: shows the same page with contact data, which the audit
/// records.
async fn show_contact_data(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    taxpayer: web::Path<String>,
    form: Form<ContactDataForm>,
) -> Answer {
    let ContactDataForm { irn, as_of, reason } = form.0;
    let subject = ViewedInvoice {
        taxpayer: find_taxpayer(&state, &taxpayer).await?,
        irn: path_ids::parse_irn(&irn)?,
        as_of: Some(as_of),
    };
    contact_data::record_contact_data_view(
        &state,
        &session,
        subject.taxpayer.id,
        &subject.irn,
        reason,
    )
    .await?;
    render(&state, &session, subject, true).await
}

async fn render(
    state: &ApiState,
    session: &OperatorSession,
    subject: ViewedInvoice,
    is_contact_data_shown: bool,
) -> Answer {
    let ViewedInvoice {
        taxpayer,
        irn,
        as_of,
    } = subject;
    let events = events::find_owned_by_irn(&state.store, taxpayer.id, &irn).await?;
    let history = History::new(&events).map_err(ApiError::internal)?;
    let entry = history
        .entry_at(as_of)
        .ok_or_else(ApiError::invoice_not_found)?;
    let entry = if is_contact_data_shown {
        entry
    } else {
        entry.redact()
    };
    let address_after =
        |sequence: i64| format!("{}&as_of={sequence}", history_path(taxpayer.id, &irn));
    show(&HistoryPage {
        frame: Frame::for_operator(session, "History of an invoice"),
        invoice_page: irn_page_path(taxpayer.id, &irn),
        document: serde_json::to_string_pretty(&entry.version.invoice)
            .map_err(ApiError::internal)?,
        earlier: entry.earlier_sequence.map(address_after),
        later: entry.later_sequence.map(address_after),
        taxpayer,
        irn,
        entry,
        is_contact_data_shown,
    })
}
