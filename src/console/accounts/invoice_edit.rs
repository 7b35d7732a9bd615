//! Changes a stored invoice like the API call Update Invoice: on a page with all its fields, or on the page of the
//! invoice with the fields that its rejection names. Also makes a credit note for a signed invoice as a draft, which
//! can then be edited.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;
use serde_json::{Map, Value, json};

use crate::actors::taxpayer::commands::{
    CreateInvoice, IfUnchanged, ReviseInvoice, RevisedInvoice, SeenInvoice,
};
use crate::console::accounts::field_changes::{FieldChange, list_changes, list_lost_lines};
use crate::console::accounts::invoice::{InvoiceForms, find_stored, go_to_invoice, render};
use crate::console::accounts::invoice_acts::{CreditFacts, credit_obstacle};
use crate::console::accounts::invoice_fields::{
    FieldGroup, LINES_MAX, UpdateBody, current_values, field_groups,
};
use crate::console::accounts::invoice_head::find_credit_notes;
use crate::console::accounts::invoice_submission::{go_to_run, perform_submission};
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::seen_invoice;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show_with_status};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::invoice::stored_document::type_code;
use crate::domain::invoice::{Invoice, Line};
use crate::domain::kernel::codes::{
    AuthorityStatus, CREDIT_NOTE_CODE, UniqueNoType, WorkflowStatus,
};
use crate::domain::kernel::fault::Faults;
use crate::http::endpoint::{Path, path};
use crate::http::forms::{reader, standard_invoice, update_invoice};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;
use crate::store::{invoices, runs};

/// The maximum number of invoice numbers that are tried for a credit note.
const CREDIT_NOTES_MAX: u32 = 99;

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/{id}/edit")
            .page(show_form)
            .form(handle_edit_form),
        path("/dashboard/{taxpayer}/invoices/{id}/credit-note").form(make_credit_note),
    ]
}

#[derive(Template)]
#[template(path = "accounts/invoice_edit.html")]
struct EditPage {
    frame: Frame,
    address: String,
    number: String,
    groups: Vec<FieldGroup>,
    form: FormState,
    faults: Vec<(String, String)>,
    /// The time of the invoice's last change when the page was rendered, in microseconds since 1970.
    seen: i64,
    /// If the invoice was changed while the form was open: the typed values that differ from the stored ones.
    conflicts: Option<Vec<FieldChange>>,
}

async fn show_form(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
) -> Answer {
    let stored = find_stored(&state, &session, &ids.1).await?;
    check_editable(&stored.invoice)?;
    let values = current_values(&stored, &state.catalog.get());
    show_page(&session, &stored.invoice, FormState::new(values))
}

fn show_page(session: &AccountSession, invoice: &Invoice, form: FormState) -> Answer {
    let status = if form.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    show_with_status(status, &EditPage::new(session, invoice, form))
}

impl EditPage {
    fn new(session: &AccountSession, invoice: &Invoice, form: FormState) -> Self {
        Self {
            frame: Frame::for_account(session, &format!("Edit {}", invoice.invoice_no))
                .with_section("Invoices"),
            address: format!("{}/invoices/{}", base_path(session), invoice.id),
            number: invoice.invoice_no.clone(),
            groups: field_groups(invoice),
            faults: form.summary(),
            form,
            seen: seen_invoice::seen_field_value(invoice),
            conflicts: None,
        }
    }
}

