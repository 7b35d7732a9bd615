//! The authority's record of a signed invoice.

use serde::Serialize;
use utoipa::ToSchema;

/// The data of `GET /invoice/confirm/{irn}`. Dates are as the authority writes them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Confirmation {
    issue_date: Option<String>,
    due_date: Option<String>,
    sync_date: Option<String>,
    /// PENDING, PARTIAL, PAID or REJECTED.
    payment_status: String,
    transmitted: bool,
    delivered: bool,
}

impl From<authority_client::Confirmation> for Confirmation {
    fn from(confirmation: authority_client::Confirmation) -> Self {
        Self {
            issue_date: confirmation.issue_date,
            due_date: confirmation.due_date,
            sync_date: confirmation.sync_date,
            payment_status: confirmation.payment_status,
            transmitted: confirmation.transmitted,
            delivered: confirmation.delivered,
        }
    }
}
