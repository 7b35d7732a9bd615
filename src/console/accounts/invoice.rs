//! The page of one invoice: the document, what the authority and the webhook did with it, its payments, and what an
//! accountant may do with it.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use url::form_urlencoded::Serializer;

use crate::actors::taxpayer::commands::{Pay, SetStatus};
use crate::console::accounts::base;
use crate::console::accounts::correction::{self, RefusedRun};
use crate::console::accounts::timeline::{Happening, operation_name};
use crate::console::actor_name::actor_name;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show_with_status};
use crate::console::session::accounts::{AccountSession, Accountant, Reader};
use crate::domain::invoice::Invoice;
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::qr_picture::QrPicture;
use crate::domain::kernel::codes::{PaymentStatus, SettableStatus, UniqueNoType};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::money::Amount;
use crate::domain::party::Taxpayer;
use crate::domain::payment::LedgerEntry;
use crate::domain::pipeline::{Run, RunPhase, WaitReason};
use crate::http::endpoint::{Path, path};
use crate::http::extract::path_ids;
use crate::http::forms::{payment_update, report, update_status};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::db::page::Page;
use crate::store::invoices::{self, payments, timeline};
use crate::store::runs;
use crate::store::webhooks::delivery_log::{self, DeliveryFilter, LoggedDelivery};

pub(crate) fn endpoints() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/{id}").page(show_invoice),
        path("/dashboard/{taxpayer}/invoices/{id}/status").form(set_status),
        path("/dashboard/{taxpayer}/invoices/{id}/payment").form(set_payment),
        path("/dashboard/{taxpayer}/invoices/{id}/correction").form(correction::suggest).repeatable(),
    ]
}

/// The form field with which a person confirms that the same payment is to be recorded again.
const CONFIRMATION_FIELD: &str = "again";
/// Within this time after a payment, the page asks before it records the same payment again.
const SAME_PAYMENT_WITHIN: SignedDuration = SignedDuration::from_mins(1);
/// The number of deliveries that the page shows. The log of deliveries shows all.
const NEWEST_DELIVERIES: Page = Page { number: 1, per_page: 10 };

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
    qr: Option<QrPicture>,
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
struct Forms {
    status: FormState,
    payment: FormState,
}

async fn show_invoice(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    ids: web::Path<(String, String)>,
) -> Answer {
    let invoice = find(&state, &session, &ids.1).await?;
    render(&state, &session, invoice, Forms::default()).await
}

/// Returns the invoice whose id is in the path. Fails if it is not an invoice of this taxpayer.
pub(super) async fn find(state: &ApiState, session: &AccountSession, id: &str) -> Result<Invoice, ApiError> {
    let id = path_ids::invoice_id(id)?;
    let found = invoices::owned_by_with_id(&state.store, session.taxpayer, id).await?;
    found.ok_or_else(ApiError::invoice_not_found)
}

