//! The ways in which the outcomes of calls became known. A run has one such value, combined from those of its steps.

use crate::domain::kernel::codes::words;
use crate::domain::pipeline::{Run, Step};

words! {
    /// The source of an outcome: the answer to the call, a later query, or the authority's copy of the document.
    ResolvedBy { Answer = "answer", Confirm = "confirm", Search = "search", Download = "download" }
}

impl ResolvedBy {
    /// Combines `self`, the value of the latest `step`, with `before`, the combined value of the earlier steps.
    /// `Answer` loses against every other value. If neither value is `Answer`, `self` wins only if `step` has an
    /// effect. An answer to a step that only prepares the effect says nothing yet: the result is then `None`.
    #[must_use]
    pub fn combine_with_earlier(self, before: Option<Self>, step: Step) -> Option<Self> {
        match before {
            None if self == Self::Answer && !step.has_effect() => None,
            Some(before)
                if before != Self::Answer && (self == Self::Answer || !step.has_effect()) =>
            {
                Some(before)
            }
            _ => Some(self),
        }
    }
}

impl Run {
    /// True if the outcome of a step became known otherwise than from the answer to its call.
    pub fn is_resolved_by_query(&self) -> bool {
        self.resolved_by.is_some_and(|by| by != ResolvedBy::Answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::ids::{RunId, TaxpayerId};
    use crate::domain::pipeline::{Operation, RunRequest, RunState, StepResult};
    use jiff::Timestamp;

    #[test]
    fn nothing_is_known_before_the_step_with_the_effect_has_ended() {
        use ResolvedBy::{Answer, Download};
        let now = Timestamp::UNIX_EPOCH;
        for (operation, first, expected) in [
            (
                Operation::Submit,
                Answer,
                &[None, None, Some(Answer), Some(Answer)][..],
            ),
            (
                Operation::Submit,
                Download,
                &[
                    Some(Download),
                    Some(Download),
                    Some(Download),
                    Some(Download),
                ],
            ),
            (Operation::Transmit, Answer, &[None, None, Some(Answer)]),
            (Operation::Report, Answer, &[Some(Answer)]),
            (Operation::Payment, Answer, &[Some(Answer)]),
        ] {
            let request = RunRequest::sample("INV001-94AD90FB-20261121", operation);
            let mut run = Run::new(RunId::nil(), TaxpayerId(7), request, now);
            let mut known = Vec::new();
            for (index, step) in operation.steps().iter().enumerate() {
                let verdict = StepResult::Done {
                    resolved_by: if index == 0 { first } else { Answer },
                    qr_code: None,
                };
                run = run.begin_attempt(*step, now);
                let before = known.last().copied().flatten();
                assert_eq!(run.resolved_by, before, "{operation} {step}: under way");
                run = run.after_step(*step, &verdict, now);
                known.push(run.resolved_by);
            }
            assert_eq!(known, expected, "{operation}");
        }
    }

    #[test]
    fn a_run_is_known_for_how_its_effect_became_known() {
        use ResolvedBy::{Answer, Download, Search};
        let now = Timestamp::UNIX_EPOCH;
        for (steps, known) in [
            ([Answer, Answer, Answer, Answer], Answer),
            ([Answer, Answer, Download, Answer], Download),
            ([Answer, Answer, Answer, Search], Search),
            ([Answer, Answer, Download, Search], Download),
            ([Download, Answer, Search, Answer], Search),
            ([Download, Answer, Answer, Answer], Download),
        ] {
            let request = RunRequest::sample("INV001-94AD90FB-20261121", Operation::Submit);
            let mut run = Run::new(RunId::nil(), TaxpayerId(7), request, now);
            for (step, resolved_by) in Operation::Submit.steps().iter().zip(steps) {
                let verdict = StepResult::Done {
                    resolved_by,
                    qr_code: None,
                };
                run = run
                    .begin_attempt(*step, now)
                    .after_step(*step, &verdict, now);
            }
            assert_eq!(
                (run.state(), run.resolved_by),
                (RunState::Succeeded, Some(known)),
                "{steps:?}"
            );
        }
    }
}
