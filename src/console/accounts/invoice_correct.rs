//! Corrects a signed invoice. A page shows its fields, a preview shows the documents that the correction needs, and a
//! confirmation starts it. The page of the invoice shows the progress.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;

use crate::console::accounts::field_changes::{FieldChange, list_changes};
use crate::console::accounts::invoice_body::InvoiceBody;
use crate::console::accounts::invoice_fields::{FormLines, LINE_COUNT, field_groups};
use crate::console::accounts::invoice_form::{
    InvoiceForm, apply_form_button, check_showable, has_form, remove_former_customer,
};
use crate::console::accounts::invoice_new::ExistingDocument;
use crate::console::accounts::invoice_values::current_values;
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::plan_table::{PlanTable, plan_fingerprint};
use crate::console::accounts::remaining_invoice::RemainingInvoice;
use crate::console::accounts::source_list::SourceList;
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, show, show_with_status};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::domain::correction::plan::CorrectionWish;
use crate::domain::correction::record::Correction;
use crate::domain::invoice::Invoice;
use crate::domain::reference::catalog::Catalog;
use crate::http::corrections::make_correction_command;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// The form field that cancels the invoice instead of changing it.
const CANCEL: &str = "cancel";
/// The form field that leads from the preview back to the form, which keeps what was typed.
const BACK: &str = "back";
/// The form field with the documents that the preview showed, so that a changed plan is noticed.
const PLAN: &str = "plan";

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/{id}/correct")
            .page(show_form)
            .form(start_correction)
            .form_has_lines(),
        path("/dashboard/{taxpayer}/invoices/{id}/correct/preview")
            .page(preview_cancellation)
            .form(preview_correction)
            .form_has_lines()
            .allows_form_repeat(),
        path("/dashboard/{taxpayer}/invoices/{id}/correct/lines")
            .form(change_lines)
            .form_has_lines()
            .allows_form_repeat(),
    ]
}

#[derive(Template)]
#[template(path = "accounts/invoice_correct.html")]
struct CorrectPage {
    frame: Frame,
    address: String,
    /// The query with which the addresses of the invoice end (`source_list`).
    suffix: String,
    number: String,
    /// `None` for a full document or an invoice with many lines, which can only be cancelled.
    invoice_form: Option<InvoiceForm>,
    faults: Vec<(String, String)>,
    /// The document for which the invoice cannot be corrected: a credit note that is not signed, or the replacement of
    /// the invoice.
    obstacle: Option<ExistingDocument>,
    /// The sentence about the credit notes that count already; empty if there are none.
    credits_sentence: &'static str,
    /// True if the form has values that somebody typed.
    is_typed: bool,
}

async fn show_form(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
) -> Answer {
    let remaining = RemainingInvoice::find(&state, &session, &ids.1).await?;
    let values = current_values(&remaining.stored, &state.catalog.get());
    let source = SourceList::from_request(&request, &state);
    let form = FormState::new(values);
    show(&CorrectPage::load(&state, &session, &remaining, &source, form).await?)
}

/// POST of a button that only changes the form: adds or removes a line, or fills in a stored customer.
async fn change_lines(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let mut wanted = WantedCorrection::read(&state, &session, &request, &ids.1, form.0).await?;
    let count = wanted.invoice().lines.len();
    wanted.values = apply_form_button(&state, &session, count, &wanted.values).await?;
    wanted.show_form_again(&state, &session).await
}

impl CorrectPage {
    async fn load(
        state: &ApiState,
        session: &AccountSession,
        remaining: &RemainingInvoice,
        source: &SourceList,
        form: FormState,
    ) -> Result<Self, ApiError> {
        let invoice = &remaining.stored.invoice;
        let address = format!("{}/invoices/{}", base_path(session), invoice.id);
        let suffix = source.suffix();
        let faults = form.summary();
        let mut page = Self {
            frame: Frame::for_account(session, &format!("Correct {}", invoice.invoice_no))
                .with_section("Invoices"),
            address,
            suffix,
            number: invoice.invoice_no.clone(),
            invoice_form: None,
            faults,
            obstacle: remaining.find_obstacle(state, session).await?,
            credits_sentence: remaining.lines_source.sentence(),
            is_typed: form.is_refused(),
        };
        if has_form(invoice) {
            let lines = FormLines::from_form(invoice.lines.len(), form.values());
            let lines_address = format!("{}/correct/lines{}", page.address, page.suffix);
            let shown = InvoiceForm::load(state, session, lines, form, lines_address).await?;
            page.faults = shown.fault_summary();
            page.invoice_form = Some(shown);
        }
        Ok(page)
    }
}