async fn render(state: &ApiState, session: &AccountSession, invoice: Invoice, forms: Forms) -> Answer {
    let store = &state.store;
    let id = session.taxpayer;
    let seller = taxpayers::with_id(store.reader(), id).await?.ok_or_else(ApiError::taxpayer_not_found)?;
    let entries = payments::owned_by_with_invoice(store, id, invoice.id).await?;
    let timeline = timeline::owned_by_with_irn(store, id, &invoice.irn).await?;
    let runs = runs::owned_by_with_irn_keys(store.reader(), id, vec![invoice.irn.key()]).await?;
    let filter = DeliveryFilter { irn: Some(invoice.irn.to_string()), ..DeliveryFilter::default() };
    let (deliveries, _) = delivery_log::page_owned_by(store, id, filter, NEWEST_DELIVERIES).await?;
    let catalog = state.catalog.get();
    let digits = catalog.currency_digits(&invoice.currency);
    let is_refused = forms.status.is_refused() || forms.payment.is_refused();
    let page = InvoiceDetailsPage {
        frame: Frame::for_account(session, &invoice.invoice_no),
        base: base(session),
        breakdown: Breakdown::from_invoice(&invoice, &catalog),
        customer_invoices_address: customer_invoices_address(session, &invoice),
        qr: QrPicture::from_text(&invoice.authority.qr_code),
        status: invoice.status.into(),
        authority: invoice.authority.status.into(),
        payment: invoice.payment.status.into(),
        paid: invoice.payment.paid.with_digits(digits),
        left: invoice.payment.payable.minus(invoice.payment.paid).map(|left| left.with_digits(digits)),
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
        seller,
    };
    let status = if is_refused { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    show_with_status(status, &page)
}

fn customer_invoices_address(session: &AccountSession, invoice: &Invoice) -> String {
    let no = &invoice.customer.external_customer_no;
    let query = Serializer::new(String::new()).append_pair("customer_no", no).finish();
    format!("{}/invoices?{query}", base(session))
}

/// Returns the statuses that the invoice can be set to. There are none for an invoice that is paid or that the
/// authority has validated.
fn settable_statuses(invoice: &Invoice) -> Vec<StatusAction> {
    let Some(present) = SettableStatus::parse(invoice.status.as_str()) else { return Vec::new() };
    let order = [SettableStatus::Approved, SettableStatus::Draft, SettableStatus::Cancelled];
    order.into_iter().filter(|status| *status != present).map(StatusAction::from).collect()
}

impl From<SettableStatus> for StatusAction {
    fn from(status: SettableStatus) -> Self {
        let (label, question) = match status {
            SettableStatus::Approved => ("Approve", ""),
            SettableStatus::Draft => ("Back to draft", "Take this invoice back to draft?"),
            SettableStatus::Cancelled => ("Cancel the invoice", "Cancel this invoice?"),
        };
        Self { value: status.as_str(), label, is_main: status == SettableStatus::Approved, question }
    }
}

/// POST of the status form: sets the workflow status, as the API call Update Invoice Status does.
async fn set_status(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    form: Form<FormValues>,
) -> Answer {
    let invoice = find(&state, &session, &ids.1).await?;
    let body = with_invoice_id(&invoice, form.0.object(&["status", "remark"]));
    let done = match report::read(&body, &state.catalog.get(), update_status::read) {
        Ok(read) => {
            let update_status::UpdateStatus { invoice: which, status, remark } = read.value;
            let command = SetStatus { invoice: which, status, remark };
            session.send(&state, command).await.map_err(ApiError::from)
        }
        Err(faults) => Err(ApiError::from(faults)),
    };
    match done {
        Ok(changed) => Ok(go_to_invoice(&session, &changed, "The status was changed.")),
        Err(error) => {
            let status = refusal_form(error, form.0)?;
            render(&state, &session, invoice, Forms { status, ..Forms::default() }).await
        }
    }
}

/// POST of the payment form: records a payment, as the API call Update Payment Status does.
async fn set_payment(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    form: Form<FormValues>,
) -> Answer {
    let invoice = find(&state, &session, &ids.1).await?;
    let faults = payment_faults(&state, &session, &invoice, &form.0).await?;
    if !faults.is_empty() {
        let payment = FormState::with_faults(form.0, faults);
        return render(&state, &session, invoice, Forms { payment, ..Forms::default() }).await;
    }
    let mut body = with_invoice_id(&invoice, form.0.object(&["payment_status", "reference", "remark"]));
    if let Ok(amount) = Amount::parse(form.0.text("amount")) {
        body.insert("amount".to_owned(), json!(amount));
    } else if !form.0.text("amount").is_empty() {
        body.insert("amount".to_owned(), form.0.text("amount").into());
    }
    let done = match report::read(&body, &state.catalog.get(), payment_update::read) {
        Ok(read) => session.send(&state, Pay(read.value)).await.map_err(ApiError::from),
        Err(faults) => Err(ApiError::from(faults)),
    };
    match done {
        Ok(changed) => Ok(go_to_invoice(&session, &changed, "The payment was recorded.")),
        Err(error) => {
            let payment = refusal_form(error, form.0)?;
            render(&state, &session, invoice, Forms { payment, ..Forms::default() }).await
        }
    }
}

/// Returns the faults that only the page finds, not the API: an amount that would be ignored, and a payment that may be
/// recorded twice by mistake.
async fn payment_faults(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
    form: &FormValues,
) -> Result<Faults, ApiError> {
    let status = PaymentStatus::parse(form.text("payment_status"));
    let is_partial = status == Some(PaymentStatus::Partial);
    if status.is_some() && !is_partial && !form.text("amount").is_empty() {
        let message = "Only a part payment takes an amount. Leave it empty, or choose \"A part was paid\".";
        return Ok(Fault::new("amount", "unexpected", message).into());
    }
    if form.text(CONFIRMATION_FIELD) == "yes" {
        return Ok(Faults::default());
    }
    let entries = payments::owned_by_with_invoice(&state.store, session.taxpayer, invoice.id).await?;
    let amount = Amount::parse(form.text("amount")).ok();
    let since = state.now().saturating_sub(SAME_PAYMENT_WITHIN).unwrap_or(Timestamp::MIN);
    let is_repeated = entries.iter().any(|entry| {
        let posting = entry.posting;
        entry.at >= since && Some(posting.status) == status && (!is_partial || Some(posting.amount) == amount)
    });
    if !is_repeated {
        return Ok(Faults::default());
    }
    let message = "You recorded the same payment a moment ago. Record it again?";
    Ok(Fault::new(CONFIRMATION_FIELD, "repeated", message).into())
}

/// Adds the members to a body that identify the invoice.
fn with_invoice_id(invoice: &Invoice, mut body: Map<String, Value>) -> Map<String, Value> {
    body.insert("unique_no".to_owned(), invoice.id.to_string().into());
    body.insert("unique_no_type".to_owned(), UniqueNoType::PortalId.as_str().into());
    body
}

fn go_to_invoice(session: &AccountSession, invoice: &Invoice, notice: &str) -> HttpResponse {
    go_to(&format!("{}/invoices/{}", base(session), invoice.id), notice)
}

/// Returns the form with the reasons of a refusal. Returns any other error as it is, because it is not about the form.
fn refusal_form(error: ApiError, values: FormValues) -> Result<FormState, ApiError> {
    if !error.faults.is_empty() {
        return Ok(FormState::with_faults(values, error.faults));
    }
    if error.status != StatusCode::CONFLICT {
        return Err(error);
    }
    let whole = Fault::new("", error.code.as_str(), error.message);
    Ok(FormState::with_faults(values, whole.into()))
}

impl From<LedgerEntry> for Payment {
    fn from(entry: LedgerEntry) -> Self {
        let by = entry.actor.as_ref().map(actor_name).unwrap_or_default();
        Self { badge: entry.posting.status.into(), by, entry }
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
        Self { badge: logged.delivery.state.into(), logged }
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
        RunPhase::Paused => "It failed for too long. An operator of this service has to let it go on.",
        RunPhase::Succeeded => "It is done.",
        RunPhase::Refused => "The document has to be corrected and sent again.",
        RunPhase::Cancelled => "It was cancelled. The document may be sent again.",
    };
    text.to_owned()
}
