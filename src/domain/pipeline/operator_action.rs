//! The actions of operators on a run. The table shows the next state for each state and action. An empty cell means
//! that the action is refused.
//!
//! | State | pause | resume | retry | cancel |
//! |---|---|---|---|---|
//! | running | paused | | | cancelled |
//! | waiting | paused | | running | cancelled |
//! | paused | | running | running | cancelled |
//! | refused, cancelled | | | running | |
//! | succeeded | | | | |
//!
//! If a call is in progress when the run is paused, the answer to the call is still recorded. A run cannot be
//! cancelled if one of its steps took effect at the authority or may have taken effect.

use jiff::Timestamp;

use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::{OperatorAction, Run, RunState};

impl RunState {
    /// Returns the state after an action; `None` if the state does not allow the action.
    pub fn after_action(self, action: OperatorAction) -> Option<Self> {
        match (self, action) {
            (Self::Running | Self::Waiting, OperatorAction::Pause) => Some(Self::Paused),
            (Self::Paused, OperatorAction::Resume)
            | (
                Self::Waiting | Self::Paused | Self::Refused | Self::Cancelled,
                OperatorAction::Retry,
            ) => Some(Self::Running),
            (Self::Running | Self::Waiting | Self::Paused, OperatorAction::Cancel) => {
                Some(Self::Cancelled)
            }
            _ => None,
        }
    }
}

impl Run {
    pub fn apply_action(self, action: OperatorAction, now: Timestamp) -> Result<Self, Refusal> {
        self.check_action(action)?;
        Ok(match action {
            OperatorAction::Pause => self.pause(now),
            OperatorAction::Resume | OperatorAction::Retry => self.reopen(now),
            OperatorAction::Cancel => self.cancel(now),
        })
    }

    /// Refuses an action that the run does not allow now.
    pub fn check_action(&self, action: OperatorAction) -> Result<(), Refusal> {
        self.state()
            .after_action(action)
            .ok_or(Refusal::ActionNotAllowed {
                from: self.state(),
                to: action,
            })?;
        match (action, self.progress.intent) {
            (OperatorAction::Cancel, Some(step)) => Err(Refusal::RunUnsettled {
                from: self.state(),
                step,
            }),
            (OperatorAction::Cancel, None) if self.has_taken_effect() => {
                Err(Refusal::RunTookEffect)
            }
            _ => Ok(()),
        }
    }

