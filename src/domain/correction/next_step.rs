//! The next step of a correction. It depends on the next document to be signed and on its submission.

use crate::domain::correction::amounts::Amounts;
use crate::domain::correction::record::{Correction, DocumentPurpose, PlannedDocument};
use crate::domain::invoice::Invoice;
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::corrected_reference::CorrectedReference;
use crate::domain::kernel::codes::WorkflowStatus;
use crate::domain::pipeline::{Run, RunState};
use crate::domain::reference::catalog::Catalog;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// The document was signed: record that.
    Sign,
    /// Submit the document.
    Submit,
    /// Wait: the document is being submitted.
    Wait,
    /// Stop the correction until somebody acts, for this reason.
    Stop(String),
    /// Cancel the correction for this reason, because the document will not be signed.
    Cancel(String),
}

/// The next document of a correction to be signed.
#[derive(Debug, Clone, Copy)]
pub struct NextDocument<'a> {
    pub correction: &'a Correction,
    pub planned: &'a PlannedDocument,
    pub document: &'a Invoice,
    /// The run that submits the document; `None` if it was never submitted.
    pub submission: Option<&'a Run>,
    /// True if an operator has paused that run.
    pub is_held: bool,
}

impl NextDocument<'_> {
    /// True if the document is still the planned credit note: it credits the original invoice with the planned amounts.
    fn is_planned_credit_note(self, catalog: &Catalog) -> bool {
        let document = self.document;
        let original = CorrectedReference::by_irn(&self.correction.original_irn);
        let is_of_original = document.corrected_reference() == Some(original);
        let amounts = Breakdown::from_invoice(document, catalog).map(Amounts::from);
        let has_amounts = amounts.is_ok_and(|amounts| {
            amounts.totals.payable_amount == self.planned.payable
                && document.payment.payable_as_signed() == self.planned.payable
                && amounts.taxes == self.planned.taxes
        });
        is_of_original && has_amounts && document.is_credit_note()
    }
}

