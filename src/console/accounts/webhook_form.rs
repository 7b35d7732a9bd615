//! The form for the settings of a webhook endpoint: its events, and the other settings as the API takes them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::console::form_values::{FormState, FormValues, keep_stored_group_if_unchanged};
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::event::EventKind;

const EVENTS: &str = "enabled_events";
const SCHEDULE: &str = "retry_schedule_s";

/// An event that the endpoint can subscribe to.
pub(super) struct EventChoice {
    pub(super) name: String,
    pub(super) words: &'static str,
    pub(super) is_on: bool,
}

/// Returns the form as the body of an API call. `text_fields` are the names of its text fields. A blank schedule means
/// the default schedule of the deployment.
pub(super) fn to_api_body(values: &FormValues, text_fields: &[&str]) -> Map<String, Value> {
    let mut body = values.to_object(text_fields);
    let events: Vec<_> = values.checked_values(EVENTS).map(Value::from).collect();
    body.insert(EVENTS.to_owned(), events.into());
    let schedule = match values.text(SCHEDULE) {
        "" => Value::Null,
        text => text
            .split(',')
            .map(|delay| delay_to_json(delay.trim()))
            .collect(),
    };
    body.insert(SCHEDULE.to_owned(), schedule);
    body
}

/// Returns the settings that the form asks for. Those that the person did not change on the page keep the values that
/// are stored by now, so that the form does not undo what somebody else has changed since its page was rendered.
pub(super) fn requested_settings(
    sent: &FormValues,
    text_fields: &[&str],
    stored: &FormValues,
) -> Map<String, Value> {
    let mut body = to_api_body(sent, text_fields);
    let shown = sent.original_values();
    if shown == FormValues::default() {
        return body;
    }
    let mut before = to_api_body(&shown, text_fields);
    let stored = to_api_body(stored, text_fields);
    // The page lists the events in an order of its own, so another order alone is no change.
    if event_names(&before) == event_names(&body) {
        before.insert(
            EVENTS.to_owned(),
            body.get(EVENTS).cloned().unwrap_or_default(),
        );
    }
    for name in text_fields.iter().copied().chain([EVENTS, SCHEDULE]) {
        keep_stored_group_if_unchanged(&mut body, &before, &stored, &[name]);
    }
    body
}

