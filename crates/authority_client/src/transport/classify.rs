//! Classifies an answer, or the lack of one, by three tables: `FAILURE_CLASSES`, `STATUS_CLASSES` and `ANSWER_PHRASES`.
//! In each table, the first matching row applies.
//!
//! If the answer cannot be read, the call may have taken effect, even with a status such as 400.

use serde_json::Value;

use crate::operation::{EffectKind, Operation};
use crate::transport::answer::AuthorityAnswer;
use crate::transport::exchange::RawResponse;
use crate::transport::failure::{AuthorityFailure, Cause, CauseKind};

/// The certainty about the effect of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureClass {
    /// The call certainly changed nothing.
    Retryable,
    /// The call may have taken effect.
    Unknown,
}

use FailureClass::{Retryable, Unknown};

/// The class of a failed call for each cause. The three columns are for reads, for checks whether an IRN is free
/// (`EffectKind::Claim`), and for calls with an effect.
pub(crate) const FAILURE_CLASSES: [(CauseKind, [FailureClass; 3]); 10] = [
    (CauseKind::Unreachable, [Retryable, Retryable, Retryable]),
    (CauseKind::Untrusted, [Retryable, Retryable, Retryable]),
    (CauseKind::TimedOut, [Retryable, Retryable, Unknown]),
    (CauseKind::ConnectionReset, [Retryable, Retryable, Unknown]),
    (CauseKind::Malformed, [Retryable, Retryable, Unknown]),
    (CauseKind::Down, [Retryable, Retryable, Unknown]),
    (CauseKind::Ambiguous, [Retryable, Unknown, Unknown]),
    (CauseKind::Offline, [Retryable, Retryable, Retryable]),
    (CauseKind::KeyRefused, [Retryable, Retryable, Retryable]),
    (CauseKind::Redirected, [Retryable, Retryable, Retryable]),
];

/// The meaning of an answer, which its status and words determine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerClass {
    Success,
    Redirected,
    KeyRefused,
    Absent,
    Down,
    Throttled,
    Ambiguous,
    Offline,
    Unreadable,
    Refused,
}

/// Ranges of statuses (first, last) and their meaning. The first range that contains the status applies.
pub(crate) const STATUS_CLASSES: [(u16, u16, AnswerClass); 8] = [
    (200, 299, AnswerClass::Success),
    (300, 399, AnswerClass::Redirected),
    (401, 401, AnswerClass::KeyRefused),
    (403, 403, AnswerClass::KeyRefused),
    (404, 404, AnswerClass::Absent),
    (408, 408, AnswerClass::Down),
    (429, 429, AnswerClass::Throttled),
    (400, 499, AnswerClass::Refused),
];

/// Words, in lower case, that change the meaning of an answer with one of these statuses. They apply to all operations
/// if `operation` is `None`.
pub(crate) struct AnswerPhrase {
    pub(crate) words: &'static str,
    pub(crate) operation: Option<Operation>,
    pub(crate) statuses: &'static [u16],
    pub(crate) meaning: AnswerClass,
}

/// The statuses of answers such as "try again later". The authority sends such answers when it is busy, and also for a
/// duplicate. An answer that names a field means neither.
const BUSY_STATUSES: &[u16] = &[400, 422];
const fn busy_phrase(words: &'static str) -> AnswerPhrase {
    AnswerPhrase {
        words,
        operation: None,
        statuses: BUSY_STATUSES,
        meaning: AnswerClass::Ambiguous,
    }
}

pub(crate) const ANSWER_PHRASES: [AnswerPhrase; 9] = [
    AnswerPhrase {
        words: "unable to validate api key",
        operation: None,
        statuses: &[400],
        meaning: AnswerClass::KeyRefused,
    },
    // An earlier try has taken effect, but its answer was lost.
    AnswerPhrase {
        words: "already transmitted",
        operation: Some(Operation::Transmit),
        statuses: &[400, 409, 422],
        meaning: AnswerClass::Ambiguous,
    },
    AnswerPhrase {
        words: "offline",
        operation: Some(Operation::Transmit),
        statuses: &[400, 409, 422],
        meaning: AnswerClass::Offline,
    },
    busy_phrase("unable to complete this operation at this time"),
    busy_phrase("temporarily unavailable"),
    busy_phrase("try again"),
    busy_phrase("try later"),
    busy_phrase("retry later"),
    busy_phrase("please retry"),
];

