//! Grades the answers of a receiver to a series of test messages. A receiver that accepts a message without a valid
//! signature, or refuses a valid one, gets an F.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::attempt::AttemptResult;
use crate::grading::explanation::{self, ExplanationTerms};

/// The checks, in the order of their messages. The check of speed has no message: it uses all answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GradeCheck {
    Good,
    Duplicate,
    Reordered,
    Delayed,
    BadSignature,
    MissingSignature,
    OldTimestamp,
    LargeBody,
    Speed,
}

/// The grade of a receiver. A needs a score of 100 points, B 85, C 70 and D 50; F is for fewer, and for a receiver that
/// accepts a message with a wrong or missing signature, or refuses a valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Grade {
    A,
    B,
    C,
    D,
    F,
}

/// The answer that a receiver must give to pass a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedAnswer {
    /// A status from 200 to 299.
    Accepted,
    /// A status from 400 to 499 that refuses the message, see `is_refusal`.
    Refused,
    /// Any answer within half of the timeout of an attempt.
    Quick,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    pub check: GradeCheck,
    pub passed: bool,
    pub status: Option<u16>,
    /// `None` if the message was not sent.
    pub duration: Option<Duration>,
    pub explanation: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GradeReport {
    pub grade: Grade,
    /// The sum of the points of all passed checks, out of 100.
    pub score: u32,
    pub checks: Vec<CheckResult>,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::F => "F",
        })
    }
}

impl GradeCheck {
    pub const ALL: [Self; 9] = [
        Self::Good,
        Self::Duplicate,
        Self::Reordered,
        Self::Delayed,
        Self::BadSignature,
        Self::MissingSignature,
        Self::OldTimestamp,
        Self::LargeBody,
        Self::Speed,
    ];

    pub(crate) fn expected_answer_kind(self) -> ExpectedAnswer {
        match self {
            Self::Good | Self::Duplicate | Self::Reordered | Self::Delayed | Self::LargeBody => {
                ExpectedAnswer::Accepted
            }
            Self::BadSignature | Self::MissingSignature | Self::OldTimestamp => {
                ExpectedAnswer::Refused
            }
            Self::Speed => ExpectedAnswer::Quick,
        }
    }

    /// Returns the points for passing this check. All checks together have 100 points.
    fn points(self) -> u32 {
        match self {
            Self::BadSignature => 25,
            Self::OldTimestamp => 20,
            Self::Good | Self::MissingSignature => 15,
            Self::Duplicate | Self::Reordered | Self::Delayed | Self::LargeBody | Self::Speed => 5,
        }
    }

    /// Describes the message that this check sends to the endpoint. The report of the grade shows the description.
    pub fn sent_message(self) -> &'static str {
        match self {
            Self::Good => "a message that is right in every respect",
            Self::Duplicate => "the same message again, with the same webhook-id",
            Self::Reordered => "two messages about one subject, sequence 2 before sequence 1",
            Self::Delayed => "a message whose event is three days old, signed just now",
            Self::BadSignature => "a message that was signed with another secret",
            Self::MissingSignature => "a message without the header webhook-signature",
            Self::OldTimestamp => {
                "a message whose webhook-timestamp is ten minutes old, with the signature that fits it"
            }
            Self::LargeBody => "a message of more than 200 KiB",
            Self::Speed => "the slowest answer of all of them",
        }
    }

    pub fn expected_answer(self) -> &'static str {
        match self.expected_answer_kind() {
            ExpectedAnswer::Accepted => "a status from 200 to 299",
            ExpectedAnswer::Refused => "a status from 400 to 499, such as 400 or 401",
            ExpectedAnswer::Quick => "an answer within half of the time that an attempt has",
        }
    }
}

/// Computes the grade. `answers` holds the worst answer for each check; `None` if its message was not sent. `why_large`
/// begins the advice to a receiver that refuses a large message: it says why messages are large.
pub fn grade_answers(
    answers: &[(GradeCheck, Option<AttemptResult>)],
    timeout: Duration,
    why_large: &str,
) -> GradeReport {
    let terms = ExplanationTerms { timeout, why_large };
    let accepts_valid = answers
        .iter()
        .any(|(check, answer)| *check == GradeCheck::Good && is_accepted(answer.as_ref()));
    let mut checks: Vec<_> = answers
        .iter()
        .map(|(check, answer)| check_result(*check, answer.as_ref(), accepts_valid, terms))
        .collect();
    let slowest = answers
        .iter()
        .filter_map(|(_, answer)| answer.as_ref())
        .map(|answer| answer.duration)
        .max();
    checks.push(speed_result(slowest, timeout));
    let score = checks
        .iter()
        .filter(|result| result.passed)
        .map(|result| result.check.points())
        .sum();
    let accepts_forged = answers.iter().any(|(check, answer)| {
        matches!(
            check,
            GradeCheck::BadSignature | GradeCheck::MissingSignature
        ) && is_accepted(answer.as_ref())
    });
    let grade = match score {
        _ if accepts_forged || !accepts_valid => Grade::F,
        100.. => Grade::A,
        85.. => Grade::B,
        70.. => Grade::C,
        50.. => Grade::D,
        _ => Grade::F,
    };
    GradeReport {
        grade,
        score,
        checks,
    }
}