fn event_names(body: &Map<String, Value>) -> BTreeSet<&str> {
    let names = body.get(EVENTS).and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Returns a delay as a JSON number. Any other text stays a text, so that the API refuses it.
fn delay_to_json(text: &str) -> Value {
    text.parse::<u32>()
        .map_or_else(|_| Value::from(text), Value::from)
}

/// Returns the settings of an endpoint as values of its form. `url_field` is the name of the field for the URL.
pub(super) fn form_values(endpoint: Option<&Endpoint>, url_field: &str) -> FormValues {
    let Some(endpoint) = endpoint else {
        return FormValues::default();
    };
    let delays = endpoint
        .retry_schedule
        .iter()
        .flatten()
        .map(ToString::to_string);
    let schedule = delays.collect::<Vec<_>>().join(", ");
    let events = endpoint
        .enabled_events
        .iter()
        .map(|name| (EVENTS, name.as_str()));
    let fields = [
        (url_field, endpoint.url.as_str()),
        (
            "description",
            endpoint.description.as_deref().unwrap_or_default(),
        ),
        (SCHEDULE, &schedule),
    ];
    fields.into_iter().chain(events).collect()
}

/// Returns all known events, followed by unknown ones that the endpoint has subscribed to, so that saving keeps these.
pub(super) fn event_choices(endpoint: Option<&Endpoint>, form: &FormState) -> Vec<EventChoice> {
    let kinds = EventKind::ALL
        .iter()
        .copied()
        .filter(|kind| *kind != EventKind::WebhookTest);
    let known = kinds.map(|kind| (kind.to_string(), describe_event(kind)));
    let names = endpoint
        .map(|endpoint| endpoint.enabled_events.as_slice())
        .unwrap_or_default();
    let unknown = names
        .iter()
        .filter(|name| !EventKind::ALL.iter().any(|kind| kind.as_str() == **name))
        .map(|name| (name.clone(), "Not an event of this service"));
    known
        .chain(unknown)
        .map(|(name, words)| EventChoice {
            is_on: form.has_choice(EVENTS, &name),
            name,
            words,
        })
        .collect()
}

fn describe_event(kind: EventKind) -> &'static str {
    match kind {
        EventKind::InvoiceCreated => "An invoice was created",
        EventKind::InvoiceUpdated => "An invoice was changed",
        EventKind::InvoiceStatusUpdated => "The status of an invoice changed",
        EventKind::InvoiceValidated => "The authority found an invoice valid",
        EventKind::InvoiceSubmitted => "The authority signed an invoice",
        EventKind::InvoiceTransmitted => "An invoice was transmitted to the customer",
        EventKind::InvoiceAcknowledged => "The customer's receipt was confirmed",
        EventKind::InvoiceReported => "An invoice was reported for VAT",
        EventKind::InvoiceRejected => "The authority rejected an invoice",
        EventKind::InvoiceFailed => "The processing of an invoice failed",
        EventKind::InvoiceBatchCompleted => "A batch was stored",
        EventKind::PaymentStatusUpdated => "A payment was recorded or taken back",
        EventKind::SupplierInvoiceReceived => "A supplier's invoice arrived",
        EventKind::SupplierInvoiceAcknowledged => "A supplier's invoice was acknowledged",
        EventKind::ApiKeyRotated => "The API key was replaced",
        EventKind::TaxpayerVerified => "The authority confirmed this business",
        EventKind::TaxpayerUnverified => "The authority could not confirm this business",
        EventKind::AuthorityOutageStarted => "The authority stopped answering",
        EventKind::AuthorityOutageEnded => "The authority answers again",
        EventKind::WebhookUpdated => "The webhook was changed",
        EventKind::WebhookTest => "A test",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_says_what_the_api_asks_for() {
        let fields = [
            ("webhook_url", "https://example.com/hook"),
            ("enabled_events", "invoice.created"),
            ("enabled_events", "invoice.updated"),
            ("retry_schedule_s", "0, 60,x"),
        ];
        let expected = json!({
            "webhook_url": "https://example.com/hook",
            "enabled_events": ["invoice.created", "invoice.updated"],
            "retry_schedule_s": [0, 60, "x"],
        });
        assert_eq!(
            Value::Object(to_api_body(&FormValues::from(fields), &["webhook_url"])),
            expected
        );
        let blank = json!({ "enabled_events": [], "retry_schedule_s": null });
        assert_eq!(
            Value::Object(to_api_body(&FormValues::default(), &[])),
            blank
        );
    }

    #[test]
    fn what_was_not_changed_on_the_page_keeps_what_is_stored_by_now() {
        const TEXTS: [&str; 1] = ["webhook_url"];
        let settings = |url: &str, events: &[&str], schedule: &str| -> FormValues {
            let texts = [("webhook_url", url), (SCHEDULE, schedule)];
            let events = events.iter().map(|name| (EVENTS, *name));
            texts.into_iter().chain(events).collect()
        };
        let shown = settings("https://old.example", &["b", "a"], "");
        let stored = settings("https://new.example", &["b"], "5");
        for (url, events, schedule, expected) in [
            (
                "https://old.example",
                &["a", "b"][..],
                "",
                ("https://new.example", json!(["b"]), json!([5])),
            ),
            (
                "https://old.example",
                &["a"],
                "",
                ("https://new.example", json!(["a"]), json!([5])),
            ),
            (
                "https://third.example",
                &["a", "b"],
                "7",
                ("https://third.example", json!(["b"]), json!([7])),
            ),
            (
                "https://old.example",
                &[],
                "",
                ("https://new.example", json!([]), json!([5])),
            ),
        ] {
            let page = shown.clone().with_original_values();
            let hidden = FormValues::from([("before", page.text("before"))]);
            let sent = settings(url, events, schedule).with_fields(hidden);
            let body = requested_settings(&sent, &TEXTS, &stored);
            let (url, events, schedule) = expected;
            let expected = json!({
                "webhook_url": url, EVENTS: events, SCHEDULE: schedule,
            });
            assert_eq!(Value::Object(body), expected, "{sent:?}");
        }
        let sent = settings("https://old.example", &["a"], "");
        let body = requested_settings(&sent, &TEXTS, &stored);
        assert_eq!(
            body,
            to_api_body(&sent, &TEXTS),
            "a page that tells nothing"
        );
    }
}
