//! From an answer, or the lack of one, to a class of failure. The rules are data: two tables, read top down.
//!
//! An answer that cannot be read says nothing, whatever its status: an effect may have happened.

use serde_json::Value;

use super::answer::Answer;
use super::exchange::Reply;
use super::failure::{Cause, Failure, Kind};
use super::operation::{Nature, Operation};

/// What is left of a call that met a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// It certainly changed nothing.
    Retryable,
    /// It may have taken effect.
    Unknown,
}

use Class::{Retryable, Unknown};

/// Cause, then its class for a read, for a claim of an IRN, and for an effect.
pub(super) const CLASSES: [(Kind, [Class; 3]); 8] = [
    (Kind::Unreachable, [Retryable, Retryable, Retryable]),
    (Kind::TimedOut, [Retryable, Retryable, Unknown]),
    (Kind::Cut, [Retryable, Retryable, Unknown]),
    (Kind::Garbled, [Retryable, Retryable, Unknown]),
    (Kind::Down, [Retryable, Retryable, Unknown]),
    (Kind::Ambiguous, [Retryable, Unknown, Unknown]),
    (Kind::KeyRefused, [Retryable, Retryable, Retryable]),
    (Kind::Misrouted, [Retryable, Retryable, Retryable]),
];

/// What a status means before the words are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Success,
    Misrouted,
    KeyRefused,
    Absent,
    Down,
    Throttled,
    Refused,
}

/// First status, last status, meaning. The first row that holds the status counts.
const MEANINGS: [(u16, u16, Meaning); 8] = [
    (200, 299, Meaning::Success),
    (300, 399, Meaning::Misrouted),
    (401, 401, Meaning::KeyRefused),
    (403, 403, Meaning::KeyRefused),
    (404, 404, Meaning::Absent),
    (408, 408, Meaning::Down),
    (429, 429, Meaning::Throttled),
    (400, 499, Meaning::Refused),
];

/// The words that mean either a duplicate or a busy server.
const AMBIGUOUS_WORDS: &str = "unable to complete this operation at this time";
/// The words of a wrong key, which come with 400.
const KEY_WORDS: &str = "unable to validate api key";

/// The failure of `operation` that `cause` amounts to.
pub(super) fn failure(operation: Operation, cause: Cause) -> Failure {
    let column = match operation.nature() {
        Nature::Read => 0,
        Nature::Claim => 1,
        Nature::Effect => 2,
    };
    let kind = cause.kind();
    let row = CLASSES.iter().find(|(of, _)| *of == kind);
    match row.map_or(Unknown, |(_, classes)| classes[column]) {
        Retryable => Failure::Retryable { reason: cause },
        Unknown => Failure::Unknown { reason: cause },
    }
}

/// The readable answer of a success, or the failure that the reply amounts to.
///
/// A failing health check is an answer too: it says that the system is down.
pub(super) fn judge(operation: Operation, reply: &Reply) -> Result<Answer, Failure> {
    let status = reply.status;
    let meaning = meaning(status);
    let because = |cause| Err(failure(operation, cause));
    match meaning {
        Meaning::Throttled => return Err(Failure::Throttled { retry_after: reply.retry_after }),
        Meaning::Down if operation == Operation::SystemHealth && status >= 500 => {
            return Ok(Answer { data: serde_json::json!({ "ok": false }), ..Answer::default() });
        }
        Meaning::Down => return because(Cause::Down { status }),
        Meaning::Misrouted => return because(Cause::Misrouted { status }),
        Meaning::Success | Meaning::KeyRefused | Meaning::Absent | Meaning::Refused => {}
    }
    let Some(answer) = Answer::parse(&reply.body) else {
        return because(if meaning == Meaning::KeyRefused {
            Cause::KeyRefused { message: format!("HTTP {status}") }
        } else {
            Cause::Garbled { status }
        });
    };
    if meaning == Meaning::Success {
        return Ok(answer);
    }
    let message = answer.sentence(status);
    if meaning == Meaning::KeyRefused || answer.contains(KEY_WORDS) {
        return because(Cause::KeyRefused { message });
    }
    if matches!(status, 400 | 422) && answer.contains(AMBIGUOUS_WORDS) {
        return because(Cause::Ambiguous { message });
    }
    if meaning == Meaning::Absent {
        return Err(Failure::NotFound { message });
    }
    Err(Failure::Refused {
        status,
        message,
        field_path: answer.field_path(),
        authority_error: answer.authority_error().map(Box::new),
    })
}

/// Whether the data is the usual `{ "ok": true }`.
pub(super) fn says_ok(answer: &Answer) -> bool {
    answer.data.get("ok") == Some(&Value::Bool(true))
}

/// Whether the data is the explicit `{ "ok": false }`.
pub(super) fn says_not_ok(answer: &Answer) -> bool {
    answer.data.get("ok") == Some(&Value::Bool(false))
}

fn meaning(status: u16) -> Meaning {
    MEANINGS
        .iter()
        .find(|(first, last, _)| (*first..=*last).contains(&status))
        .map_or(Meaning::Down, |(_, _, meaning)| *meaning)
}