/// Returns the failure that this cause means for a call of `operation`.
pub(crate) fn failure_for(operation: Operation, cause: Cause) -> AuthorityFailure {
    let column = match operation.effect_kind() {
        EffectKind::Read => 0,
        EffectKind::Claim => 1,
        EffectKind::Effect => 2,
    };
    let kind = cause.kind();
    let row = FAILURE_CLASSES.iter().find(|(of, _)| *of == kind);
    match row.map_or(Unknown, |(_, classes)| classes[column]) {
        Retryable => AuthorityFailure::Retryable { reason: cause },
        Unknown => AuthorityFailure::Unknown { reason: cause },
    }
}

/// Returns the answer of a successful call, or the failure. A 5xx to a health check also counts as an answer, which
/// says "not ok".
pub(crate) fn classify_response(
    operation: Operation,
    response: &RawResponse,
) -> Result<AuthorityAnswer, AuthorityFailure> {
    let status = response.status;
    let answer = AuthorityAnswer::parse(&response.body);
    let meaning = answer_class(operation, status, answer.as_ref());
    let answer = answer.unwrap_or_default();
    let message = answer.sentence(status);
    let cause = match meaning {
        AnswerClass::Success => return Ok(answer),
        AnswerClass::Down if operation == Operation::SystemHealth && status >= 500 => {
            return Ok(AuthorityAnswer::not_ok_answer());
        }
        AnswerClass::Throttled => {
            return Err(AuthorityFailure::Throttled {
                retry_after: response.retry_after,
            });
        }
        AnswerClass::Absent => return Err(AuthorityFailure::NotFound { message }),
        AnswerClass::Refused => return Err(AuthorityFailure::Refused { status, message }),
        AnswerClass::Redirected => Cause::Redirected { status },
        AnswerClass::KeyRefused => Cause::KeyRefused { message },
        AnswerClass::Down => Cause::Down { status },
        AnswerClass::Ambiguous => Cause::Ambiguous { message },
        AnswerClass::Offline => Cause::Offline { message },
        AnswerClass::Unreadable => Cause::Malformed { status },
    };
    Err(failure_for(operation, cause))
}

fn answer_class(
    operation: Operation,
    status: u16,
    answer: Option<&AuthorityAnswer>,
) -> AnswerClass {
    let row = STATUS_CLASSES
        .iter()
        .find(|(first, last, _)| (*first..=*last).contains(&status));
    let meaning = row.map_or(AnswerClass::Down, |(_, _, meaning)| *meaning);
    let depends_on_words = matches!(
        meaning,
        AnswerClass::Success | AnswerClass::Absent | AnswerClass::Refused
    );
    if !depends_on_words {
        return meaning;
    }
    let Some(answer) = answer else {
        return AnswerClass::Unreadable;
    };
    // An answer without any text may mean a duplicate as well as a fault of the document.
    if matches!(status, 400 | 422) && answer.has_no_text() {
        return AnswerClass::Unreadable;
    }
    let phrase = ANSWER_PHRASES.iter().find(|row| {
        row.statuses.contains(&status)
            && row.operation.is_none_or(|of| of == operation)
            && answer.contains(row.words)
            && !(row.meaning == AnswerClass::Ambiguous && answer.mentions_field())
    });
    phrase.map_or(meaning, |row| row.meaning)
}

/// Returns true if the answer's data is the usual `{ "ok": true }`.
pub(crate) fn says_ok(answer: &AuthorityAnswer) -> bool {
    answer.data.get("ok") == Some(&Value::Bool(true))
}

