//! Corrects a signed invoice. A page shows its fields, a preview shows the documents that the correction needs, and a
//! confirmation starts it. The page of the invoice shows the progress.

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use serde_json::{Map, Value, json};

use crate::console::accounts::field_changes::{FieldChange, list_changes};
use crate::console::accounts::invoice::{find_stored, go_to_invoice};
use crate::console::accounts::invoice_fields::{
    FieldGroup, LINES_MAX, UpdateBody, current_values, field_groups, form_field_name,
};
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::plan_table::{PlanTable, plan_fingerprint};
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, show, show_with_status};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::domain::correction::plan::CorrectionWish;
use crate::domain::correction::record::Correction;
use crate::domain::invoice::{Draft, Invoice};
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::fault::Faults;
use crate::domain::reference::catalog::Catalog;
use crate::http::corrections::make_correction_command;
use crate::http::endpoint::{Path, path};
use crate::http::forms::query::Query;
use crate::http::forms::{reader, standard_invoice};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;

/// The form field that cancels the invoice instead of changing it.
const CANCEL: &str = "cancel";
/// The form field that leads from the preview back to the form, which keeps what was typed.
const BACK: &str = "back";
/// The form field with the documents that the preview showed, so that a changed plan is noticed.
const PLAN: &str = "plan";

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/{id}/correct")
            .page(show_form)
            .form(start_correction),
        path("/dashboard/{taxpayer}/invoices/{id}/correct/preview")
            .page(preview_cancellation)
            .form(preview_correction)
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
    let values = current_values(&stored, &state.catalog.get());
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
        address: format!("{}/invoices/{}", base_path(session), invoice.id),
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
    is_cancel: bool,
    /// True if the plan has changed since the person confirmed it.
    has_changed: bool,
    changes: Vec<FieldChange>,
    plan: PlanTable,
    /// The values of the form, which the confirmation sends again.
    fields: Vec<(String, String)>,
}

impl PreviewPage {
    fn new(
        session: &AccountSession,
        wanted: &WantedCorrection,
        correction: &Correction,
        catalog: &Catalog,
    ) -> Self {
        let WantedCorrection {
            stored,
            present,
            values,
        } = wanted;
        let invoice = &stored.invoice;
        let is_cancelled = !values.text(CANCEL).is_empty();
        let names = if is_cancelled {
            vec![CANCEL.to_owned()]
        } else {
            field_names(invoice)
        };
        let mut fields = confirmation_fields(names, present, values);
        fields.push((PLAN.to_owned(), plan_fingerprint(correction)));
        Self {
            frame: Frame::for_account(session, &format!("Correct {}", invoice.invoice_no))
                .with_section("Invoices"),
            address: format!("{}/invoices/{}", base_path(session), invoice.id),
            number: invoice.invoice_no.clone(),
            is_cancel: is_cancelled,
            has_changed: false,
            changes: if is_cancelled {
                Vec::new()
            } else {
                list_changes(invoice, present, values)
            },
            plan: PlanTable::new(correction, catalog),
            fields,
        }
    }
}

/// GET of the preview: shows what the cancellation would do.
async fn preview_cancellation(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    query: Query,
) -> Answer {
    show_preview(&state, &session, &ids.1, FormValues::from(&query)).await
}

/// POST of the fields: shows what the correction would do, or the form again.
async fn preview_correction(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    form: Form<FormValues>,
) -> Answer {
    if form.0.text(BACK).is_empty() {
        return show_preview(&state, &session, &ids.1, form.0).await;
    }
    let WantedCorrection { stored, values, .. } =
        WantedCorrection::read(&state, &session, &ids.1, form.0).await?;
    show_page(&session, &stored.invoice, FormState::new(values))
}

/// A correction as a form asks for it: the stored invoice, its values, and those of the form.
struct WantedCorrection {
    stored: StoredInvoice,
    present: FormValues,
    values: FormValues,
}

impl WantedCorrection {
    async fn read(
        state: &ApiState,
        session: &AccountSession,
        id: &str,
        sent: FormValues,
    ) -> Result<Self, ApiError> {
        let stored = find_stored(state, session, id).await?;
        let present = current_values(&stored, &state.catalog.get());
        let values = present.clone().with_fields(sent.with_plain_line_breaks());
        Ok(Self {
            stored,
            present,
            values,
        })
    }

    /// Returns what the correction would do, and changes nothing.
    async fn plan_correction(
        &self,
        state: &ApiState,
        session: &AccountSession,
    ) -> Result<Correction, ApiError> {
        let wish = read_wanted_correction(state, &self.stored, &self.values)?;
        let command = make_correction_command(state, &self.stored.invoice, wish, true).await?;
        Ok(state.taxpayers.send(session.taxpayer, command).await?)
    }

