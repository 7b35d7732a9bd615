//! Checks that the table of answers in `docs/operations.md` agrees with `classify`. `EINVOICE_WRITE_DOCS=1 cargo test
//! -p authority_client answers_page` rewrites the table.

use std::fmt::Write as _;

use crate::operation::Operation;
use crate::transport::classify::{
    ANSWER_PHRASES, AnswerClass, FAILURE_CLASSES, FailureClass, STATUS_CLASSES,
};
use crate::transport::failure::CauseKind;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
const BEGIN: &str = "<!-- written by a test: answers -->\n";
const END: &str = "<!-- end: answers -->\n";
const HEAD: &str = "| Answer | To a question | To the IRN check | To an effect | What the service does |\n\
    |---|---|---|---|---|\n";

#[test]
fn the_table_of_answers_is_that_of_the_code() {
    let page = std::fs::read_to_string(FILE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    let table = render_table();
    if std::env::var_os("EINVOICE_WRITE_DOCS").is_some() {
        std::fs::write(FILE, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    let advice = "docs/operations.md is out of date: EINVOICE_WRITE_DOCS=1 cargo test -p authority_client answers_page";
    assert_eq!(written, table, "{advice}");
}

fn render_table() -> String {
    let mut table = HEAD.to_owned();
    for (meaning, classes, deed) in [
        (AnswerClass::Success, ["done"; 3], "continues"),
        (
            AnswerClass::Refused,
            ["refused"; 3],
            "ends the run as refused, in the authority's words; from `confirm` and the search it counts as no answer",
        ),
        (
            AnswerClass::Absent,
            ["not found"; 3],
            "treats it as unsigned, in an answer to `confirm`; Send, Report and the payment update end as refused; other steps wait and retry",
        ),
        (
            AnswerClass::Throttled,
            ["throttled"; 3],
            "waits as long as Retry-After says, otherwise as after a failure, and retries",
        ),
    ] {
        push_row(&mut table, &describe_answer(meaning), classes, deed);
    }
    for (kind, classes) in FAILURE_CLASSES {
        push_row(
            &mut table,
            &describe_cause(kind),
            classes.map(class_word),
            describe_reaction(kind, classes),
        );
    }
    push_row(
        &mut table,
        "none: an open breaker prevented the call",
        ["breaker open"; 3],
        "waits for the next probe; no request was sent",
    );
    table
}

fn push_row(table: &mut String, answer: &str, classes: [&str; 3], deed: &str) {
    writeln!(table, "| {answer} | {} | {deed} |", classes.join(" | ")).unwrap();
}

fn class_word(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Retryable => "retryable",
        FailureClass::Unknown => "unknown",
    }
}

fn describe_cause(kind: CauseKind) -> String {
    match kind {
        CauseKind::Unreachable => "none: no connection was made".to_owned(),
        CauseKind::Untrusted => "none: the TLS handshake failed".to_owned(),
        CauseKind::TimedOut => "none within `authority.timeout_s`".to_owned(),
        CauseKind::ConnectionReset => "none: the connection was closed or reset after the request, or during the answer".to_owned(),
        CauseKind::Malformed => "unreadable, with any of these statuses: not JSON, XML, a missing field, `ok: false`, 400 or 422 without words, too long".to_owned(),
        CauseKind::Down => format!("{}, 500 and above", describe_answer(AnswerClass::Down)),
        CauseKind::Ambiguous => describe_answer(AnswerClass::Ambiguous),
        CauseKind::Offline => describe_answer(AnswerClass::Offline),
        CauseKind::KeyRefused => describe_answer(AnswerClass::KeyRefused),
        CauseKind::Redirected => describe_answer(AnswerClass::Redirected),
    }
}

fn describe_reaction(kind: CauseKind, [_, claim, effect]: [FailureClass; 3]) -> &'static str {
    match (kind, claim, effect) {
        (CauseKind::Offline, ..) => "waits until the access point is back; nothing is signed again",
        (CauseKind::KeyRefused | CauseKind::Redirected | CauseKind::Untrusted, ..) => {
            "waits and retries; fix `authority.*`"
        }
        (_, FailureClass::Retryable, FailureClass::Retryable) => "waits and retries",
        (_, FailureClass::Retryable, FailureClass::Unknown) => {
            "after an effect, resolves the unknown outcome; otherwise waits and retries"
        }
        (_, FailureClass::Unknown, _) => {
            "finds out whether it is a duplicate or the authority was busy"
        }
    }
}

/// Describes an answer for the documentation: its statuses, and the words that it contains.
fn describe_answer(meaning: AnswerClass) -> String {
    let statuses = STATUS_CLASSES.iter().filter(|(.., of)| *of == meaning);
    let statuses: Vec<_> = statuses
        .map(|(first, last, _)| status_range(*first, *last))
        .collect();
    let phrases = ANSWER_PHRASES
        .iter()
        .filter(|phrase| phrase.meaning == meaning);
    let phrases = phrases.map(|phrase| {
        let statuses: Vec<_> = phrase.statuses.iter().map(u16::to_string).collect();
        let whose = phrase.operation.map_or("", from_operation);
        format!(
            "{} with the words \u{201c}{}\u{201d}{whose}",
            statuses.join(", "),
            phrase.words
        )
    });
    let other = if meaning == AnswerClass::Refused {
        vec!["with other words".to_owned()]
    } else {
        Vec::new()
    };
    let statuses = if statuses.is_empty() {
        Vec::new()
    } else {
        vec![statuses.join(", ")]
    };
    statuses
        .into_iter()
        .chain(other)
        .chain(phrases)
        .collect::<Vec<_>>()
        .join("; ")
        .replace("; with other", " with other")
}

fn from_operation(operation: Operation) -> &'static str {
    if operation == Operation::Transmit {
        " from Send"
    } else {
        operation.name()
    }
}

fn status_range(first: u16, last: u16) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first} to {last}")
    }
}
