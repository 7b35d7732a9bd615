//! The calls about one invoice that are relayed to the authority, and the read of the invoice's pipeline run.

use actix_web::http::Method;
use actix_web::web;
use authority_client::AuthorityFailure;

use crate::actors::pipeline::handle::RelayError;
use crate::actors::taxpayer::commands::RecordReceipt;
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::Operation;
use crate::http::api::app::run_response;
use crate::http::explain::{authority, local_faults};
use crate::http::extract::acting_taxpayer::{self, AppCaller};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::extract::prefer::Prefer;
use crate::http::forms::query::Query;
use crate::http::forms::{reader, relayed_payment};
use crate::http::idempotency::IdempotentRequest;
use crate::http::openapi::{doc, example, schema};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::confirmation::Confirmation;
use crate::http::views::run::{PaymentResult, RunView};
use crate::store::invoices;
use crate::store::runs::step_log;

/// The methods that the paths of both updates (receipt and payment status) accept.
const UPDATE_METHODS: [Method; 3] = [Method::PATCH, Method::POST, Method::PUT];
/// Error codes of every call that waits for the authority.
const RELAY_ERROR_CODES: [ErrorCode; 2] =
    [ErrorCode::AuthorityUnavailable, ErrorCode::AuthorityTimeout];

pub(crate) fn paths() -> Vec<Path> {
    paths_for_updates()
        .into_iter()
        .chain(paths_for_reads())
        .collect()
}

/// Returns the paths of the two calls that change the stored invoice: Confirm Receipt and Update Payment Status.
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
                    .with_response::<Confirmation>(200, "Invoice transmission receipt confirmed")
                    .with_idempotency_key()
                    .with_errors(&[ErrorCode::InvoiceNotFound, ErrorCode::TaxpayerUnverified])
                    .with_errors(&[ErrorCode::AuthorityRejected])
                    .with_errors(&RELAY_ERROR_CODES)
            }),
        path("/v1/app/invoices/{irn}/update-payment-status")
            .waits_for_other_systems()
            .on_methods(UPDATE_METHODS, update_payment_status, || {
                doc("relay_payment_status", "Update Payment Status")
                    .with_note("Tells the authority whether the invoice is paid.")
                    .with_body(relayed_payment::read, example!("relay_payment_status"))
                    .with_response::<PaymentResult<'_>>(
                        200,
                        "Invoice payment status updated successfully",
                    )
                    .with_response::<RunView<'_>>(
                        202,
                        "The request is being processed: the run, for who prefers `respond-async`",
                    )
                    .prefers_async()
                    .with_idempotency_key()
                    .with_errors(&[ErrorCode::InvoiceNotFound, ErrorCode::InvoiceNotApproved])
                    .with_errors(&[ErrorCode::TaxpayerUnverified, ErrorCode::InvalidTransition])
                    .with_errors(&[ErrorCode::AuthorityRejected])
                    .with_errors(&RELAY_ERROR_CODES)
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
                    .with_response::<Confirmation>(200, "Invoice confirmed successfully")
                    .with_errors(&[ErrorCode::InvoiceNotFound, ErrorCode::TaxpayerUnverified])
                    .with_errors(&[ErrorCode::AuthorityRejected])
                    .with_errors(&RELAY_ERROR_CODES)
            }),
        path("/v1/app/invoices/{irn}/download")
            .never_writes()
            .waits_for_other_systems()
            .get_or_post(download_signed_document, || {
                doc("download", "Download Invoice")
                    .with_note("The document as the authority has it.")
                    .with_schema_response(
                        200,
                        "Invoice downloaded successfully",
                        schema::envelope(schema::object()),
                    )
                    .with_errors(&[ErrorCode::InvoiceNotFound, ErrorCode::InvoiceFileNotFound])
                    .with_errors(&[
                        ErrorCode::TaxpayerUnverified,
                        ErrorCode::AuthorityDocumentUnreadable,
                    ])
                    .with_errors(&[ErrorCode::AuthorityRejected])
                    .with_errors(&RELAY_ERROR_CODES)
            }),
        path("/v1/app/invoices/{irn}/run").get(get_run, || {
            doc("get_run", "The pipeline run of an invoice")
                .with_note(
                    "The run of Transmit, else that of Submit, else the latest \
                     of the others, with its calls to the authority; of one \
                     that waits also its place in the queue, and of one that \
                     was refused the reasons in your own field names.",
                )
                .query_word(
                    "operation",
                    Operation::allowed_words,
                    "the operation of the run",
                )
                .with_response::<RunView<'_>>(200, "Pipeline run retrieved successfully")
                .with_errors(&[ErrorCode::RunNotFound, ErrorCode::InvoiceNotFound])
                .with_errors(&[ErrorCode::TaxpayerUnverified, ErrorCode::ValidationFailed])
        }),
    ]
}

/// GET /v1/app/invoices/{irn}/confirm (also POST): returns the authority's record of an invoice.
async fn get_authority_record(
    state: web::Data<ApiState>,
    caller: AppCaller,
    irn: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::parse_irn(&irn)?;
    let taxpayer = acting_taxpayer::for_irn(&state, caller, &irn).await?;
    match state.pipeline.fetch_confirmation(taxpayer.id, &irn).await {
        Ok(confirmation) => Ok(ApiResponse::ok(
            "Invoice confirmed successfully",
            Confirmation::from(confirmation),
        )
        .warn(caller.ignored_header_warning(&taxpayer).as_slice())),
        Err(failure) => Err(relay_error(&state, taxpayer.id, &irn, failure).await),
    }
}

