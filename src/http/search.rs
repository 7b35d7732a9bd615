//! The search of operators, for `/ops/search` and for the console. The text names one object, or a taxpayer and then
//! one of its objects. A trace id names everything that the requests of the trace caused: runs, events and audited
//! actions. A request that begins a trace, and whose id is a UUID, gives its id to the trace, so its id names the same
//! objects.

use database::page::Page;
use serde::Serialize;
use url::form_urlencoded::Serializer;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::events::event::Event;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_view::plain_time;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::audit::AuditEntry;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::ids::{TaxpayerId, parse_id};
use crate::domain::outage::Outage;
use crate::domain::party::Taxpayer;
use crate::domain::pipeline::Run;
use crate::domain::replica::Replica;
use crate::http::extract::path_ids;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers::{self, TaxpayerFilter};
use crate::store::operations::{audit, outages, reconciliations, search};
use crate::store::webhooks::delivery_log;
use crate::store::{events, invoices, runs};

/// The maximum number of taxpayers that a search by a part of a name, email or tax number finds.
const NAMED_TAXPAYERS_MAX: u64 = 10;
/// The maximum number of runs, and of audit entries, that a trace id finds.
const OBJECTS_PER_TRACE_MAX: u64 = 20;

/// An object that a text names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Found)]
pub(crate) struct FoundObject {
    /// `run`, `reconciliation`, `dead_letter`, `outage`, `replica`, `event`, `audit_entry`, `irn`, `invoice` or
    /// `taxpayer`.
    pub(crate) kind: &'static str,
    pub(crate) title: String,
    /// The path of the JSON API that shows the object; for an IRN, an invoice or an event, the list of its runs.
    pub(crate) path: String,
    /// The path of the console page that shows the object.
    pub(crate) page: String,
}

/// Finds the objects that a text names: an IRN, an invoice number, the id of an event, a run, a reconciliation, a dead
/// letter, an outage, a replica, a trace or a request, or a taxpayer's id, tax number or part of a name. If the text
/// starts with a taxpayer's id or tax number, the rest is first searched among that taxpayer's invoices and events.
pub(crate) async fn find(state: &ApiState, text: &str) -> Result<Vec<FoundObject>, ApiError> {
    if let Some((first, rest)) = text.split_once(char::is_whitespace)
        && let Some(owner) = find_taxpayer(state, first).await?
    {
        let found = find_in_taxpayer(state, &owner, rest.trim()).await?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let mut found = Vec::new();
    if let Some(id) = path_ids::parse_uuid(text).or_else(|| parse_trace_id(text)) {
        found.extend(find_by_id(state, id).await?);
        found.extend(find_by_trace(state, id).await?);
    }
    if path_ids::parse_uuid(text).is_some() {
        return Ok(found);
    }
    if let Ok(irn) = Irn::parse(text)
        && let Some(owner) = taxpayers::find_by_service_id(&state.store, irn.service_id()).await?
    {
        found.push(irn_object(owner, &irn));
    }
    let numbered_invoices = search::find_invoices_by_number(&state.store, text).await?;
    found.extend(numbered_invoices.iter().map(FoundObject::from));
    found.extend(
        find_taxpayers(state, text)
            .await?
            .iter()
            .map(FoundObject::from),
    );
    Ok(found)
}

/// Reads a trace id: 32 hexadecimal digits without hyphens. Work that no request caused has a trace whose id is its own
/// id in this form.
fn parse_trace_id(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|_| text.len() == 32)
}

/// Returns the path of the console page that shows an IRN.
pub(crate) fn irn_page_path(taxpayer: TaxpayerId, irn: &Irn) -> String {
    format!(
        "/console/taxpayers/{taxpayer}/irn?{}",
        encode_query_pair("irn", irn.as_str())
    )
}

