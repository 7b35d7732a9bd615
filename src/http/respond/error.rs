//! The failure of a request: error code, message for the caller, cause for the log. The middleware renders it.

use std::fmt;
use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpResponse, ResponseError};
use database::StoreError;

use crate::actors::taxpayer::handle::TaxpayerError;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::refusal::Refusal;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::details::Details;

/// The default `Retry-After` of a failure.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The `Retry-After` after a failure of the authority, if the authority gives no time itself.
pub(crate) const AUTHORITY_RETRY_AFTER: Duration = Duration::from_secs(5);
/// The `Retry-After` while a taxpayer is paused, which takes minutes.
const PAUSE_RETRY_AFTER: Duration = Duration::from_secs(30);
const PAUSE_MESSAGE: &str = "The operator of the service has paused this taxpayer: its data can be read, and writes \
                             are possible again when the pause ends";

#[derive(Debug)]
pub struct ApiError {
    pub(crate) code: ErrorCode,
    pub(crate) status: StatusCode,
    /// The message that the caller sees.
    pub(crate) message: Box<str>,
    pub(crate) faults: Faults,
    pub(crate) retry_after: Option<Duration>,
    /// True if the same call may succeed later; `None` leaves the field out of the response.
    pub(crate) retryable: Option<bool>,
    /// True for a refusal that may not happen again when the caller repeats the request, so the refusal is not stored
    /// for an idempotency key.
    pub(crate) is_temporary: bool,
    /// The methods that the path accepts, if the method of the request was refused.
    pub(crate) allowed_methods: Box<[Method]>,
    pub(crate) details: Box<Details>,
    /// The cause for the log. The caller does not see it.
    pub(crate) cause: Option<Box<str>>,
}

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            status: code.status(),
            message: message.into().into_boxed_str(),
            faults: Faults::default(),
            retry_after: None,
            retryable: None,
            is_temporary: false,
            allowed_methods: Box::default(),
            details: Box::default(),
            cause: None,
        }
    }

    pub(crate) fn invalid(faults: Faults) -> Self {
        Self {
            message: faults.summary().into(),
            ..Self::new(fault_code(&faults), "")
        }
        .with_faults(faults)
    }

    pub(crate) fn internal(cause: impl fmt::Display) -> Self {
        let message = "Something went wrong on our side. Quote the request id when you report it.";
        Self::new(ErrorCode::InternalError, message).with_cause(cause)
    }

    /// Returns the error for an interrupted request. It has no `Retry-After`, because a repetition might record a
    /// payment twice.
    fn interruption_error() -> Self {
        let message =
            "The request was interrupted: look whether it took effect before sending it again";
        Self::new(ErrorCode::InternalError, message)
    }

    /// Returns true for the refusal of a write while the taxpayer is paused.
    pub(crate) fn is_about_pause(&self) -> bool {
        *self.message == *PAUSE_MESSAGE
    }

    /// Returns the error for a path that does not exist, or whose existence must not be revealed to the caller.
    pub(crate) fn route_not_found() -> Self {
        Self::new(ErrorCode::RouteNotFound, "No such path")
    }

    /// Returns the error for a repetition of a request that is still being answered.
    pub(crate) fn idempotency_in_progress() -> Self {
        let message =
            "A request with this Idempotency-Key is being answered; ask again in a moment";
        Self::new(ErrorCode::IdempotencyInProgress, message).with_retry_after(RETRY_AFTER)
    }

    pub(crate) fn invoice_not_found() -> Self {
        Refusal::InvoiceNotFound.into()
    }

    pub(crate) fn contact_not_found() -> Self {
        Self::new(ErrorCode::ContactNotFound, "Contact person not found")
    }

    pub(crate) fn taxpayer_not_found() -> Self {
        Refusal::TaxpayerNotFound.into()
    }

    #[must_use]
    pub(crate) fn with_faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    #[must_use]
    pub(crate) fn with_details(self, details: Details) -> Self {
        Self {
            details: Box::new(details),
            ..self
        }
    }

    #[must_use]
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    #[must_use]
    pub(crate) fn with_retry_after(self, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..self
        }
    }

    #[must_use]
    pub(crate) fn with_retryable(self, retryable: bool) -> Self {
        Self {
            retryable: Some(retryable),
            ..self
        }
    }

    #[must_use]
    pub(crate) fn with_cause(self, cause: impl fmt::Display) -> Self {
        Self {
            cause: Some(cause.to_string().into()),
            ..self
        }
    }

    pub(crate) fn method_not_allowed(allowed_methods: Vec<Method>) -> Self {
        let message = format!(
            "This path does not take that method{}",
            allowed_methods_hint(&allowed_methods)
        );
        Self {
            allowed_methods: allowed_methods.into_boxed_slice(),
            ..Self::new(ErrorCode::MethodNotAllowed, message)
        }
    }
}

