//! The grade of an endpoint, check by check.

use serde::Serialize;

use crate::webhook::{Check, Grade, Graded, Mark};

#[derive(Debug, Serialize)]
pub(crate) struct GradeView<'a> {
    grade: Grade,
    /// Of 100.
    score: u32,
    checks: Vec<CheckView<'a>>,
}

#[derive(Debug, Serialize)]
struct CheckView<'a> {
    name: Check,
    passed: bool,
    sent: &'static str,
    expected: &'static str,
    /// Null where there was no answer, and of speed.
    status: Option<u16>,
    /// Null where it was not sent.
    duration_ms: Option<u64>,
    explanation: &'a str,
}

impl<'a> From<&'a Graded> for GradeView<'a> {
    fn from(graded: &'a Graded) -> Self {
        let checks = graded.marks.iter().map(CheckView::from).collect();
        Self { grade: graded.grade, score: graded.score, checks }
    }
}

impl<'a> From<&'a Mark> for CheckView<'a> {
    fn from(mark: &'a Mark) -> Self {
        let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            name: mark.check,
            passed: mark.passed,
            sent: mark.check.sent(),
            expected: mark.check.expected(),
            status: mark.status,
            duration_ms: mark.duration.map(millis),
            explanation: &mark.explanation,
        }
    }
}
