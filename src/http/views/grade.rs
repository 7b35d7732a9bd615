//! The grade of a webhook endpoint, with the result of each check.

use serde::Serialize;
use webhook_client::{CheckResult, Grade, GradeCheck, GradeReport};

#[derive(Debug, Serialize)]
pub(crate) struct GradeView<'a> {
    grade: Grade,
    /// Points from 0 to 100.
    score: u32,
    checks: Vec<CheckView<'a>>,
}

#[derive(Debug, Serialize)]
struct CheckView<'a> {
    name: GradeCheck,
    passed: bool,
    sent: &'static str,
    expected: &'static str,
    /// HTTP status of the endpoint's answer; null if there was no answer, and for the speed check.
    status: Option<u16>,
    /// Milliseconds until the endpoint answered; null if no request was sent.
    duration_ms: Option<u64>,
    explanation: &'a str,
}

impl<'a> From<&'a GradeReport> for GradeView<'a> {
    fn from(report: &'a GradeReport) -> Self {
        let checks = report.checks.iter().map(CheckView::from).collect();
        Self {
            grade: report.grade,
            score: report.score,
            checks,
        }
    }
}

impl<'a> From<&'a CheckResult> for CheckView<'a> {
    fn from(result: &'a CheckResult) -> Self {
        let duration_ms = result
            .duration
            .map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        Self {
            name: result.check,
            passed: result.passed,
            sent: result.check.sent_message(),
            expected: result.check.expected_answer(),
            status: result.status,
            duration_ms,
            explanation: &result.explanation,
        }
    }
}
