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
    /// effect.
    #[must_use]
    pub fn after(self, before: Option<Self>, step: Step) -> Self {
        match before {
            Some(before)
                if before != Self::Answer && (self == Self::Answer || !step.has_effect()) =>
            {
                before
            }
            _ => self,
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
                run = run.begin_attempt(*step, now).after(*step, &verdict, now);
            }
            assert_eq!(
                (run.state(), run.resolved_by),
                (RunState::Succeeded, Some(known)),
                "{steps:?}"
            );
        }
    }
}
