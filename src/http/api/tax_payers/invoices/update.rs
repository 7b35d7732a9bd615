//! Update Invoice, Update Invoice Status and Update Payment Status.

use std::collections::BTreeSet;
use std::sync::Arc;

use actix_web::{HttpRequest, web};
use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::actors::taxpayer::commands::{
    ChangePayment, IfUnchanged, InvoiceAfterPayment, ReviseInvoice, RevisedInvoice, SeenInvoice,
    SetStatus,
};
use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::kernel::codes::WorkflowStatus;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::money::Amount;
use crate::domain::payment::{PaymentChange, PaymentUpdate};
use crate::domain::pipeline::Operation;
use crate::domain::reference::catalog::Catalog;
use crate::http::api::tax_payers::invoices::invoice_answer::invoice_tag;
use crate::http::approval;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::{payment_update, reader, unique_no, update_invoice, update_status};
use crate::http::idempotency::IdempotentRequest;
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::entity_tag::Precondition;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices;

/// The warning about an approved invoice of an account that submits what is approved, if nothing has submitted it.
const NOT_SUBMITTED_WARNING: &str = "the invoice is approved, but not submitted: approve it again with update-status, \
                                     or call Submit with its irn";

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/invoices/update").put(update_invoice, || {
            let catalog = Arc::new(Catalog::default());
            doc("update_invoice", "Update Invoice")
                .with_note(
                    "Replaces the customer, the lines and the details of a \
                     draft or approved invoice. A submission that has signed \
                     nothing yet is cancelled, with a warning.",
                )
                .with_body(
                    |reader| update_invoice::read(reader, &catalog),
                    example!("update_invoice"),
                )
                .with_response::<InvoiceObject<'_>>(200, "Invoice updated successfully")
                .with_idempotency_key()
                .with_if_match()
                .with_errors(&[ErrorCode::InvoiceNotFound, ErrorCode::InvoiceLocked])
                .with_errors(&[ErrorCode::InvalidTransition, ErrorCode::CategoryConflict])
                .with_errors(&[ErrorCode::PaymentExceedsPayable])
        }),
        path("/v1/tax-payers/invoices/update-status").patch(update_status, || {
            doc("update_status", "Update Invoice Status")
                .with_note(
                    "Sets the status to draft, approved or cancelled, unless the \
                     invoice is paid or the pipeline has locked it. An account \
                     with `submit_after_approval` also submits what is \
                     approved; a warning says why it does not.",
                )
                .with_body(update_status::read, example!("update_status"))
                .with_response::<InvoiceObject<'_>>(200, "Invoice status updated successfully")
                .with_idempotency_key()
                .with_if_match()
                .with_errors(&[ErrorCode::InvoiceNotFound, ErrorCode::InvoiceLocked])
                .with_errors(&[ErrorCode::InvalidTransition])
        }),
        path("/v1/tax-payers/invoices/update-payment-status").patch(update_payment_status, || {
            doc("update_payment_status", "Update Payment Status")
                .with_note(
                    "Records a payment, or that the payment is pending or \
                         rejected. Partial payments add up; more than is \
                         payable is refused. `paid` records what the signed \
                         credit notes leave; `amount` counts only with \
                         `partial`, and another one is a warning. Without \
                         `payment_date` the day of recording counts.",
                )
                .with_body(
                    |reader| payment_update::read(reader, Date::MAX),
                    example!("update_payment_status"),
                )
                .with_response::<InvoiceObject<'_>>(
                    200,
                    "Invoice payment status updated successfully",
                )
                .with_idempotency_key()
                .with_if_match()
                .with_errors(&[ErrorCode::InvoiceNotFound, ErrorCode::InvoiceNotApproved])
                .with_errors(&[
                    ErrorCode::PaymentExceedsPayable,
                    ErrorCode::InvalidTransition,
                ])
        }),
    ]
}

