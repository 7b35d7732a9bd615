//! Responses for a pipeline run: the result, the refusal, or the time after which the caller may ask again.

use std::time::Duration;

use actix_web::http::StatusCode;
use authority_client::{AuthorityFailure, encode_path_segment};
use jiff::Timestamp;

use crate::domain::kernel::codes::{AuthorityStatus, UniqueNoType};
use crate::domain::pipeline::signed_copy::{SIGNED_OTHERWISE_MESSAGE, has_other_signed_document};
use crate::domain::pipeline::waiting::RunHold;
use crate::domain::pipeline::{NO_CUSTOMER_MESSAGE, Operation, Run, RunState, Step, WaitReason};
use crate::http::explain::authority;
use crate::http::extract::prefer::{PREFERENCE_APPLIED_HEADER, Prefer, RESPOND_ASYNC};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::details::Members;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::{AUTHORITY_RETRY_AFTER, ApiError, capitalize};
use crate::http::state::ApiState;
use crate::http::views::queue::QueueView;
use crate::http::views::run::{
    PaymentResult, ReportResult, RunView, SubmissionResult, TransmissionResult,
};
use crate::store::invoices;
use crate::store::runs::step_log;

/// The longest `Retry-After` in the response for a run that has not ended.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// Returns the response of Submit. A success has the result under `message` and a sentence under `data`. A run in
/// progress gets 202 if the caller prefers not to wait. Otherwise a run that has not ended gets 503.
pub(crate) async fn submission_response(
    state: &ApiState,
    run: &Run,
    prefer: Prefer,
) -> Result<ApiResponse, ApiError> {
    match run.state() {
        RunState::Succeeded => Ok(ApiResponse::ok(
            SubmissionResult::from(run),
            "Invoice submitted successfully",
        )),
        RunState::Running | RunState::Waiting if prefer.is_async => {
            accepted_response(state, run).await
        }
        RunState::Running | RunState::Waiting | RunState::Paused => {
            let error = ApiError::new(
                ErrorCode::AuthorityUnavailable,
                unfinished_run_message(state, run),
            );
            Err(add_retry_delay_and_queue(
                state,
                run,
                error.with_status(StatusCode::SERVICE_UNAVAILABLE),
            )
            .await?)
        }
        RunState::Refused => Err(refusal_error(run)),
        RunState::Cancelled => Err(cancelled_run_error()),
    }
}

/// Returns the response of Transmit. A run in progress gets 202 if the caller prefers not to wait. Otherwise a run that
/// has not ended, or was refused, gets 500.
pub(crate) async fn transmission_response(
    state: &ApiState,
    run: &Run,
    prefer: Prefer,
) -> Result<ApiResponse, ApiError> {
    match run.state() {
        RunState::Succeeded => {
            let view = TransmissionResult::new(run, is_receipt_confirmed(state, run).await?);
            Ok(ApiResponse::ok("Invoice transmitted successfully", view))
        }
        RunState::Running | RunState::Waiting if prefer.is_async => {
            accepted_response(state, run).await
        }
        RunState::Running | RunState::Waiting | RunState::Paused => {
            let error = error_with_status_500(
                wait_error_code(run.wait_reason()),
                unfinished_run_message(state, run),
            )
            .with_retryable(true);
            Err(add_retry_delay_and_queue(state, run, error).await?)
        }
        RunState::Refused => Err(refusal_error(run)
            .with_status(StatusCode::INTERNAL_SERVER_ERROR)
            .with_retryable(false)),
        RunState::Cancelled => Err(cancelled_run_error()),
    }
}

/// Returns the response of Report. A run in progress gets 202 if the caller prefers not to wait. Otherwise a run that
/// has not ended, or was refused, gets 500.
pub(crate) async fn report_response(
    state: &ApiState,
    run: &Run,
    prefer: Prefer,
) -> Result<ApiResponse, ApiError> {
    match run.state() {
        RunState::Succeeded => Ok(ApiResponse::ok(
            "Invoice reported successfully",
            ReportResult::from(run),
        )),
        RunState::Running | RunState::Waiting if prefer.is_async => {
            accepted_response(state, run).await
        }
        RunState::Running | RunState::Waiting | RunState::Paused => {
            let error = error_with_status_500(
                ErrorCode::AuthorityUnavailable,
                unfinished_run_message(state, run),
            )
            .with_retryable(true);
            Err(add_retry_delay_and_queue(state, run, error).await?)
        }
        RunState::Refused => {
            let refused = ApiError {
                code: ErrorCode::ReportFailed,
                ..refusal_error(run)
            };
            Err(refused
                .with_status(StatusCode::INTERNAL_SERVER_ERROR)
                .with_retryable(false))
        }
        RunState::Cancelled => Err(cancelled_run_error()),
    }
}