    fn show_refusal(self, session: &AccountSession, error: ApiError) -> Answer {
        show_refusal(session, &self.stored.invoice, error, self.values)
    }
}

async fn show_preview(
    state: &ApiState,
    session: &AccountSession,
    id: &str,
    sent: FormValues,
) -> Answer {
    let wanted = WantedCorrection::read(state, session, id, sent).await?;
    match wanted.plan_correction(state, session).await {
        Ok(correction) => {
            let catalog = state.catalog.get();
            show(&PreviewPage::new(session, &wanted, &correction, &catalog))
        }
        Err(error) => wanted.show_refusal(session, error),
    }
}

/// Returns the fields with which the confirmation asks for the correction that the preview shows. Cleared fields are
/// among them, because a field that is not sent keeps its present value.
fn confirmation_fields(
    names: Vec<String>,
    present: &FormValues,
    values: &FormValues,
) -> Vec<(String, String)> {
    let fields = names.into_iter().map(|name| {
        let value = values.text(&name).to_owned();
        (name, value)
    });
    fields
        .filter(|(name, value)| !value.is_empty() || !present.text(name).is_empty())
        .collect()
}

/// Shows the form again if the refusal is about its fields, or if the service is overloaded. Returns any other error.
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

/// POST of the confirmed preview: starts the correction. If the plan has changed since, starts nothing and shows the
/// new plan.
async fn start_correction(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    form: Form<FormValues>,
) -> Answer {
    let wanted = WantedCorrection::read(&state, &session, &ids.1, form.0).await?;
    let wish = match read_wanted_correction(&state, &wanted.stored, &wanted.values) {
        Ok(wish) => wish,
        Err(error) => return wanted.show_refusal(&session, error),
    };
    if !wanted.values.text(PLAN).is_empty() {
        let planned = match wanted.plan_correction(&state, &session).await {
            Ok(planned) => planned,
            Err(error) => return wanted.show_refusal(&session, error),
        };
        if plan_fingerprint(&planned) != wanted.values.text(PLAN) {
            let page = PreviewPage {
                has_changed: true,
                ..PreviewPage::new(&session, &wanted, &planned, &state.catalog.get())
            };
            return show_with_status(StatusCode::PRECONDITION_FAILED, &page);
        }
    }
    let command = make_correction_command(&state, &wanted.stored.invoice, wish, false).await?;
    let correction = match session.send(&state, command).await {
        Ok(correction) => correction,
        Err(error) => return wanted.show_refusal(&session, error.into()),
    };
    let notice = if correction.documents.is_empty() {
        "Nothing was changed: the invoice was like this already."
    } else {
        "The correction was started."
    };
    Ok(go_to_invoice(&session, &wanted.stored.invoice, notice))
}

fn read_wanted_correction(
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

/// Adds the note and the descriptions of lines, for which Create Invoice (Standard) has no fields. A text that the
/// person cleared becomes null; if it were missing, it would be copied from the corrected invoice.
fn add_note_and_descriptions(draft: &mut Draft, body: &Map<String, Value>) {
    let note = body.get("note").cloned().unwrap_or_default();
    draft.extras.insert("note".to_owned(), note);
    let lines = body.get("lines").and_then(Value::as_array);
    for (line, sent) in draft.lines.iter_mut().zip(lines.into_iter().flatten()) {
        let description = sent.get("description").cloned().unwrap_or_default();
        line.extras.insert("description".to_owned(), description);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_confirmation_asks_for_the_correction_that_the_preview_showed() {
        let names = [
            "due_date",
            "note",
            "lines.0.quantity",
            "lines.0.discount_amount",
            "lines.0.remove",
            CANCEL,
        ];
        let present = FormValues::from([
            ("due_date", "2026-02-01"),
            ("note", ""),
            ("lines.0.quantity", "2"),
            ("lines.0.discount_amount", "50"),
        ]);
        for (name, typed) in [
            ("lines.0.quantity", "1"),
            ("lines.0.discount_amount", ""),
            ("due_date", " "),
            ("note", "As agreed"),
            ("lines.0.remove", "yes"),
            (CANCEL, "yes"),
        ] {
            let typed_fields = FormValues::from([(name, typed)]);
            let values = present.clone().with_fields(typed_fields);
            let fields = confirmation_fields(names.map(str::to_owned).into(), &present, &values);
            let sent = fields
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()));
            let confirmed = present.clone().with_fields(sent.collect());
            for field in names {
                assert_eq!(
                    confirmed.text(field),
                    values.text(field),
                    "{field} after {name}={typed}"
                );
            }
        }
    }
}