fn is_accepted(answer: Option<&AttemptResult>) -> bool {
    answer.is_some_and(AttemptResult::is_delivered)
}

fn check_result(
    check: GradeCheck,
    answer: Option<&AttemptResult>,
    accepts_valid: bool,
    terms: ExplanationTerms<'_>,
) -> CheckResult {
    let Some(answer) = answer else {
        let explanation = explanation::NOT_SENT_EXPLANATION.to_owned();
        return CheckResult {
            check,
            passed: false,
            status: None,
            duration: None,
            explanation,
        };
    };
    let passed = match check.expected_answer_kind() {
        ExpectedAnswer::Accepted | ExpectedAnswer::Quick => answer.is_delivered(),
        // A receiver that refuses even valid messages does not check signatures, so a refusal proves nothing.
        ExpectedAnswer::Refused => accepts_valid && answer.status.is_some_and(is_refusal),
    };
    let explanation = match check.expected_answer_kind() {
        _ if passed => explanation::explain_passed(check).to_owned(),
        ExpectedAnswer::Accepted | ExpectedAnswer::Quick => {
            explanation::explain_not_accepted(check, answer, terms)
        }
        ExpectedAnswer::Refused => explanation::explain_not_refused(check, answer),
    };
    CheckResult {
        check,
        passed,
        status: answer.status,
        duration: Some(answer.duration),
        explanation,
    }
}

/// Returns true if the status refuses the message. 408 and 429 ask for a repetition, and 410 disables the endpoint.
fn is_refusal(status: u16) -> bool {
    (400..500).contains(&status) && ![408, 410, 429].contains(&status)
}

