//! The entries of an invoice's timeline, in words as a page shows them.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::console::actor_name::actor_name;
use crate::domain::invoice::document_difference::Differences;
use crate::domain::invoice::timeline::{EntryKind, TimelineEntry};
use crate::domain::kernel::audit::ActorKind;
use crate::domain::money::{Amount, group_digits};
use crate::domain::pipeline::{Operation, Step};

/// One entry of the timeline. `class` gives the colour; `note` adds what the title does not say.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TimelineItem {
    pub(super) time: Timestamp,
    pub(super) class: &'static str,
    pub(super) title: String,
    pub(super) note: String,
}

/// Returns the events of an invoice, newest first. Amounts are written in the currency of the invoice, with this number
/// of decimal digits.
pub(super) fn event_items(
    entries: &[TimelineEntry],
    currency: &str,
    digits: u32,
) -> Vec<TimelineItem> {
    let events = entries.iter().rev();
    let events = events.filter(|entry| entry.kind == EntryKind::Event);
    events
        .map(|entry| describe_event(entry, currency, digits))
        .collect()
}

fn describe_event(entry: &TimelineEntry, currency: &str, digits: u32) -> TimelineItem {
    let detail = |name: &str| detail_text(&entry.detail, name);
    let (class, title) = match entry.name.as_str() {
        "invoice.created" => ("", "The invoice was created".to_owned()),
        "invoice.updated" => ("", "The invoice was changed".to_owned()),
        "invoice.status-updated" => (
            "",
            status_change_title(&detail("previous_status"), &detail("status")),
        ),
        "invoice.validated" => ("ok", "The authority found the data valid".to_owned()),
        "invoice.submitted" => ("ok", "The authority signed the invoice".to_owned()),
        "invoice.transmitted" => (
            "ok",
            "The invoice was transmitted to the customer".to_owned(),
        ),
        "invoice.acknowledged" => (
            "ok",
            "The customer's system confirmed the receipt".to_owned(),
        ),
        "invoice.reported" => ("ok", "The invoice was reported for VAT".to_owned()),
        "invoice.rejected" => ("bad", "The authority rejected the invoice".to_owned()),
        "invoice.failed" => (
            "bad",
            "The service stopped trying; an operator has to look at it".to_owned(),
        ),
        "payment.status-updated" => ("", payment_title(&detail("amount"), currency, digits)),
        other => ("", other.to_owned()),
    };
    // A title that begins with the authority says already who acted.
    let is_act_of_authority = title.starts_with("The authority");
    let by = entry
        .actor
        .as_ref()
        .filter(|actor| {
            let is_person = !matches!(actor.kind, ActorKind::Authority | ActorKind::Service);
            is_person || !is_act_of_authority
        })
        .map(|actor| format!("by {}", actor_name(actor)))
        .unwrap_or_default();
    let paid_on = detail("payment_date");
    let notes = [
        by,
        if paid_on.is_empty() {
            paid_on
        } else {
            format!("paid on {paid_on}")
        },
        detail("remark"),
        detail("reference"),
        not_submitted_text(&detail("not_submitted")),
        differences_text(&entry.detail),
    ];
    TimelineItem {
        time: entry.at,
        class,
        title,
        note: join_notes(&notes),
    }
}

/// Says why an approval did not submit the invoice, although the account submits what is approved.
fn not_submitted_text(reason: &str) -> String {
    if reason.is_empty() {
        return String::new();
    }
    format!("not submitted: {reason}")
}

/// Says how the document that was sent differs from the stored invoice.
fn differences_text(detail: &Map<String, Value>) -> String {
    let found = detail.get("differences").cloned().unwrap_or_default();
    serde_json::from_value(found).map_or_else(
        |_| String::new(),
        |differences: Differences| differences.to_string(),
    )
}

fn status_change_title(from: &str, to: &str) -> String {
    match (from, to) {
        (_, "") => "The status was set".to_owned(),
        ("", to) => format!("The status is {to}"),
        (from, to) if from == to => format!("The status stayed {to}"),
        (from, to) => format!("The status went from {from} to {to}"),
    }
}