/// PUT /v1/tax-payers/invoices/update (Update Invoice in spec.md): changes the content of an invoice that can still be
/// edited.
pub(super) async fn update_invoice(
    state: web::Data<ApiState>,
    request: HttpRequest,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let catalog = state.catalog.get();
    let read = move |body: &Map<String, Value>| {
        reader::read(body, &catalog, |reader| {
            update_invoice::read(reader, &catalog)
        })
    };
    let (body, form) = body.object_and_form(read).await?;
    let form = match form {
        Ok(form) => form,
        Err(faults) => return Err(not_editable_or_faults_error(&state, id, &body, faults).await),
    };
    drop(body);
    let invoice_ref = path_ids::check_invoice_ref(form.value.invoice)?;
    let seen = check_if_match_header(&state, &request, id, &invoice_ref).await?;
    let submits_after_approval = approval::submits_after_approval(&state, id).await?;
    let command = ReviseInvoice {
        invoice: invoice_ref,
        revision: form.value.revision,
    };
    let warnings = form.warnings;
    idempotent
        .answer_once(
            &state.taxpayers,
            id,
            IfUnchanged { seen, command },
            move |revised| update_response(revised, submits_after_approval).warn(&warnings),
        )
        .await
}

fn update_response(revised: &RevisedInvoice, submits_after_approval: bool) -> ApiResponse {
    let mut warnings = Vec::new();
    if submits_after_approval && is_approved_without_submission(revised) {
        warnings.push(NOT_SUBMITTED_WARNING.to_owned());
    }
    for operation in &revised.withdrawn {
        let remedy = match operation {
            Operation::Report => {
                "the report of the earlier content was called off: report it again"
            }
            _ => "the submission of the earlier content was called off: submit it again",
        };
        warnings.push(remedy.to_owned());
    }
    if revised
        .invoice
        .due_date
        .is_some_and(|due| due < revised.invoice.invoice_date)
    {
        warnings.push("due_date is before invoice_date".to_owned());
    }
    let dates = revised.invoice.other_payment_due_dates();
    warnings.extend(payment_due_dates_warning(dates));
    ApiResponse::ok(
        "Invoice updated successfully",
        InvoiceObject::from(&revised.invoice),
    )
    .warn(&warnings)
}

/// True if the invoice stays approved and the update has withdrawn no submission of it. If the account submits what is
/// approved, the invoice lacked something then, or the authority rejected it. The update does not submit it either,
/// because nobody has approved the new content.
fn is_approved_without_submission(revised: &RevisedInvoice) -> bool {
    revised.invoice.status == WorkflowStatus::Approved
        && !revised.withdrawn.contains(&Operation::Submit)
}

/// Returns a warning about the payment due dates that the update does not change; `None` if there are none. The warning
/// names the first date and counts the others, because an invoice may have thousands of dates and a response has room
/// for few warnings.
fn payment_due_dates_warning(dates: Vec<Date>) -> Option<String> {
    let different_dates: BTreeSet<Date> = dates.into_iter().collect();
    let first = different_dates.first()?;
    Some(match different_dates.len() {
        1 => {
            format!("the payment_due_date {first} of payment_means stays, and is not the due_date")
        }
        count => format!(
            "the payment_due_date {first} and {} more of payment_means stay, and are not the due_date",
            count - 1
        ),
    })
}

/// Returns the error for a body with faults. If the invoice can no longer be edited, the error says only that.
async fn not_editable_or_faults_error(
    state: &ApiState,
    id: TaxpayerId,
    body: &Map<String, Value>,
    faults: Faults,
) -> ApiError {
    let form = reader::read(body, &state.catalog.get(), unique_no::read);
    let Some(invoice_ref) = form
        .ok()
        .and_then(|form| path_ids::check_invoice_ref(form.value).ok())
    else {
        return faults.into();
    };
    match invoices::find_owned_by_unique_no(&state.store, id, invoice_ref.kind, &invoice_ref.text)
        .await
    {
        Ok(Some(invoice)) => match invoice.status.after(Transition::Edit) {
            Err(refusal) => refusal.into(),
            Ok(_) => faults.into(),
        },
        Ok(None) => faults.into(),
        Err(error) => error.into(),
    }
}

