//! From an answer, or the lack of one, to a class of failure. The rules are data: three tables, read top
//! down.
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
pub(super) const CLASSES: [(Kind, [Class; 3]); 9] = [
    (Kind::Unreachable, [Retryable, Retryable, Retryable]),
    (Kind::TimedOut, [Retryable, Retryable, Unknown]),
    (Kind::Cut, [Retryable, Retryable, Unknown]),
    (Kind::Garbled, [Retryable, Retryable, Unknown]),
    (Kind::Down, [Retryable, Retryable, Unknown]),
    (Kind::Ambiguous, [Retryable, Unknown, Unknown]),
    (Kind::Offline, [Retryable, Retryable, Retryable]),
    (Kind::KeyRefused, [Retryable, Retryable, Retryable]),
    (Kind::Misrouted, [Retryable, Retryable, Retryable]),
];

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Success,
    Misrouted,
    KeyRefused,
    Absent,
    Down,
    Throttled,
    Ambiguous,
    Offline,
    Unreadable,
    Refused,
}

/// First status, last status, meaning. The first row that holds the status counts.
pub(super) const STATUSES: [(u16, u16, Meaning); 8] = [
    (200, 299, Meaning::Success),
    (300, 399, Meaning::Misrouted),
    (401, 401, Meaning::KeyRefused),
    (403, 403, Meaning::KeyRefused),
    (404, 404, Meaning::Absent),
    (408, 408, Meaning::Down),
    (429, 429, Meaning::Throttled),
    (400, 499, Meaning::Refused),
];

/// Lower-case words of a refusal that make it something else: from whom, under which statuses, and what.
pub(super) struct Phrase {
    pub(super) words: &'static str,
    pub(super) operation: Option<Operation>,
    pub(super) statuses: &'static [u16],
    pub(super) meaning: Meaning,
}

/// Said of a duplicate and by a busy server alike: any wording of "try again" counts, unless it names a field.
const BUSY_STATUSES: &[u16] = &[400, 422];
const fn busy(words: &'static str) -> Phrase {
    Phrase { words, operation: None, statuses: BUSY_STATUSES, meaning: Meaning::Ambiguous }
}

pub(super) const PHRASES: [Phrase; 9] = [
    Phrase {
        words: "unable to validate api key",
        operation: None,
        statuses: &[400],
        meaning: Meaning::KeyRefused,
    },
    // Said where an earlier try, thought lost, took effect.
    Phrase {
        words: "already transmitted",
        operation: Some(Operation::Transmit),
        statuses: &[400, 409, 422],
        meaning: Meaning::Ambiguous,
    },
    Phrase {
        words: "offline",
        operation: Some(Operation::Transmit),
        statuses: &[400, 409, 422],
        meaning: Meaning::Offline,
    },
    busy("unable to complete this operation at this time"),
    busy("temporarily unavailable"),
    busy("try again"),
    busy("try later"),
    busy("retry later"),
    busy("please retry"),
];

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
/// A health check that fails is an answer too: it says that the system is down.
pub(super) fn judge(operation: Operation, reply: &Reply) -> Result<Answer, Failure> {
    let status = reply.status;
    let answer = Answer::parse(&reply.body);
    let meaning = meaning(operation, status, answer.as_ref());
    let answer = answer.unwrap_or_default();
    let message = answer.sentence(status);
    let cause = match meaning {
        Meaning::Success => return Ok(answer),
        Meaning::Down if operation == Operation::SystemHealth && status >= 500 => return Ok(Answer::not_ok()),
        Meaning::Throttled => return Err(Failure::Throttled { retry_after: reply.retry_after }),
        Meaning::Absent => return Err(Failure::NotFound { message }),
        Meaning::Refused => return Err(refusal(status, message, &answer)),
        Meaning::Misrouted => Cause::Misrouted { status },
        Meaning::KeyRefused => Cause::KeyRefused { message },
        Meaning::Down => Cause::Down { status },
        Meaning::Ambiguous => Cause::Ambiguous { message },
        Meaning::Offline => Cause::Offline { message },
        Meaning::Unreadable => Cause::Garbled { status },
    };
    Err(failure(operation, cause))
}

fn refusal(status: u16, message: String, answer: &Answer) -> Failure {
    Failure::Refused {
        status,
        message,
        field_path: answer.field_path(),
        authority_error: answer.authority_error().map(Box::new),
    }
}

