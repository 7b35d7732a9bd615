//! Asks the authority for the status of an invoice, to find out whether an earlier call took effect: by `confirm` first
//! and, if that fails, by a search. A search may not show recent changes, so a missing row proves nothing.

use authority_client::{AuthorityFailure, Confirmation, SearchQuery};
use serde_json::Value;

use crate::actors::pipeline::step_executor::StepExecutor;
use crate::domain::pipeline::{ResolvedBy, Run};
use crate::store::accounts::taxpayers;

/// The status that the authority reports for a signed IRN. A field is `None` if the answer does not contain it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RemoteStatus {
    pub(super) by: ResolvedBy,
    pub(super) issue_date: Option<String>,
    pub(super) due_date: Option<String>,
    pub(super) payment_status: Option<String>,
    pub(super) transmitted: Option<bool>,
}

impl From<Confirmation> for RemoteStatus {
    fn from(confirmation: Confirmation) -> Self {
        Self {
            by: ResolvedBy::Confirm,
            issue_date: confirmation.issue_date,
            due_date: confirmation.due_date,
            payment_status: Some(confirmation.payment_status),
            transmitted: Some(confirmation.transmitted),
        }
    }
}

impl RemoteStatus {
    /// Reads a row of the authority's search. Without the flag `transmitted`, the status in `entry_status` says whether
    /// the invoice was transmitted.
    fn from_row(row: &Value) -> Self {
        let text = |name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
        let by_word = match text("entry_status").as_deref() {
            Some("TRANSMITTED" | "DELIVERED") => Some(true),
            Some("SIGNED") => Some(false),
            _ => None,
        };
        Self {
            by: ResolvedBy::Search,
            issue_date: text("issue_date"),
            due_date: text("due_date"),
            payment_status: text("payment_status"),
            transmitted: row.get("transmitted").and_then(Value::as_bool).or(by_word),
        }
    }
}

impl StepExecutor<'_> {
    /// Asks the authority whether an earlier call took effect; `shows_effect` decides this from the status that the
    /// authority reports. Returns that status if the call took effect, or `None` if `confirm` shows that it did not. If
    /// `confirm` fails and the search shows no effect, returns the failure of `confirm`.
    pub(super) async fn find_effect_of_earlier_call(
        &self,
        run: &Run,
        shows_effect: impl Fn(&RemoteStatus) -> bool,
    ) -> Result<Option<RemoteStatus>, AuthorityFailure> {
        let irn = run.irn.as_str();
        let confirm_failure = match self.authority.confirm(irn).await {
            Ok(confirmation) => {
                return Ok(Some(RemoteStatus::from(confirmation)).filter(shows_effect));
            }
            Err(AuthorityFailure::NotFound { .. }) => return Ok(None),
            Err(failure) => failure,
        };
        match self.search_status(run).await.filter(shows_effect) {
            Some(status) => Ok(Some(status)),
            None => Err(confirm_failure),
        }
    }

    /// Searches for the run's IRN and returns the status in its row; `None` if the search fails or has no such row.
    async fn search_status(&self, run: &Run) -> Option<RemoteStatus> {
        let business_id = self.business_id(run).await?;
        let irn = run.irn.as_str();
        let query = SearchQuery {
            irn: Some(irn.to_owned()),
            ..SearchQuery::default()
        };
        let page = self
            .authority
            .search_invoices(&business_id, &query)
            .await
            .ok()?;
        let ours = page.items.iter().find(|row| {
            row["irn"]
                .as_str()
                .is_some_and(|found| found.eq_ignore_ascii_case(irn))
        });
        ours.map(RemoteStatus::from_row)
    }

    /// Returns the taxpayer's business id with the authority: from the run's document, else from the stored taxpayer.
    async fn business_id(&self, run: &Run) -> Option<String> {
        let named = run
            .payload
            .submission()
            .and_then(|document| document.business_id.clone());
        if named.is_some() {
            return named;
        }
        match taxpayers::find_by_id(self.store.reader(), run.taxpayer_id).await {
            Ok(taxpayer) => Some(taxpayer?.business_id),
            Err(error) => {
                tracing::warn!(irn = %run.irn, %error, "failed to load a run's taxpayer");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_tells_of_the_transmission_by_a_flag_or_by_a_word_or_not_at_all() {
        for (row, transmitted) in [
            (
                json!({ "transmitted": true, "entry_status": "SIGNED" }),
                Some(true),
            ),
            (
                json!({ "transmitted": false, "entry_status": "SIGNED" }),
                Some(false),
            ),
            (json!({ "entry_status": "TRANSMITTED" }), Some(true)),
            (json!({ "entry_status": "DELIVERED" }), Some(true)),
            (json!({ "entry_status": "SIGNED" }), Some(false)),
            (json!({ "entry_status": "ODD", "transmitted": "yes" }), None),
            (json!({}), None),
        ] {
            assert_eq!(
                RemoteStatus::from_row(&row).transmitted,
                transmitted,
                "{row}"
            );
        }
    }
}