/// Returns the end of the sentence that names the methods to use, such as `: use GET, PUT or PATCH`. HEAD is left out
/// if GET is allowed, because every GET path also answers HEAD. Returns an empty text if there is no method.
fn allowed_methods_hint(allowed_methods: &[Method]) -> String {
    let has_get = allowed_methods.contains(&Method::GET);
    let names: Vec<_> = allowed_methods
        .iter()
        .filter(|method| !(has_get && **method == Method::HEAD))
        .map(Method::as_str)
        .collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => format!(": use {only}"),
        [others @ .., last] => format!(": use {} or {last}", others.join(", ")),
    }
}

/// Returns the error code for these faults. Some faults, such as a malformed IRN, have a code of their own, which is
/// used if there is no other fault.
fn fault_code(faults: &Faults) -> ErrorCode {
    let mut rules = faults.iter().map(Fault::rule);
    match (rules.next(), rules.next()) {
        (Some("irn_malformed"), None) => ErrorCode::IrnMalformed,
        (Some("irn_service_id_mismatch"), None) => ErrorCode::IrnServiceIdMismatch,
        (Some("irn_taken"), None) => ErrorCode::IrnTaken,
        (Some("category_conflict"), None) => ErrorCode::CategoryConflict,
        (Some("payment_exceeds_payable"), None) => ErrorCode::PaymentExceedsPayable,
        (Some("batch_too_large"), None) => ErrorCode::BatchTooLarge,
        _ => ErrorCode::ValidationFailed,
    }
}

impl From<Faults> for ApiError {
    fn from(faults: Faults) -> Self {
        Self::invalid(faults)
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        Self::invalid(fault.into())
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        let is_temporary = is_temporary(&refusal);
        let (code, faults) = match refusal {
            Refusal::Invalid(faults) => return Self::invalid(faults),
            Refusal::InvoiceNotSigned => {
                return Self::new(ErrorCode::InvoiceNotSigned, message).with_retryable(false);
            }
            Refusal::SignatureUnderWay => {
                return Self::new(ErrorCode::InvoiceNotSigned, message)
                    .with_retryable(true)
                    .with_retry_after(AUTHORITY_RETRY_AFTER);
            }
            Refusal::ProfileIncomplete(missing) => {
                (ErrorCode::ProfileIncomplete, missing_field_faults(&missing))
            }
            Refusal::PaymentExceedsPayable(fault) => {
                (ErrorCode::PaymentExceedsPayable, fault.into())
            }
            Refusal::IrnServiceIdMismatch(fault) => (ErrorCode::IrnServiceIdMismatch, fault.into()),
            Refusal::InvoiceNotFound => (ErrorCode::InvoiceNotFound, Faults::default()),
            Refusal::TaxpayerNotFound => (ErrorCode::TaxpayerNotFound, Faults::default()),
            Refusal::RunNotFound => (ErrorCode::RunNotFound, Faults::default()),
            Refusal::SubscriptionInactive => (ErrorCode::SubscriptionInactive, Faults::default()),
            Refusal::TaxpayerUnverified => (ErrorCode::TaxpayerUnverified, Faults::default()),
            Refusal::InvoiceLocked(_) => (ErrorCode::InvoiceLocked, Faults::default()),
            Refusal::InvoiceNotApproved(_) => (ErrorCode::InvoiceNotApproved, Faults::default()),
            Refusal::InvalidTransition { .. }
            | Refusal::ChangedDuringApproval
            | Refusal::ChangedDuringPreparation
            | Refusal::PaymentUnderWay
            | Refusal::PaidAtAuthority
            | Refusal::PaidUnderWay
            | Refusal::TooManyCreditNotes
            | Refusal::ActionNotAllowed { .. }
            | Refusal::RunUnsettled { .. }
            | Refusal::RunTookEffect
            | Refusal::WebhookDisabled
            | Refusal::ReplayEnded
            | Refusal::TooManyReplays
            | Refusal::TooManyKeys(_)
            | Refusal::DefaultEndpointStays
            | Refusal::NotCorrectable(_)
            | Refusal::NotYetCorrectable(_)
            | Refusal::ImportEnded
            | Refusal::BatchBeingImported { .. }
            | Refusal::CommandNotReplayable(_) => (ErrorCode::InvalidTransition, Faults::default()),
            Refusal::ReplayNotFound => (ErrorCode::ReplayNotFound, Faults::default()),
            Refusal::EndpointNotFound => (ErrorCode::EndpointNotFound, Faults::default()),
            Refusal::CorrectionNotFound => (ErrorCode::CorrectionNotFound, Faults::default()),
            Refusal::ImportNotFound => (ErrorCode::ImportNotFound, Faults::default()),
            Refusal::CommandNotFound => (ErrorCode::CommandNotFound, Faults::default()),
            Refusal::DeliveryNotFound => (ErrorCode::DeliveryNotFound, Faults::default()),
            Refusal::InvoiceChanged | Refusal::CustomerChanged => {
                (ErrorCode::PreconditionFailed, Faults::default())
            }
            Refusal::IrnContentChanged => (ErrorCode::IrnContentChanged, Faults::default()),
            Refusal::WebhookNotConfigured => (ErrorCode::WebhookNotConfigured, Faults::default()),
            Refusal::NotAddressedToCaller => (ErrorCode::NotAddressedToCaller, Faults::default()),
            Refusal::AlreadyAcknowledged => (ErrorCode::AlreadyAcknowledged, Faults::default()),
        };
        Self {
            is_temporary,
            ..Self::new(code, message).with_faults(faults)
        }
    }
}

