//! Creates a credit note for a signed invoice, with the form of a new invoice. The form shows the whole invoice and its
//! reference. Nothing is stored before the form is saved.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};

use crate::console::accounts::invoice::find_stored;
use crate::console::accounts::invoice_acts::{CreditFacts, credit_obstacle};
use crate::console::accounts::invoice_body::InvoiceBody;
use crate::console::accounts::invoice_fields::{FormLines, LINE_COUNT};
use crate::console::accounts::invoice_form::{
    InvoiceForm, apply_form_button, fill_in_stored_customer,
};
use crate::console::accounts::invoice_head::find_credit_notes;
use crate::console::accounts::invoice_new::{
    DocumentOutcome, ExistingDocument, NewDocumentPage, RefusedDocument, create_document,
    load_obstacles,
};
use crate::console::accounts::invoice_values::current_values;
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::source_list::SourceList;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, show, show_with_status};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::domain::invoice::Invoice;
use crate::domain::invoice::stored_document::type_code;
use crate::domain::kernel::codes::CREDIT_NOTE_CODE;
use crate::domain::kernel::fault::Fault;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;
use crate::store::{invoices, runs};

/// The maximum number of invoice numbers that are tried for a credit note.
const CREDIT_NOTES_MAX: u32 = 99;
/// The fields of a credit note that its invoice decides.
const FIXED_FIELDS: [&str; 4] = [
    "invoice_type_code",
    "currency",
    "original_invoice_reference",
    "customer.no",
];
const UNSIGNED_NOTE: &str = "There is a credit note already, which is not signed.";

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/{id}/credit-note")
            .page(show_form)
            .form(create_credit_note)
            .form_has_lines(),
        path("/dashboard/{taxpayer}/invoices/{id}/credit-note/lines")
            .form(change_lines)
            .form_has_lines()
            .allows_form_repeat(),
    ]
}

/// A signed invoice for which a credit note can be created.
struct CreditedInvoice {
    stored: StoredInvoice,
    /// A credit note of the invoice that is not signed yet. As long as there is one, no other is created.
    unsigned: Option<Invoice>,
    source: SourceList,
}

async fn show_form(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
) -> Answer {
    let credited = CreditedInvoice::load(&state, &session, &request, &ids.1).await?;
    if let Some(note) = &credited.unsigned {
        let source = &credited.source;
        return Ok(source.go_to_invoice(&session, note.id, UNSIGNED_NOTE));
    }
    let values = credited.first_values(&state, &session).await?;
    let form = FormState::new(values);
    show(&credited.load_page(&state, &session, form).await?)
}

/// POST of a button that only changes the form: adds or removes a line.
async fn change_lines(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let credited = CreditedInvoice::load(&state, &session, &request, &ids.1).await?;
    let values = credited.sent_values(&state, &session, form.0).await?;
    let values = apply_form_button(&state, &session, 0, &values).await?;
    let form = FormState::new(values);
    let page = NewDocumentPage {
        is_typed: true,
        ..credited.load_page(&state, &session, form).await?
    };
    show(&page)
}

/// POST of the form: stores the credit note as a draft, or shows the form again.
async fn create_credit_note(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let credited = CreditedInvoice::load(&state, &session, &request, &ids.1).await?;
    let values = credited.sent_values(&state, &session, form.0).await?;
    let outcome = match &credited.unsigned {
        Some(note) => DocumentOutcome::Refused(RefusedDocument {
            form: FormState::with_faults(values, Fault::new("", "unique", UNSIGNED_NOTE).into()),
            existing: Some(ExistingDocument::new(&session, note, UNSIGNED_NOTE)),
        }),
        None => credited.create_note(&state, &session, values).await?,
    };
    match outcome {
        DocumentOutcome::Stored { id, notice } => {
            Ok(credited.source.go_to_invoice(&session, id, &notice))
        }
        DocumentOutcome::Refused(refused) => {
            let page = NewDocumentPage {
                existing: refused.existing,
                is_typed: true,
                ..credited.load_page(&state, &session, refused.form).await?
            };
            show_with_status(StatusCode::UNPROCESSABLE_ENTITY, &page)
        }
    }
}

