//! The next step of a correction, decided by the document that is to be signed next and by its submission.

use crate::domain::correction::record::DocumentPurpose;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::WorkflowStatus;
use crate::domain::pipeline::{Run, RunState};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// The document is signed.
    Sign,
    /// It has to be submitted.
    Submit,
    /// It is on its way.
    Wait,
    /// It needs somebody, for this reason.
    Stop(String),
    /// It will not be signed, so the correction ends.
    Cancel(String),
}

/// `submission` is the run that submits the document; `None` if there was none.
pub fn next_step(kind: DocumentPurpose, document: &Invoice, submission: Option<&Run>) -> NextStep {
    if document.authority.signed {
        return NextStep::Sign;
    }
    let (what, effect) = match kind {
        DocumentPurpose::CreditNote => ("credit note", "The invoice stays as it is."),
        DocumentPurpose::Replacement => ("replacement", "The invoice stays credited."),
    };
    let name = format!("{what} {}", document.invoice_no);
    if document.status == WorkflowStatus::Cancelled {
        return NextStep::Cancel(format!("The {name} was cancelled. {effect}"));
    }
    let Some(run) = submission else {
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
        RunState::Paused => NextStep::Stop(format!(
            "The authority could not sign the {name} for too long. An operator of this service has been told; the correction then goes on by itself."
        )),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::correction::plan_tests::{draft, signed};
    use crate::domain::invoice::Line;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::pipeline::{RunPayload, RunPhase, RunRequest};

    fn document() -> Invoice {
        let mut document = signed(draft(vec![Line::sample()]));
        document.authority.signed = false;
        document
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
        match next_step(DocumentPurpose::CreditNote, document, run.as_ref()) {
            NextStep::Sign => ("sign", String::new()),
            NextStep::Submit => ("submit", String::new()),
            NextStep::Wait => ("wait", String::new()),
            NextStep::Stop(reason) => ("stop", reason),
            NextStep::Cancel(reason) => ("cancel", reason),
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
        let signed = document().with_qr_code("signed".to_owned());
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
        ];
        for (document, state, expected, words) in cases {
            let (step, reason) = decide(document, state);
            assert_eq!(step, expected, "{state:?}");
            assert!(reason.contains(words), "{reason}");
        }
    }
}
