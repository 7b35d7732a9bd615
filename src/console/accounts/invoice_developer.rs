//! The developer's view of an invoice: its runs with their steps, the deliveries to the webhook, and the document as
//! JSON.

use std::cmp::Reverse;

use actix_web::HttpRequest;
use askama::Template;
use database::StoreError;
use database::page::Page;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::console::accounts::invoice_head::{InvoiceHead, InvoiceTab, InvoiceView};
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::pause_cause::{RunsPausedByOperators, explain_state};
use crate::console::accounts::source_list::SourceList;
use crate::console::accounts::timeline::{
    TimelineItem, describe_delivery, describe_step, operation_name, step_operation,
};
use crate::console::actor_name::actor_name;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::page::{self, Answer};
use crate::console::session::accounts::AccountSession;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::timeline::{EntryKind, TimelineEntry};
use crate::domain::pipeline::Run;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;
use crate::store::Store;
use crate::store::invoices::timeline;
use crate::store::runs;
use crate::store::webhooks;
use crate::store::webhooks::delivery_log::{self, DeliveryFilter, LoggedDelivery};

/// The number of deliveries to each endpoint that the page shows. The log of deliveries shows all.
const NEWEST_DELIVERIES: Page = Page {
    number: 1,
    per_page: 10,
};
/// The maximum number of attempts of runs and deliveries that the page shows, newest first.
const ENTRIES_SHOWN_MAX: usize = 50;
/// The largest document that the page shows, in bytes. For a larger one the page has only a link.
const DOCUMENT_BYTES_MAX: usize = 20_000;

#[derive(Template)]
#[template(path = "accounts/invoice_developer.html")]
struct DeveloperPage {
    frame: Frame,
    base: String,
    head: InvoiceHead,
    runs: Vec<RunLine>,
    deliveries: Vec<DeliveryLine>,
    attempts: Vec<TimelineItem>,
    /// True if the timeline has more entries than the page shows.
    is_cut: bool,
    /// The address of the list of requests about this invoice.
    requests_address: String,
    /// The document of the stored invoice as JSON; empty if it is too large.
    document: String,
}

/// A run with its steps, newest first.
struct RunLine {
    run: Run,
    name: &'static str,
    badge: Badge,
    /// The name of who asked for the run; empty if it was not recorded.
    asker: String,
    why: &'static str,
    steps: Vec<TimelineItem>,
}

struct DeliveryLine {
    logged: LoggedDelivery,
    badge: Badge,
}

/// Returns the newest deliveries of events about an invoice to each endpoint, newest first.
async fn find_deliveries(
    store: &Store,
    invoice: &Invoice,
) -> Result<Vec<LoggedDelivery>, StoreError> {
    let owner = invoice.taxpayer_id;
    let mut deliveries = Vec::new();
    for (endpoint, _) in webhooks::owned_by_with_streaks(store.reader(), owner).await? {
        let filter = DeliveryFilter {
            irn: Some(invoice.irn.to_string()),
            endpoint: Some(endpoint.key),
            ..DeliveryFilter::default()
        };
        let page = delivery_log::page_owned_by(store, owner, filter, NEWEST_DELIVERIES).await?;
        deliveries.extend(page.0);
    }
    deliveries.sort_by_key(|logged| Reverse(logged.delivery.sequence));
    Ok(deliveries)
}

pub(super) async fn show_developer_page(
    state: &ApiState,
    session: &AccountSession,
    request: &HttpRequest,
    stored: StoredInvoice,
) -> Answer {
    let store = &state.store;
    let id = session.taxpayer;
    let invoice = &stored.invoice;
    let runs = runs::find_owned_by_irn_keys(store.reader(), id, vec![invoice.irn.key()]).await?;
    let pauses = RunsPausedByOperators::load(store, &runs).await?;
    let timeline = timeline::find_owned_by_irn(store, id, &invoice.irn).await?;
    let deliveries = find_deliveries(store, invoice).await?;
    let view = InvoiceView {
        tab: InvoiceTab::Developer,
        source: SourceList::from_request(request, state),
    };
    let head = InvoiceHead::new(state, session, &stored, &runs, view).await?;
    let document = Value::Object(stored.document(&state.catalog.get())?);
    let document = format!("{document:#}");
    let attempts = timeline.entries.iter().rev();
    let attempts = attempts.filter(|entry| entry.kind == EntryKind::Delivery);
    page::show(&DeveloperPage {
        frame: Frame::for_account(session, &invoice.invoice_no).with_section("Invoices"),
        base: base_path(session),
        head,
        attempts: attempts
            .take(ENTRIES_SHOWN_MAX)
            .map(describe_delivery)
            .collect(),
        runs: runs
            .into_iter()
            .map(|run| RunLine::new(run, &timeline.entries, &pauses))
            .collect(),
        deliveries: deliveries.into_iter().map(DeliveryLine::from).collect(),
        is_cut: timeline.is_cut,
        requests_address: requests_address(session, invoice),
        document: Some(document)
            .filter(|text| text.len() <= DOCUMENT_BYTES_MAX)
            .unwrap_or_default(),
    })
}

/// Returns the address of the list of requests that name this invoice by its id or by its IRN.
fn requests_address(session: &AccountSession, invoice: &Invoice) -> String {
    let query = Serializer::new(String::new())
        .append_pair("invoice", &invoice.id.to_string())
        .append_pair("irn", &invoice.irn.to_string())
        .finish();
    format!("{}/requests?{query}", base_path(session))
}

impl RunLine {
    fn new(run: Run, entries: &[TimelineEntry], pauses: &RunsPausedByOperators) -> Self {
        let operation = run.operation();
        let steps = entries.iter().rev().filter(|entry| {
            entry.kind == EntryKind::Step && step_operation(&entry.name) == Some(operation)
        });
        Self {
            name: operation_name(operation),
            badge: run.state().into(),
            asker: run.asked_by.as_ref().map(actor_name).unwrap_or_default(),
            why: explain_state(&run, pauses),
            steps: steps.take(ENTRIES_SHOWN_MAX).map(describe_step).collect(),
            run,
        }
    }
}

impl From<LoggedDelivery> for DeliveryLine {
    fn from(logged: LoggedDelivery) -> Self {
        Self {
            badge: logged.delivery.state.into(),
            logged,
        }
    }
}
