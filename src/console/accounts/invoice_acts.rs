//! The acts that the page of an invoice offers in the invoice's current state.

use crate::console::accounts::invoice_fields::LINES_MAX;
use crate::console::accounts::pause_cause::InvoiceRuns;
use crate::domain::correction::credits::InvoiceCredits;
use crate::domain::correction::refund_share::RefundShare;
use crate::domain::correction::signed_invoice::SignedContentComparison;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::lifecycle::{Stage, Transition};
use crate::domain::kernel::codes::{
    AuthorityStatus, DocumentKind, PaymentStatus, SettableStatus, WorkflowStatus, is_self_billed,
};
use crate::domain::pipeline::{Operation, Run, RunState};
use crate::domain::reference::catalog::Catalog;
use crate::http::corrections::refund_sentence;

/// An act that has its own button in the head of the page. The first button is the main one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeadButton {
    /// The path that the button's form is sent to, below the path of the invoice.
    pub(super) path: &'static str,
    pub(super) label: &'static str,
    /// The status that the form sets; empty for other forms.
    pub(super) status: &'static str,
    /// Says what the act does, for the title of the button.
    pub(super) effect: &'static str,
}

/// A status to which the invoice can be set back. Its form is folded and asks a question before the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatusAct {
    pub(super) value: &'static str,
    pub(super) label: &'static str,
    pub(super) question: String,
}

/// The payments that the service accepts for an invoice.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcceptedPayments {
    #[default]
    None,
    /// Nothing is left to pay, or the invoice can no longer be paid; the word for the payment can be changed.
    StatusOnly,
    Any,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct InvoiceActs {
    pub(super) head_buttons: Vec<HeadButton>,
    pub(super) payments: AcceptedPayments,
    pub(super) is_editable: bool,
    pub(super) is_creditable: bool,
    /// True if signed credit notes leave nothing of the invoice. None of its acts is the main one then.
    pub(super) is_settled_by_credits: bool,
    pub(super) statuses: Vec<StatusAct>,
}

const APPROVE: HeadButton = HeadButton {
    path: "status",
    label: "Approve",
    status: "approved",
    effect: "The invoice can then be submitted and paid.",
};
const APPROVE_AND_SUBMIT: HeadButton = HeadButton {
    effect: "The invoice is approved, and the account submits what is approved: it goes to the authority to be signed.",
    ..APPROVE
};
const SUBMIT: HeadButton = HeadButton {
    path: "submit",
    label: "Submit",
    status: "",
    effect: "The stored invoice goes to the authority to be signed.",
};
const SEND_AGAIN: HeadButton = HeadButton {
    label: "Send again",
    ..SUBMIT
};
const TRY_NOW: HeadButton = HeadButton {
    path: "retry",
    label: "Try now",
    status: "",
    effect: "The authority is called at once instead of at the next attempt.",
};
const TRANSMIT: HeadButton = HeadButton {
    path: "transmit",
    label: "Transmit",
    status: "",
    effect: "The signed invoice goes to the customer.",
};

/// The facts besides the invoice itself that decide whether a credit note or a payment can be made here.
#[derive(Clone, Copy)]
pub(super) struct CreditFacts<'a> {
    /// The invoice type code; `None` if it is unknown.
    pub(super) code: Option<&'a str>,
    pub(super) credits: &'a InvoiceCredits,
    /// The part of a credit note that is to be paid back; `None` if it is not known, or for any other document.
    pub(super) refund_share: Option<&'a RefundShare>,
    /// The runs of the invoice. The one that submitted it has the signed document.
    pub(super) runs: &'a [Run],
    pub(super) catalog: &'a Catalog,
}

impl AcceptedPayments {
    pub(super) fn is_any(self) -> bool {
        self == Self::Any
    }

    pub(super) fn is_none(self) -> bool {
        self == Self::None
    }
}