/// Returns the response of Update Payment Status on `/v1/app`.
pub(crate) async fn payment_response(
    state: &ApiState,
    run: &Run,
    prefer: Prefer,
) -> Result<ApiResponse, ApiError> {
    let message = "Invoice payment status updated successfully";
    match run.state() {
        RunState::Succeeded => PaymentResult::from_run(run)
            .map(|view| ApiResponse::ok(message, view))
            .ok_or_else(|| ApiError::internal("the run of a payment holds no payment status")),
        RunState::Running | RunState::Waiting if prefer.is_async => {
            accepted_response(state, run).await
        }
        RunState::Running | RunState::Waiting | RunState::Paused => {
            let error = ApiError::new(
                ErrorCode::AuthorityUnavailable,
                unfinished_run_message(state, run),
            );
            Err(add_retry_delay_and_queue(
                state,
                run,
                error.with_status(StatusCode::SERVICE_UNAVAILABLE),
            )
            .await?)
        }
        RunState::Refused => Err(refusal_error(run)),
        RunState::Cancelled => Err(cancelled_run_error()),
    }
}

/// Returns 202 with the run, and with the path at which the caller can poll the run until it ends.
async fn accepted_response(state: &ApiState, run: &Run) -> Result<ApiResponse, ApiError> {
    let steps = step_log::newest_steps(&state.store, run.taxpayer_id, run.id).await?;
    let view = RunView::new(run, &steps, queue_view(state, run).await?);
    let answer =
        ApiResponse::with_status(StatusCode::ACCEPTED, "The request is being processed", view);
    Ok(answer
        .with_location(&run_path(run))
        .with_header(PREFERENCE_APPLIED_HEADER, RESPOND_ASYNC))
}

/// Returns the position of the run in the queue. `None` if the run does not continue by itself, or only after an
/// operator has resumed its taxpayer or has let the calls of its operation pass again.
pub(crate) async fn queue_view(state: &ApiState, run: &Run) -> Result<Option<QueueView>, ApiError> {
    let position = state.pipeline.backlog.queue_place(run).await?;
    Ok(position.map(|position| QueueView::new(run, position)))
}

/// Adds the time after which to ask again, and the run's position in the queue, to the error for an unfinished run.
async fn add_retry_delay_and_queue(
    state: &ApiState,
    run: &Run,
    mut error: ApiError,
) -> Result<ApiError, ApiError> {
    error.details.queue = queue_view(state, run).await?.map(Members::from);
    Ok(error.with_retry_after(retry_delay(run, state.now())))
}

/// Returns the path at which callers can read the run. Special characters of the IRN are percent-encoded.
fn run_path(run: &Run) -> String {
    let irn = encode_path_segment(run.irn.as_str()).unwrap_or_default();
    // Without `?operation=`, the path shows the run of Submit or Transmit.
    let query = match run.operation() {
        Operation::Submit | Operation::Transmit => String::new(),
        other => format!("?operation={other}"),
    };
    format!("/v1/app/invoices/{irn}/run{query}")
}

fn error_with_status_500(code: ErrorCode, message: String) -> ApiError {
    ApiError::new(code, message).with_status(StatusCode::INTERNAL_SERVER_ERROR)
}

fn cancelled_run_error() -> ApiError {
    ApiError::new(ErrorCode::InvalidTransition, "The run was cancelled")
}

/// Returns the error for a refused run: the reason, and faults with the field names of the caller's document.
fn refusal_error(run: &Run) -> ApiError {
    if has_other_signed_document(run) {
        return ApiError::new(
            ErrorCode::IrnContentChanged,
            capitalize(SIGNED_OTHERWISE_MESSAGE),
        );
    }
    let reason = run
        .last_error
        .as_deref()
        .unwrap_or("The authority refused the invoice");
    let error = authority::refusal_error(reason, &run.document());
    if reason == NO_CUSTOMER_MESSAGE {
        return ApiError {
            code: ErrorCode::NoCustomerAccessPoint,
            ..error
        };
    }
    error
}

