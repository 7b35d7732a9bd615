//! Changes a stored invoice like the API call Update Invoice: on a page with all its fields, or on the page of the
//! invoice with the fields that its rejection names.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;

use crate::actors::taxpayer::commands::{IfUnchanged, ReviseInvoice, RevisedInvoice, SeenInvoice};
use crate::console::accounts::field_changes::{FieldChange, list_changes};
use crate::console::accounts::invoice::{InvoiceForms, find_stored, render};
use crate::console::accounts::invoice_body::InvoiceBody;
use crate::console::accounts::invoice_fields::FormLines;
use crate::console::accounts::invoice_form::{
    InvoiceForm, apply_form_button, check_showable, fill_in_stored_customer, kept_data_sentence,
};
use crate::console::accounts::invoice_submission::{go_to_run, perform_submission};
use crate::console::accounts::invoice_values::current_values;
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::seen_invoice;
use crate::console::accounts::source_list::SourceList;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, show, show_with_status};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::domain::invoice::Invoice;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::kernel::fault::Faults;
use crate::http::forms::{reader, update_invoice};
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/{id}/edit")
            .page(show_form)
            .form(handle_edit_form)
            .form_has_lines(),
        path("/dashboard/{taxpayer}/invoices/{id}/edit/lines")
            .form(change_lines)
            .form_has_lines()
            .allows_form_repeat(),
    ]
}

#[derive(Template)]
#[template(path = "accounts/invoice_edit.html")]
struct EditPage {
    frame: Frame,
    address: String,
    /// The query with which the addresses of the invoice end (`source_list`).
    suffix: String,
    number: String,
    invoice_form: InvoiceForm,
    faults: Vec<(String, String)>,
    /// The time of the invoice's last change that the form knows of, in microseconds since 1970.
    seen: String,
    /// True if the form has values that somebody typed and that are not stored.
    is_typed: bool,
    /// If the invoice was changed while the form was open: the typed values that differ from the stored ones.
    conflicts: Option<Vec<FieldChange>>,
}

async fn show_form(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
) -> Answer {
    let stored = find_stored(&state, &session, &ids.1).await?;
    check_editable(&stored.invoice)?;
    let values = current_values(&stored, &state.catalog.get());
    let source = SourceList::from_request(&request, &state);
    let form = FormState::new(values);
    show(&EditPage::load(&state, &session, &stored.invoice, &source, form).await?)
}

/// POST of a button that only changes the form: adds or removes a line, or fills in a stored customer.
async fn change_lines(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let stored = find_stored(&state, &session, &ids.1).await?;
    let invoice = &stored.invoice;
    check_editable(invoice)?;
    let sent = form.0.with_plain_line_breaks();
    let seen = sent.text("seen").to_owned();
    let values = current_values(&stored, &state.catalog.get()).with_fields(sent);
    let values = apply_form_button(&state, &session, invoice.lines.len(), &values).await?;
    let source = SourceList::from_request(&request, &state);
    let page = EditPage {
        // The form still knows only of the change that it knew of before.
        seen,
        is_typed: true,
        ..EditPage::load(&state, &session, invoice, &source, FormState::new(values)).await?
    };
    show(&page)
}

impl EditPage {
    async fn load(
        state: &ApiState,
        session: &AccountSession,
        invoice: &Invoice,
        source: &SourceList,
        form: FormState,
    ) -> Result<Self, ApiError> {
        let address = format!("{}/invoices/{}", base_path(session), invoice.id);
        let suffix = source.suffix();
        let is_typed = form.is_refused();
        let lines = FormLines::from_form(invoice.lines.len(), form.values());
        let lines_address = format!("{address}/edit/lines{suffix}");
        let invoice_form = InvoiceForm::load(state, session, lines, form, lines_address).await?;
        Ok(Self {
            frame: Frame::for_account(session, &format!("Edit {}", invoice.invoice_no))
                .with_section("Invoices"),
            address,
            suffix,
            number: invoice.invoice_no.clone(),
            faults: invoice_form.fault_summary(),
            invoice_form,
            seen: seen_invoice::seen_field_value(invoice).to_string(),
            is_typed,
            conflicts: None,
        })
    }
}

/// Refuses an invoice that the form cannot show. The command itself checks that the authority has not locked the
/// invoice.
fn check_editable(invoice: &Invoice) -> Result<(), ApiError> {
    invoice.status.after(Transition::Edit)?;
    check_showable(invoice)
}