/// Refuses an invoice that the form cannot show. The command itself checks that the authority has not locked the
/// invoice.
fn check_editable(invoice: &Invoice) -> Result<(), ApiError> {
    invoice.status.after(Transition::Edit)?;
    if invoice.is_full() || invoice.lines.len() > LINES_MAX {
        let message = "This invoice was created as a full document, or has many lines. Correct it in the system that made it.";
        return Err(ApiError::new(ErrorCode::InvalidTransition, message));
    }
    Ok(())
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
    let present = current_values(&stored, &state.catalog.get());
    let values = present.clone().with_fields(sent.clone());
    match save_edit(&state, &session, &stored.invoice, &present, &values).await {
        Ok(saved) if sent.text("then") == "submit" => {
            submit_revised(&state, &session, &request, saved).await
        }
        Ok(saved) => Ok(go_to_invoice(&session, &saved.invoice, saved.notice)),
        Err(error) if error.status == StatusCode::PRECONDITION_FAILED => {
            show_conflict(&state, &session, &ids.1, sent).await
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
                show_page(&session, &stored.invoice, form)
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
    sent: FormValues,
) -> Answer {
    let stored = find_stored(state, session, id).await?;
    let invoice = &stored.invoice;
    check_editable(invoice)?;
    let present = current_values(&stored, &state.catalog.get());
    let values = present.clone().with_fields(sent);
    let changes = list_changes(invoice, &present, &values).into_iter();
    let conflicts = changes.chain(list_lost_lines(invoice, &values)).collect();
    let page = EditPage {
        conflicts: Some(conflicts),
        ..EditPage::new(session, invoice, FormState::new(values))
    };
    show_with_status(StatusCode::PRECONDITION_FAILED, &page)
}

/// An invoice after its form was sent.
struct SavedEdit {
    invoice: Invoice,
    /// The last change of the invoice that the sender of the form now knows of.
    seen: SeenInvoice,
    notice: &'static str,
}

async fn save_edit(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
    present: &FormValues,
    values: &FormValues,
) -> Result<SavedEdit, ApiError> {
    // This comes before the check of the fields. After a fault the form is shown again with the present version of
    // the invoice, and the next form would then claim that its sender has seen it.
    let seen = seen_invoice::read_seen_version(values, invoice)?;
    if UpdateBody::new(invoice, values).body == UpdateBody::new(invoice, present).body {
        return Ok(SavedEdit {
            invoice: invoice.clone(),
            seen,
            notice: "Nothing was changed: the invoice was like this already.",
        });
    }
    let RevisedInvoice { invoice, .. } =
        revise_invoice(state, session, invoice, values, seen).await?;
    Ok(SavedEdit {
        seen: SeenInvoice::from(&invoice),
        invoice,
        notice: "The invoice was changed.",
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
    let update = UpdateBody::new(invoice, values);
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
        Ok(run) => go_to_run(state, session, &invoice, &run).await,
        Err(error) => {
            let forms = InvoiceForms::from_submission_error(error)?;
            render(state, request, session, invoice, forms).await
        }
    }
}

/// POST of the button Credit note: makes a draft with the contents of the signed invoice and a reference to it.
async fn make_credit_note(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    let stored = find_stored(&state, &session, &ids.1).await?;
    if !stored.invoice.authority.signed {
        let message =
            "Only a signed invoice has a credit note. This one can still be changed or cancelled.";
        let error = ApiError::new(ErrorCode::InvoiceNotSigned, message);
        return Err(error.with_status(StatusCode::CONFLICT));
    }
    let catalog = state.catalog.get();
    let code = type_code(&stored.invoice, &catalog);
    let credits = find_credit_notes(&state, &stored.invoice).await?;
    let keys = vec![stored.invoice.irn.key()];
    let runs = runs::find_owned_by_irn_keys(state.store.reader(), session.taxpayer, keys).await?;
    let facts = CreditFacts {
        code: code.as_deref(),
        credits: &credits,
        runs: &runs,
        catalog: &catalog,
    };
    if let Some(obstacle) = credit_obstacle(&stored.invoice, facts) {
        return Err(ApiError::new(ErrorCode::InvalidTransition, obstacle));
    }
    if let Some(note) = credits.unsigned.first() {
        let address = format!("{}/invoices/{}", base_path(&session), note.id);
        let is_untouched = note.status == WorkflowStatus::Draft
            && note.authority.status == AuthorityStatus::Pending;
        let notice = "There is a credit note already, which is not signed.";
        return Ok(if is_untouched {
            go_to(&format!("{address}/edit"), notice)
        } else {
            go_to(&address, notice)
        });
    }
    let number = find_unused_number(&state, &session, &stored.invoice).await?;
    let body = credit_note_body(&state, &stored, &number);
    let form = reader::read(&body, &catalog, standard_invoice::read)?;
    let mut draft = form.value.draft;
    copy_descriptions(&mut draft.lines, &stored.invoice.lines);
    if draft.payable != stored.invoice.payment.payable {
        let message = "This invoice has fees or allowances that its credit note has to repeat. Create the credit note in the system that made the invoice.";
        return Err(ApiError::new(ErrorCode::InvalidTransition, message));
    }
    let made = session.send(&state, CreateInvoice(draft)).await?;
    let address = format!("{}/invoices/{}/edit", base_path(&session), made.invoice.id);
    let notice = "The credit note is a draft over the whole invoice. Remove what is not credited, and save it.";
    Ok(go_to(&address, notice))
}

/// Copies the descriptions of the lines, for which Create Invoice (Standard) has no field.
fn copy_descriptions(lines: &mut [Line], originals: &[Line]) {
    for (line, original) in lines.iter_mut().zip(originals) {
        if let Some(text) = original.extras.get("description") {
            line.extras.insert("description".to_owned(), text.clone());
        }
    }
}

/// Returns an unused invoice number: the number of the invoice followed by `CN` and digits, because the authority
/// accepts only letters and digits.
async fn find_unused_number(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
) -> Result<String, ApiError> {
    let numbers = (1..=CREDIT_NOTES_MAX).map(|at| format!("{}CN{at}", invoice.invoice_no));
    let numbers: Vec<_> = numbers.collect();
    let in_use = invoices::numbers_in_use(&state.store, session.taxpayer, &numbers).await?;
    let mut free = numbers
        .into_iter()
        .filter(|number| !in_use.contains(number));
    free.next().ok_or_else(|| {
        let message = "This invoice has many credit notes already. Create the next one in the system that made the invoice.";
        ApiError::new(ErrorCode::InvalidTransition, message)
    })
}

/// Makes the body of Create Invoice (Standard) for a credit note on the whole invoice.
fn credit_note_body(state: &ApiState, stored: &StoredInvoice, number: &str) -> Map<String, Value> {
    let values = current_values(stored, &state.catalog.get());
    let UpdateBody { mut body, .. } = UpdateBody::new(&stored.invoice, &values);
    let today = state.today().to_string();
    let lines = body.remove("lines").unwrap_or_default();
    for name in ["unique_no", "unique_no_type", "invoice_type", "note"] {
        body.remove(name);
    }
    let original = &stored.invoice.irn;
    let kind = UniqueNoType::Irn;
    body.extend([
        ("invoice_no".to_owned(), json!(number)),
        ("invoice_type_code".to_owned(), json!(CREDIT_NOTE_CODE)),
        ("invoice_date".to_owned(), json!(today)),
        ("due_date".to_owned(), json!(today)),
        ("currency".to_owned(), json!(stored.invoice.currency)),
        ("original_invoice_reference".to_owned(), json!(original)),
        ("original_invoice_reference_type".to_owned(), json!(kind)),
        ("invoice_lines".to_owned(), lines),
    ]);
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credit_note_has_the_descriptions_of_its_invoice() {
        let line = |description: Option<&str>| {
            let extras = description.map(|text| ("description".to_owned(), json!(text)));
            Line {
                extras: extras.into_iter().collect(),
                ..Line::sample()
            }
        };
        let originals = [line(Some("Light\nand fast")), line(None)];
        let mut lines = [line(None), line(None)];
        copy_descriptions(&mut lines, &originals);
        assert_eq!(lines, originals);
    }
}