impl CreditedInvoice {
    /// Loads the invoice. Fails if no credit note can be created for it here.
    async fn load(
        state: &ApiState,
        session: &AccountSession,
        request: &HttpRequest,
        id: &str,
    ) -> Result<Self, ApiError> {
        let stored = find_stored(state, session, id).await?;
        if !stored.invoice.authority.signed {
            let message = "Only a signed invoice has a credit note. This one can still be changed or cancelled.";
            let error = ApiError::new(ErrorCode::InvoiceNotSigned, message);
            return Err(error.with_status(StatusCode::CONFLICT));
        }
        let catalog = state.catalog.get();
        let code = type_code(&stored.invoice, &catalog);
        let credits = find_credit_notes(state, &stored.invoice).await?;
        let keys = vec![stored.invoice.irn.key()];
        let runs =
            runs::find_owned_by_irn_keys(state.store.reader(), session.taxpayer, keys).await?;
        let facts = CreditFacts {
            code: code.as_deref(),
            credits: &credits,
            refund_share: None,
            runs: &runs,
            catalog: &catalog,
        };
        if let Some(obstacle) = credit_obstacle(&stored.invoice, facts) {
            return Err(ApiError::new(ErrorCode::InvalidTransition, obstacle));
        }
        Ok(Self {
            stored,
            unsigned: credits.unsigned.into_iter().next(),
            source: SourceList::from_request(request, state),
        })
    }

    /// Returns the values of a credit note on the whole invoice.
    async fn first_values(
        &self,
        state: &ApiState,
        session: &AccountSession,
    ) -> Result<FormValues, ApiError> {
        let invoice = &self.stored.invoice;
        let number = find_unused_number(state, session, invoice).await?;
        let today = state.today().to_string();
        let count = invoice.lines.len().to_string();
        let new_values = FormValues::from([
            ("invoice_no", number.as_str()),
            ("invoice_date", today.as_str()),
            ("due_date", today.as_str()),
            ("note", ""),
            (LINE_COUNT, count.as_str()),
        ]);
        let values = current_values(&self.stored, &state.catalog.get());
        let values = values
            .with_fields(new_values)
            .with_fields(self.fixed_values());
        self.check_amount(state, &values)?;
        Ok(values)
    }

    /// Returns the values of the form as it was sent. Fields that were not sent get the values of the whole invoice.
    async fn sent_values(
        &self,
        state: &ApiState,
        session: &AccountSession,
        sent: FormValues,
    ) -> Result<FormValues, ApiError> {
        let first = self.first_values(state, session).await?;
        let values = first.with_fields(sent.with_plain_line_breaks());
        Ok(values.with_fields(self.fixed_values()))
    }

    /// Returns the values that the invoice decides.
    fn fixed_values(&self) -> FormValues {
        let invoice = &self.stored.invoice;
        let irn = invoice.irn.to_string();
        FormValues::from([
            ("invoice_type_code", CREDIT_NOTE_CODE),
            ("currency", invoice.currency.as_str()),
            ("original_invoice_reference", irn.as_str()),
            (
                "customer.no",
                invoice.customer.external_customer_no.as_str(),
            ),
        ])
    }

    /// Creates the credit note of a form, unless its amount exceeds that of the invoice.
    async fn create_note(
        &self,
        state: &ApiState,
        session: &AccountSession,
        values: FormValues,
    ) -> Result<DocumentOutcome, ApiError> {
        match self.find_excess(state, session, &values).await? {
            Some(fault) => Ok(DocumentOutcome::Refused(RefusedDocument {
                form: FormState::with_faults(values, fault.into()),
                existing: None,
            })),
            None => create_document(state, session, values).await,
        }
    }

