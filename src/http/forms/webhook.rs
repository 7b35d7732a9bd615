//! Update Webhook (spec.md). An absent list of event names stays unchanged; an empty list disables all events. An
//! unknown event name is stored with a warning. A null retry schedule restores the deployment's default schedule.

use std::collections::BTreeSet;

use address_policy::{AddressPolicy, URL_CHARS_MAX, UrlFault};

use crate::domain::events::endpoint::{RetryScheduleChange, SecretType};
use crate::domain::events::event::EventKind;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::invisible::is_blank;
use crate::domain::kernel::nearest_word::suggestion;
use crate::http::forms::field::{Field, TEXT_CHARS_MAX};
use crate::http::forms::reader::Reader;

const EVENTS_FIELD: &str = "enabled_events";
const SCHEDULE_FIELD: &str = "retry_schedule_s";
/// The maximum number of event names of one webhook. It is limited because every read of due deliveries loads all the
/// names.
const EVENT_NAMES_MAX: usize = 100;
/// A retry schedule has at most this many delays, because the log shows only this many attempts of a delivery.
const ATTEMPTS_MAX: usize = 50;
/// The maximum delay between attempts, in seconds: 31 days. The schedule in the settings has the same limit.
const DELAY_S_MAX: u32 = 2_678_400;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Webhook {
    pub(crate) url: String,
    pub(crate) enabled_events: Option<Vec<String>>,
    pub(crate) retry_schedule: RetryScheduleChange,
}

pub(crate) fn read(reader: &mut Reader<'_>, policy: &AddressPolicy) -> Option<Webhook> {
    let url = read_url(reader.required("webhook_url"), policy);
    let enabled_events = read_enabled_events(reader, FieldNeed::Optional);
    let retry_schedule = read_retry_schedule(reader);
    Some(Webhook {
        url: url?,
        enabled_events,
        retry_schedule,
    })
}

/// Says whether a form requires a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldNeed {
    Required,
    Optional,
}

/// Reads the names of the events that an endpoint gets. Leaves out blank names, and warns of unknown names.
pub(crate) fn read_enabled_events(reader: &mut Reader<'_>, need: FieldNeed) -> Option<Vec<String>> {
    let field = match need {
        FieldNeed::Required => reader.required(EVENTS_FIELD),
        FieldNeed::Optional => reader.optional(EVENTS_FIELD),
    };
    let names = field
        .texts(TEXT_CHARS_MAX)
        .map(remove_blanks_and_duplicates);
    if names
        .as_ref()
        .is_some_and(|names| names.len() > EVENT_NAMES_MAX)
    {
        let sentence = format!("must not have more than {EVENT_NAMES_MAX} different names");
        reader.report_fault(EVENTS_FIELD, FieldRule::other("max", sentence));
    }
    let unknown_names = names.iter().flatten().filter(|name| !is_event_name(name));
    let unknown_events: Vec<_> = unknown_names
        .take(20)
        .map(|name| unknown_event_sentence(name))
        .collect();
    if !unknown_events.is_empty() {
        reader.warn(format!("unknown event: {}", unknown_events.join(", ")));
    }
    names
}

pub(crate) fn read_retry_schedule(reader: &mut Reader<'_>) -> RetryScheduleChange {
    let delays = reader
        .optional(SCHEDULE_FIELD)
        .whole_numbers(ATTEMPTS_MAX, DELAY_S_MAX);
    match delays {
        Some(delays) => RetryScheduleChange::Own(delays),
        None if reader.is_null(SCHEDULE_FIELD) => RetryScheduleChange::Shared,
        None => RetryScheduleChange::Keep,
    }
}

/// Reads the requested type of the signing secret. The default is HMAC, a secret that both sides know.
#[expect(
    clippy::unnecessary_wraps,
    reason = "every form returns an `Option`, and this form requires no field"
)]
pub(crate) fn read_secret_type(reader: &mut Reader<'_>) -> Option<SecretType> {
    let secret_type = reader
        .optional("type")
        .word(SecretType::parse, SecretType::allowed_words);
    Some(secret_type.unwrap_or(SecretType::Hmac))
}

/// Reads a URL that the address policy allows this service to call.
pub(crate) fn read_url(field: Field<'_>, policy: &AddressPolicy) -> Option<String> {
    field.checked_text(
        "url",
        "an https URL of a public host, at most 500 characters",
        |text| policy.check_url(text).map(drop).map_err(url_rule),
    )
}