/// POST of the form, on either page. Fields that the form does not have keep their values. With `then=submit` the
/// changed invoice is submitted at once.
async fn handle_edit_form(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let stored = find_stored(&state, &session, &ids.1).await?;
    check_editable(&stored.invoice)?;
    let sent = form.0.with_plain_line_breaks();
    let current = current_values(&stored, &state.catalog.get());
    let current = fill_in_stored_customer(&state, &session, current).await?;
    let values = current.clone().with_fields(sent.clone());
    let values = fill_in_stored_customer(&state, &session, values).await?;
    let source = SourceList::from_request(&request, &state);
    match save_edit(&state, &session, &stored, &current, &values).await {
        Ok(saved) if sent.text("then") == "submit" => {
            submit_revised(&state, &session, &request, saved).await
        }
        Ok(saved) => Ok(source.go_to_invoice(&session, saved.invoice.id, &saved.notice)),
        Err(error) if error.status == StatusCode::PRECONDITION_FAILED => {
            show_conflict(&state, &session, &ids.1, &source, sent).await
        }
        Err(error) => {
            let form = FormState::from_refusal(error, values)?;
            if sent.text("place") == "invoice" {
                let forms = InvoiceForms {
                    edit: form,
                    ..InvoiceForms::default()
                };
                render(&state, &request, &session, stored.invoice, forms).await
            } else {
                let invoice = &stored.invoice;
                let page = EditPage::load(&state, &session, invoice, &source, form).await?;
                show_with_status(StatusCode::UNPROCESSABLE_ENTITY, &page)
            }
        }
    }
}

/// Shows the typed values of an invoice that was changed meanwhile, beside the stored ones. Saving them is a new
/// decision: only this page carries the time of the latest change.
async fn show_conflict(
    state: &ApiState,
    session: &AccountSession,
    id: &str,
    source: &SourceList,
    sent: FormValues,
) -> Answer {
    let stored = find_stored(state, session, id).await?;
    let invoice = &stored.invoice;
    check_editable(invoice)?;
    let current = current_values(&stored, &state.catalog.get());
    let current = fill_in_stored_customer(state, session, current).await?;
    let values = current.clone().with_fields(sent);
    let values = fill_in_stored_customer(state, session, values).await?;
    let page = EditPage {
        conflicts: Some(list_changes(invoice, &current, &values)),
        is_typed: true,
        ..EditPage::load(state, session, invoice, source, FormState::new(values)).await?
    };
    show_with_status(StatusCode::PRECONDITION_FAILED, &page)
}

/// An invoice after its form was sent.
struct SavedEdit {
    invoice: Invoice,
    /// The last change of the invoice that the sender of the form now knows of.
    seen: SeenInvoice,
    notice: String,
}

async fn save_edit(
    state: &ApiState,
    session: &AccountSession,
    stored: &StoredInvoice,
    current: &FormValues,
    values: &FormValues,
) -> Result<SavedEdit, ApiError> {
    let invoice = &stored.invoice;
    // This comes before the check of the fields. After a fault the form is shown again with the current version of
    // the invoice, and the next form would then claim that its sender has seen it.
    let seen = seen_invoice::read_seen_version(values, invoice)?;
    // An invoice shows its customer as it was when the invoice was saved.
    let is_customer_up_to_date = stored
        .customer()
        .is_none_or(|details| invoice.customer.is_up_to_date(details));
    let is_same_body = InvoiceBody::for_update(invoice, values).body
        == InvoiceBody::for_update(invoice, current).body;
    if is_same_body && is_customer_up_to_date {
        return Ok(SavedEdit {
            invoice: invoice.clone(),
            seen,
            notice: "Nothing was changed: the invoice was like this already.".to_owned(),
        });
    }
    let RevisedInvoice { invoice, .. } =
        revise_invoice(state, session, invoice, values, seen).await?;
    let kept = kept_data_sentence(state, session, invoice.customer.id, values).await?;
    let notice = format!("The invoice was changed. {kept}");
    Ok(SavedEdit {
        seen: SeenInvoice::from(&invoice),
        invoice,
        notice: notice.trim_end().to_owned(),
    })
}

async fn revise_invoice(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
    values: &FormValues,
    seen: SeenInvoice,
) -> Result<RevisedInvoice, ApiError> {
    let catalog = state.catalog.get();
    let update = InvoiceBody::for_update(invoice, values);
    let in_form = |faults: &Faults| ApiError::from(update.to_form_faults(faults));
    let read = reader::read(&update.body, &catalog, |reader| {
        update_invoice::read(reader, &catalog)
    });
    let form = read.map_err(|faults| in_form(&faults))?.value;
    let command = IfUnchanged {
        seen: Some(seen),
        command: ReviseInvoice {
            invoice: form.invoice,
            revision: form.revision,
        },
    };
    let done = session.send(state, command).await.map_err(ApiError::from);
    done.map_err(|error| {
        if error.faults.is_empty() {
            error
        } else {
            in_form(&error.faults)
        }
    })
}

/// Submits the changed invoice, unless it was changed again since. If it lacks something for the submission, its page
/// says so.
async fn submit_revised(
    state: &ApiState,
    session: &AccountSession,
    request: &HttpRequest,
    saved: SavedEdit,
) -> Answer {
    let SavedEdit { invoice, seen, .. } = saved;
    match perform_submission(state, session, &invoice, seen).await {
        Ok(run) => go_to_run(state, session, request, &run, invoice.id).await,
        Err(error) => {
            let forms = InvoiceForms::from_submission_error(error)?;
            render(state, request, session, invoice, forms).await
        }
    }
}