    /// Returns the fault of a credit note whose amount exceeds that of its invoice; `None` if it does not, or if the
    /// form has faults of its own. The whole invoice is left to credit, because it has no other credit note (`load`).
    async fn find_excess(
        &self,
        state: &ApiState,
        session: &AccountSession,
        values: &FormValues,
    ) -> Result<Option<Fault>, ApiError> {
        let filled = fill_in_stored_customer(state, session, values.clone()).await?;
        let catalog = state.catalog.get();
        let read = InvoiceBody::for_new_document(&filled).read_draft(&catalog);
        let invoice = &self.stored.invoice;
        let left_to_credit = invoice.payment.payable_as_signed();
        let credited = read.ok().map(|form| form.value.draft.payable);
        let excess = credited.filter(|credited| *credited > left_to_credit);
        Ok(excess.map(|credited| {
            let currency = &invoice.currency;
            let digits = catalog.currency_digits(currency);
            let credited = credited.to_currency_text(digits);
            let left_to_credit = left_to_credit.to_currency_text(digits);
            let message = format!(
                "The credit note is over {currency} {credited}, but only {currency} {left_to_credit} of the invoice is left to credit."
            );
            Fault::new("", "max", message)
        }))
    }

    /// Refuses an invoice if a credit note on all of it would have another amount, because the form has no fields for
    /// some of its amounts.
    fn check_amount(&self, state: &ApiState, values: &FormValues) -> Result<(), ApiError> {
        let body = InvoiceBody::for_new_document(values);
        let read = body.read_draft(&state.catalog.get());
        let payable = read.ok().map(|form| form.value.draft.payable);
        if payable.is_none_or(|payable| payable == self.stored.invoice.payment.payable) {
            return Ok(());
        }
        let message = "This invoice has fees or allowances that its credit note has to repeat. Create the credit note in the system that created the invoice.";
        Err(ApiError::new(ErrorCode::InvalidTransition, message))
    }

    async fn load_page(
        &self,
        state: &ApiState,
        session: &AccountSession,
        form: FormState,
    ) -> Result<NewDocumentPage, ApiError> {
        let invoice = &self.stored.invoice;
        let base = base_path(session);
        let suffix = self.source.suffix();
        let invoice_address = format!("{base}/invoices/{}", invoice.id);
        let address = format!("{invoice_address}/credit-note");
        let lines = FormLines::from_form(0, form.values());
        let lines_address = format!("{address}/lines{suffix}");
        let invoice_form = InvoiceForm::load(state, session, lines, form, lines_address).await?;
        let heading = format!("Credit note for {}", invoice.invoice_no);
        Ok(NewDocumentPage {
            frame: Frame::for_account(session, &heading).with_section("Invoices"),
            base,
            heading,
            address: format!("{address}{suffix}"),
            back_address: format!("{invoice_address}{suffix}"),
            back_label: "Back to the invoice",
            obstacles: load_obstacles(state, session).await?,
            faults: invoice_form.fault_summary(),
            invoice_form: invoice_form.with_fixed_fields(&FIXED_FIELDS),
            existing: None,
            is_typed: false,
        })
    }
}

/// Returns an unused invoice number: the number of the invoice followed by `CN` and digits, because the authority
/// accepts only letters and digits.
async fn find_unused_number(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
) -> Result<String, ApiError> {
    let numbers = (1..=CREDIT_NOTES_MAX).map(|index| format!("{}CN{index}", invoice.invoice_no));
    let numbers: Vec<_> = numbers.collect();
    let in_use = invoices::numbers_in_use(&state.store, session.taxpayer, &numbers).await?;
    let mut free = numbers
        .into_iter()
        .filter(|number| !in_use.contains(number));
    free.next().ok_or_else(|| {
        let message = "This invoice has many credit notes already. Create the next one in the system that created the invoice.";
        ApiError::new(ErrorCode::InvalidTransition, message)
    })
}