/// Returns true for a refusal that is due to other work in progress at the same moment. The message of such a refusal
/// asks the caller to send the request again.
fn is_temporary(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::ChangedDuringApproval
            | Refusal::ChangedDuringPreparation
            | Refusal::PaymentUnderWay
            | Refusal::PaidUnderWay
            | Refusal::NotYetCorrectable(_)
            | Refusal::BatchBeingImported { .. }
            | Refusal::TooManyReplays
    )
}

fn missing_field_faults(missing: &[&'static str]) -> Faults {
    missing
        .iter()
        .map(|field| Fault::field(*field, FieldRule::Required))
        .collect()
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Broken(_) | StoreError::Corrupt { .. } => Self::internal(error),
            StoreError::Unsettled => Self::interruption_error().with_cause(error),
            StoreError::Unavailable(_)
            | StoreError::Duplicate(_)
            | StoreError::Stale
            | StoreError::NotCommitted
            | StoreError::Locked => overload_error(RETRY_AFTER).with_cause(error),
        }
    }
}

pub(crate) fn overload_error(retry_after: Duration) -> ApiError {
    ApiError::new(
        ErrorCode::Overloaded,
        "The service is busy, please try again",
    )
    .with_retry_after(retry_after)
}

impl From<TaxpayerError> for ApiError {
    fn from(failure: TaxpayerError) -> Self {
        let cause = failure.to_string();
        match failure {
            TaxpayerError::Refused(refusal) => refusal.into(),
            TaxpayerError::Store(error) => error.into(),
            TaxpayerError::Busy { retry_after } => {
                let message = "Too many requests of this taxpayer are under way, please try again";
                Self::new(ErrorCode::RateLimited, message).with_retry_after(retry_after)
            }
            TaxpayerError::Overloaded { retry_after } => overload_error(retry_after),
            TaxpayerError::Paused => {
                Self::new(ErrorCode::Overloaded, PAUSE_MESSAGE).with_retry_after(PAUSE_RETRY_AFTER)
            }
            TaxpayerError::Interrupted { .. } => Self::interruption_error().with_cause(cause),
            TaxpayerError::Quarantined { .. } => Self::internal(cause),
            TaxpayerError::AlreadyProcessed => Self::idempotency_in_progress(),
        }
    }
}

/// Capitalizes the first letter. Error messages of lower layers begin with a lower-case letter.
pub(crate) fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}

impl std::error::Error for ApiError {}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    /// Returns a response without a body. The outermost middleware takes the error from it and renders the body.
    fn error_response(&self) -> HttpResponse {
        HttpResponse::new(self.status)
    }
}

#[cfg(test)]
mod tests {
    use authority_client::{AuthorityFailure, Cause};

    use super::*;
    use crate::domain::kernel::codes::WorkflowStatus;

    fn status_and_code(error: impl Into<ApiError>) -> (u16, &'static str) {
        let error = error.into();
        (error.status.as_u16(), error.code.as_str())
    }