impl InvoiceActs {
    pub(super) fn new(
        invoice: &Invoice,
        runs: InvoiceRuns<'_>,
        submits_after_approval: bool,
        facts: CreditFacts<'_>,
    ) -> Self {
        let submission = runs.state(Operation::Submit);
        let transmission = runs.state(Operation::Transmit);
        let is_signed = invoice.authority.signed;
        let mut head_buttons = first_acts(invoice, submission, submits_after_approval);
        if runs.continuable_run().is_some() {
            head_buttons.push(TRY_NOW);
        }
        let is_transmittable = is_signed
            && submission == Some(RunState::Succeeded)
            && invoice.status.stage() < Some(Stage::Transmitted)
            && invoice.category.needs_tin()
            && !is_run_unfinished(transmission);
        if is_transmittable {
            head_buttons.push(TRANSMIT);
        }
        let is_settled_by_credits = facts.credits.leave_nothing(invoice);
        let may_be_paid = !is_settled_by_credits && invoice.status.after(Transition::Pay).is_ok();
        let share = facts.refund_share;
        let payments = if share.is_some_and(RefundShare::is_set_off_only) {
            AcceptedPayments::None
        } else if may_be_paid && invoice.payment.status != PaymentStatus::Paid {
            AcceptedPayments::Any
        } else if may_be_paid || !invoice.payment.paid.is_zero() {
            AcceptedPayments::StatusOnly
        } else {
            AcceptedPayments::None
        };
        let is_editable = !is_signed
            && !invoice.is_full()
            && invoice.lines.len() <= LINES_MAX
            && invoice.status.after(Transition::Edit).is_ok()
            && !runs
                .runs
                .iter()
                .any(|run| run.operation() == Operation::Submit && !run.is_replaceable());
        Self {
            head_buttons,
            payments,
            is_editable,
            is_settled_by_credits,
            is_creditable: is_signed
                && facts.credits.unsigned.is_empty()
                && credit_obstacle(invoice, facts).is_none(),
            statuses: status_acts(invoice),
        }
    }
}

/// Returns why no credit note for a signed invoice can be made here; `None` if one can.
pub(super) fn credit_obstacle(invoice: &Invoice, facts: CreditFacts<'_>) -> Option<&'static str> {
    if let Some(obstacle) = correction_obstacle(facts.code) {
        return Some(obstacle);
    }
    if !facts.credits.signed.is_empty() {
        return Some(
            "This invoice has a credit note already. Correct it: that credits only what is left.",
        );
    }
    let signed = facts.runs.iter().find_map(|run| run.payload.submission());
    let signed = signed.and_then(|document| document.as_json().as_object());
    let content = signed.map_or(SignedContentComparison::AsStored, |document| {
        SignedContentComparison::compare(invoice, document, facts.catalog)
    });
    match content {
        SignedContentComparison::Unknown => Some(
            "The authority signed other lines or amounts than are stored here. Create the credit note in the system that sent the document.",
        ),
        SignedContentComparison::Other => Some(SIGNED_OTHERWISE),
        SignedContentComparison::AsStored if invoice.payment.signed_payable.is_some() => {
            Some(SIGNED_OTHERWISE)
        }
        SignedContentComparison::AsStored => (invoice.lines.len() > LINES_MAX).then_some(
            "This invoice has many lines. Create the credit note in the system that created the invoice.",
        ),
    }
}

const SIGNED_OTHERWISE: &str = "The authority signed other lines or amounts than are stored here. Correct the invoice: that credits what was signed.";

/// Returns why this service makes no credit note for an invoice of this type; `None` if it does.
pub(super) fn correction_obstacle(code: Option<&str>) -> Option<&'static str> {
    let kind = code.map(DocumentKind::from_type_code);
    if kind.is_some_and(DocumentKind::is_credit_note) {
        return Some("This is a credit note itself.");
    }
    code.is_some_and(is_self_billed).then_some(
        "This invoice is self-billed. Create its credit note in the system that created the invoice.",
    )
}