/// Returns true if the answer's data says `"ok": false`. Missing data does not.
pub(crate) fn says_not_ok(answer: &AuthorityAnswer) -> bool {
    answer.data.get("ok") == Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Behaviour, Server, http};
    use crate::wire::IrnCheck;

    const BUSY: &str = r#"{"code":400,"data":null,"message":"Unable to  complete this operation at this time, kindly try again later"}"#;
    const BUSY_WITHIN: &str = r#"{"message":"error has occurred","error":{"public_message":"unable to complete this operation at this time, kindly try again later"}}"#;
    const WRONG_KEY: &str = r#"{"code":400,"message":"unable to validate api key"}"#;
    const NO: &str =
        r#"{"code":400,"message":"invoicerequest.invoice.taxtotal[0].taxamount must be a number"}"#;
    const WRONG_FIELD: &str = r#"{"message":"correct it and try again","error":{"errors":[{"field":"due_date","message":"is wrong"}]}}"#;
    const NOT_OK: &str = r#"{"code":200,"data":{"ok":false}}"#;
    const NO_DATA: &str = r#"{"code":200,"data":null}"#;

    fn word(failure: &AuthorityFailure) -> String {
        let (class, cause) = match failure {
            AuthorityFailure::Refused { .. } => ("refused", None),
            AuthorityFailure::NotFound { .. } => ("not found", None),
            AuthorityFailure::Throttled { .. } => ("throttled", None),
            AuthorityFailure::BreakerOpen { .. } => ("breaker open", None),
            AuthorityFailure::CallsStopped { .. }
            | AuthorityFailure::RateLimited { .. }
            | AuthorityFailure::QueueFull { .. }
            | AuthorityFailure::Paused => ("not made", None),
            AuthorityFailure::Retryable { reason } => ("retryable", Some(reason.kind())),
            AuthorityFailure::Unknown { reason } => ("unknown", Some(reason.kind())),
        };
        cause.map_or_else(|| class.to_owned(), |kind| format!("{class} {kind:?}"))
    }

    /// Makes a read, a claim and an effect call to a server with this behaviour. Returns the three failures.
    async fn classes(reaction: Behaviour) -> [String; 3] {
        let stalls = matches!(reaction, Behaviour::Stall | Behaviour::BytesThenStall(_));
        let server = Server::start(reaction).await;
        let authority = if stalls {
            server.impatient_authority()
        } else {
            server.authority()
        };
        let check = IrnCheck {
            invoice_reference: String::new(),
            business_id: String::new(),
            irn: String::new(),
        };
        let (read, claim, effect) = tokio::join!(
            authority.validate(&Value::Null),
            authority.validate_irn(&check),
            authority.sign(&Value::Null)
        );
        [read, claim, effect].map(|result| word(&result.unwrap_err()))
    }

    async fn table(rows: Vec<(Behaviour, [&str; 3])>) {
        for (reaction, expected) in rows {
            assert_eq!(classes(reaction.clone()).await, expected, "{reaction:?}");
        }
    }

    fn reply(status: u16, body: &str) -> Behaviour {
        Behaviour::Bytes(http(status, "", body))
    }

    #[tokio::test]
    async fn answers_are_classified_by_status_and_words() {
        let same = |class| [class; 3];
        let cautious = |kind: &'static str| match kind {
            "Down" => ["retryable Down", "retryable Down", "unknown Down"],
            _ => [
                "retryable Malformed",
                "retryable Malformed",
                "unknown Malformed",
            ],
        };
        let ambiguous = [
            "retryable Ambiguous",
            "unknown Ambiguous",
            "unknown Ambiguous",
        ];
        table(vec![
            (reply(400, NO), same("refused")),
            (reply(409, r#"{"message":"no"}"#), same("refused")),
            (
                reply(422, r#"{"code":422,"message":"no"}"#),
                same("refused"),
            ),
            (reply(400, r#"{"code":400}"#), cautious("Malformed")),
            (
                reply(422, r#"{"data":null,"error":{}}"#),
                cautious("Malformed"),
            ),
            (reply(409, "{}"), same("refused")),
            (reply(400, BUSY), ambiguous),
            (reply(422, BUSY_WITHIN), ambiguous),
            (
                reply(
                    400,
                    r#"{"message":"Temporarily unavailable, please try again"}"#,
                ),
                ambiguous,
            ),
            (
                reply(422, r#"{"message":"service temporarily unavailable"}"#),
                ambiguous,
            ),
            (
                reply(
                    400,
                    r#"{"message":"error","error":{"public_message":"kindly try again later"}}"#,
                ),
                ambiguous,
            ),
            (
                reply(422, r#"{"message":"we are busy: please retry"}"#),
                ambiguous,
            ),
            (reply(422, WRONG_FIELD), same("refused")),
            (
                reply(
                    400,
                    r#"{"message":"irnrequest.irn is not valid, please try again"}"#,
                ),
                same("refused"),
            ),
            (reply(409, BUSY), same("refused")),
            (reply(400, WRONG_KEY), same("retryable KeyRefused")),
            (reply(401, "{}"), same("retryable KeyRefused")),
            (reply(403, "<html>"), same("retryable KeyRefused")),
            (reply(404, "{}"), same("not found")),
            (reply(404, "<html>"), cautious("Malformed")),
            (reply(429, ""), same("throttled")),
            (reply(302, ""), same("retryable Redirected")),
            (reply(408, ""), cautious("Down")),
            (reply(500, BUSY), cautious("Down")),
            (reply(503, "<html>"), cautious("Down")),
            (reply(400, "<xml/>"), cautious("Malformed")),
            (reply(200, "<xml/>"), cautious("Malformed")),
            (reply(201, ""), cautious("Malformed")),
            (reply(200, "[]"), cautious("Malformed")),
            (reply(200, NO_DATA), cautious("Malformed")),
            (reply(200, NOT_OK), cautious("Malformed")),
        ])
        .await;
    }

    #[tokio::test]
    async fn a_refusal_is_recognised_in_every_form_of_its_reason() {
        let same = |class| [class; 3];
        let failure = |error: &str| {
            reply(
                400,
                &format!(
                    r#"{{"code":400,"data":null,"message":"error has occurred","error":{error}}}"#
                ),
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
            // An unknown route gives an answer without `error`.
            (reply(404, r#"{"code":404,"message":"route not found"}"#), same("not found")),
        ])
        .await;
    }

    #[tokio::test]
    async fn connections_that_fail_after_sending_leave_an_effect_unknown() {
        let cut = [
            "retryable ConnectionReset",
            "retryable ConnectionReset",
            "unknown ConnectionReset",
        ];
        let timed_out = [
            "retryable TimedOut",
            "retryable TimedOut",
            "unknown TimedOut",
        ];
        let half = http(201, "", r#"{"data":{"ok":true}}"#);
        let half = half[..half.len() - 3].to_vec();
        table(vec![
            (Behaviour::Drop, cut),
            (Behaviour::Bytes(b"\x00\xff no HTTP \r\n\r\n".to_vec()), cut),
            (Behaviour::Bytes(half.clone()), cut),
            (Behaviour::Stall, timed_out),
            (Behaviour::BytesThenStall(half), timed_out),
        ])
        .await;
    }

    #[tokio::test]
    async fn a_transmission_that_may_still_succeed_is_not_refused() {
        for (words, class) in [
            (
                "the access point of the customer is Offline",
                "retryable Offline",
            ),
            (
                "the access point of the customer is offline, please try again later",
                "retryable Offline",
            ),
            ("invoice already transmitted", "unknown Ambiguous"),
            ("invoice has no customer to transmit to", "refused"),
        ] {
            let server = Server::json(400, &format!(r#"{{"code":400,"message":"{words}"}}"#)).await;
            assert_eq!(
                word(&server.authority().transmit("I").await.unwrap_err()),
                class
            );
            let is_busy = words.contains("try again");
            let of_sign = if is_busy {
                "unknown Ambiguous"
            } else {
                "refused"
            };
            assert_eq!(
                word(&server.authority().sign(&Value::Null).await.unwrap_err()),
                of_sign
            );
        }
    }

    #[test]
    fn every_cause_has_one_row() {
        for kind in CauseKind::ALL {
            assert_eq!(
                FAILURE_CLASSES.iter().filter(|(of, _)| *of == kind).count(),
                1,
                "{kind:?}"
            );
        }
    }
}