    #[test]
    fn a_refusal_keeps_its_sentence_and_gets_its_code() {
        let locked = ApiError::from(Refusal::InvoiceLocked(WorkflowStatus::Submitted));
        assert_eq!(
            (locked.status.as_u16(), locked.code),
            (409, ErrorCode::InvoiceLocked)
        );
        assert_eq!(
            &*locked.message,
            "The invoice is submitted and can no longer be changed: correct it with a credit note"
        );
        let validated = ApiError::from(Refusal::InvoiceLocked(WorkflowStatus::Validated));
        assert_eq!(
            &*validated.message,
            "The invoice is validated and can no longer be changed: submit the corrected document with the same irn"
        );
        assert_eq!(
            status_and_code(Refusal::InvoiceNotFound),
            (404, "INVOICE_NOT_FOUND")
        );
    }

    #[test]
    fn an_invoice_that_is_being_signed_can_be_transmitted_later() {
        for (refusal, is_retryable, retry_after) in [
            (Refusal::InvoiceNotSigned, false, None),
            (
                Refusal::SignatureUnderWay,
                true,
                Some(AUTHORITY_RETRY_AFTER),
            ),
        ] {
            let sentence = refusal.to_string();
            let error = ApiError::from(refusal);
            let status_and_code = (error.status.as_u16(), error.code.as_str());
            assert_eq!(status_and_code, (500, "INVOICE_NOT_SIGNED"), "{sentence}");
            assert_eq!(error.retryable, Some(is_retryable), "{sentence}");
            assert_eq!(error.retry_after, retry_after, "{sentence}");
        }
    }

    #[test]
    fn an_incomplete_profile_names_the_fields_it_lacks() {
        let error = ApiError::from(Refusal::ProfileIncomplete(vec!["city", "state"]));
        assert_eq!(
            status_and_code(Refusal::ProfileIncomplete(vec![])),
            (403, "PROFILE_INCOMPLETE")
        );
        assert_eq!(
            error.faults.by_path().into_keys().collect::<Vec<_>>(),
            ["city", "state"]
        );
    }

    #[test]
    fn a_lone_fault_of_an_irn_has_a_code_of_its_own() {
        let irn = || Fault::new("irn", "irn_malformed", "Odd.");
        let other = Fault::new("email", "email", "Odd.");
        assert_eq!(status_and_code(irn()), (422, "IRN_MALFORMED"));
        assert_eq!(
            status_and_code([irn(), other].into_iter().collect::<Faults>()),
            (422, "VALIDATION_FAILED")
        );
    }

    #[test]
    fn a_busy_store_asks_to_try_again_and_a_corrupt_one_does_not() {
        for busy in [
            StoreError::Stale,
            StoreError::NotCommitted,
            StoreError::Locked,
        ] {
            let busy = ApiError::from(busy);
            assert_eq!(
                (busy.code, busy.retry_after),
                (ErrorCode::Overloaded, Some(RETRY_AFTER))
            );
        }
        let corrupt = ApiError::from(StoreError::Corrupt {
            table: "invoices",
            id: "7".into(),
            reason: "odd".into(),
        });
        assert_eq!(
            (corrupt.code, corrupt.retry_after),
            (ErrorCode::InternalError, None)
        );
        assert!(
            !corrupt.message.contains("invoices"),
            "the cause is shown in the log only"
        );
    }

    #[test]
    fn each_failure_of_the_authority_has_its_own_code() {
        let refused = AuthorityFailure::Refused {
            status: 400,
            message: "tin is unknown".into(),
        };
        let refused = ApiError::from(refused);
        assert_eq!(&*refused.message, "tin is unknown");
        assert_eq!(
            (refused.status.as_u16(), refused.code.as_str()),
            (422, "AUTHORITY_REJECTED")
        );
        let timed_out = AuthorityFailure::Unknown {
            reason: Cause::TimedOut {
                after: Duration::from_secs(30),
            },
        };
        assert_eq!(status_and_code(timed_out), (504, "AUTHORITY_TIMEOUT"));
        let down = ApiError::from(AuthorityFailure::Retryable {
            reason: Cause::Down { status: 503 },
        });
        assert_eq!(
            (down.status.as_u16(), down.retry_after),
            (502, Some(AUTHORITY_RETRY_AFTER))
        );
        assert_eq!(&*down.message, "The authority is failing (HTTP 503)");
        let paused = ApiError::from(AuthorityFailure::Paused);
        assert_eq!(paused.status.as_u16(), 503);
        assert!(paused.message.contains("--paused"), "{}", paused.message);
        assert_eq!(
            status_and_code(AuthorityFailure::Paused),
            (503, "AUTHORITY_UNAVAILABLE")
        );
    }
}
