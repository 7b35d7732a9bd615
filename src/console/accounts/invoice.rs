//! The page of one invoice: the document, its payments, why it was rejected, and the forms for what an accountant may
//! do with it (`invoice_actions`, `invoice_submission`, `invoice_edit`). A second tab shows technical details for
//! developers.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;
use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::console::accounts::correction::{self, RefusedRun, SuggestedCorrection};
use crate::console::accounts::document_facts::DocumentFacts;
use crate::console::accounts::invoice_developer;
use crate::console::accounts::invoice_fields::{
    EditField, fields_at_paths, form_field_for_document_path,
};
use crate::console::accounts::invoice_head::{InvoiceHead, InvoiceTab, InvoiceView};
use crate::console::accounts::invoice_payments::{
    PaymentLine, PaymentSummary, amount_to_take_back, to_payments,
};
use crate::console::accounts::invoice_values::current_values;
use crate::console::accounts::plan_table::PlanTable;
use crate::console::accounts::source_list::SourceList;
use crate::console::accounts::tax_words::TaxWords;
use crate::console::accounts::timeline::{TimelineItem, event_items};
use crate::console::badges::{Badge, badge};
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues, unlink_unshown_fields};
use crate::console::frame::Frame;
use crate::console::page::{Answer, show_with_status};
use crate::console::session::accounts::{AccountSession, Reader};
use crate::domain::correction::record::{Correction, CorrectionState};
use crate::domain::invoice::Invoice;
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::document_difference::Differences;
use crate::domain::invoice::qr_picture::QrPicture;
use crate::domain::invoice::stored_document::type_code;
use crate::domain::kernel::codes::{AuthorityStatus, WorkflowStatus};
use crate::domain::money::Amount;
use crate::domain::party::{Address, Taxpayer};
use crate::domain::pipeline::{Operation, Run};
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::invoice_files::{self, InvoiceFile};
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::respond::file::FileAnswer;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;
use crate::store::accounts::taxpayers;
use crate::store::invoices::{self, payments, timeline};
use crate::store::runs;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/{id}").page(show_invoice),
        path("/dashboard/{taxpayer}/invoices/{id}/files/{file}").page(download_invoice),
        path("/dashboard/{taxpayer}/invoices/{id}/correction")
            .form(correction::suggest_correction)
            .allows_form_repeat(),
    ]
}

/// The fields of the payment form that show their own faults.
const PAYMENT_FIELDS: [&str; 5] = [
    "payment_status",
    "amount",
    "payment_date",
    "reference",
    "remark",
];
/// The value of the query parameter that selects the developer's view.
const DEVELOPER_TAB: &str = "developer";

#[derive(Template)]
#[template(path = "accounts/invoice.html")]
struct InvoicePage {
    frame: Frame,
    head: InvoiceHead,
    invoice: Invoice,
    facts: DocumentFacts,
    type_name: String,
    seller: Taxpayer,
    /// The address of the customer; `None` if no address is stored.
    buyer: Option<Address>,
    breakdown: Breakdown,
    taxes: TaxWords,
    /// The differences between the document that was sent to the authority and the stored invoice.
    differences: Differences,
    qr: Option<QrPicture>,
    /// The address of the public page of a signed invoice.
    verify_link: Option<String>,
    money: PaymentSummary,
    ledger: Vec<PaymentLine>,
    /// True if a payment can be taken back.
    has_take_back: bool,
    refused: Vec<RefusedRun>,
    /// The newest correction of the invoice.
    correction: Option<CorrectionProgress>,
    activity: Vec<TimelineItem>,
    /// The fields that the reasons of a rejection name. The page has a form to change them.
    edit_fields: Vec<EditField>,
    /// The faults of the forms, each as its field and its message.
    faults: Vec<(String, String)>,
    forms: InvoiceForms,
}

/// The progress of a correction.
struct CorrectionProgress {
    /// True if the correction is still running. The page then reloads itself.
    is_running: bool,
    badge: Badge,
    reason: Option<String>,
    plan: PlanTable,
}

/// The forms of the page: empty, or with the values and faults of a refused attempt.
#[derive(Default)]
pub(super) struct InvoiceForms {
    pub(super) status: FormState,
    pub(super) payment: FormState,
    pub(super) take_back: FormState,
    /// The form for the data that the stored invoice lacks for its submission.
    pub(super) submission: FormState,
    pub(super) edit: FormState,
    pub(super) suggestion: Option<SuggestedCorrection>,
    /// True if the invoice has changed since the sender of a form saw it.
    pub(super) is_stale: bool,
}

impl InvoiceForms {
    fn status_code(&self) -> StatusCode {
        if self.is_stale {
            StatusCode::PRECONDITION_FAILED
        } else if self.all_forms().iter().any(|form| form.is_refused()) {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::OK
        }
    }