fn speed_result(slowest: Option<Duration>, timeout: Duration) -> CheckResult {
    let passed = slowest.is_some_and(|slowest| slowest <= timeout / 2);
    let explanation = explanation::explain_speed(passed, timeout);
    CheckResult {
        check: GradeCheck::Speed,
        passed,
        status: None,
        duration: slowest,
        explanation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::AttemptOutcome;

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn answer(status: u16) -> AttemptResult {
        let outcome = match status {
            200..=299 => AttemptOutcome::Delivered,
            410 => AttemptOutcome::Gone,
            other => AttemptOutcome::Rejected(other),
        };
        AttemptResult {
            status: Some(status),
            duration: Duration::from_millis(20),
            ..AttemptResult::without_response(outcome)
        }
    }

    /// Grades a receiver that answers every check correctly except for `changes`.
    fn but(changes: &[(GradeCheck, Option<AttemptResult>)]) -> GradeReport {
        let answers: Vec<_> = GradeCheck::ALL
            .iter()
            .filter(|check| **check != GradeCheck::Speed)
            .map(|check| {
                let right = if check.expected_answer_kind() == ExpectedAnswer::Refused {
                    401
                } else {
                    204
                };
                let wrong = changes.iter().find(|(other, _)| other == check);
                (
                    *check,
                    wrong.map_or(Some(answer(right)), |(_, answer)| answer.clone()),
                )
            })
            .collect();
        grade_answers(&answers, TIMEOUT, "A message carries a whole book")
    }

    fn all(status: u16) -> GradeReport {
        let changes: Vec<_> = GradeCheck::ALL
            .iter()
            .map(|check| (*check, Some(answer(status))))
            .collect();
        but(&changes)
    }

    fn failed_checks(report: &GradeReport) -> Vec<GradeCheck> {
        report
            .checks
            .iter()
            .filter(|result| !result.passed)
            .map(|result| result.check)
            .collect()
    }

    #[test]
    fn a_receiver_that_passes_every_check_has_an_a() {
        let report = but(&[]);
        assert_eq!(
            (report.grade, report.score, failed_checks(&report)),
            (Grade::A, 100, vec![])
        );
        let checks: Vec<_> = report.checks.iter().map(|result| result.check).collect();
        assert_eq!(checks, GradeCheck::ALL);
        assert_eq!(
            GradeCheck::ALL
                .iter()
                .map(|check| check.points())
                .sum::<u32>(),
            100
        );
    }

    #[test]
    fn each_failed_check_costs_its_points() {
        let slow = AttemptResult {
            duration: Duration::from_millis(5_001),
            ..answer(204)
        };
        let late = AttemptResult {
            duration: TIMEOUT,
            ..AttemptResult::without_response(AttemptOutcome::TimedOut)
        };
        for (check, answer, grade, score) in [
            (GradeCheck::Duplicate, Some(answer(409)), Grade::B, 95),
            (GradeCheck::Reordered, Some(answer(422)), Grade::B, 95),
            (GradeCheck::Delayed, Some(answer(400)), Grade::B, 95),
            (GradeCheck::LargeBody, Some(answer(413)), Grade::B, 95),
            (GradeCheck::LargeBody, Some(slow), Grade::B, 95),
            (GradeCheck::LargeBody, Some(late), Grade::B, 90),
            (GradeCheck::LargeBody, None, Grade::B, 95),
            (GradeCheck::OldTimestamp, Some(answer(200)), Grade::C, 80),
            (
                GradeCheck::MissingSignature,
                Some(answer(500)),
                Grade::B,
                85,
            ),
            (
                GradeCheck::MissingSignature,
                Some(answer(302)),
                Grade::B,
                85,
            ),
            (
                GradeCheck::MissingSignature,
                Some(answer(410)),
                Grade::B,
                85,
            ),
            (
                GradeCheck::MissingSignature,
                Some(answer(429)),
                Grade::B,
                85,
            ),
            (GradeCheck::BadSignature, Some(answer(503)), Grade::C, 75),
            // The receiver accepts a forged message, so the grade is F whatever the score.
            (GradeCheck::BadSignature, Some(answer(200)), Grade::F, 75),
            (
                GradeCheck::MissingSignature,
                Some(answer(202)),
                Grade::F,
                85,
            ),
        ] {
            let report = but(&[(check, answer.clone())]);
            assert_eq!(
                (report.grade, report.score),
                (grade, score),
                "{check:?}: {answer:?}"
            );
            let result = report.checks.iter().find(|result| !result.passed).unwrap();
            assert!(
                result.explanation.len() > 40,
                "{check:?}: {}",
                result.explanation
            );
        }
    }

    #[test]
    fn the_caller_says_why_a_message_is_large() {
        let report = but(&[(GradeCheck::LargeBody, Some(answer(413)))]);
        let result = report.checks.iter().find(|result| !result.passed).unwrap();
        let advice = "A message carries a whole book: take bodies of 1 MiB at least";
        assert!(
            result.explanation.contains(advice),
            "{}",
            result.explanation
        );
    }

    #[test]
    fn a_receiver_that_accepts_everything_or_nothing_fails() {
        let trusting = all(200);
        assert_eq!((trusting.grade, trusting.score), (Grade::F, 40));
        let refused = [
            GradeCheck::BadSignature,
            GradeCheck::MissingSignature,
            GradeCheck::OldTimestamp,
        ];
        assert_eq!(failed_checks(&trusting), refused);
        for status in [302, 400, 401, 404, 410, 429, 500] {
            let report = all(status);
            assert_eq!(
                (report.grade, report.score),
                (Grade::F, 5),
                "{status}: only speed"
            );
        }
    }

    #[test]
    fn a_message_that_was_not_sent_in_time_fails_its_check() {
        let report = but(&[
            (GradeCheck::OldTimestamp, None),
            (GradeCheck::LargeBody, None),
        ]);
        assert_eq!((report.grade, report.score), (Grade::C, 75));
        let result = report
            .checks
            .iter()
            .find(|result| result.check == GradeCheck::LargeBody)
            .unwrap();
        assert_eq!((result.status, result.duration), (None, None));
        assert!(
            result.explanation.contains("not sent"),
            "{}",
            result.explanation
        );
    }

    #[test]
    fn half_of_the_timeout_is_quick_enough() {
        let at = |duration| {
            but(&[(
                GradeCheck::Good,
                Some(AttemptResult {
                    duration,
                    ..answer(204)
                }),
            )])
        };
        assert_eq!(at(TIMEOUT / 2).grade, Grade::A);
        let report = at(TIMEOUT / 2 + Duration::from_millis(1));
        assert_eq!(
            (report.grade, failed_checks(&report)),
            (Grade::B, vec![GradeCheck::Speed])
        );
        assert_eq!(
            report.checks.last().unwrap().duration,
            Some(Duration::from_millis(5_001))
        );
    }
}