fn meaning(operation: Operation, status: u16, answer: Option<&Answer>) -> Meaning {
    let row = STATUSES.iter().find(|(first, last, _)| (*first..=*last).contains(&status));
    let meaning = row.map_or(Meaning::Down, |(_, _, meaning)| *meaning);
    let told_by_words = matches!(meaning, Meaning::Success | Meaning::Absent | Meaning::Refused);
    if !told_by_words {
        return meaning;
    }
    let Some(answer) = answer else { return Meaning::Unreadable };
    // Without a word, a duplicate cannot be told from a fault of the document.
    if matches!(status, 400 | 422) && answer.is_wordless() {
        return Meaning::Unreadable;
    }
    let said = |row: &&Phrase| {
        row.statuses.contains(&status)
            && row.operation.is_none_or(|of| of == operation)
            && answer.contains(row.words)
            && !(row.meaning == Meaning::Ambiguous && answer.names_field())
    };
    PHRASES.iter().find(said).map_or(meaning, |row| row.meaning)
}

/// Whether the data is the usual `{ "ok": true }`.
pub(super) fn says_ok(answer: &Answer) -> bool {
    answer.data.get("ok") == Some(&Value::Bool(true))
}

/// Whether the data is the explicit `{ "ok": false }`.
pub(super) fn says_not_ok(answer: &Answer) -> bool {
    answer.data.get("ok") == Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Reaction, Server, http};
    use super::super::wire::IrnCheck;
    use super::*;

    const BUSY: &str = r#"{"code":400,"data":null,"message":"Unable to  complete this operation at this time, kindly try again later"}"#;
    const BUSY_WITHIN: &str = r#"{"message":"error has occurred","error":{"public_message":"unable to complete this operation at this time, kindly try again later"}}"#;
    const WRONG_KEY: &str = r#"{"code":400,"message":"unable to validate api key"}"#;
    const NO: &str =
        r#"{"code":400,"message":"invoicerequest.invoice.taxtotal[0].taxamount must be a number"}"#;
    const WRONG_FIELD: &str = r#"{"message":"correct it and try again","error":{"errors":[{"field":"due_date","message":"is wrong"}]}}"#;
    const NOT_OK: &str = r#"{"code":200,"data":{"ok":false}}"#;
    const NO_DATA: &str = r#"{"code":200,"data":null}"#;

    fn word(failure: &Failure) -> String {
        let (class, cause) = match failure {
            Failure::Refused { .. } => ("refused", None),
            Failure::NotFound { .. } => ("not found", None),
            Failure::Throttled { .. } => ("throttled", None),
            Failure::BreakerOpen { .. } => ("breaker open", None),
            Failure::Paced { .. } | Failure::Crowded { .. } => ("not made", None),
            Failure::Retryable { reason } => ("retryable", Some(reason.kind())),
            Failure::Unknown { reason } => ("unknown", Some(reason.kind())),
        };
        cause.map_or_else(|| class.to_owned(), |kind| format!("{class} {kind:?}"))
    }

    /// How a read, a claim and an effect fail against a server that reacts so.
    async fn classes(reaction: Reaction) -> [String; 3] {
        let stalls = matches!(reaction, Reaction::Stall | Reaction::BytesThenStall(_));
        let server = Server::start(reaction).await;
        let authority = if stalls { server.hasty_authority() } else { server.authority() };
        let check =
            IrnCheck { invoice_reference: String::new(), business_id: String::new(), irn: String::new() };
        let (read, claim, effect) = tokio::join!(
            authority.validate(&Value::Null),
            authority.validate_irn(&check),
            authority.sign(&Value::Null)
        );
        [read, claim, effect].map(|result| word(&result.unwrap_err()))
    }

    async fn table(rows: Vec<(Reaction, [&str; 3])>) {
        for (reaction, expected) in rows {
            assert_eq!(classes(reaction.clone()).await, expected, "{reaction:?}");
        }
    }

    fn reply(status: u16, body: &str) -> Reaction {
        Reaction::Bytes(http(status, "", body))
    }

    #[tokio::test]
    async fn answers_are_classed_by_status_and_words() {
        let same = |class| [class; 3];
        let cautious = |kind: &'static str| match kind {
            "Down" => ["retryable Down", "retryable Down", "unknown Down"],
            _ => ["retryable Garbled", "retryable Garbled", "unknown Garbled"],
        };
        let ambiguous = ["retryable Ambiguous", "unknown Ambiguous", "unknown Ambiguous"];
        table(vec![
            (reply(400, NO), same("refused")),
            (reply(409, r#"{"message":"no"}"#), same("refused")),
            (reply(422, r#"{"code":422,"message":"no"}"#), same("refused")),
            (reply(400, r#"{"code":400}"#), cautious("Garbled")),
            (reply(422, r#"{"data":null,"error":{}}"#), cautious("Garbled")),
            (reply(409, "{}"), same("refused")),
            (reply(400, BUSY), ambiguous),
            (reply(422, BUSY_WITHIN), ambiguous),
            (reply(400, r#"{"message":"Temporarily unavailable, please try again"}"#), ambiguous),
            (reply(422, r#"{"message":"service temporarily unavailable"}"#), ambiguous),
            (
                reply(400, r#"{"message":"error","error":{"public_message":"kindly try again later"}}"#),
                ambiguous,
            ),
            (reply(422, r#"{"message":"we are busy: please retry"}"#), ambiguous),
            (reply(422, WRONG_FIELD), same("refused")),
            (reply(400, r#"{"message":"irnrequest.irn is not valid, please try again"}"#), same("refused")),
            (reply(409, BUSY), same("refused")),
            (reply(400, WRONG_KEY), same("retryable KeyRefused")),
            (reply(401, "{}"), same("retryable KeyRefused")),
            (reply(403, "<html>"), same("retryable KeyRefused")),
            (reply(404, "{}"), same("not found")),
            (reply(404, "<html>"), cautious("Garbled")),
            (reply(429, ""), same("throttled")),
            (reply(302, ""), same("retryable Misrouted")),
            (reply(408, ""), cautious("Down")),
            (reply(500, BUSY), cautious("Down")),
            (reply(503, "<html>"), cautious("Down")),
            (reply(400, "<xml/>"), cautious("Garbled")),
            (reply(200, "<xml/>"), cautious("Garbled")),
            (reply(201, ""), cautious("Garbled")),
            (reply(200, "[]"), cautious("Garbled")),
            (reply(200, NO_DATA), cautious("Garbled")),
            (reply(200, NOT_OK), cautious("Garbled")),
        ])
        .await;
    }

    #[tokio::test]
    async fn a_refusal_is_one_in_whatever_form_it_gives_its_reason() {
        let same = |class| [class; 3];
        let failure = |error: &str| {
            reply(
                400,
                &format!(r#"{{"code":400,"data":null,"message":"error has occurred","error":{error}}}"#),
            )
        };
        let sentence = r#"{"code":400,"data":null,"message":"the document is odd"}"#;
        table(vec![
            (failure(r#"{"id":"e1","handler":"h","public_message":"the document is odd"}"#), same("refused")),
            (
                failure(r#"{"id":"e1","handler":"h","details":"taxtotal[0].taxamount must be a number"}"#),
                same("refused"),
            ),
            (
                failure(r#"{"errors":[{"field":"invoicerequest.irn","message":"is required"}]}"#),
                same("refused"),
            ),
            (failure(r#""the document is odd""#), same("refused")),
            (reply(400, sentence), same("refused")),
            // An unknown route carries no error.
            (reply(404, r#"{"code":404,"message":"route not found"}"#), same("not found")),
        ])
        .await;
    }

    #[tokio::test]
    async fn connections_that_fail_after_sending_leave_an_effect_open() {
        let cut = ["retryable Cut", "retryable Cut", "unknown Cut"];
        let timed_out = ["retryable TimedOut", "retryable TimedOut", "unknown TimedOut"];
        let half = http(201, "", r#"{"data":{"ok":true}}"#);
        let half = half[..half.len() - 3].to_vec();
        table(vec![
            (Reaction::Drop, cut),
            (Reaction::Bytes(b"\x00\xff no HTTP \r\n\r\n".to_vec()), cut),
            (Reaction::Bytes(half.clone()), cut),
            (Reaction::Stall, timed_out),
            (Reaction::BytesThenStall(half), timed_out),
        ])
        .await;
    }

    #[tokio::test]
    async fn a_transmission_that_may_still_come_about_is_not_refused() {
        for (words, class) in [
            ("the access point of the customer is Offline", "retryable Offline"),
            ("the access point of the customer is offline, please try again later", "retryable Offline"),
            ("invoice already transmitted", "unknown Ambiguous"),
            ("invoice has no customer to transmit to", "refused"),
        ] {
            let server = Server::json(400, &format!(r#"{{"code":400,"message":"{words}"}}"#)).await;
            assert_eq!(word(&server.authority().transmit("I").await.unwrap_err()), class);
            let is_busy = words.contains("try again");
            let of_sign = if is_busy { "unknown Ambiguous" } else { "refused" };
            assert_eq!(word(&server.authority().sign(&Value::Null).await.unwrap_err()), of_sign);
        }
    }

    #[test]
    fn every_cause_has_one_row() {
        use Kind::{Ambiguous, Cut, Down, Garbled, KeyRefused, Misrouted, Offline, TimedOut, Unreachable};
        for kind in [Unreachable, TimedOut, Cut, Garbled, Down, Ambiguous, Offline, KeyRefused, Misrouted] {
            assert_eq!(CLASSES.iter().filter(|(of, _)| *of == kind).count(), 1, "{kind:?}");
        }
    }
}