/// Returns the taxpayer's invoices with this number or IRN, or its event with this id.
async fn find_in_taxpayer(
    state: &ApiState,
    owner: &Taxpayer,
    text: &str,
) -> Result<Vec<FoundObject>, ApiError> {
    let store = &state.store;
    if let Some(id) = path_ids::parse_uuid(text) {
        let event = search::find_event_by_id(store, Some(owner.id), id).await?;
        return Ok(event.iter().map(FoundObject::from).collect());
    }
    let mut found = Vec::new();
    for kind in [UniqueNoType::InternalInvoiceNo, UniqueNoType::Irn] {
        let invoice = invoices::find_owned_by_unique_no(store, owner.id, kind, text).await?;
        found.extend(invoice.iter().map(FoundObject::from));
    }
    Ok(found)
}

async fn find_by_id(state: &ApiState, id: Uuid) -> Result<Vec<FoundObject>, ApiError> {
    let store = &state.store;
    if let Some(run) = runs::find_by_id(store, id).await? {
        return Ok(vec![FoundObject::from(&run)]);
    }
    if let Some(reconciliation) = reconciliations::find_by_id(store, id).await? {
        let title = format!(
            "{} of taxpayer {}",
            reconciliation.day, reconciliation.taxpayer_id
        );
        let path = format!("/ops/reconciliations/{id}");
        let page = format!("/console/reconciliations/{id}");
        return Ok(vec![FoundObject {
            kind: "reconciliation",
            title,
            path,
            page,
        }]);
    }
    if let Some(delivery) = delivery_log::find_dead_by_id(store, id).await? {
        let title = format!("Delivery {id} to taxpayer {}", delivery.taxpayer_id);
        let query = format!("taxpayer_id={}", delivery.taxpayer_id);
        let path = format!("/ops/webhooks/dead-letters?{query}");
        let page = format!("/console/deliveries/dead-letters?{query}");
        return Ok(vec![FoundObject {
            kind: "dead_letter",
            title,
            path,
            page,
        }]);
    }
    if let Some(outage) = outages::find_by_id(store.reader(), id).await? {
        return Ok(vec![FoundObject::from(&outage)]);
    }
    let list = state.replicas.last_list();
    if let Some(replica) = list.find_replica(&id.to_string()) {
        return Ok(vec![FoundObject::from(replica)]);
    }
    let event = search::find_event_by_id(store, None, id).await?;
    Ok(event.iter().map(FoundObject::from).collect())
}

/// Returns what the requests of a trace caused: their runs, the events, whose deliveries are part of the trace too, and
/// the audited actions.
async fn find_by_trace(state: &ApiState, trace: Uuid) -> Result<Vec<FoundObject>, ApiError> {
    let store = &state.store;
    let id = trace.simple().to_string();
    let runs = runs::find_by_trace_id(store, &id, OBJECTS_PER_TRACE_MAX).await?;
    let mut events = search::find_events_by_trace_id(store, trace).await?;
    for run in &runs {
        let run_events = events::find_owned_by_irn(store, run.taxpayer_id, &run.irn).await?;
        events.extend(
            run_events
                .into_iter()
                .filter(|event| is_in_trace(event, &id)),
        );
    }
    events.sort_by_key(|event| (event.taxpayer_id, event.sequence));
    events.dedup_by_key(|event| event.id);
    let audit_entries = audit::find_by_trace_id(store, &id, OBJECTS_PER_TRACE_MAX).await?;
    let mut found: Vec<_> = runs.iter().map(FoundObject::from).collect();
    found.extend(events.iter().map(FoundObject::from));
    found.extend(audit_entries.iter().map(FoundObject::from));
    Ok(found)
}

fn is_in_trace(event: &Event, id: &str) -> bool {
    event.trace.is_some_and(|trace| trace.id() == id)
}

async fn find_taxpayer(state: &ApiState, text: &str) -> Result<Option<Taxpayer>, ApiError> {
    let by_id = match parse_id(text).map(TaxpayerId) {
        Some(id) => taxpayers::find_by_id(state.store.reader(), id).await?,
        None => None,
    };
    match by_id {
        Some(found) => Ok(Some(found)),
        None => Ok(taxpayers::find_by_tin(&state.store, text).await?),
    }
}