fn payment_title(amount: &str, currency: &str, digits: u32) -> String {
    let taken_back = amount.strip_prefix('-');
    let amount = taken_back.unwrap_or(amount);
    let amount = match (amount, Amount::parse(amount)) {
        ("" | "0", _) => return "The payment status was set".to_owned(),
        (_, Ok(read)) => group_digits(&read.with_digits(digits).to_string()),
        (unread, Err(_)) => unread.to_owned(),
    };
    let act = match taken_back {
        Some(_) => "taken back",
        None => "recorded",
    };
    format!("A payment of {currency} {amount} was {act}")
}

pub(super) fn describe_step(entry: &TimelineEntry) -> TimelineItem {
    let outcome = entry.outcome.as_deref().unwrap_or_default();
    let (class, words) = match outcome {
        "done" => ("ok", "done"),
        "unchanged" => ("ok", "was done before"),
        "refused" => ("bad", "rejected by the authority"),
        "retry" => ("wait", "failed; it is tried again"),
        "held" => ("wait", "not called, because the authority fails at present"),
        "paused" => ("warn", "failed; paused until an operator acts"),
        "interrupted" => ("wait", "the service ended meanwhile; it is tried again"),
        "" => ("info", "under way"),
        other => ("", other),
    };
    let step = Step::parse(&entry.name).map_or(&*entry.name, |step| step_name(step));
    let attempt = entry
        .attempt
        .filter(|attempt| *attempt > 1)
        .map(|attempt| format!("attempt {attempt}"));
    let notes = [
        attempt.unwrap_or_default(),
        duration_text(entry.duration_ms),
        detail_text(&entry.detail, "error"),
    ];
    TimelineItem {
        time: entry.at,
        class,
        title: format!("{step}: {words}"),
        note: join_notes(&notes),
    }
}

pub(super) fn describe_delivery(entry: &TimelineEntry) -> TimelineItem {
    let is_delivered = entry.outcome.as_deref() == Some("delivered");
    let answer = match (is_delivered, detail_text(&entry.detail, "status")) {
        (true, status) => format!("delivered, answered {status}"),
        (false, status) if status.is_empty() => "no answer".to_owned(),
        (false, status) => format!("rejected with {status}"),
    };
    let attempt = entry
        .attempt
        .filter(|attempt| *attempt > 1)
        .map(|attempt| format!("attempt {attempt}"));
    TimelineItem {
        time: entry.at,
        class: if is_delivered { "ok" } else { "warn" },
        title: format!("Your webhook was told of {}: {answer}", entry.name),
        note: join_notes(&[
            attempt.unwrap_or_default(),
            duration_text(entry.duration_ms),
        ]),
    }
}

/// Returns the name of an operation as an account owner knows it.
pub(super) fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Submit => "Submission",
        Operation::Transmit => "Transmission",
        Operation::Report => "VAT report",
        Operation::Payment => "Payment status",
    }
}

/// Returns the operation that takes a step of this name.
pub(super) fn step_operation(name: &str) -> Option<Operation> {
    let step = Step::parse(name)?;
    // The receipt follows a transmission, but is no step of it.
    let step = if step == Step::Receipt {
        Step::Send
    } else {
        step
    };
    let mut all = Operation::ALL.iter().copied();
    all.find(|operation| operation.steps().contains(&step))
}

fn step_name(step: Step) -> &'static str {
    match step {
        Step::IrnCheck => "Check of the IRN",
        Step::DataCheck => "Check of the data",
        Step::Sign => "Signature",
        Step::Confirm => "Confirmation of the signature",
        Step::Health => "Check that the authority is well",
        Step::AccessPoints => "Check of both access points",
        Step::Send => "Transmission to the customer",
        Step::Receipt => "Receipt by the customer",
        Step::Report => "VAT report",
        Step::Payment => "Payment status at the authority",
    }
}

