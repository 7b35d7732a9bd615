//! The actions that the list offers for many invoices at once, and the invoices that a person selected for an action.

use crate::console::accounts::list_filters;
use crate::console::form_values::FormValues;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::{AuthorityStatus, WorkflowStatus, words};
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId, parse_id};
use crate::http::forms::query::Query;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::list::{InvoiceFilter, InvoiceList, InvoiceSort};

words! {
    /// An action on each of the chosen invoices.
    BulkAction {
        Approve = "approve",
        Submit = "submit",
        ApproveAndSubmit = "approve-submit",
    }
}

/// An invoice can be approved or submitted here only if it has one of these statuses at the authority.
pub(super) const STATUSES_AT_REST: [AuthorityStatus; 2] =
    [AuthorityStatus::Pending, AuthorityStatus::Rejected];

impl BulkAction {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Approve => "Approve",
            Self::Submit => "Submit",
            Self::ApproveAndSubmit => "Approve and submit",
        }
    }

    /// Says what will happen to each invoice. `submits_after_approval` is the setting of the account.
    pub(super) fn effect_sentence(self, submits_after_approval: bool) -> &'static str {
        match self {
            Self::Approve if submits_after_approval => {
                "Each of these drafts is approved. The account submits what is approved: the document of each goes to the authority, which signs it. A signed invoice does not change any more."
            }
            Self::Approve => "Each of these drafts is approved. It can then be submitted and paid.",
            Self::Submit => {
                "The stored document of each goes to the authority, which signs it. A signed invoice does not change any more."
            }
            Self::ApproveAndSubmit => {
                "Each of these drafts is approved and goes to the authority, which signs it. A signed invoice does not change any more."
            }
        }
    }

    pub(super) fn includes_approval(self) -> bool {
        self != Self::Submit
    }

    /// Returns the workflow statuses to whose invoices the action can be applied. An approved invoice that was paid has
    /// the status "paid", and can still be submitted.
    pub(super) fn required_statuses(self) -> &'static [WorkflowStatus] {
        if self.includes_approval() {
            &[WorkflowStatus::Draft]
        } else {
            &[WorkflowStatus::Approved, WorkflowStatus::Paid]
        }
    }

    /// Returns why the action cannot be applied to this invoice; `None` if it can be applied.
    pub(super) fn obstacle(self, invoice: &Invoice) -> Option<&'static str> {
        if self.required_statuses().contains(&invoice.status) {
            let is_at_rest = STATUSES_AT_REST.contains(&invoice.authority.status);
            return (!is_at_rest).then_some("with the authority already");
        }
        Some(match (self.includes_approval(), invoice.status) {
            (true, _) => "not a draft",
            (false, WorkflowStatus::Draft) => "not approved yet",
            (false, _) => "not to be submitted",
        })
    }
}

/// The buttons above the list.
pub(super) struct BulkBar {
    pub(super) filter: String,
    pub(super) actions: Vec<(&'static str, &'static str)>,
}

impl BulkBar {
    /// `query` is the query string of the list, including the question mark.
    pub(super) fn new(query: &str) -> Self {
        let actions = BulkAction::ALL.iter();
        Self {
            filter: query.trim_start_matches('?').to_owned(),
            actions: actions
                .map(|action| (action.as_str(), action.label()))
                .collect(),
        }
    }
}

/// The invoices that a person selected in the list.
pub(super) enum InvoiceSelection {
    Ticked(Vec<InvoiceId>),
    /// All invoices that match this filter, which is a query of the list.
    Matching(String),
}

impl InvoiceSelection {
    pub(super) fn from_form(values: &FormValues) -> Result<Self, ApiError> {
        if !values.text("all").is_empty() {
            return Ok(Self::Matching(values.text("filter").to_owned()));
        }
        ticked_ids(values).map(Self::Ticked)
    }

    pub(super) fn into_invoice_list(
        self,
        state: &ApiState,
        taxpayer: TaxpayerId,
    ) -> Result<InvoiceList, ApiError> {
        match self {
            Self::Matching(filter) => {
                let query = Query::from_text(&filter);
                let list_query =
                    list_filters::read_list_query(&query, state.today(), &state.catalog.get())?;
                Ok(list_query.into_list(taxpayer))
            }
            Self::Ticked(ids) => Ok(InvoiceList {
                taxpayer,
                filters: InvoiceFilter {
                    ids: Some(ids),
                    ..InvoiceFilter::default()
                },
                sort: InvoiceSort::NEWEST_FIRST,
            }),
        }
    }
}

/// Returns the ids of the ticked invoices. Fails if there are none.
fn ticked_ids(values: &FormValues) -> Result<Vec<InvoiceId>, ApiError> {
    ticked_rows(values, |text| parse_id(text).map(InvoiceId))
}

/// Returns the ticked rows of a list. Fails if there are none.
pub(super) fn ticked_rows<T>(
    values: &FormValues,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, ApiError> {
    let rows: Vec<_> = values.checked_values("id").filter_map(parse).collect();
    if rows.is_empty() {
        let message = "Nothing is chosen. Go back and tick what you mean.";
        return Err(ApiError::new(ErrorCode::ValidationFailed, message));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;

    #[test]
    fn a_paid_invoice_that_was_not_submitted_is_submitted() {
        use AuthorityStatus::{Pending, Queued, Rejected};
        use WorkflowStatus::{Approved, Cancelled, Draft, Paid, Submitted};
        // The statuses of the invoice, and why it can be neither approved nor submitted.
        for (status, authority, approval, submission) in [
            (Draft, Pending, None, Some("not approved yet")),
            (Approved, Pending, Some("not a draft"), None),
            (Approved, Rejected, Some("not a draft"), None),
            (Paid, Pending, Some("not a draft"), None),
            (
                Paid,
                Queued,
                Some("not a draft"),
                Some("with the authority already"),
            ),
            (
                Submitted,
                Pending,
                Some("not a draft"),
                Some("not to be submitted"),
            ),
            (
                Cancelled,
                Pending,
                Some("not a draft"),
                Some("not to be submitted"),
            ),
        ] {
            let mut invoice = signed(draft(vec![Line::sample()]));
            invoice.status = status;
            invoice.authority.status = authority;
            let case = format!("{status} {authority}");
            assert_eq!(BulkAction::Approve.obstacle(&invoice), approval, "{case}");
            assert_eq!(BulkAction::Submit.obstacle(&invoice), submission, "{case}");
        }
    }
}
