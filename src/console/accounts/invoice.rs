//! The page of one invoice: the document, what the authority and the webhook did with it, its
//! payments, and the forms for what an accountant may do with it (`invoice_actions`).

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;
use database::page::Page;
use serde_json::{Map, Value};
use url::form_urlencoded::Serializer;

use crate::console::accounts::base;
use crate::console::accounts::correction::{self, RefusedRun};
use crate::console::accounts::timeline::{Happening, operation_name};
use crate::console::actor_name::actor_name;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::form_values::FormState;
use crate::console::frame::Frame;
use crate::console::page::{Answer, show_with_status};
use crate::console::session::accounts::{AccountSession, Reader};
use crate::domain::invoice::Invoice;
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::document_difference::Differences;
use crate::domain::invoice::qr_picture::QrPicture;
use crate::domain::kernel::codes::SettableStatus;
use crate::domain::money::Amount;
use crate::domain::party::Taxpayer;
use crate::domain::payment::LedgerEntry;
use crate::domain::pipeline::{Run, RunPhase, WaitReason};
use crate::http::endpoint::{Path, path};
use crate::http::extract::path_ids;
use crate::http::invoice_files::{self, InvoiceFile};
use crate::http::respond::error::ApiError;
use crate::http::respond::file::FileAnswer;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;
use crate::store::accounts::taxpayers;
use crate::store::invoices::{self, payments, timeline};
use crate::store::runs;
use crate::store::webhooks::delivery_log::{self, DeliveryFilter, LoggedDelivery};

pub(crate) fn endpoints() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/{id}").page(show_invoice),
        path("/dashboard/{taxpayer}/invoices/{id}/files/{file}").page(get_file),
        path("/dashboard/{taxpayer}/invoices/{id}/correction")
            .form(correction::suggest)
            .repeatable(),
    ]
}

/// The number of deliveries that the page shows. The log of deliveries shows all.
const NEWEST_DELIVERIES: Page = Page {
    number: 1,
    per_page: 10,
};

#[derive(Template)]
#[template(path = "accounts/invoice.html")]
struct InvoiceDetailsPage {
    frame: Frame,
    base: String,
    invoice: Invoice,
    seller: Taxpayer,
    /// The address of the list of the customer's invoices.
    customer_invoices_address: String,
    breakdown: Breakdown,
    /// Where the document that was sent to the authority is not the stored invoice.
    differences: Differences,
    qr: Option<QrPicture>,
    /// The address of the public page of a signed invoice.
    verify_link: Option<String>,
    status: Badge,
    authority: Badge,
    payment: Badge,
    paid: Amount,
    left: Option<Amount>,
    ledger: Vec<Payment>,
    runs: Vec<RunLine>,
    refused: Vec<RefusedRun>,
    deliveries: Vec<DeliveryLine>,
    happenings: Vec<Happening>,
    is_cut: bool,
    statuses: Vec<StatusAction>,
    status_form: FormState,
    payment_form: FormState,
}

struct Payment {
    entry: LedgerEntry,
    /// The name of the actor that recorded the payment; empty for old payments, for which this was not stored.
    by: String,
    badge: Badge,
}

struct RunLine {
    run: Run,
    name: &'static str,
    badge: Badge,
    why: String,
}

struct DeliveryLine {
    logged: LoggedDelivery,
    badge: Badge,
}

/// A status that the invoice can be set to. Approving is the main action of the page; the other statuses have folded
/// forms.
struct StatusAction {
    value: &'static str,
    label: &'static str,
    is_main: bool,
    /// The question before the change; empty if none is asked.
    question: &'static str,
}

/// The forms of the page: empty, or with the values and faults of a refused attempt.
#[derive(Default)]
pub(super) struct Forms {
    pub(super) status: FormState,
    pub(super) payment: FormState,
}

async fn show_invoice(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
) -> Answer {
    let invoice = find(&state, &session, &ids.1).await?;
    render(&state, &request, &session, invoice, Forms::default()).await
}

/// The files of an invoice, for the links of the page.
async fn get_file(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    ids: web::Path<(String, String, String)>,
    request: HttpRequest,
) -> Result<FileAnswer, ApiError> {
    let file = InvoiceFile::from_path(&ids.2).ok_or_else(ApiError::route_not_found)?;
    let invoice = find(&state, &session, &ids.1).await?;
    let supplier = taxpayers::with_id(state.store.reader(), session.taxpayer).await?;
    let supplier = supplier.ok_or_else(ApiError::taxpayer_not_found)?;
    let stored = StoredInvoice::load(&state.store, supplier, invoice).await?;
    invoice_files::make(&state, &request, &stored, file).await
}

/// Returns the invoice whose id is in the path. Fails if it is not an invoice of this taxpayer.
pub(super) async fn find(
    state: &ApiState,
    session: &AccountSession,
    id: &str,
) -> Result<Invoice, ApiError> {
    let id = path_ids::invoice_id(id)?;
    let found = invoices::owned_by_with_id(&state.store, session.taxpayer, id).await?;
    found.ok_or_else(ApiError::invoice_not_found)
}

