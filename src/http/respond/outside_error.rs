//! The failures of calls to the authority and to receivers of webhooks, as failures of a request.

use actix_web::http::StatusCode;
use authority_client::{AuthorityFailure, CryptoError};

use crate::actors::delivery::TestDeliveryError;
use crate::actors::inbound::{InboxError, NoticeError};
use crate::actors::pipeline::handle::RelayError;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::{
    AUTHORITY_RETRY_AFTER, ApiError, RETRY_AFTER, capitalize, overload_error,
};

impl From<AuthorityFailure> for ApiError {
    fn from(failure: AuthorityFailure) -> Self {
        let message = capitalize(&failure.to_string());
        match &failure {
            // The words of the authority are passed on as they came.
            AuthorityFailure::Refused { message, .. } => {
                Self::new(ErrorCode::AuthorityRejected, message.clone())
            }
            AuthorityFailure::NotFound { .. } => Self::invoice_not_found(),
            AuthorityFailure::Paused => {
                paused_service_error(ErrorCode::AuthorityUnavailable, message)
            }
            _ => {
                let code = if failure.is_timeout() {
                    ErrorCode::AuthorityTimeout
                } else {
                    ErrorCode::AuthorityUnavailable
                };
                let wait = failure.retry_after().unwrap_or(AUTHORITY_RETRY_AFTER);
                Self::new(code, message).with_retry_after(wait)
            }
        }
    }
}

/// Returns the error for a call that is not made because the service is paused.
fn paused_service_error(code: ErrorCode, message: String) -> ApiError {
    ApiError::new(code, message)
        .with_status(StatusCode::SERVICE_UNAVAILABLE)
        .with_retry_after(AUTHORITY_RETRY_AFTER)
}

impl From<TestDeliveryError> for ApiError {
    fn from(failure: TestDeliveryError) -> Self {
        let message = capitalize(&failure.to_string());
        match failure {
            TestDeliveryError::Paused => {
                paused_service_error(ErrorCode::WebhookUnreachable, message)
            }
            TestDeliveryError::Refused(refusal) => refusal.into(),
            TestDeliveryError::Store(error) => error.into(),
            TestDeliveryError::Secret(fault) => Self::internal(fault),
        }
    }
}

impl From<RelayError> for ApiError {
    fn from(failure: RelayError) -> Self {
        match failure {
            RelayError::Taxpayer(failure) => failure.into(),
            RelayError::Authority(failure) => failure.into(),
            RelayError::Unreadable(error) => {
                let message = match error {
                    CryptoError::OtherDocument => {
                        "The authority sent the document of another invoice"
                    }
                    _ => {
                        "The authority sent a document that cannot be decrypted with this service's key"
                    }
                };
                Self::new(ErrorCode::AuthorityDocumentUnreadable, message).with_cause(error)
            }
        }
    }
}

impl From<InboxError> for ApiError {
    fn from(failure: InboxError) -> Self {
        match failure {
            InboxError::Taxpayer(failure) => failure.into(),
            InboxError::Authority(failure) => failure.into(),
        }
    }
}

/// The response to a notice that was not processed. Every error makes the authority send the notice again.
impl From<NoticeError> for ApiError {
    fn from(failure: NoticeError) -> Self {
        let cause = failure.to_string();
        match failure {
            NoticeError::UnknownInvoice | NoticeError::Withheld => {
                Self::invoice_not_found().with_cause(cause)
            }
            NoticeError::Busy => overload_error(RETRY_AFTER).with_cause(cause),
            NoticeError::Taxpayer(failure) => failure.into(),
            NoticeError::Authority(_)
            | NoticeError::TimedOut
            | NoticeError::Undecryptable(_)
            | NoticeError::WrongDocument(_) => {
                let message =
                    "The authority could not be asked about this invoice: send the notice again";
                let error = Self::new(ErrorCode::AuthorityUnavailable, message).with_cause(cause);
                error
                    .with_status(StatusCode::SERVICE_UNAVAILABLE)
                    .with_retry_after(AUTHORITY_RETRY_AFTER)
            }
        }
    }
}