/// Returns the taxpayer with this id or tax number. If there is none, returns those whose name, email or tax number
/// contains the text.
async fn find_taxpayers(state: &ApiState, text: &str) -> Result<Vec<Taxpayer>, ApiError> {
    if let Some(found) = find_taxpayer(state, text).await? {
        return Ok(vec![found]);
    }
    let filter = TaxpayerFilter {
        search: Some(text.to_owned()),
        ..TaxpayerFilter::default()
    };
    let (found, _) = taxpayers::page(
        &state.store,
        filter,
        Page {
            number: 1,
            per_page: NAMED_TAXPAYERS_MAX,
        },
    )
    .await?;
    Ok(found)
}

fn irn_object(owner: TaxpayerId, irn: &Irn) -> FoundObject {
    let path = runs_path(irn.as_str());
    FoundObject {
        kind: "irn",
        title: irn.to_string(),
        path,
        page: irn_page_path(owner, irn),
    }
}

fn runs_path(irn: &str) -> String {
    format!("/ops/pipeline/runs?{}", encode_query_pair("irn", irn))
}

fn encode_query_pair(name: &str, value: &str) -> String {
    Serializer::new(String::new())
        .append_pair(name, value)
        .finish()
}

impl From<&Invoice> for FoundObject {
    fn from(invoice: &Invoice) -> Self {
        Self {
            kind: "invoice",
            title: format!("{} of taxpayer {}", invoice.invoice_no, invoice.taxpayer_id),
            path: runs_path(invoice.irn.as_str()),
            page: format!(
                "/console/taxpayers/{}/invoices/{}",
                invoice.taxpayer_id, invoice.id
            ),
        }
    }
}

impl From<&Run> for FoundObject {
    fn from(run: &Run) -> Self {
        Self {
            kind: "run",
            title: format!("{} of {}, {}", run.operation(), run.irn, run.state()),
            path: format!("/ops/pipeline/runs/{}", run.id),
            page: format!("/console/runs/{}", run.id),
        }
    }
}

impl From<&AuditEntry> for FoundObject {
    fn from(entry: &AuditEntry) -> Self {
        let at = plain_time(entry.at);
        let query = encode_query_pair("subject", &entry.subject);
        Self {
            kind: "audit_entry",
            title: format!("{} of {} at {at} UTC", entry.action, entry.subject),
            path: format!("/ops/audit?{query}"),
            page: format!("/console/audit?{query}"),
        }
    }
}

impl From<&Outage> for FoundObject {
    fn from(outage: &Outage) -> Self {
        let operations = outage.operations().join(", ");
        let started_at = plain_time(outage.started_at);
        Self {
            kind: "outage",
            title: format!("Outage of {operations} since {started_at} UTC"),
            path: "/ops/outages".to_owned(),
            page: "/console/breakers".to_owned(),
        }
    }
}

impl From<&Replica> for FoundObject {
    fn from(replica: &Replica) -> Self {
        let seen_at = plain_time(replica.seen_at);
        Self {
            kind: "replica",
            title: format!("{}, last sign at {seen_at} UTC", replica.identity.name),
            path: "/ops/replicas".to_owned(),
            page: "/console/replicas".to_owned(),
        }
    }
}

impl From<&Event> for FoundObject {
    /// An event without an IRN leads to the runs and the page of its taxpayer.
    fn from(event: &Event) -> Self {
        let owner = event.taxpayer_id;
        let title = format!(
            "{}, event {} of taxpayer {owner}",
            event.kind, event.sequence
        );
        let irn = event.irn.as_deref().and_then(|irn| Irn::parse(irn).ok());
        let (path, page) = match irn {
            Some(irn) => (runs_path(irn.as_str()), irn_page_path(owner, &irn)),
            None => (
                format!("/ops/pipeline/runs?taxpayer_id={owner}"),
                format!("/console/taxpayers/{owner}"),
            ),
        };
        Self {
            kind: "event",
            title,
            path,
            page,
        }
    }
}

impl From<&Taxpayer> for FoundObject {
    fn from(taxpayer: &Taxpayer) -> Self {
        Self {
            kind: "taxpayer",
            title: format!("{}, TIN {}", taxpayer.name, taxpayer.tin),
            path: format!("/ops/taxpayers?{}", encode_query_pair("tin", &taxpayer.tin)),
            page: format!("/console/taxpayers/{}", taxpayer.id),
        }
    }
}