    fn all_forms(&self) -> [&FormState; 5] {
        [
            &self.status,
            &self.payment,
            &self.take_back,
            &self.submission,
            &self.edit,
        ]
    }

    /// Returns the paths of the fields that the authority or a form refused, or that are suggested to be changed.
    fn paths_to_edit(&self, refused: &[RefusedRun]) -> Vec<String> {
        let suggested = self.suggestion.iter();
        let forms = [&self.submission, &self.edit].into_iter();
        let refused = refused.iter().flat_map(RefusedRun::field_names);
        refused
            .chain(suggested.flat_map(SuggestedCorrection::field_names))
            .chain(forms.flat_map(FormState::fault_paths))
            .collect()
    }

    /// Fills in today's date and, if nothing is left to pay, the payment in full, unless the form shows what somebody has
    /// sent.
    fn fill_payment_form(&mut self, today: Date, is_complete: bool) {
        if self.payment.is_refused() {
            return;
        }
        let date = today.to_string();
        let status = if is_complete { "paid" } else { "" };
        let fields = [("payment_date", date.as_str()), ("payment_status", status)];
        self.payment = FormState::new(FormValues::from(fields));
    }

    /// Fills in the amount that can be taken back, unless the form shows what somebody has sent.
    fn fill_take_back_form(&mut self, amount: Option<Amount>, digits: u32) {
        if let Some(amount) = amount.filter(|_| !self.take_back.is_refused()) {
            let text = amount.to_currency_text(digits);
            self.take_back = FormState::new(FormValues::from([("amount", text.as_str())]));
        }
    }

    /// Fills the edit form with the stored values and the suggested ones, unless it shows what somebody has sent.
    fn fill_edit_form(&mut self, stored: &StoredInvoice, catalog: &Catalog) {
        if !self.edit.is_refused() {
            let suggested = self.suggestion.as_ref();
            let suggested = suggested.map(SuggestedCorrection::form_values);
            let values = current_values(stored, catalog);
            self.edit = FormState::new(values.with_fields(suggested.unwrap_or_default()));
        }
    }
}

async fn show_invoice(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    ids: web::Path<(String, String)>,
    query: Query,
    request: HttpRequest,
) -> Answer {
    if query.text("tab") == Some(DEVELOPER_TAB) {
        let stored = find_stored(&state, &session, &ids.1).await?;
        return invoice_developer::show_developer_page(&state, &session, &request, stored).await;
    }
    let invoice = find(&state, &session, &ids.1).await?;
    render(&state, &request, &session, invoice, InvoiceForms::default()).await
}

/// Sends a file of an invoice, for the links of the page.
async fn download_invoice(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    ids: web::Path<(String, String, String)>,
    request: HttpRequest,
) -> Result<FileAnswer, ApiError> {
    let file = InvoiceFile::from_path(&ids.2).ok_or_else(ApiError::route_not_found)?;
    let stored = find_stored(&state, &session, &ids.1).await?;
    let origin = state.origin(&request);
    invoice_files::make_file(&state, origin.as_deref(), &stored, file).await
}

/// Returns the invoice whose id is in the path. Fails if it does not belong to this taxpayer.
pub(super) async fn find(
    state: &ApiState,
    session: &AccountSession,
    id: &str,
) -> Result<Invoice, ApiError> {
    let id = path_ids::parse_invoice_id(id)?;
    let found = invoices::find_owned_by_id(&state.store, session.taxpayer, id).await?;
    found.ok_or_else(ApiError::invoice_not_found)
}

/// Returns the invoice together with the stored data that its document needs.
pub(super) async fn find_stored(
    state: &ApiState,
    session: &AccountSession,
    id: &str,
) -> Result<StoredInvoice, ApiError> {
    let invoice = find(state, session, id).await?;
    load_stored(state, session, invoice).await
}

async fn load_stored(
    state: &ApiState,
    session: &AccountSession,
    invoice: Invoice,
) -> Result<StoredInvoice, ApiError> {
    let supplier = taxpayers::find_by_id(state.store.reader(), session.taxpayer).await?;
    let supplier = supplier.ok_or_else(ApiError::taxpayer_not_found)?;
    StoredInvoice::load(&state.store, supplier, invoice).await
}