pub fn next_step(next: NextDocument<'_>, catalog: &Catalog) -> NextStep {
    let document = next.document;
    let kind = next.planned.kind;
    let (what, effect) = match kind {
        DocumentPurpose::CreditNote => ("credit note", "The invoice stays as it is."),
        DocumentPurpose::Replacement => ("replacement", "The invoice stays credited."),
    };
    let name = format!("{what} {}", document.invoice_no);
    if document.authority.signed {
        let is_other = kind == DocumentPurpose::CreditNote && !next.is_planned_credit_note(catalog);
        return if is_other {
            NextStep::Cancel(format!(
                "The {name} was edited and signed with other contents than planned. Correct the invoice again: its signed credit notes count."
            ))
        } else {
            NextStep::Sign
        };
    }
    if document.status == WorkflowStatus::Cancelled {
        return NextStep::Cancel(format!("The {name} was cancelled. {effect}"));
    }
    let Some(run) = next.submission else {
        return NextStep::Submit;
    };
    let is_edited = document.edited_at.is_some_and(|at| at >= run.updated_at);
    match run.state() {
        RunState::Running | RunState::Waiting | RunState::Succeeded => NextStep::Wait,
        RunState::Refused | RunState::Cancelled if is_edited => NextStep::Submit,
        RunState::Refused => {
            let error = run.last_error.as_deref().unwrap_or("no reason was given");
            NextStep::Stop(format!(
                "The authority rejected the {name}: {}. Edit it and send it again; the correction then goes on by itself.",
                error.trim_end_matches('.')
            ))
        }
        RunState::Cancelled => NextStep::Stop(format!(
            "The submission of the {name} was cancelled. Send it again, or cancel the {what}."
        )),
        RunState::Paused if run.is_quarantined() => NextStep::Stop(format!(
            "This service failed several times while it submitted the {name}, and set it aside. An operator of this service has been told. When it is submitted, the correction goes on by itself."
        )),
        RunState::Paused if next.is_held => NextStep::Stop(format!(
            "An operator of this service holds the submission of the {name} back. When the operator lets it go on, the correction goes on by itself."
        )),
        RunState::Paused => NextStep::Stop(format!(
            "The authority could not sign the {name} for too long. An operator of this service has been told; the correction then goes on by itself."
        )),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::domain::correction::record::CorrectionState;
    use crate::domain::correction::testing::{catalog, draft, signed};
    use crate::domain::invoice::Line;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::kernel::ids::InvoiceId;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::money::Amount;
    use crate::domain::pipeline::{RunPayload, RunPhase, RunRequest};

    const ORIGINAL: &str = "7-94AD90FB-20260115";

    /// Returns the credit note of the correction, as it was planned.
    fn document() -> Invoice {
        let mut document = signed(draft(vec![Line::sample()]));
        document.authority.signed = false;
        let extras = [
            ("invoice_type_code", "380"),
            ("original_invoice_reference", ORIGINAL),
        ];
        let extras = extras.map(|(name, value)| (name.to_owned(), json!(value)));
        document.extras.extend(extras);
        document
    }

    fn correction() -> Correction {
        let planned = document();
        let amounts = Amounts::from(Breakdown::from_invoice(&planned, &catalog()).unwrap());
        let document = PlannedDocument {
            kind: DocumentPurpose::CreditNote,
            invoice_no: planned.invoice_no,
            irn: planned.irn,
            payable: amounts.totals.payable_amount,
            taxes: amounts.taxes,
            id: Some(planned.id),
            is_signed: false,
        };
        Correction {
            correction_no: "C1".to_owned(),
            original: InvoiceId(7),
            original_irn: Irn::parse(ORIGINAL).unwrap(),
            state: CorrectionState::Running,
            reason: None,
            documents: vec![document],
            is_whole: true,
            currency: "NGN".to_owned(),
            before: Amount::ZERO,
            after: Amount::ZERO,
            paid: Amount::ZERO,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn submission(document: &Invoice, state: RunState) -> Run {
        let request = RunRequest {
            irn: document.irn.clone(),
            payload: RunPayload::Transmit,
        };
        let id = uuid::Uuid::nil();
        let run = Run::new(id, TaxpayerId(1), request, Timestamp::UNIX_EPOCH);
        Run {
            phase: RunPhase::sample(state),
            last_error: Some("odd.".to_owned()),
            ..run
        }
    }

    /// Returns the next step in one word, and its reason.
    fn decide(document: &Invoice, state: Option<RunState>) -> (&'static str, String) {
        let run = state.map(|state| submission(document, state));
        let correction = correction();
        let next = NextDocument {
            correction: &correction,
            planned: correction.next_document().unwrap(),
            document,
            submission: run.as_ref(),
            is_held: false,
        };
        name_step(next_step(next, &catalog()))
    }

    fn name_step(step: NextStep) -> (&'static str, String) {
        match step {
            NextStep::Sign => ("sign", String::new()),
            NextStep::Submit => ("submit", String::new()),
            NextStep::Wait => ("wait", String::new()),
            NextStep::Stop(reason) => ("stop", reason),
            NextStep::Cancel(reason) => ("cancel", reason),
        }
    }

    #[test]
    fn a_stopped_correction_names_who_or_what_paused_the_submission() {
        let correction = correction();
        let document = document();
        let paused = || submission(&document, RunState::Paused);
        let crashed = || paused().after_crash().after_crash().after_crash();
        let operator = "An operator of this service holds";
        let defect = "This service failed several times";
        let authority = "The authority could not sign";
        let cases = [
            (paused(), false, authority),
            (paused(), true, operator),
            (paused().after_crash(), false, authority),
            (paused().after_panic(), true, operator),
            (crashed(), false, defect),
            (crashed(), true, defect),
            (paused().after_panic().after_panic(), false, defect),
        ];
        for (run, is_held, expected) in cases {
            let next = NextDocument {
                correction: &correction,
                planned: correction.next_document().unwrap(),
                document: &document,
                submission: Some(&run),
                is_held,
            };
            let (step, reason) = name_step(next_step(next, &catalog()));
            assert_eq!(step, "stop", "{reason}");
            assert!(reason.starts_with(expected), "{is_held}: {reason}");
            assert!(reason.contains("credit note 1"), "{reason}");
            for other in [operator, defect, authority] {
                assert_eq!(reason.contains(other), other == expected, "{reason}");
            }
        }
    }

    #[test]
    fn the_document_and_its_submission_decide_what_comes_next() {
        let as_made = document();
        let edited = Invoice {
            edited_at: Some(Timestamp::UNIX_EPOCH),
            ..document()
        };
        let cancelled = Invoice {
            status: WorkflowStatus::Cancelled,
            ..document()
        };
        let signed = document().mark_signed(Some("signed".to_owned()));
        let mut no_credit_note = signed.clone();
        no_credit_note
            .extras
            .insert("invoice_type_code".to_owned(), json!("381"));
        let mut of_another = signed.clone();
        of_another.extras.insert(
            "original_invoice_reference".to_owned(),
            json!("8-94AD90FB-20260115"),
        );
        let mut other_amounts = signed.clone();
        other_amounts.lines.push(Line::sample());
        let mut signed_otherwise = signed.clone();
        signed_otherwise.payment = signed.payment.after_signature(Amount::from(9));
        let refused = Some(RunState::Refused);
        let cases = [
            (&as_made, None, "submit", ""),
            (&as_made, Some(RunState::Running), "wait", ""),
            (&as_made, Some(RunState::Waiting), "wait", ""),
            (&as_made, Some(RunState::Succeeded), "wait", ""),
            (
                &as_made,
                refused,
                "stop",
                "rejected the credit note 1: odd. Edit it",
            ),
            (
                &as_made,
                Some(RunState::Cancelled),
                "stop",
                "was cancelled. Send it again",
            ),
            (&as_made, Some(RunState::Paused), "stop", "An operator"),
            (&edited, refused, "submit", ""),
            (&edited, Some(RunState::Cancelled), "submit", ""),
            (&edited, Some(RunState::Paused), "stop", "An operator"),
            (&cancelled, refused, "cancel", "The invoice stays as it is."),
            (
                &cancelled,
                None,
                "cancel",
                "The credit note 1 was cancelled.",
            ),
            (&signed, Some(RunState::Running), "sign", ""),
            (&no_credit_note, None, "cancel", "other contents"),
            (&of_another, None, "cancel", "other contents"),
            (&other_amounts, None, "cancel", "other contents"),
            (&signed_otherwise, None, "cancel", "other contents"),
        ];
        for (document, state, expected, words) in cases {
            let (step, reason) = decide(document, state);
            assert_eq!(step, expected, "{state:?}");
            assert!(reason.contains(words), "{reason}");
        }
    }
}