pub(super) async fn render(
    state: &ApiState,
    request: &HttpRequest,
    session: &AccountSession,
    invoice: Invoice,
    forms: Forms,
) -> Answer {
    let store = &state.store;
    let id = session.taxpayer;
    let supplier = taxpayers::with_id(store.reader(), id)
        .await?
        .ok_or_else(ApiError::taxpayer_not_found)?;
    let entries = payments::owned_by_with_invoice(store, id, invoice.id).await?;
    let timeline = timeline::owned_by_with_irn(store, id, &invoice.irn).await?;
    let runs = runs::owned_by_with_irn_keys(store.reader(), id, vec![invoice.irn.key()]).await?;
    let filter = DeliveryFilter {
        irn: Some(invoice.irn.to_string()),
        ..DeliveryFilter::default()
    };
    let (deliveries, _) = delivery_log::page_owned_by(store, id, filter, NEWEST_DELIVERIES).await?;
    let catalog = state.catalog.get();
    let stored = StoredInvoice::load(store, supplier, invoice).await?;
    let verify_link = invoice_files::verify_link(state, request, &stored.invoice).await?;
    let differences = sent_differences(&runs, &stored.document(&catalog)?);
    let StoredInvoice {
        invoice, supplier, ..
    } = stored;
    let digits = catalog.currency_digits(&invoice.currency);
    let is_refused = forms.status.is_refused() || forms.payment.is_refused();
    let page = InvoiceDetailsPage {
        frame: Frame::for_account(session, &invoice.invoice_no),
        base: base(session),
        breakdown: Breakdown::from_invoice(&invoice, &catalog).map_err(ApiError::internal)?,
        customer_invoices_address: customer_invoices_address(session, &invoice),
        qr: QrPicture::from_text(&invoice.authority.qr_code),
        verify_link,
        status: invoice.status.into(),
        authority: invoice.authority.status.into(),
        payment: invoice.payment.status.into(),
        paid: invoice.payment.paid.with_digits(digits),
        left: invoice
            .payment
            .payable
            .minus(invoice.payment.paid)
            .map(|left| left.with_digits(digits)),
        ledger: entries.into_iter().map(Payment::from).collect(),
        refused: runs.iter().filter_map(RefusedRun::from_run).collect(),
        runs: runs.into_iter().map(RunLine::from).collect(),
        deliveries: deliveries.into_iter().map(DeliveryLine::from).collect(),
        happenings: timeline.entries.iter().rev().map(Happening::from).collect(),
        is_cut: timeline.is_cut,
        statuses: settable_statuses(&invoice),
        status_form: forms.status,
        payment_form: forms.payment,
        invoice,
        seller: supplier,
        differences,
    };
    let status = if is_refused {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    show_with_status(status, &page)
}

/// Compares what the last submission sent with the document of the stored invoice.
fn sent_differences(runs: &[Run], stored: &Map<String, Value>) -> Differences {
    let sent = runs.iter().find_map(|run| run.payload.submission());
    sent.map(|sent| Differences::between(&sent.callers_body(), stored))
        .unwrap_or_default()
}

fn customer_invoices_address(session: &AccountSession, invoice: &Invoice) -> String {
    let no = &invoice.customer.external_customer_no;
    let query = Serializer::new(String::new())
        .append_pair("customer_no", no)
        .finish();
    format!("{}/invoices?{query}", base(session))
}

/// Returns the statuses that the invoice can be set to. There are none for an invoice that is paid or that the
/// authority has validated.
fn settable_statuses(invoice: &Invoice) -> Vec<StatusAction> {
    let Some(present) = SettableStatus::parse(invoice.status.as_str()) else {
        return Vec::new();
    };
    let order = [
        SettableStatus::Approved,
        SettableStatus::Draft,
        SettableStatus::Cancelled,
    ];
    order
        .into_iter()
        .filter(|status| *status != present)
        .map(StatusAction::from)
        .collect()
}

impl From<SettableStatus> for StatusAction {
    fn from(status: SettableStatus) -> Self {
        let (label, question) = match status {
            SettableStatus::Approved => ("Approve", ""),
            SettableStatus::Draft => ("Back to draft", "Take this invoice back to draft?"),
            SettableStatus::Cancelled => ("Cancel the invoice", "Cancel this invoice?"),
        };
        Self {
            value: status.as_str(),
            label,
            is_main: status == SettableStatus::Approved,
            question,
        }
    }
}

impl From<LedgerEntry> for Payment {
    fn from(entry: LedgerEntry) -> Self {
        let by = entry.actor.as_ref().map(actor_name).unwrap_or_default();
        Self {
            badge: entry.posting.status.into(),
            by,
            entry,
        }
    }
}

impl From<Run> for RunLine {
    fn from(run: Run) -> Self {
        Self {
            name: operation_name(run.operation()),
            badge: run.state().into(),
            why: explain_state(&run),
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

/// Says what a run waits for, or what its end means.
fn explain_state(run: &Run) -> String {
    let text = match run.phase {
        RunPhase::Running { .. } => "It is being carried out now.",
        RunPhase::Waiting { reason, .. } => match reason {
            WaitReason::HealthCheckDown => {
                "The authority says that it is not well. It is asked again by itself."
            }
            WaitReason::AccessPointOffline => {
                "The access point of the customer or of this service is offline. It goes on by itself."
            }
            WaitReason::AuthorityUnavailable => {
                "The authority does not answer at present. It goes on by itself."
            }
        },
        RunPhase::Paused => {
            "It failed for too long. An operator of this service has to let it go on."
        }
        RunPhase::Succeeded => "It is done.",
        RunPhase::Refused => "The document has to be corrected and sent again.",
        RunPhase::Cancelled => "It was cancelled. The document may be sent again.",
    };
    text.to_owned()
}
