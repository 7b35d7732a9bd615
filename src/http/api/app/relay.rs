//! The calls about one invoice that are relayed to the authority, and the read of the invoice's pipeline run.

use actix_web::http::Method;
use actix_web::web;
use authority_client::AuthorityFailure;

use crate::actors::pipeline::handle::RelayError;
use crate::domain::access::caller::Caller;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::Operation;
use crate::http::api::app::run_response;
use crate::http::endpoint::{Path, path};
use crate::http::explain::local_faults;
use crate::http::extract::body::Body;
use crate::http::extract::prefer::Prefer;
use crate::http::extract::{acting_taxpayer, path_ids};
use crate::http::forms::query::Query;
use crate::http::forms::{reader, relayed_payment};
use crate::http::openapi::{doc, example, schema};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::confirmation::Confirmation;
use crate::http::views::run::{PaymentResult, RunView};
use crate::store::runs::step_log;

/// The methods that the paths of both updates (receipt and payment status) accept.
const UPDATE_METHODS: [Method; 3] = [Method::PATCH, Method::POST, Method::PUT];
/// Error codes of every call that waits for the authority.
const RELAY_ERROR_CODES: [ErrorCode; 2] =
    [ErrorCode::AuthorityUnavailable, ErrorCode::AuthorityTimeout];

pub(crate) fn endpoints() -> Vec<Path> {
    paths_for_updates()
        .into_iter()
        .chain(paths_for_reads())
        .collect()
}

/// Returns the paths of the two calls that change what is stored of an invoice: Confirm Receipt and Update Payment
/// Status.
fn paths_for_updates() -> Vec<Path> {
    vec![
        path("/v1/app/invoices/transmit/{irn}/confirm-receipt")
            .waits_for_other_systems()
            .on_methods(UPDATE_METHODS, confirm_receipt, || {
                doc("confirm_receipt", "Confirm Transmission Receipt")
                    .with_note(
                        "Tells the authority that the document has reached the \
                         buyer, and returns what it then knows of it.",
                    )
                    .gives::<Confirmation>(200, "Invoice transmission receipt confirmed")
                    .takes_idempotency_key()
                    .fails(&[ErrorCode::InvoiceNotFound, ErrorCode::TaxpayerUnverified])
                    .fails(&[ErrorCode::AuthorityRejected])
                    .fails(&RELAY_ERROR_CODES)
            }),
        path("/v1/app/invoices/{irn}/update-payment-status")
            .waits_for_other_systems()
            .on_methods(UPDATE_METHODS, update_payment_status, || {
                doc("relay_payment_status", "Update Payment Status")
                    .with_note("Tells the authority whether the invoice is paid.")
                    .takes(relayed_payment::read, example!("relay_payment_status"))
                    .gives::<PaymentResult<'_>>(200, "Invoice payment status updated successfully")
                    .gives::<RunView<'_>>(
                        202,
                        "The request is being processed: the run, for who prefers `respond-async`",
                    )
                    .prefers_async()
                    .takes_idempotency_key()
                    .fails(&[ErrorCode::InvoiceNotFound, ErrorCode::InvoiceNotApproved])
                    .fails(&[ErrorCode::TaxpayerUnverified, ErrorCode::InvalidTransition])
                    .fails(&[ErrorCode::AuthorityRejected])
                    .fails(&RELAY_ERROR_CODES)
            }),
    ]
}

fn paths_for_reads() -> Vec<Path> {
    vec![
        path("/v1/app/invoices/{irn}/confirm")
            .never_writes()
            .waits_for_other_systems()
            .get_or_post(get_authority_record, || {
                doc("confirm", "Confirm Invoice")
                    .with_note("Asks the authority how it knows the invoice.")
                    .gives::<Confirmation>(200, "Invoice confirmed successfully")
                    .fails(&[ErrorCode::InvoiceNotFound, ErrorCode::TaxpayerUnverified])
                    .fails(&[ErrorCode::AuthorityRejected])
                    .fails(&RELAY_ERROR_CODES)
            }),
        path("/v1/app/invoices/{irn}/download")
            .never_writes()
            .waits_for_other_systems()
            .get_or_post(download_signed_document, || {
                doc("download", "Download Invoice")
                    .with_note("The document as the authority has it.")
                    .gives_schema(
                        200,
                        "Invoice downloaded successfully",
                        schema::envelope(schema::object()),
                    )
                    .fails(&[ErrorCode::InvoiceNotFound, ErrorCode::InvoiceFileNotFound])
                    .fails(&[
                        ErrorCode::TaxpayerUnverified,
                        ErrorCode::AuthorityDocumentUnreadable,
                    ])
                    .fails(&[ErrorCode::AuthorityRejected])
                    .fails(&RELAY_ERROR_CODES)
            }),
        path("/v1/app/invoices/{irn}/run").get(get_run, || {
            doc("get_run", "The pipeline run of an invoice")
                .with_note(
                    "The run of Transmit, else that of Submit, else the latest \
                     of the others, with its calls to the authority; of one \
                     that waits also its place in the queue.",
                )
                .query_word(
                    "operation",
                    Operation::allowed_words,
                    "the operation of the run",
                )
                .gives::<RunView<'_>>(200, "Pipeline run retrieved successfully")
                .fails(&[ErrorCode::RunNotFound, ErrorCode::InvoiceNotFound])
                .fails(&[ErrorCode::TaxpayerUnverified, ErrorCode::ValidationFailed])
        }),
    ]
}

