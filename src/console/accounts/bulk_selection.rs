//! The actions that the list offers for many invoices at once, and the invoices that a person selected for an action.

use crate::console::accounts::list_filters;
use crate::console::accounts::seen_invoice::parse_id_with_seen_time;
use crate::console::form_values::FormValues;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::{AuthorityStatus, SettableStatus, WorkflowStatus, words};
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
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
        Cancel = "cancel",
        BackToDraft = "draft",
    }
}

/// The authority statuses of an invoice that is not with the authority: it was not submitted, or was rejected.
const NOT_AT_AUTHORITY: &[AuthorityStatus] = &[AuthorityStatus::Pending, AuthorityStatus::Rejected];

impl BulkAction {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Approve => "Approve",
            Self::Submit => "Submit",
            Self::ApproveAndSubmit => "Approve and submit",
            Self::Cancel => "Cancel",
            Self::BackToDraft => "Back to draft",
        }
    }

    /// Says what will happen to each invoice. `submits_after_approval` is the setting of the account.
    pub(super) fn effect_sentence(self, submits_after_approval: bool) -> &'static str {
        match self {
            Self::Approve if submits_after_approval => {
                "Each of these drafts is approved and, because this account submits approved invoices automatically, sent to the authority for signing. A signed invoice can no longer be changed."
            }
            Self::Approve => "Each of these drafts is approved. It can then be submitted and paid.",
            Self::Submit => {
                "Each of these invoices is sent to the authority for signing, as it is stored here. A signed invoice can no longer be changed."
            }
            Self::ApproveAndSubmit => {
                "Each of these drafts is approved and sent to the authority for signing. A signed invoice can no longer be changed."
            }
            Self::Cancel => {
                "Each of these drafts and approved invoices is cancelled: it can be neither submitted nor paid, and a submission that waits is withdrawn. A cancelled invoice can be taken back to draft."
            }
            Self::BackToDraft => {
                "Each of these invoices becomes a draft again. It can then be changed, approved or cancelled."
            }
        }
    }

    /// Returns the status that the action sets; `None` if it only submits.
    pub(super) fn new_status(self) -> Option<SettableStatus> {
        match self {
            Self::Approve | Self::ApproveAndSubmit => Some(SettableStatus::Approved),
            Self::Submit => None,
            Self::Cancel => Some(SettableStatus::Cancelled),
            Self::BackToDraft => Some(SettableStatus::Draft),
        }
    }

    pub(super) fn includes_submission(self) -> bool {
        matches!(self, Self::Submit | Self::ApproveAndSubmit)
    }

    /// Returns the workflow statuses to whose invoices the action can be applied. An approved invoice that was paid has
    /// the status "paid", and can still be submitted.
    pub(super) fn required_statuses(self) -> &'static [WorkflowStatus] {
        match self {
            Self::Approve | Self::ApproveAndSubmit => &[WorkflowStatus::Draft],
            Self::Submit => &[WorkflowStatus::Approved, WorkflowStatus::Paid],
            Self::Cancel => &[WorkflowStatus::Draft, WorkflowStatus::Approved],
            Self::BackToDraft => &[WorkflowStatus::Approved, WorkflowStatus::Cancelled],
        }
    }

    /// Returns the statuses at the authority to whose invoices the action can be applied; empty for all. An invoice
    /// can be cancelled while its submission waits, which is then withdrawn.
    pub(super) fn required_authority_statuses(self) -> &'static [AuthorityStatus] {
        match self {
            Self::Approve | Self::Submit | Self::ApproveAndSubmit | Self::BackToDraft => {
                NOT_AT_AUTHORITY
            }
            Self::Cancel => &[],
        }
    }

    /// Returns why the action cannot be applied to this invoice; `None` if it can be applied.
    pub(super) fn obstacle(self, invoice: &Invoice) -> Option<&'static str> {
        if self.required_statuses().contains(&invoice.status) {
            let required = self.required_authority_statuses();
            let is_allowed = required.is_empty() || required.contains(&invoice.authority.status);
            return (!is_allowed).then_some("with the authority already");
        }
        Some(match (self, invoice.status) {
            (Self::Approve | Self::ApproveAndSubmit, _) => "not a draft",
            (Self::Submit, WorkflowStatus::Draft) => "not approved yet",
            (Self::Submit, _) => "cancelled, validated or signed already",
            (Self::Cancel, WorkflowStatus::Cancelled) => "cancelled already",
            (Self::BackToDraft, WorkflowStatus::Draft) => "a draft already",
            (_, WorkflowStatus::Paid) => "paid",
            _ => "validated or signed already",
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

/// Returns the ids of the ticked invoices. Fails if there are none. The form of a preview has a time beside each id.
fn ticked_ids(values: &FormValues) -> Result<Vec<InvoiceId>, ApiError> {
    ticked_rows(values, |text| {
        parse_id_with_seen_time(text).map(|(id, _)| id)
    })
}

/// Returns the ticked rows of a list. Fails if there are none.
pub(super) fn ticked_rows<T>(
    values: &FormValues,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, ApiError> {
    let rows: Vec<_> = values.checked_values("id").filter_map(parse).collect();
    if rows.is_empty() {
        let message = "Nothing is chosen. Go back and tick at least one row.";
        return Err(ApiError::new(ErrorCode::ValidationFailed, message));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;
    use crate::domain::invoice::lifecycle::Transition;

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
                Some("cancelled, validated or signed already"),
            ),
            (
                Cancelled,
                Pending,
                Some("not a draft"),
                Some("cancelled, validated or signed already"),
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

    #[test]
    fn an_invoice_is_cancelled_or_taken_back_to_draft_until_it_is_paid_or_validated() {
        use AuthorityStatus::{Failed, Pending, Queued, Rejected};
        use WorkflowStatus::{Approved, Cancelled, Draft, Paid, Reported, Submitted, Validated};
        let queued = Some("with the authority already");
        let locked = Some("validated or signed already");
        // The statuses of the invoice, and why it can be neither cancelled nor taken back to draft.
        for (status, authority, cancellation, return_to_draft) in [
            (Draft, Pending, None, Some("a draft already")),
            (Draft, Queued, None, Some("a draft already")),
            (Approved, Pending, None, None),
            (Approved, Rejected, None, None),
            (Approved, Queued, None, queued),
            (Approved, Failed, None, queued),
            (Cancelled, Pending, Some("cancelled already"), None),
            (Cancelled, Queued, Some("cancelled already"), queued),
            (Paid, Pending, Some("paid"), Some("paid")),
            (Validated, AuthorityStatus::Validated, locked, locked),
            (Submitted, AuthorityStatus::Submitted, locked, locked),
            (Reported, AuthorityStatus::Reported, locked, locked),
        ] {
            let mut invoice = signed(draft(vec![Line::sample()]));
            invoice.status = status;
            invoice.authority.status = authority;
            let case = format!("{status} {authority}");
            let cancel = BulkAction::Cancel.obstacle(&invoice);
            assert_eq!(cancel, cancellation, "{case}");
            let back_to_draft = BulkAction::BackToDraft.obstacle(&invoice);
            assert_eq!(back_to_draft, return_to_draft, "{case}");
        }
    }

    #[test]
    fn an_action_is_offered_where_the_lifecycle_allows_its_status() {
        for action in BulkAction::ALL {
            let Some(new_status) = action.new_status() else {
                continue;
            };
            for status in action.required_statuses() {
                let next = status.after(Transition::Set(new_status));
                let expected = WorkflowStatus::parse(new_status.as_str());
                assert_eq!(next.ok(), expected, "{action} {status}");
            }
        }
    }
}
