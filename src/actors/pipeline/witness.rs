//! Who is asked what became of a call: `confirm` first and, where that gives no answer, the search. A search may lag
//! behind, so it is believed in what it shows and never in what it does not show.

use serde_json::Value;

use crate::actors::pipeline::steps::Caller;
use crate::authority::{AuthorityFailure, Confirmation, SearchQuery};
use crate::domain::pipeline::{ResolvedBy, Run};
use crate::store::accounts::taxpayers;

/// What a witness knows of a signed IRN. What it does not say is not known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) by: ResolvedBy,
    pub(super) issue_date: Option<String>,
    pub(super) due_date: Option<String>,
    pub(super) payment_status: Option<String>,
    pub(super) transmitted: Option<bool>,
}

impl From<Confirmation> for Sighting {
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

impl Sighting {
    /// Reads a row of a search, which tells of the transmission by a flag or by a word.
    fn of_row(row: &Value) -> Self {
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

impl Caller<'_> {
    /// What the first witness that can tell says of an effect; `None` where it did not happen. The failure is that of
    /// a question that nobody answered: nothing is known then.
    pub(super) async fn witness(
        &self,
        run: &Run,
        happened: impl Fn(&Sighting) -> bool,
    ) -> Result<Option<Sighting>, AuthorityFailure> {
        let silence = match self.authority.confirm(run.irn.as_str()).await {
            Ok(confirmation) => return Ok(Some(Sighting::from(confirmation)).filter(happened)),
            Err(AuthorityFailure::NotFound { .. }) => return Ok(None),
            Err(failure) => failure,
        };
        match self.search(run).await.filter(happened) {
            Some(sighting) => Ok(Some(sighting)),
            None => Err(silence),
        }
    }

    /// The row of the run's IRN, if a search shows it.
    async fn search(&self, run: &Run) -> Option<Sighting> {
        let business_id = self.business_id(run).await?;
        let irn = run.irn.as_str();
        let query = SearchQuery { irn: Some(irn.to_owned()), ..SearchQuery::default() };
        let page = self.authority.search(&business_id, &query).await.ok()?;
        let is_ours = |row: &&Value| row["irn"].as_str().is_some_and(|found| found.eq_ignore_ascii_case(irn));
        page.items.iter().find(is_ours).map(Sighting::of_row)
    }

    /// Under which name the authority knows the taxpayer: that of the document, where there is one.
    async fn business_id(&self, run: &Run) -> Option<String> {
        if let Some(named) = run.document.get("business_id").and_then(Value::as_str) {
            return Some(named.to_owned());
        }
        match taxpayers::with_id(self.store.reader(), run.taxpayer_id).await {
            Ok(taxpayer) => Some(taxpayer?.business_id),
            Err(error) => {
                tracing::warn!(irn = %run.irn, %error, "a run's taxpayer could not be read");
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
            (json!({ "transmitted": true, "entry_status": "SIGNED" }), Some(true)),
            (json!({ "transmitted": false, "entry_status": "SIGNED" }), Some(false)),
            (json!({ "entry_status": "TRANSMITTED" }), Some(true)),
            (json!({ "entry_status": "DELIVERED" }), Some(true)),
            (json!({ "entry_status": "SIGNED" }), Some(false)),
            (json!({ "entry_status": "ODD", "transmitted": "yes" }), None),
            (json!({}), None),
        ] {
            assert_eq!(Sighting::of_row(&row).transmitted, transmitted, "{row}");
        }
    }
}