/// Returns the rule that a URL with this fault breaks.
pub(crate) fn url_rule(fault: UrlFault) -> FieldRule {
    match fault {
        UrlFault::TooLong => FieldRule::MaxChars(URL_CHARS_MAX),
        UrlFault::Malformed => FieldRule::must_be("url", "a valid absolute URL"),
        UrlFault::Scheme => FieldRule::must_be("url_scheme", "an https URL"),
        UrlFault::UserInfo => {
            FieldRule::other("url_user", "must not carry a user name or password")
        }
        UrlFault::Port => FieldRule::other("url_port", "must not name port 0"),
        UrlFault::AddressRefused => {
            FieldRule::other("url_address", "must lead to a public address")
        }
    }
}

/// Removes blank and duplicate names. The first occurrence of a name keeps its place in the order.
fn remove_blanks_and_duplicates(names: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names
        .into_iter()
        .filter(|name| !is_blank(name) && seen.insert(name.clone()))
        .collect()
}

/// Returns the part of a warning about an unknown event: its name, and the event that its sender probably meant.
fn unknown_event_sentence(name: &str) -> String {
    let known = EventKind::ALL.iter().map(|kind| kind.as_str());
    format!("{name}{}", suggestion(name, known))
}

/// Returns true if this is the name of an event of this service. The comparison is case-sensitive.
fn is_event_name(name: &str) -> bool {
    EventKind::ALL.iter().any(|kind| kind.as_str() == name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::http::forms::testing::{broken_rules, check, read as read_with, with_member};

    /// Checks one field of a valid body: each value, and the rules that it violates.
    fn check_field<const N: usize>(name: &str, cases: [(Option<Value>, &str); N]) {
        let policy = AddressPolicy::default();
        let pointer = format!("/{name}");
        let cases = cases.map(|(value, rules)| (pointer.as_str(), value, rules));
        check(
            &json!({ "webhook_url": "https://example.com/hook" }),
            &cases,
            |reader| read(reader, &policy),
        );
    }

    #[test]
    fn a_webhook_has_an_https_url_of_a_public_host() {
        let [longest, long] =
            [480, 481].map(|length| format!("https://example.com/{}", "x".repeat(length)));
        check_field(
            "webhook_url",
            [
                (None, "webhook_url: required"),
                (Some(json!("")), "webhook_url: required"),
                (Some(json!(7)), "webhook_url: type"),
                (Some(json!("http://127.0.0.1:9/\u{0}x")), "webhook_url: url"),
                (
                    Some(json!("http://127.0.0.1:9/\u{1b}x")),
                    "webhook_url: url",
                ),
                (Some(json!("example.com")), "webhook_url: url"),
                (Some(json!("ftp://example.com")), "webhook_url: url_scheme"),
                (
                    Some(json!("https://127.0.0.1/")),
                    "webhook_url: url_address",
                ),
                (
                    Some(json!("https://a:b@example.com/")),
                    "webhook_url: url_user",
                ),
                (
                    Some(json!("https://example.com:0/")),
                    "webhook_url: url_port",
                ),
                (
                    Some(json!("https://erp.internal/")),
                    "webhook_url: url_address",
                ),
                (Some(json!(long)), "webhook_url: max"),
                (Some(json!(longest)), ""),
            ],
        );
    }

    #[test]
    fn a_webhook_names_at_most_100_different_events() {
        let names = |count: u32| {
            (0..count)
                .map(|number| number.to_string())
                .collect::<Vec<_>>()
        };
        check_field(
            "enabled_events",
            [
                (Some(json!("invoice.created")), "enabled_events: type"),
                (
                    Some(json!(["invoice.created", 7])),
                    "enabled_events.1: type",
                ),
                (Some(json!(names(101))), "enabled_events: max"),
                (Some(json!(names(100))), ""),
                (Some(json!(vec!["invoice.created"; 101])), ""),
            ],
        );
    }

    #[test]
    fn a_retry_schedule_has_1_to_50_delays_of_whole_seconds() {
        check_field(
            "retry_schedule_s",
            [
                (Some(json!([])), "retry_schedule_s: min"),
                (Some(json!(vec![0; 51])), "retry_schedule_s: max"),
                (Some(json!(vec![0; 50])), ""),
                (Some(json!([0, 2_678_400])), ""),
                (Some(json!([0, 2_678_401])), "retry_schedule_s.1: integer"),
                (Some(json!([-1])), "retry_schedule_s.0: integer"),
                (Some(json!([1.5])), "retry_schedule_s.0: integer"),
                (Some(json!([1e9])), "retry_schedule_s.0: integer"),
                (Some(json!(["5"])), "retry_schedule_s.0: type"),
                (Some(json!(5)), "retry_schedule_s: type"),
                (Some(json!("[0]")), "retry_schedule_s: type"),
                (Some(json!({ "0": 1 })), "retry_schedule_s: type"),
                (Some(json!(vec![0; 20_000])), "retry_schedule_s: max"),
                (Some(json!([0, -1])), "retry_schedule_s.1: integer"),
                (Some(json!([u64::MAX])), "retry_schedule_s.0: integer"),
                (Some(json!([0.5])), "retry_schedule_s.0: integer"),
                (Some(json!([null])), "retry_schedule_s.0: type"),
            ],
        );
    }

    #[test]
    fn the_secret_type_is_hmac_by_default() {
        let secret_type = |body| read_with(body, read_secret_type).map(|form| form.value);
        assert_eq!(secret_type(json!({})).unwrap(), SecretType::Hmac);
        assert_eq!(
            secret_type(json!({ "type": null })).unwrap(),
            SecretType::Hmac
        );
        assert_eq!(
            secret_type(json!({ "type": "hmac" })).unwrap(),
            SecretType::Hmac
        );
        assert_eq!(
            secret_type(json!({ "type": "Ed25519" })).unwrap(),
            SecretType::Ed25519
        );
        for odd in [json!("rsa"), json!("v1a")] {
            assert_eq!(
                broken_rules(read_with(json!({ "type": odd }), read_secret_type)),
                ["type: one_of"]
            );
        }
        for odd in [json!(1), json!(["ed25519"])] {
            assert_eq!(
                broken_rules(read_with(json!({ "type": odd }), read_secret_type)),
                ["type: type"]
            );
        }
    }

    #[test]
    fn absent_events_stay_and_an_empty_list_disables_all() {
        let policy = AddressPolicy::default();
        let url = json!({ "webhook_url": "https://example.com/hook" });
        let events = |body| {
            read_with(body, |reader| read(reader, &policy))
                .unwrap()
                .value
                .enabled_events
        };
        assert_eq!(events(url.clone()), None);
        assert_eq!(
            events(with_member(&url, "/enabled_events", Some(json!([])))),
            Some(vec![])
        );
        let body = with_member(
            &url,
            "/enabled_events",
            Some(json!(["invoice.created", "odd", "invoice.transmited"])),
        );
        let form = read_with(body, |reader| read(reader, &policy)).unwrap();
        assert_eq!(
            form.warnings,
            ["unknown event: odd, invoice.transmited (did you mean invoice.transmitted?)"]
        );
        assert_eq!(form.value.enabled_events.unwrap().len(), 3);
    }

    #[test]
    fn an_absent_schedule_stays_and_null_restores_the_default() {
        let policy = AddressPolicy::default();
        let url = json!({ "webhook_url": "https://example.com/hook" });
        for (sent, change) in [
            (None, RetryScheduleChange::Keep),
            (Some(json!(null)), RetryScheduleChange::Shared),
            (Some(json!([0, 60])), RetryScheduleChange::Own(vec![0, 60])),
        ] {
            let body = with_member(&url, "/retry_schedule_s", sent);
            let form = read_with(body, |reader| read(reader, &policy)).unwrap();
            assert_eq!((form.value.retry_schedule, form.warnings), (change, vec![]));
        }
    }

    #[test]
    fn a_blank_event_name_is_left_out_without_a_warning() {
        let policy = AddressPolicy::default();
        for (events, kept) in [
            (json!(["", " ", "\u{200b}"]), &[][..]),
            (
                json!(["", "invoice.created", "\t"]),
                &["invoice.created"][..],
            ),
        ] {
            let body =
                json!({ "webhook_url": "https://example.com/hook", "enabled_events": events });
            let form = read_with(body, |reader| read(reader, &policy)).unwrap();
            assert_eq!(form.value.enabled_events.unwrap(), kept, "{events}");
            assert_eq!(form.warnings, [""; 0], "{events}");
        }
    }

    #[test]
    fn a_duplicate_event_name_is_kept_once_and_warned_of_once() {
        let policy = AddressPolicy::default();
        let events = json!([
            "odd",
            "invoice.created",
            "odd",
            "api-key.rotated",
            "invoice.created"
        ]);
        let body = json!({ "webhook_url": "https://example.com/hook", "enabled_events": events });
        let form = read_with(body, |reader| read(reader, &policy)).unwrap();
        assert_eq!(
            form.value.enabled_events.unwrap(),
            ["odd", "invoice.created", "api-key.rotated"]
        );
        assert_eq!(form.warnings, ["unknown event: odd"]);
    }
}