/// Returns the acts that approve and submit the invoice, the main one first. A rejected draft is sent again rather than
/// approved.
fn first_acts(
    invoice: &Invoice,
    submission: Option<RunState>,
    submits_after_approval: bool,
) -> Vec<HeadButton> {
    let is_approvable = invoice.status == WorkflowStatus::Draft && !is_run_unfinished(submission);
    let approval = is_approvable.then_some(if submits_after_approval {
        APPROVE_AND_SUBMIT
    } else {
        APPROVE
    });
    let submit = submit_act(invoice, submission);
    let acts = if invoice.authority.status == AuthorityStatus::Rejected {
        [submit, approval]
    } else {
        [approval, submit]
    };
    acts.into_iter().flatten().collect()
}

/// Returns the act that submits the invoice. A draft must be approved first, unless the authority has rejected it
/// already. An invoice that the authority has validated but not signed is sent again.
fn submit_act(invoice: &Invoice, submission: Option<RunState>) -> Option<HeadButton> {
    let is_settable = SettableStatus::parse(invoice.status.as_str()).is_some()
        || matches!(
            invoice.status,
            WorkflowStatus::Paid | WorkflowStatus::Validated
        );
    if !is_settable || invoice.authority.signed || is_run_unfinished(submission) {
        return None;
    }
    let was_sent = submission.is_some() || invoice.authority.status == AuthorityStatus::Rejected;
    match invoice.status {
        WorkflowStatus::Cancelled => None,
        WorkflowStatus::Draft => was_sent.then_some(SEND_AGAIN),
        _ if was_sent => Some(SEND_AGAIN),
        _ => Some(SUBMIT),
    }
}

/// True for a run that will continue, by itself or when an operator or the account continues it. False if there is no
/// run.
fn is_run_unfinished(state: Option<RunState>) -> bool {
    matches!(
        state,
        Some(RunState::Running | RunState::Waiting | RunState::Paused)
    )
}

/// Returns the statuses to which the invoice can be set back. There are none for an invoice that is paid or that the
/// authority has validated.
fn status_acts(invoice: &Invoice) -> Vec<StatusAct> {
    let Some(current) = SettableStatus::parse(invoice.status.as_str()) else {
        return Vec::new();
    };
    let refund = refund_sentence(&invoice.currency, invoice.payment.paid).unwrap_or_default();
    let (noun, cancel) = if invoice.is_credit_note() {
        ("credit note", "Cancel the credit note")
    } else {
        ("invoice", "Cancel the invoice")
    };
    let all = [
        (
            SettableStatus::Draft,
            "Back to draft",
            format!("Take this {noun} back to draft?"),
        ),
        (
            SettableStatus::Cancelled,
            cancel,
            format!("Cancel this {noun}? {refund}")
                .trim_end()
                .to_owned(),
        ),
    ];
    all.into_iter()
        .filter(|(status, ..)| *status != current)
        .map(|(status, label, question)| StatusAct {
            value: status.as_str(),
            label,
            question,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;

    #[test]
    fn a_rejected_draft_is_sent_again_before_it_is_approved() {
        let pending = AuthorityStatus::Pending;
        let rejected = AuthorityStatus::Rejected;
        let refused = Some(RunState::Refused);
        let waiting = Some(RunState::Waiting);
        for (status, authority, submission, expected) in [
            (WorkflowStatus::Draft, pending, None, "Approve"),
            (
                WorkflowStatus::Draft,
                rejected,
                refused,
                "Send again, Approve",
            ),
            // The invoice was changed after its rejection.
            (
                WorkflowStatus::Draft,
                pending,
                refused,
                "Approve, Send again",
            ),
            (WorkflowStatus::Draft, AuthorityStatus::Queued, waiting, ""),
            (WorkflowStatus::Approved, pending, None, "Submit"),
            (WorkflowStatus::Approved, rejected, refused, "Send again"),
            (WorkflowStatus::Cancelled, rejected, refused, ""),
        ] {
            let mut invoice = signed(draft(vec![Line::sample()]));
            invoice.authority.signed = false;
            invoice.status = status;
            invoice.authority.status = authority;
            let acts = first_acts(&invoice, submission, false);
            let labels: Vec<_> = acts.iter().map(|act| act.label).collect();
            assert_eq!(labels.join(", "), expected, "{status} {authority}");
        }
    }
}