/// GET /v1/app/invoices/{irn}/download (also POST): returns the signed document from the authority, decrypted.
async fn download_signed_document(
    state: web::Data<ApiState>,
    caller: AppCaller,
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
    Ok(ApiResponse::ok("Invoice downloaded successfully", document)
        .warn(caller.ignored_header_warning(&taxpayer).as_slice()))
}

/// PATCH /v1/app/invoices/transmit/{irn}/confirm-receipt (also POST and PUT): confirms to the authority that the invoice
/// was received, then records it. The response is stored for the idempotency key in the commit of the record.
async fn confirm_receipt(
    state: web::Data<ApiState>,
    caller: AppCaller,
    irn: web::Path<String>,
    idempotent: IdempotentRequest,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::parse_irn(&irn)?;
    let taxpayer = acting_taxpayer::for_irn(&state, caller, &irn).await?;
    let pipeline = &state.pipeline;
    let relayed = pipeline
        .confirm_receipt_to_authority(taxpayer.id, &irn)
        .await;
    let receipt = match relayed {
        Ok(receipt) => receipt,
        Err(failure) => return Err(relay_error(&state, taxpayer.id, &irn, failure).await),
    };
    let command = RecordReceipt { irn: receipt.irn };
    let warning = caller.ignored_header_warning(&taxpayer);
    idempotent
        .answer_once(&state.taxpayers, taxpayer.id, command, move |()| {
            let already_confirmed = receipt.already_confirmed.as_deref();
            let message = already_confirmed.unwrap_or("Invoice transmission receipt confirmed");
            ApiResponse::ok(message, Confirmation::from(receipt.confirmation.clone()))
                .warn(warning.as_slice())
        })
        .await
}

/// PATCH /v1/app/invoices/{irn}/update-payment-status (also POST and PUT): sends a payment status to the authority.
async fn update_payment_status(
    state: web::Data<ApiState>,
    caller: AppCaller,
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
        .await;
    let run = match run {
        Ok(run) => run,
        Err(failure) => return Err(relay_error(&state, taxpayer.id, &irn, failure).await),
    };
    Ok(run_response::payment_response(&state, &run, prefer)
        .await?
        .warn(caller.ignored_header_warning(&taxpayer).as_slice())
        .warn(&form.warnings))
}

/// GET /v1/app/invoices/{irn}/run: returns a pipeline run of the invoice. `?operation=` selects the run.
async fn get_run(
    state: web::Data<ApiState>,
    caller: AppCaller,
    irn: web::Path<String>,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::parse_irn(&irn)?;
    let taxpayer = acting_taxpayer::for_irn(&state, caller, &irn).await?;
    let operation = query
        .text("operation")
        .map(|word| Operation::parse(word).ok_or(Refusal::RunNotFound));
    let found = state
        .pipeline
        .find_run(taxpayer.id, &irn, operation.transpose()?)
        .await;
    let run = match found {
        Err(TaxpayerError::Refused(Refusal::RunNotFound)) => {
            return Err(missing_run_error(&state, taxpayer.id, &irn).await?);
        }
        found => found?,
    };
    let steps = step_log::newest_steps(&state.store, taxpayer.id, run.id).await?;
    let queue = run_response::queue_view(&state, &run).await?;
    let view = RunView::new(&run, &steps, queue);
    Ok(ApiResponse::ok(
        "Pipeline run retrieved successfully",
        view.with_explanations(authority::explain_run(&run)),
    )
    .warn(caller.ignored_header_warning(&taxpayer).as_slice()))
}

/// Returns the error for an IRN that does not have the requested run. Its message distinguishes an invoice that was
/// never submitted from an unknown IRN.
async fn missing_run_error(
    state: &ApiState,
    taxpayer: TaxpayerId,
    irn: &Irn,
) -> Result<ApiError, ApiError> {
    if is_stored_only(state, taxpayer, irn).await? {
        let message =
            "The invoice is stored, but was not submitted, so it has no such run: submit it first";
        return Ok(ApiError::new(ErrorCode::RunNotFound, message));
    }
    match state.pipeline.find_run(taxpayer, irn, None).await {
        Ok(_) => Ok(Refusal::RunNotFound.into()),
        Err(TaxpayerError::Refused(Refusal::RunNotFound)) => {
            let message = "No invoice with this IRN is stored, and none was submitted";
            Ok(ApiError::new(ErrorCode::RunNotFound, message))
        }
        Err(failure) => Err(failure.into()),
    }
}

/// Returns the error of a call that was relayed to the authority. If the authority does not know the invoice because
/// the invoice was never submitted, the error says so.
async fn relay_error(
    state: &ApiState,
    taxpayer: TaxpayerId,
    irn: &Irn,
    failure: RelayError,
) -> ApiError {
    if !matches!(
        failure,
        RelayError::Authority(AuthorityFailure::NotFound { .. })
    ) {
        return failure.into();
    }
    match is_stored_only(state, taxpayer, irn).await {
        Ok(true) => {
            let message =
                "Invoice not found at the authority: it is stored here, but was not submitted";
            ApiError::new(ErrorCode::InvoiceNotFound, message)
        }
        Ok(false) => failure.into(),
        Err(error) => error,
    }
}

/// True if the invoice is stored and was never submitted through this service.
async fn is_stored_only(
    state: &ApiState,
    taxpayer: TaxpayerId,
    irn: &Irn,
) -> Result<bool, ApiError> {
    let submission = Some(Operation::Submit);
    match state.pipeline.find_run(taxpayer, irn, submission).await {
        Ok(_) => Ok(false),
        Err(TaxpayerError::Refused(Refusal::RunNotFound)) => {
            let kind = UniqueNoType::Irn;
            let invoice =
                invoices::find_owned_by_unique_no(&state.store, taxpayer, kind, irn.as_str())
                    .await?;
            Ok(invoice.is_some())
        }
        Err(failure) => Err(failure.into()),
    }
}