/// GET /v1/app/invoices/{irn}/confirm (also POST): returns the authority's record of an invoice.
async fn get_authority_record(
    state: web::Data<ApiState>,
    caller: Caller,
    irn: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::parse_irn(&irn)?;
    let taxpayer = acting_taxpayer::for_irn(&state, caller, &irn).await?;
    let confirmation = state.pipeline.fetch_confirmation(taxpayer.id, &irn).await?;
    Ok(ApiResponse::ok(
        "Invoice confirmed successfully",
        Confirmation::from(confirmation),
    ))
}

/// GET /v1/app/invoices/{irn}/download (also POST): returns the signed document from the authority, decrypted.
async fn download_signed_document(
    state: web::Data<ApiState>,
    caller: Caller,
    irn: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::parse_irn(&irn)?;
    let taxpayer = acting_taxpayer::for_irn(&state, caller, &irn).await?;
    let document = state
        .pipeline
        .download_invoice(taxpayer.id, &irn)
        .await
        .map_err(|failure| match failure {
            RelayError::Authority(AuthorityFailure::NotFound { .. }) => {
                ApiError::new(ErrorCode::InvoiceFileNotFound, "Invoice File not found")
            }
            other => other.into(),
        })?;
    Ok(ApiResponse::ok("Invoice downloaded successfully", document))
}

/// PATCH /v1/app/invoices/transmit/{irn}/confirm-receipt (also POST and PUT): confirms that the invoice was received.
async fn confirm_receipt(
    state: web::Data<ApiState>,
    caller: Caller,
    irn: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::parse_irn(&irn)?;
    let taxpayer = acting_taxpayer::for_irn(&state, caller, &irn).await?;
    let receipt = state.pipeline.confirm_receipt(taxpayer.id, &irn).await?;
    let message = receipt
        .already_confirmed
        .as_deref()
        .unwrap_or("Invoice transmission receipt confirmed");
    Ok(ApiResponse::ok(
        message,
        Confirmation::from(receipt.confirmation),
    ))
}

/// PATCH /v1/app/invoices/{irn}/update-payment-status (also POST and PUT): sends a payment status to the authority.
async fn update_payment_status(
    state: web::Data<ApiState>,
    caller: Caller,
    irn: web::Path<String>,
    prefer: Prefer,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::parse_irn(&irn)?;
    let taxpayer = acting_taxpayer::for_irn(&state, caller, &irn).await?;
    let body = body.object().await?;
    let form = reader::read(&body, &state.catalog.get(), relayed_payment::read);
    let form = form.map_err(|faults| local_faults::refusal_error(faults, &body))?;
    // The wait for the run may be long, so the memory of the body is freed first.
    drop(body);
    let run = state
        .pipeline
        .update_payment(taxpayer.id, &irn, form.value, prefer.wait)
        .await?;
    Ok(run_response::payment_response(&state, &run, prefer)
        .await?
        .warn(&form.warnings))
}

/// GET /v1/app/invoices/{irn}/run: returns a pipeline run of the invoice. `?operation=` selects the run.
async fn get_run(
    state: web::Data<ApiState>,
    caller: Caller,
    irn: web::Path<String>,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::parse_irn(&irn)?;
    let taxpayer = acting_taxpayer::for_irn(&state, caller, &irn).await?;
    let named = query
        .text("operation")
        .map(|word| Operation::parse(word).ok_or(Refusal::RunNotFound));
    let run = state
        .pipeline
        .find_run(taxpayer.id, &irn, named.transpose()?)
        .await?;
    let steps = step_log::newest_steps(&state.store, taxpayer.id, run.id).await?;
    let queue = run_response::queue_view(&state, &run).await?;
    Ok(ApiResponse::ok(
        "Pipeline run retrieved successfully",
        RunView::new(&run, &steps, queue),
    ))
}