/// Returns a member of the detail as text: a word without its quotes, a number with all its digits.
fn detail_text(detail: &Map<String, Value>, name: &str) -> String {
    match detail.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn duration_text(ms: Option<i64>) -> String {
    ms.map(|ms| format!("{ms} ms")).unwrap_or_default()
}

fn join_notes(notes: &[String]) -> String {
    let filled = notes
        .iter()
        .filter(|note| !note.is_empty())
        .map(String::as_str);
    filled.collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::kernel::audit::{Actor, ActorWithName, NamedActor};

    fn describe_entry(
        kind: EntryKind,
        name: &str,
        outcome: Option<&str>,
        detail: &Value,
    ) -> (&'static str, String) {
        let entry = TimelineEntry {
            at: Timestamp::UNIX_EPOCH,
            kind,
            name: name.into(),
            outcome: outcome.map(str::to_owned),
            attempt: Some(2),
            duration_ms: Some(53),
            actor: Some(NamedActor::from(&ActorWithName {
                actor: Actor::CommandLine,
                name: None,
                address: None,
            })),
            detail: detail.as_object().cloned().unwrap_or_default(),
        };
        let item = match kind {
            EntryKind::Event => describe_event(&entry, "NGN", 2),
            EntryKind::Step => describe_step(&entry),
            EntryKind::Delivery => describe_delivery(&entry),
        };
        (item.class, format!("{} ({})", item.title, item.note))
    }

    #[test]
    fn a_title_that_names_the_authority_does_not_name_it_again() {
        for (name, kind, note) in [
            ("invoice.submitted", ActorKind::Authority, ""),
            ("invoice.rejected", ActorKind::Service, ""),
            (
                "invoice.submitted",
                ActorKind::Integrator,
                "by your integrator",
            ),
            (
                "invoice.updated",
                ActorKind::Authority,
                "by the tax authority",
            ),
        ] {
            let entry = TimelineEntry {
                at: Timestamp::UNIX_EPOCH,
                kind: EntryKind::Event,
                name: name.into(),
                outcome: None,
                attempt: None,
                duration_ms: None,
                actor: Some(NamedActor {
                    kind,
                    id: None,
                    name: None,
                }),
                detail: Map::new(),
            };
            assert_eq!(describe_event(&entry, "NGN", 2).note, note, "{name} {kind}");
        }
    }

    #[test]
    fn each_kind_of_entry_has_its_words() {
        let status = json!({ "previous_status": "draft", "status": "approved", "remark": "fine" });
        let cases = [
            (EntryKind::Event, "invoice.status-updated", None, status),
            (
                EntryKind::Event,
                "invoice.status-updated",
                None,
                json!({ "status": "approved", "not_submitted": "It lacks a code." }),
            ),
            (
                EntryKind::Event,
                "payment.status-updated",
                None,
                json!({ "amount": 10.50, "reference": "R1" }),
            ),
            (
                EntryKind::Event,
                "payment.status-updated",
                None,
                json!({ "amount": "1234567.5", "payment_date": "2026-02-03" }),
            ),
            (
                EntryKind::Event,
                "payment.status-updated",
                None,
                json!({ "amount": -1_234.5, "reference": "R1" }),
            ),
            (
                EntryKind::Event,
                "payment.status-updated",
                None,
                json!({ "amount": 0 }),
            ),
            (EntryKind::Step, "sign", Some("done"), json!({})),
            (
                EntryKind::Step,
                "data-check",
                Some("refused"),
                json!({ "error": "tin is odd" }),
            ),
            (EntryKind::Step, "send", None, json!({})),
            (
                EntryKind::Delivery,
                "invoice.created",
                Some("delivered"),
                json!({ "status": 200 }),
            ),
            (
                EntryKind::Delivery,
                "invoice.created",
                Some("failed"),
                json!({ "failure": "timed_out" }),
            ),
        ];
        let lines = cases.map(|(kind, name, outcome, detail)| {
            let (class, text) = describe_entry(kind, name, outcome, &detail);
            format!("{class}: {text}")
        });
        insta::assert_snapshot!(lines.join("\n"), @r"
        : The status went from draft to approved (by an operator at the command line · fine)
        : The status is approved (by an operator at the command line · not submitted: It lacks a code.)
        : A payment of NGN 10.50 was recorded (by an operator at the command line · R1)
        : A payment of NGN 1,234,567.50 was recorded (by an operator at the command line · paid on 2026-02-03)
        : A payment of NGN 1,234.50 was taken back (by an operator at the command line · R1)
        : The payment status was set (by an operator at the command line)
        ok: Signature: done (attempt 2 · 53 ms)
        bad: Check of the data: rejected by the authority (attempt 2 · 53 ms · tin is odd)
        info: Transmission to the customer: under way (attempt 2 · 53 ms)
        ok: Your webhook was told of invoice.created: delivered, answered 200 (attempt 2 · 53 ms)
        warn: Your webhook was told of invoice.created: no answer (attempt 2 · 53 ms)
        ");
    }
}
