//! The results of the checks, as lines for people and as JSON for programs.

use std::fmt;

use jiff::SignedDuration;
use serde::Serialize;
use serde_json::{Value, json};

/// Advice that several checks give.
pub(super) mod advice {
    pub const SILENT: &str =
        "look why it does not answer: the network, a firewall, a disk that hangs";
    pub const CLOCKS: &str = "synchronise the clocks of both machines (NTP)";
}

/// Clocks that differ by at most this much count as equal, because an answer takes time to arrive, and the date in an
/// HTTP header has no fractions of a second.
const AGREEING_OFFSET_MAX: SignedDuration = SignedDuration::from_secs(3);
/// With clocks that differ by more than this, deadlines, leases and sign-ins are wrong.
const TOLERATED_OFFSET_MAX: SignedDuration = SignedDuration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Warn,
    Fail,
}

/// The result of a check: a line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct CheckResult {
    pub(super) check: &'static str,
    pub(super) result: Verdict,
    pub(super) found: String,
    /// The advice to the operator; `None` if there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to_do: Option<String>,
}

/// The results of all checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorReport {
    pub(super) checks: Vec<CheckResult>,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

impl CheckResult {
    pub(super) fn new(check: &'static str, result: Verdict, found: impl Into<String>) -> Self {
        Self {
            check,
            result,
            found: found.into(),
            to_do: None,
        }
    }

    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Verdict::Ok, found)
    }

    pub(super) fn warn(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Verdict::Warn, found)
    }

    pub(super) fn fail(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Verdict::Fail, found)
    }

    pub(super) fn advise(self, to_do: impl Into<String>) -> Self {
        Self {
            to_do: Some(to_do.into()),
            ..self
        }
    }

    /// Returns the result for another clock, which is this far ahead of the clock of this machine.
    pub(super) fn from_clock_offset(check: &'static str, ahead: SignedDuration) -> Self {
        let distance = ahead.abs();
        if distance <= AGREEING_OFFSET_MAX {
            return Self::ok(check, "agrees with the clock of this machine");
        }
        let direction = if ahead.is_positive() {
            "ahead of"
        } else {
            "behind"
        };
        let found = format!(
            "{} s {direction} the clock of this machine",
            distance.as_secs()
        );
        let result = if distance > TOLERATED_OFFSET_MAX {
            Verdict::Fail
        } else {
            Verdict::Warn
        };
        Self::new(check, result, found).advise(advice::CLOCKS)
    }
}

impl fmt::Display for CheckResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            check,
            result,
            found,
            to_do,
        } = self;
        // Each check gets one line, even if the text of an error has several.
        let found = found.split_whitespace().collect::<Vec<_>>().join(" ");
        write!(f, "{:<4}  {check:<20}  {found}", result.word())?;
        match to_do {
            Some(to_do) => write!(f, ": {to_do}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for DoctorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.checks
            .iter()
            .try_for_each(|check| writeln!(f, "{check}"))
    }
}

impl DoctorReport {
    /// Returns the number of failed checks.
    pub fn failed_count(&self) -> usize {
        let failed = self
            .checks
            .iter()
            .filter(|check| check.result == Verdict::Fail);
        failed.count()
    }

    pub fn to_json(&self) -> Value {
        json!({ "ok": self.failed_count() == 0, "checks": self.checks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_one_line_a_check_and_fails_with_one_of_them() {
        let report = DoctorReport {
            checks: vec![
                CheckResult::ok("settings", "valid"),
                CheckResult::warn("disk", "little\n room").advise("make room"),
                CheckResult::fail("authority", "silent"),
            ],
        };
        insta::assert_snapshot!(report.to_string().trim_end(), @r"
        ok    settings              valid
        warn  disk                  little room: make room
        FAIL  authority             silent
        ");
        assert_eq!(report.failed_count(), 1);
        let expected = json!({
            "ok": false,
            "checks": [
                { "check": "settings", "result": "ok", "found": "valid" },
                { "check": "disk", "result": "warn", "found": "little\n room", "to_do": "make room" },
                { "check": "authority", "result": "fail", "found": "silent" },
            ],
        });
        assert_eq!(report.to_json(), expected);
    }

    #[test]
    fn a_clock_is_judged_by_its_distance() {
        for (seconds, result, found) in [
            (0, Verdict::Ok, "agrees with the clock of this machine"),
            (-3, Verdict::Ok, "agrees with the clock of this machine"),
            (4, Verdict::Warn, "4 s ahead of the clock of this machine"),
            (-60, Verdict::Warn, "60 s behind the clock of this machine"),
            (
                7_200,
                Verdict::Fail,
                "7200 s ahead of the clock of this machine",
            ),
        ] {
            let judged =
                CheckResult::from_clock_offset("clock", SignedDuration::from_secs(seconds));
            assert_eq!((judged.result, judged.found.as_str()), (result, found));
        }
    }
}