fn unfinished_run_message(state: &ApiState, run: &Run) -> String {
    if run.state().is_open() && state.authority.is_paused() {
        return format!(
            "The run has not ended: {}; it goes on when the service is started without it",
            AuthorityFailure::Paused
        );
    }
    let holds = state.pipeline.backlog.holds();
    let hold = holds.find_hold(run.taxpayer_id, run.next_step());
    if let Some(sentence) = hold
        .filter(|_| run.state().is_open())
        .and_then(hold_sentence)
    {
        return format!("The run has not ended: {sentence}");
    }
    let reason = run.last_error.as_deref();
    if !run.state().is_open() {
        let reason = reason.unwrap_or("it is paused");
        return format!("The run has not ended: {reason}; it waits for an operator");
    }
    let reason = reason.unwrap_or("the authority has not answered yet");
    format!("The run has not ended: {reason}; it goes on in the background")
}

/// Returns a sentence that says how the operator or a fault of the service holds the run back, and when the run continues.
/// Returns `None` for an outage of the authority.
fn hold_sentence(hold: RunHold) -> Option<&'static str> {
    match hold {
        RunHold::TaxpayerPaused => Some(
            "the operator of the service has paused this taxpayer; it goes on when the pause ends",
        ),
        RunHold::CallsStopped => Some(
            "an operator of the service holds back these calls; it goes on when the operator lets them pass",
        ),
        RunHold::OurFault => Some(
            "this service cannot use the tax authority; it goes on when the operator of the service has mended that",
        ),
        RunHold::Outage => None,
    }
}

fn retry_delay(run: &Run, now: Timestamp) -> Duration {
    let delay = run.next_attempt_at().map(|at| at.duration_since(now));
    let delay = delay.and_then(|wait| Duration::try_from(wait).ok());
    delay.unwrap_or(AUTHORITY_RETRY_AFTER).min(RETRY_AFTER_MAX)
}

fn wait_error_code(reason: Option<WaitReason>) -> ErrorCode {
    match reason {
        Some(WaitReason::HealthCheckDown) => ErrorCode::HealthCheckDown,
        Some(WaitReason::AccessPointOffline) => ErrorCode::AccessPointOffline,
        Some(WaitReason::AuthorityUnavailable | WaitReason::AuthorityThrottles) | None => {
            ErrorCode::AuthorityUnavailable
        }
    }
}

/// Returns true if the receipt of the invoice is confirmed, either by a step of this run or on the stored invoice.
async fn is_receipt_confirmed(state: &ApiState, run: &Run) -> Result<bool, ApiError> {
    if run.done.contains(&Step::Receipt) {
        return Ok(true);
    }
    let unique_no_type = UniqueNoType::Irn;
    let irn = run.irn.as_str();
    let invoice =
        invoices::find_owned_by_unique_no(&state.store, run.taxpayer_id, unique_no_type, irn)
            .await?;
    Ok(invoice.is_some_and(|invoice| invoice.authority.status == AuthorityStatus::Acknowledged))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::pipeline::{Operation, RunRequest};

    #[test]
    fn a_refusal_repeats_the_words_of_the_authority() {
        let refusal_message = |reason: &str| {
            let irn = Irn::parse("INV001-94AD90FB-20261121").unwrap();
            let request = RunRequest::sample(irn.as_str(), Operation::Submit);
            let run = Run {
                last_error: Some(reason.to_owned()),
                ..Run::new(Uuid::nil(), TaxpayerId(7), request, Timestamp::UNIX_EPOCH)
            };
            refusal_error(&run).message.into_string()
        };
        let own_message = refusal_message("the invoice names no customer to transmit it to");
        assert_eq!(
            own_message,
            "The invoice names no customer to transmit it to"
        );
        for reason in ["invoicerequest.invoice.irn is odd", "vat figures wrong"] {
            assert_eq!(refusal_message(reason), reason);
        }
    }
}