pub(super) async fn render(
    state: &ApiState,
    request: &HttpRequest,
    session: &AccountSession,
    invoice: Invoice,
    mut forms: InvoiceForms,
) -> Answer {
    let store = &state.store;
    let id = session.taxpayer;
    let stored = load_stored(state, session, invoice).await?;
    let invoice = &stored.invoice;
    let entries = payments::find_owned_by_invoice(store, id, invoice.id).await?;
    let timeline = timeline::find_owned_by_irn(store, id, &invoice.irn).await?;
    let runs = runs::find_owned_by_irn_keys(store.reader(), id, vec![invoice.irn.key()]).await?;
    let catalog = state.catalog.get();
    let view = InvoiceView {
        tab: InvoiceTab::Invoice,
        source: SourceList::from_request(request, state),
    };
    let head = InvoiceHead::new(state, session, &stored, &runs, view).await?;
    let refused = refused_runs(invoice, &runs, |path| {
        form_field_for_document_path(invoice, &catalog, path)
    });
    let edit_fields = if head.acts.is_editable {
        fields_at_paths(invoice, forms.paths_to_edit(&refused))
    } else {
        Vec::new()
    };
    forms.fill_edit_form(&stored, &catalog);
    let digits = catalog.currency_digits(&invoice.currency);
    let amount_to_take_back = amount_to_take_back(invoice, &runs, &entries);
    forms.fill_take_back_form(amount_to_take_back, digits);
    let money = PaymentSummary::new(invoice, &head, &entries, digits);
    forms.fill_payment_form(state.today(), money.is_complete);
    let code = type_code(invoice, &catalog);
    let type_name = code.and_then(|code| {
        let name = catalog.name(ReferenceList::InvoiceTypes, &code);
        name.map(str::to_owned)
    });
    let newest_correction = head.corrections.first();
    let breakdown = Breakdown::from_invoice(invoice, &catalog).map_err(ApiError::internal)?;
    let status = forms.status_code();
    let origin = state.origin(request);
    let page = InvoicePage {
        frame: Frame::for_account(session, &invoice.invoice_no).with_section("Invoices"),
        taxes: TaxWords::new(&invoice.lines, &breakdown.taxes, &catalog),
        breakdown,
        facts: DocumentFacts::load(state, session, invoice).await?,
        qr: QrPicture::from_text(&invoice.authority.qr_code),
        verify_link: invoice_files::public_page_url(state, origin.as_deref(), invoice).await?,
        type_name: type_name.unwrap_or_else(|| invoice.invoice_type.clone()),
        money,
        ledger: to_payments(entries, digits, state.settings.utc_offset),
        has_take_back: amount_to_take_back.is_some(),
        differences: compare_to_sent(&runs, &stored.invoice, &stored.document(&catalog)?),
        buyer: stored.customer().map(|customer| customer.address.clone()),
        activity: event_items(&timeline.entries, &invoice.currency, digits),
        faults: unlink_unshown_fields(
            forms.all_forms().iter().flat_map(|form| form.summary()),
            |name| PAYMENT_FIELDS.contains(&name) || edit_fields.iter().any(|one| one.name == name),
        ),
        correction: newest_correction
            .map(|correction| CorrectionProgress::new(correction, &catalog)),
        invoice: with_currency_digits(invoice.clone(), digits),
        seller: stored.supplier,
        refused,
        edit_fields,
        forms,
        head,
    };
    show_with_status(status, &page)
}

impl CorrectionProgress {
    fn new(correction: &Correction, catalog: &Catalog) -> Self {
        let badge = match correction.state {
            CorrectionState::Preview | CorrectionState::Running => badge("info", "In progress"),
            CorrectionState::Stopped => badge("warn", "Needs attention"),
            CorrectionState::Done => badge("ok", "Done"),
            CorrectionState::Cancelled => badge("idle", "Cancelled"),
        };
        Self {
            is_running: correction.state == CorrectionState::Running,
            badge,
            plan: PlanTable::new(correction, catalog),
            reason: correction.reason.clone(),
        }
    }
}

/// Returns the rejected runs with their reasons. Leaves out a rejected submission if the invoice was changed
/// afterwards.
fn refused_runs(
    invoice: &Invoice,
    runs: &[Run],
    field: impl Fn(&str) -> String,
) -> Vec<RefusedRun> {
    let is_rejected = invoice.authority.status == AuthorityStatus::Rejected;
    runs.iter()
        .filter(|run| run.operation() != Operation::Submit || is_rejected)
        .filter_map(|run| RefusedRun::from_run(run, &field))
        .collect()
}

/// Compares the document of the stored invoice with the one that the last submission sent.
fn compare_to_sent(runs: &[Run], invoice: &Invoice, document: &Map<String, Value>) -> Differences {
    let sent = runs.iter().find_map(|run| run.payload.submission());
    sent.map(|sent| Differences::between(&sent.validate_request_body(), document, invoice.into()))
        .unwrap_or_default()
}

/// Returns the invoice with the prices of its lines written like its totals, with the decimal digits of its currency.
fn with_currency_digits(mut invoice: Invoice, digits: u32) -> Invoice {
    for line in &mut invoice.lines {
        line.unit_price = line.unit_price.with_digits(digits);
        let discount = line.discount_amount;
        line.discount_amount = discount.map(|amount| amount.with_digits(digits));
    }
    invoice
}