#[derive(Template)]
#[template(path = "accounts/invoice_correction.html")]
struct PreviewPage {
    frame: Frame,
    address: String,
    suffix: String,
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
        let invoice = wanted.invoice();
        let WantedCorrection {
            stored_values,
            values,
            source,
            ..
        } = wanted;
        let is_cancelled = !values.text(CANCEL).is_empty();
        let names = if is_cancelled {
            vec![CANCEL.to_owned()]
        } else {
            field_names(invoice, values)
        };
        let mut fields = confirmation_fields(names, stored_values, values);
        fields.push((PLAN.to_owned(), plan_fingerprint(correction)));
        Self {
            frame: Frame::for_account(session, &format!("Correct {}", invoice.invoice_no))
                .with_section("Invoices"),
            address: format!("{}/invoices/{}", base_path(session), invoice.id),
            suffix: source.suffix(),
            number: invoice.invoice_no.clone(),
            is_cancel: is_cancelled,
            has_changed: false,
            changes: if is_cancelled {
                Vec::new()
            } else {
                list_changes(invoice, stored_values, values)
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
    request: HttpRequest,
) -> Answer {
    let values = FormValues::from(&Query::from_text(request.query_string()));
    show_preview(&state, &session, &request, &ids.1, values).await
}

/// POST of the fields: shows what the correction would do, or the form again.
async fn preview_correction(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    if form.0.text(BACK).is_empty() {
        return show_preview(&state, &session, &request, &ids.1, form.0).await;
    }
    let wanted = WantedCorrection::read(&state, &session, &request, &ids.1, form.0).await?;
    wanted.show_form_again(&state, &session).await
}

/// A correction as a form asks for it: the invoice as its credit notes leave it, its values, and those of the form.
struct WantedCorrection {
    remaining: RemainingInvoice,
    stored_values: FormValues,
    values: FormValues,
    /// The list from which the page of the invoice was opened.
    source: SourceList,
}

impl WantedCorrection {
    async fn read(
        state: &ApiState,
        session: &AccountSession,
        request: &HttpRequest,
        id: &str,
        sent: FormValues,
    ) -> Result<Self, ApiError> {
        let remaining = RemainingInvoice::find(state, session, id).await?;
        let stored_values = current_values(&remaining.stored, &state.catalog.get());
        let sent = sent.with_plain_line_breaks();
        let values = stored_values.clone().with_fields(sent);
        let values = remove_former_customer(state, session, values).await?;
        Ok(Self {
            remaining,
            stored_values,
            values,
            source: SourceList::from_request(request, state),
        })
    }

    fn invoice(&self) -> &Invoice {
        &self.remaining.stored.invoice
    }

    /// Returns what the correction would do, and changes nothing.
    async fn plan_correction(
        &self,
        state: &ApiState,
        session: &AccountSession,
    ) -> Result<Correction, ApiError> {
        let wish = read_wanted_correction(state, self.invoice(), &self.values)?;
        let command = make_correction_command(state, self.invoice(), wish, true).await?;
        Ok(state.taxpayers.send(session.taxpayer, command).await?)
    }

    /// Shows the form with the values that were sent.
    async fn show_form_again(self, state: &ApiState, session: &AccountSession) -> Answer {
        let form = FormState::new(self.values);
        let page = CorrectPage {
            is_typed: true,
            ..CorrectPage::load(state, session, &self.remaining, &self.source, form).await?
        };
        show(&page)
    }

    /// Shows the form again with the reasons of a refusal. Returns an error that is not about the form.
    async fn show_refusal(
        self,
        state: &ApiState,
        session: &AccountSession,
        error: ApiError,
    ) -> Answer {
        let status = if error.status == StatusCode::CONFLICT {
            StatusCode::CONFLICT
        } else {
            StatusCode::UNPROCESSABLE_ENTITY
        };
        let form = FormState::from_refusal(error, self.values)?;
        let page = CorrectPage::load(state, session, &self.remaining, &self.source, form).await?;
        show_with_status(status, &page)
    }
}

async fn show_preview(
    state: &ApiState,
    session: &AccountSession,
    request: &HttpRequest,
    id: &str,
    sent: FormValues,
) -> Answer {
    let wanted = WantedCorrection::read(state, session, request, id, sent).await?;
    match wanted.plan_correction(state, session).await {
        Ok(correction) => {
            let catalog = state.catalog.get();
            show(&PreviewPage::new(session, &wanted, &correction, &catalog))
        }
        Err(error) => wanted.show_refusal(state, session, error).await,
    }
}

/// Returns the fields with which the confirmation asks for the correction that the preview shows. Cleared fields are
/// among them, because a field that is not sent keeps its current value.
fn confirmation_fields(
    names: Vec<String>,
    stored_values: &FormValues,
    values: &FormValues,
) -> Vec<(String, String)> {
    let fields = names.into_iter().map(|name| {
        let value = values.text(&name).to_owned();
        (name, value)
    });
    fields
        .filter(|(name, value)| !value.is_empty() || !stored_values.text(name).is_empty())
        .collect()
}

/// Returns the names of all fields of the form, including those that remove lines.
fn field_names(invoice: &Invoice, values: &FormValues) -> Vec<String> {
    let lines = FormLines::from_form(invoice.lines.len(), values);
    let names = field_groups(lines).into_iter().flat_map(|group| {
        let field_names = group.fields.into_iter().map(|field| field.name);
        field_names.chain([group.removal_field])
    });
    let names = names.filter(|name| !name.is_empty());
    names.chain([LINE_COUNT.to_owned()]).collect()
}

/// POST of the confirmed preview: starts the correction. If the plan has changed since, starts nothing and shows the
/// new plan.
async fn start_correction(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let wanted = WantedCorrection::read(&state, &session, &request, &ids.1, form.0).await?;
    let wish = match read_wanted_correction(&state, wanted.invoice(), &wanted.values) {
        Ok(wish) => wish,
        Err(error) => return wanted.show_refusal(&state, &session, error).await,
    };
    if !wanted.values.text(PLAN).is_empty() {
        let planned = match wanted.plan_correction(&state, &session).await {
            Ok(planned) => planned,
            Err(error) => return wanted.show_refusal(&state, &session, error).await,
        };
        if plan_fingerprint(&planned) != wanted.values.text(PLAN) {
            let page = PreviewPage {
                has_changed: true,
                ..PreviewPage::new(&session, &wanted, &planned, &state.catalog.get())
            };
            return show_with_status(StatusCode::PRECONDITION_FAILED, &page);
        }
    }
    let command = make_correction_command(&state, wanted.invoice(), wish, false).await?;
    let correction = match session.send(&state, command).await {
        Ok(correction) => correction,
        Err(error) => return wanted.show_refusal(&state, &session, error.into()).await,
    };
    let notice = if correction.documents.is_empty() {
        "Nothing was changed: the invoice was like this already."
    } else {
        "The correction was started."
    };
    let invoice = wanted.invoice().id;
    Ok(wanted.source.go_to_invoice(&session, invoice, notice))
}

fn read_wanted_correction(
    state: &ApiState,
    invoice: &Invoice,
    values: &FormValues,
) -> Result<CorrectionWish, ApiError> {
    if !values.text(CANCEL).is_empty() {
        return Ok(CorrectionWish::Cancel);
    }
    check_showable(invoice)?;
    let body = InvoiceBody::for_correction(invoice, values);
    let draft = body
        .read_corrected_draft(&state.catalog.get())
        .map_err(|faults| ApiError::from(body.to_form_faults(&faults)))?;
    Ok(CorrectionWish::Become(Box::new(draft)))
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
        let stored_values = FormValues::from([
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
            let values = stored_values.clone().with_fields(typed_fields);
            let fields =
                confirmation_fields(names.map(str::to_owned).into(), &stored_values, &values);
            let sent = fields
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()));
            let confirmed = stored_values.clone().with_fields(sent.collect());
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
