//! An invoice as operators see it: read-only, with its runs and its timeline. There is also a page for an IRN whose
//! invoice is not stored here.

use actix_web::web;
use askama::Template;

use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::operators::history;
use crate::console::operators::runs::{self as run_pages, RunRow};
use crate::console::operators::taxpayer::find_taxpayer;
use crate::console::page::{Answer, show};
use crate::console::session::operators::Viewer;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::redaction;
use crate::domain::invoice::timeline::{EntryKind, TimelineEntry};
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::party::Taxpayer;
use crate::domain::payment::LedgerEntry;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::{payments, timeline};
use crate::store::{invoices, runs};

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console/taxpayers/{taxpayer}/invoices/{id}").page(show_invoice),
        path("/console/taxpayers/{taxpayer}/irn").page(show_irn),
    ]
}

#[derive(Template)]
#[template(path = "operators/invoice.html")]
struct InvoicePage {
    frame: Frame,
    taxpayer: Taxpayer,
    irn: Irn,
    /// The address of the page with the invoice's history.
    history: String,
    invoice: Option<InvoiceFacts>,
    rows: Vec<RunRow>,
    timeline: Vec<TimelineLine>,
    is_cut: bool,
}

struct InvoiceFacts {
    line: InvoiceLine,
    authority: Badge,
    ledger: Vec<LedgerEntry>,
}

/// An invoice in a list.
pub(super) struct InvoiceLine {
    pub(super) invoice: Invoice,
    pub(super) status: Badge,
    pub(super) payment: Badge,
}

struct TimelineLine {
    class: &'static str,
    kind: &'static str,
    details: Vec<String>,
    entry: TimelineEntry,
}

/// GET /console/taxpayers/{taxpayer}/invoices/{id}: shows an invoice.
async fn show_invoice(
    state: web::Data<ApiState>,
    viewer: Viewer,
    names: web::Path<(String, String)>,
) -> Answer {
    let (taxpayer, id) = names.into_inner();
    let taxpayer = find_taxpayer(&state, &taxpayer).await?;
    let id = path_ids::parse_invoice_id(&id)?;
    let found = invoices::find_owned_by_id(&state.store, taxpayer.id, id).await?;
    let invoice = found.ok_or_else(ApiError::invoice_not_found)?;
    render(&state, viewer, taxpayer, invoice.irn.clone(), Some(invoice)).await
}

/// GET /console/taxpayers/{taxpayer}/irn?irn=: shows the invoice that has this IRN. If none is stored, shows the runs
/// of the IRN.
async fn show_irn(
    state: web::Data<ApiState>,
    viewer: Viewer,
    taxpayer: web::Path<String>,
    query: Query,
) -> Answer {
    let taxpayer = find_taxpayer(&state, &taxpayer).await?;
    let irn = path_ids::parse_irn(&query.trimmed_text("irn").unwrap_or_default())?;
    let kind = UniqueNoType::Irn;
    let invoice =
        invoices::find_owned_by_unique_no(&state.store, taxpayer.id, kind, irn.as_str()).await?;
    render(&state, viewer, taxpayer, irn, invoice).await
}

async fn render(
    state: &ApiState,
    Viewer(session): Viewer,
    taxpayer: Taxpayer,
    irn: Irn,
    invoice: Option<Invoice>,
) -> Answer {
    let store = &state.store;
    let found = runs::find_owned_by_irn_keys(store.reader(), taxpayer.id, vec![irn.key()]).await?;
    if found.is_empty() && invoice.is_none() {
        return Err(ApiError::invoice_not_found());
    }
    let timeline = timeline::find_owned_by_irn(store, taxpayer.id, &irn).await?;
    let invoice = match invoice {
        Some(invoice) => Some(InvoiceFacts {
            ledger: payments::find_owned_by_invoice(store, taxpayer.id, invoice.id).await?,
            authority: invoice.authority.status.into(),
            line: invoice.into(),
        }),
        None => None,
    };
    let page = InvoicePage {
        frame: Frame::for_operator(&session, "Invoice"),
        history: history::history_path(taxpayer.id, &irn),
        rows: run_pages::to_rows(state, found).await?,
        is_cut: timeline.is_cut,
        timeline: timeline
            .entries
            .into_iter()
            .rev()
            .map(TimelineLine::from)
            .collect(),
        taxpayer,
        irn,
        invoice,
    };
    show(&page)
}

impl From<Invoice> for InvoiceLine {
    fn from(invoice: Invoice) -> Self {
        Self {
            status: invoice.status.into(),
            payment: invoice.payment.status.into(),
            invoice,
        }
    }
}

impl From<TimelineEntry> for TimelineLine {
    fn from(entry: TimelineEntry) -> Self {
        let class = match entry.outcome.as_deref() {
            Some("done" | "unchanged" | "delivered") => "ok",
            Some("refused" | "paused" | "failed") => "bad",
            Some("retry" | "interrupted") => "warn",
            Some("held") => "wait",
            _ => "",
        };
        let kind = match entry.kind {
            EntryKind::Event => "Event",
            EntryKind::Step => "Call to the authority",
            EntryKind::Delivery => "Notification",
        };
        let detail = redaction::redact_fields(entry.detail.clone());
        let details = detail.iter().map(|(name, value)| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            format!("{name}: {text}")
        });
        Self {
            class,
            kind,
            details: details.collect(),
            entry,
        }
    }
}
