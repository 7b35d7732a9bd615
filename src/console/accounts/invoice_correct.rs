//! Corrects a signed invoice. A page shows its fields, a preview shows the documents that the correction needs, and a
//! confirmation starts it. The page of the invoice shows the progress.

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use serde_json::{Map, Value, json};

use crate::console::accounts::field_changes::{FieldChange, list_changes};
use crate::console::accounts::invoice::{find_stored, go_to_invoice};
use crate::console::accounts::invoice_fields::{
    FieldGroup, LINES_MAX, UpdateBody, field_groups, form_field_name, present_values,
};
use crate::console::accounts::navigation::base;
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, show, show_with_status};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::domain::correction::plan::CorrectionWish;
use crate::domain::correction::record::{Correction, DocumentPurpose, PlannedDocument};
use crate::domain::invoice::{Draft, Invoice};
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::fault::Faults;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;
use crate::http::corrections::correct_command;
use crate::http::endpoint::{Path, path};
use crate::http::forms::query::Query;
use crate::http::forms::{reader, standard_invoice};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;

/// The form field that cancels the invoice instead of changing it.
const CANCEL: &str = "cancel";

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/{id}/correct")
            .page(show_form)
            .form(start_correction),
        path("/dashboard/{taxpayer}/invoices/{id}/correct/preview")
            .page(preview_cancel)
            .form(preview)
            .allows_form_repeat(),
    ]
}

#[derive(Template)]
#[template(path = "accounts/invoice_correct.html")]
struct CorrectPage {
    frame: Frame,
    address: String,
    number: String,
    /// The fields of the form; empty for a full document or an invoice with many lines, which can only be cancelled.
    groups: Vec<FieldGroup>,
    form: FormState,
    faults: Vec<(String, String)>,
}

async fn show_form(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
) -> Answer {
    let stored = find_stored(&state, &session, &ids.1).await?;
    let values = present_values(&stored, &state.catalog.get());
    show_page(&session, &stored.invoice, FormState::new(values))
}

fn show_page(session: &AccountSession, invoice: &Invoice, form: FormState) -> Answer {
    let status = if form.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let page = CorrectPage {
        frame: Frame::for_account(session, &format!("Correct {}", invoice.invoice_no))
            .with_section("Invoices"),
        address: format!("{}/invoices/{}", base(session), invoice.id),
        number: invoice.invoice_no.clone(),
        groups: if has_correction_form(invoice) {
            field_groups(invoice)
        } else {
            Vec::new()
        },
        faults: form.summary(),
        form,
    };
    show_with_status(status, &page)
}

fn has_correction_form(invoice: &Invoice) -> bool {
    !invoice.is_full() && invoice.lines.len() <= LINES_MAX
}

#[derive(Template)]
#[template(path = "accounts/invoice_correction.html")]
struct PreviewPage {
    frame: Frame,
    address: String,
    number: String,
    changes: Vec<FieldChange>,
    plan: PlanTable,
    /// The values of the form, which the confirmation sends again.
    fields: Vec<(String, String)>,
}

/// The documents of a correction and its amounts, as pages show them.
pub(super) struct PlanTable {
    pub(super) documents: Vec<DocumentLine>,
    pub(super) currency: String,
    pub(super) before: Amount,
    pub(super) after: Amount,
    pub(super) paid: Amount,
    /// The amount that is still to be paid or, if `is_refund`, to be paid back.
    pub(super) balance: Amount,
    pub(super) is_refund: bool,
}

pub(super) struct DocumentLine {
    pub(super) document: PlannedDocument,
    pub(super) name: &'static str,
}

impl PlanTable {
    pub(super) fn new(correction: &Correction, catalog: &Catalog) -> Self {
        let digits = catalog.currency_digits(&correction.currency);
        let shown = |amount: Amount| amount.with_digits(digits);
        let balance = correction.balance();
        let is_refund = balance.is_negative();
        let documents = correction.documents.iter().map(|document| DocumentLine {
            name: match document.kind {
                DocumentPurpose::CreditNote if correction.is_whole => "Credit note, in full",
                DocumentPurpose::CreditNote => "Credit note, for a part",
                DocumentPurpose::Replacement => "Replacement",
            },
            document: PlannedDocument {
                payable: shown(document.payable),
                ..document.clone()
            },
        });
        Self {
            documents: documents.collect(),
            currency: correction.currency.clone(),
            before: shown(correction.before),
            after: shown(correction.after),
            paid: shown(correction.paid),
            balance: shown(balance.abs()),
            is_refund,
        }
    }
}

/// GET of the preview: shows what the cancellation would do.
async fn preview_cancel(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    query: Query,
) -> Answer {
    show_preview(&state, &session, &ids.1, FormValues::from(&query)).await
}

/// POST of the fields: shows what the correction would do.
async fn preview(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    form: Form<FormValues>,
) -> Answer {
    show_preview(&state, &session, &ids.1, form.0).await
}