    /// Returns the actions that the run allows now.
    pub fn allowed_actions(&self) -> Vec<OperatorAction> {
        OperatorAction::ALL
            .iter()
            .copied()
            .filter(|action| self.check_action(*action).is_ok())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::pipeline::{
        Operation, ResolvedBy, RunPhase, RunRequest, Step, StepResult, WaitReason,
    };

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn run(operation: Operation, state: RunState) -> Run {
        let request = RunRequest::sample("INV001-94AD90FB-20261121", operation);
        Run {
            phase: RunPhase::sample(state),
            ..Run::new(Uuid::nil(), TaxpayerId(7), request, NOW)
        }
    }

    fn done_result() -> StepResult {
        StepResult::Done {
            resolved_by: ResolvedBy::Answer,
            qr_code: None,
        }
    }

    fn waits() -> StepResult {
        StepResult::Wait {
            reason: WaitReason::AuthorityUnavailable,
            error: "down".into(),
            until: NOW,
        }
    }

    #[test]
    fn every_state_takes_the_moves_of_the_table_and_no_others() {
        let mut table = Vec::new();
        for state in RunState::ALL {
            for to in OperatorAction::ALL {
                let moved = run(Operation::Submit, *state).apply_action(*to, NOW);
                let outcome = match &moved {
                    Ok(run) => run.state().to_string(),
                    Err(refusal) => {
                        assert_eq!(
                            *refusal,
                            Refusal::ActionNotAllowed {
                                from: *state,
                                to: *to
                            }
                        );
                        "-".to_owned()
                    }
                };
                assert_eq!(
                    moved.ok().map(|run| run.state()),
                    state.after_action(*to),
                    "{state} {to}"
                );
                table.push(format!("{state} {to}: {outcome}"));
            }
        }
        insta::assert_snapshot!(table.join("\n"), @r#"
            running pause: paused
            running resume: -
            running retry: -
            running cancel: cancelled
            waiting pause: paused
            waiting resume: -
            waiting retry: running
            waiting cancel: cancelled
            paused pause: -
            paused resume: running
            paused retry: running
            paused cancel: cancelled
            succeeded pause: -
            succeeded resume: -
            succeeded retry: -
            succeeded cancel: -
            refused pause: -
            refused resume: -
            refused retry: running
            refused cancel: -
            cancelled pause: -
            cancelled resume: -
            cancelled retry: running
            cancelled cancel: -
        "#);
    }

    #[test]
    fn a_run_is_not_cancelled_while_a_signature_may_exist() {
        let signing = run(Operation::Submit, RunState::Running).begin_attempt(Step::Sign, NOW);
        for (run, advice) in [
            (signing.clone(), "let the run go on"),
            (
                signing.clone().after_step(Step::Sign, &waits(), NOW),
                "let the run go on",
            ),
            (signing.clone().pause(NOW), "resume the run"),
        ] {
            let refusal = run.clone().apply_action(OperatorAction::Cancel, NOW);
            let refusal = refusal.unwrap_err();
            let step = Step::Sign;
            let from = run.state();
            assert_eq!(refusal, Refusal::RunUnsettled { from, step });
            assert!(refusal.to_string().contains(advice), "{refusal}");
            assert!(!run.allowed_actions().contains(&OperatorAction::Cancel));
        }
        let signed = signing.after_step(Step::Sign, &done_result(), NOW);
        assert_eq!(
            signed.apply_action(OperatorAction::Cancel, NOW),
            Err(Refusal::RunTookEffect)
        );
        let checking =
            run(Operation::Submit, RunState::Running).begin_attempt(Step::DataCheck, NOW);
        assert_eq!(
            checking
                .apply_action(OperatorAction::Cancel, NOW)
                .unwrap()
                .state(),
            RunState::Cancelled
        );
    }

    #[test]
    fn a_refused_signature_is_none_and_can_be_tried_again() {
        let refused = StepResult::Refused {
            error: "odd".into(),
        };
        let run = run(Operation::Submit, RunState::Running)
            .begin_attempt(Step::Sign, NOW)
            .after_step(Step::Sign, &refused, NOW);
        assert_eq!(run.allowed_actions(), [OperatorAction::Retry]);
    }

    #[test]
    fn a_question_about_the_moment_does_not_make_a_lost_transmission_forgotten() {
        let mut run = run(Operation::Transmit, RunState::Running);
        for step in [Step::Health, Step::AccessPoints] {
            run = run
                .begin_attempt(step, NOW)
                .after_step(step, &done_result(), NOW);
        }
        let lost = run
            .begin_attempt(Step::Send, NOW)
            .after_step(Step::Send, &waits(), NOW);
        assert_eq!(lost.next_step(), Some(Step::Health));
        let asked = lost.begin_attempt(Step::Health, NOW);
        assert_eq!(
            asked.clone().apply_action(OperatorAction::Cancel, NOW),
            Err(Refusal::RunUnsettled {
                from: RunState::Running,
                step: Step::Send,
            })
        );
        let asked = asked
            .after_step(Step::Health, &done_result(), NOW)
            .begin_attempt(Step::AccessPoints, NOW);
        let asked = asked.after_step(Step::AccessPoints, &done_result(), NOW);
        assert_eq!(
            (asked.progress.intent, asked.next_step()),
            (Some(Step::Send), Some(Step::Send))
        );
        let sent = asked
            .begin_attempt(Step::Send, NOW)
            .after_step(Step::Send, &done_result(), NOW);
        assert_eq!(
            (sent.progress.intent, sent.state()),
            (None, RunState::Succeeded)
        );
    }

    #[test]
    fn momentary_steps_are_repeated_after_a_pause() {
        let run = run(Operation::Transmit, RunState::Running).begin_attempt(Step::Health, NOW);
        let run = run
            .after_step(Step::Health, &done_result(), NOW)
            .apply_action(OperatorAction::Pause, NOW)
            .unwrap();
        assert_eq!(
            (run.next_attempt_at(), run.allowed_actions().len()),
            (None, 3)
        );
        let run = run.apply_action(OperatorAction::Resume, NOW).unwrap();
        assert_eq!(
            (run.next_step(), run.next_attempt_at()),
            (Some(Step::Health), Some(NOW))
        );
    }
}
