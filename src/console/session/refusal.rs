//! The reasons why a page is not shown. `page::error_pages` turns each reason into a page or a redirect.

use actix_web::ResponseError;
use actix_web::http::StatusCode;

use crate::http::respond::error::ApiError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("nobody is signed in")]
    NotSignedIn,
    #[error("the code of the second factor is missing")]
    CodeMissing,
    #[error("password and code have to be entered first")]
    ConfirmationMissing,
    #[error("a second factor has to be set up first")]
    SecondFactorMissing,
    /// The role of the person is too low, or the form came from another site. The text says what to do.
    #[error("{0}")]
    NotAllowed(&'static str),
    #[error("{0}")]
    Failed(ApiError),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

impl ResponseError for Refusal {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::NotSignedIn
            | Self::CodeMissing
            | Self::ConfirmationMissing
            | Self::SecondFactorMissing => StatusCode::SEE_OTHER,
            Self::NotAllowed(_) => StatusCode::FORBIDDEN,
            Self::Failed(error) => error.status,
        }
    }
}