/// PATCH /v1/tax-payers/invoices/update-status (Update Invoice Status in spec.md): changes the workflow status of an
/// invoice.
pub(super) async fn update_status(
    state: web::Data<ApiState>,
    request: HttpRequest,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        update_status::read,
    )?;
    let update = form.value;
    let invoice_ref = path_ids::check_invoice_ref(update.invoice)?;
    let seen = check_if_match_header(&state, &request, id, &invoice_ref).await?;
    let approval = approval::prepare_approval(&state, id, &invoice_ref, update.status).await?;
    let mut warnings = form.warnings;
    warnings.extend(approval.warnings);
    let command = SetStatus {
        invoice: invoice_ref,
        status: update.status,
        remark: update.remark,
        submission: approval.submission,
    };
    idempotent
        .answer_once(
            &state.taxpayers,
            id,
            IfUnchanged { seen, command },
            move |invoice| {
                let view = InvoiceObject::from(invoice);
                ApiResponse::ok("Invoice status updated successfully", view).warn(&warnings)
            },
        )
        .await
}

/// PATCH /v1/tax-payers/invoices/update-payment-status (Update Payment Status in spec.md): changes the payment status
/// of an invoice.
pub(super) async fn update_payment_status(
    state: web::Data<ApiState>,
    request: HttpRequest,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let latest_day = state.latest_day();
    let form = reader::read(&*body.object().await?, &state.catalog.get(), |reader| {
        payment_update::read(reader, latest_day)
    })?;
    let update = PaymentUpdate {
        invoice: path_ids::check_invoice_ref(form.value.invoice)?,
        ..form.value
    };
    let seen = check_if_match_header(&state, &request, id, &update.invoice).await?;
    let amount = match update.change {
        PaymentChange::Partial(amount) => Some(amount),
        _ => None,
    };
    let command = ChangePayment(update);
    let catalog = state.catalog.get();
    idempotent
        .answer_once(
            &state.taxpayers,
            id,
            IfUnchanged { seen, command },
            move |outcome| {
                let digits_warning = amount
                    .and_then(|amount| surplus_digits_warning(amount, &outcome.invoice, &catalog));
                payment_response(outcome)
                    .warn(&form.warnings)
                    .warn(digits_warning.as_slice())
            },
        )
        .await
}

/// Returns a warning if an amount has more digits after the point than its currency has.
pub(super) fn surplus_digits_warning(
    amount: Amount,
    invoice: &Invoice,
    catalog: &Catalog,
) -> Option<String> {
    let currency = &invoice.currency;
    let digits = catalog.currency_digits(currency);
    amount
        .has_more_digits(digits)
        .then(|| format!("amount has more digits after the point than {currency} has ({digits})"))
}

fn payment_response(outcome: &InvoiceAfterPayment) -> ApiResponse {
    let view = InvoiceObject::from(&outcome.invoice);
    ApiResponse::ok("Invoice payment status updated successfully", view).warn(&outcome.warnings)
}

/// Returns the version of the invoice that the header `If-Match` demands; `None` without the header. Fails if the
/// stored invoice is another version.
pub(super) async fn check_if_match_header(
    state: &ApiState,
    request: &HttpRequest,
    id: TaxpayerId,
    invoice_ref: &InvoiceRef,
) -> Result<Option<SeenInvoice>, ApiError> {
    let Some(precondition) = Precondition::from_request(request) else {
        return Ok(None);
    };
    let invoice =
        invoices::find_owned_by_unique_no(&state.store, id, invoice_ref.kind, &invoice_ref.text)
            .await?;
    let invoice = invoice.ok_or_else(ApiError::invoice_not_found)?;
    if !precondition.is_met_by(&invoice_tag(&invoice)?) {
        return Err(Refusal::InvoiceChanged.into());
    }
    Ok(Some(SeenInvoice {
        invoice: invoice_ref.clone(),
        updated_at: invoice.updated_at,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_payment_due_dates_that_stay_get_one_warning() {
        for (dates, expected) in [
            (vec![], None),
            (
                vec!["2026-02-20"],
                Some(
                    "the payment_due_date 2026-02-20 of payment_means stays, and is not the due_date",
                ),
            ),
            (
                vec!["2026-02-20"; 1_000],
                Some(
                    "the payment_due_date 2026-02-20 of payment_means stays, and is not the due_date",
                ),
            ),
            (
                vec!["2026-04-20", "2026-02-20", "2026-03-20", "2026-04-20"],
                Some(
                    "the payment_due_date 2026-02-20 and 2 more of payment_means stay, and are not the due_date",
                ),
            ),
        ] {
            let dates = dates.into_iter().map(|date| date.parse().unwrap());
            let warning = payment_due_dates_warning(dates.collect());
            assert_eq!(warning.as_deref(), expected);
        }
    }
}