async fn show_preview(
    state: &ApiState,
    session: &AccountSession,
    id: &str,
    sent: FormValues,
) -> Answer {
    let stored = find_stored(state, session, id).await?;
    let sent = sent.with_plain_line_breaks();
    let catalog = state.catalog.get();
    let present = present_values(&stored, &catalog);
    let is_cancelled = !sent.text(CANCEL).is_empty();
    let values = present.clone().with_fields(sent);
    let planned = match read_wish(state, &stored, &values) {
        Ok(wish) => {
            let command = correct_command(state, &stored.invoice, wish, true);
            let sent = state.taxpayers.send(session.taxpayer, command).await;
            sent.map_err(ApiError::from)
        }
        Err(error) => Err(error),
    };
    let correction = match planned {
        Ok(correction) => correction,
        Err(error) => return show_refusal(session, &stored.invoice, error, values),
    };
    let invoice = &stored.invoice;
    let names = if is_cancelled {
        vec![CANCEL.to_owned()]
    } else {
        field_names(invoice)
    };
    let fields = names.into_iter().map(|name| {
        let value = values.text(&name).to_owned();
        (name, value)
    });
    show(&PreviewPage {
        frame: Frame::for_account(session, &format!("Correct {}", invoice.invoice_no))
            .with_section("Invoices"),
        address: format!("{}/invoices/{}", base(session), invoice.id),
        number: invoice.invoice_no.clone(),
        changes: if is_cancelled {
            Vec::new()
        } else {
            list_changes(invoice, &present, &values)
        },
        plan: PlanTable::new(&correction, &catalog),
        fields: fields.filter(|(_, value)| !value.is_empty()).collect(),
    })
}

/// Shows the form again if the refusal is about its fields, or if nothing can be changed now.
fn show_refusal(
    session: &AccountSession,
    invoice: &Invoice,
    error: ApiError,
    values: FormValues,
) -> Answer {
    if error.faults.is_empty() && error.code != ErrorCode::Overloaded {
        return Err(error);
    }
    show_page(session, invoice, FormState::from_refusal(error, values)?)
}

/// Returns the names of all fields of the form, including the checkboxes that remove lines.
fn field_names(invoice: &Invoice) -> Vec<String> {
    let groups = field_groups(invoice).into_iter();
    let names = groups.flat_map(|group| {
        let own = group.fields.into_iter().map(|field| field.name);
        own.chain([group.removal])
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// POST of the confirmed preview: starts the correction.
async fn start_correction(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    form: Form<FormValues>,
) -> Answer {
    let stored = find_stored(&state, &session, &ids.1).await?;
    let present = present_values(&stored, &state.catalog.get());
    let values = present.with_fields(form.0.with_plain_line_breaks());
    let wish = match read_wish(&state, &stored, &values) {
        Ok(wish) => wish,
        Err(error) => return show_refusal(&session, &stored.invoice, error, values),
    };
    let command = correct_command(&state, &stored.invoice, wish, false);
    let correction = match session.send(&state, command).await {
        Ok(correction) => correction,
        Err(error) => return show_refusal(&session, &stored.invoice, error.into(), values),
    };
    let notice = if correction.documents.is_empty() {
        "Nothing was changed: the invoice was like this already."
    } else {
        "The correction was started."
    };
    Ok(go_to_invoice(&session, &stored.invoice, notice))
}

fn read_wish(
    state: &ApiState,
    stored: &StoredInvoice,
    values: &FormValues,
) -> Result<CorrectionWish, ApiError> {
    if !values.text(CANCEL).is_empty() {
        return Ok(CorrectionWish::Cancel);
    }
    let invoice = &stored.invoice;
    if !has_correction_form(invoice) {
        let message = "This invoice was created as a full document, or has many lines. Correct it in the system that made it.";
        return Err(ApiError::new(ErrorCode::InvalidTransition, message));
    }
    let update = UpdateBody::new(invoice, values);
    let body = corrected_invoice_body(invoice, &update);
    let read = reader::read(&body, &state.catalog.get(), standard_invoice::read);
    let form = read.map_err(|faults: Faults| {
        ApiError::from(update.to_form_faults(&faults.rename_fields(form_field_name)))
    })?;
    let mut draft = form.value.draft;
    add_note_and_descriptions(&mut draft, &update.body);
    Ok(CorrectionWish::Become(Box::new(draft)))
}

/// Makes the body of Create Invoice (Standard) for the corrected invoice.
fn corrected_invoice_body(invoice: &Invoice, update: &UpdateBody) -> Map<String, Value> {
    let mut body = update.body.clone();
    let lines = body.remove("lines").unwrap_or_default();
    for name in ["unique_no", "unique_no_type", "note"] {
        body.remove(name);
    }
    if let Some(code) = invoice.extras.get("invoice_type_code") {
        body.insert("invoice_type_code".to_owned(), code.clone());
    }
    if body.contains_key("original_invoice_reference") {
        let kind = json!(UniqueNoType::Irn);
        body.insert("original_invoice_reference_type".to_owned(), kind);
    }
    body.extend([
        ("invoice_no".to_owned(), json!(invoice.invoice_no)),
        ("invoice_type".to_owned(), json!(invoice.invoice_type)),
        (
            "invoice_date".to_owned(),
            json!(invoice.invoice_date.to_string()),
        ),
        ("currency".to_owned(), json!(invoice.currency)),
        ("invoice_lines".to_owned(), lines),
    ]);
    body
}

/// Adds the note and the descriptions of lines, for which Create Invoice (Standard) has no fields.
fn add_note_and_descriptions(draft: &mut Draft, body: &Map<String, Value>) {
    if let Some(note) = body.get("note") {
        draft.extras.insert("note".to_owned(), note.clone());
    }
    let lines = body.get("lines").and_then(Value::as_array);
    for (line, sent) in draft.lines.iter_mut().zip(lines.into_iter().flatten()) {
        if let Some(text) = sent.get("description") {
            line.extras.insert("description".to_owned(), text.clone());
        }
    }
}
