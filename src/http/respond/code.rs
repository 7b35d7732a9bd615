//! The table of all error codes, each with its usual status (docs/contract.md, "Errors").

use actix_web::http::StatusCode;

/// Declares the error codes. Each line names the variant, the text of the code and the usual status.
macro_rules! codes {
    ($($variant:ident = $text:literal, $status:ident;)+) => {
        /// An error code, which callers see as `error_code`. Callers' programs depend on it, so a code never changes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum ErrorCode { $($variant),+ }

        impl ErrorCode {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            pub(crate) fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status),+ }
            }
        }
    };
}

impl ErrorCode {
    /// Returns the path of the page about this code.
    pub(crate) fn page_path(self) -> String {
        format!("/docs/errors/{}", self.as_str())
    }
}

codes! {
    MalformedJson = "MALFORMED_JSON", BAD_REQUEST;
    Unauthenticated = "UNAUTHENTICATED", UNAUTHORIZED;
    InvalidApiKey = "INVALID_API_KEY", UNAUTHORIZED;
    KeyNotRecognized = "KEY_NOT_RECOGNIZED", FORBIDDEN;
    SubscriptionInactive = "SUBSCRIPTION_INACTIVE", FORBIDDEN;
    ProfileIncomplete = "PROFILE_INCOMPLETE", FORBIDDEN;
    KeyReadOnly = "KEY_READ_ONLY", FORBIDDEN;
    RoleInsufficient = "ROLE_INSUFFICIENT", FORBIDDEN;
    TaxpayerUnverified = "TAXPAYER_UNVERIFIED", FORBIDDEN;
    TaxpayerLimitReached = "TAXPAYER_LIMIT_REACHED", FORBIDDEN;
    NotAddressedToCaller = "NOT_ADDRESSED_TO_CALLER", FORBIDDEN;
    InvoiceNotFound = "INVOICE_NOT_FOUND", NOT_FOUND;
    InvoiceFileNotFound = "INVOICE_FILE_NOT_FOUND", NOT_FOUND;
    TaxpayerNotFound = "TAXPAYER_NOT_FOUND", NOT_FOUND;
    ContactNotFound = "CONTACT_NOT_FOUND", NOT_FOUND;
    IntegratorNotFound = "INTEGRATOR_NOT_FOUND", NOT_FOUND;
    OperatorNotFound = "OPERATOR_NOT_FOUND", NOT_FOUND;
    RunNotFound = "RUN_NOT_FOUND", NOT_FOUND;
    BatchNotFound = "BATCH_NOT_FOUND", NOT_FOUND;
    ImportNotFound = "IMPORT_NOT_FOUND", NOT_FOUND;
    CorrectionNotFound = "CORRECTION_NOT_FOUND", NOT_FOUND;
    DeliveryNotFound = "DELIVERY_NOT_FOUND", NOT_FOUND;
    ReplayNotFound = "REPLAY_NOT_FOUND", NOT_FOUND;
    EndpointNotFound = "ENDPOINT_NOT_FOUND", NOT_FOUND;
    CommandNotFound = "COMMAND_NOT_FOUND", NOT_FOUND;
    ReconciliationNotFound = "RECONCILIATION_NOT_FOUND", NOT_FOUND;
    RouteNotFound = "ROUTE_NOT_FOUND", NOT_FOUND;
    MethodNotAllowed = "METHOD_NOT_ALLOWED", METHOD_NOT_ALLOWED;
    RequestTimeout = "REQUEST_TIMEOUT", REQUEST_TIMEOUT;
    IdempotencyInProgress = "IDEMPOTENCY_IN_PROGRESS", CONFLICT;
    IrnContentChanged = "IRN_CONTENT_CHANGED", CONFLICT;
    InvoiceLocked = "INVOICE_LOCKED", CONFLICT;
    InvoiceNotApproved = "INVOICE_NOT_APPROVED", CONFLICT;
    InvalidTransition = "INVALID_TRANSITION", CONFLICT;
    AlreadyAcknowledged = "ALREADY_ACKNOWLEDGED", CONFLICT;
    PreconditionFailed = "PRECONDITION_FAILED", PRECONDITION_FAILED;
    PayloadTooLarge = "PAYLOAD_TOO_LARGE", PAYLOAD_TOO_LARGE;
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", UNSUPPORTED_MEDIA_TYPE;
    BatchTooLarge = "BATCH_TOO_LARGE", UNPROCESSABLE_ENTITY;
    ValidationFailed = "VALIDATION_FAILED", UNPROCESSABLE_ENTITY;
    IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED", UNPROCESSABLE_ENTITY;
    IrnMalformed = "IRN_MALFORMED", UNPROCESSABLE_ENTITY;
    IrnServiceIdMismatch = "IRN_SERVICE_ID_MISMATCH", UNPROCESSABLE_ENTITY;
    IrnTaken = "IRN_TAKEN", UNPROCESSABLE_ENTITY;
    CategoryConflict = "CATEGORY_CONFLICT", UNPROCESSABLE_ENTITY;
    PaymentExceedsPayable = "PAYMENT_EXCEEDS_PAYABLE", UNPROCESSABLE_ENTITY;
    WebhookNotConfigured = "WEBHOOK_NOT_CONFIGURED", UNPROCESSABLE_ENTITY;
    AuthorityRejected = "AUTHORITY_REJECTED", UNPROCESSABLE_ENTITY;
    RateLimited = "RATE_LIMITED", TOO_MANY_REQUESTS;
    InvoiceNotSigned = "INVOICE_NOT_SIGNED", INTERNAL_SERVER_ERROR;
    HealthCheckDown = "HEALTH_CHECK_DOWN", INTERNAL_SERVER_ERROR;
    AccessPointOffline = "ACCESS_POINT_OFFLINE", INTERNAL_SERVER_ERROR;
    NoCustomerAccessPoint = "NO_CUSTOMER_ACCESS_POINT", INTERNAL_SERVER_ERROR;
    ReportFailed = "REPORT_FAILED", INTERNAL_SERVER_ERROR;
    InternalError = "INTERNAL_ERROR", INTERNAL_SERVER_ERROR;
    AuthorityUnavailable = "AUTHORITY_UNAVAILABLE", BAD_GATEWAY;
    AuthorityDocumentUnreadable = "AUTHORITY_DOCUMENT_UNREADABLE", BAD_GATEWAY;
    WebhookUnreachable = "WEBHOOK_UNREACHABLE", BAD_GATEWAY;
    AuthorityTimeout = "AUTHORITY_TIMEOUT", GATEWAY_TIMEOUT;
    Overloaded = "OVERLOADED", SERVICE_UNAVAILABLE;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_code_is_in_the_table_twice() {
        let texts: BTreeSet<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(texts.len(), ErrorCode::ALL.len());
    }

    #[test]
    fn every_code_has_the_status_of_a_failure() {
        let line = |code: &ErrorCode| format!("{} {}", code.status().as_u16(), code.as_str());
        let table: Vec<_> = ErrorCode::ALL.iter().map(line).collect();
        assert!(
            ErrorCode::ALL
                .iter()
                .all(|code| code.status().is_client_error() || code.status().is_server_error())
        );
        insta::assert_snapshot!(table.join("\n"));
    }
}
