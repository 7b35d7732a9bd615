//! The forms that create or change an additional webhook endpoint. (Update Webhook sets the default endpoint.) A new
//! endpoint must list its events, so that a forgotten list does not create an endpoint that receives none. In a change,
//! an absent field leaves its setting unchanged, and null removes the description or the endpoint's own retry schedule.

use address_policy::AddressPolicy;

use crate::domain::events::endpoint::RetryScheduleChange;
use crate::domain::party::settings::SettingChange;
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::reader::Reader;
use crate::http::forms::webhook::{self, FieldNeed};

const DESCRIPTION_FIELD: &str = "description";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NewEndpoint {
    pub(crate) url: String,
    pub(crate) enabled_events: Vec<String>,
    pub(crate) description: Option<String>,
    pub(crate) retry_schedule: RetryScheduleChange,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EndpointChange {
    pub(crate) url: Option<String>,
    pub(crate) enabled_events: Option<Vec<String>>,
    pub(crate) description: SettingChange<String>,
    pub(crate) retry_schedule: RetryScheduleChange,
}

pub(crate) fn read_new(reader: &mut Reader<'_>, policy: &AddressPolicy) -> Option<NewEndpoint> {
    let url = webhook::read_url(reader.required("url"), policy);
    let enabled_events = webhook::read_enabled_events(reader, FieldNeed::Required);
    let description = reader.optional(DESCRIPTION_FIELD).text(TEXT_CHARS_MAX);
    let retry_schedule = webhook::read_retry_schedule(reader);
    Some(NewEndpoint {
        url: url?,
        enabled_events: enabled_events?,
        description,
        retry_schedule,
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every form returns an `Option`, and this form requires no field"
)]
pub(crate) fn read_change(
    reader: &mut Reader<'_>,
    policy: &AddressPolicy,
) -> Option<EndpointChange> {
    let url = webhook::read_url(reader.optional("url"), policy);
    let enabled_events = webhook::read_enabled_events(reader, FieldNeed::Optional);
    let description = reader.optional(DESCRIPTION_FIELD).text(TEXT_CHARS_MAX);
    let description = match description {
        Some(text) => SettingChange::Set(text),
        None if reader.is_null(DESCRIPTION_FIELD) => SettingChange::Unset,
        None => SettingChange::Keep,
    };
    let retry_schedule = webhook::read_retry_schedule(reader);
    Some(EndpointChange {
        url,
        enabled_events,
        description,
        retry_schedule,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::{check, read as read_with};

    #[test]
    fn a_new_endpoint_has_a_url_and_names_its_events() {
        let policy = AddressPolicy::default();
        let cases = [
            ("/url", None, "url: required"),
            (
                "/url",
                Some(json!("http://example.com/")),
                "url: url_scheme",
            ),
            ("/url", Some(json!("https://10.0.0.1/")), "url: url_address"),
            ("/enabled_events", None, "enabled_events: required"),
            (
                "/enabled_events",
                Some(json!(["invoice.created", 7])),
                "enabled_events.1: type",
            ),
            (
                "/description",
                Some(json!("x".repeat(256))),
                "description: max",
            ),
            ("/description", Some(json!("The warehouse")), ""),
            (
                "/retry_schedule_s",
                Some(json!([0, -1])),
                "retry_schedule_s.1: integer",
            ),
            ("/retry_schedule_s", Some(json!(null)), ""),
        ];
        let body = json!({ "url": "https://example.com/", "enabled_events": ["invoice.created"] });
        check(&body, &cases, |reader| read_new(reader, &policy));
    }

    #[test]
    fn an_absent_field_stays_and_null_removes_a_description() {
        let policy = AddressPolicy::default();
        let change = |body| {
            read_with(body, |reader| read_change(reader, &policy))
                .unwrap()
                .value
        };
        let unchanged = EndpointChange {
            url: None,
            enabled_events: None,
            description: SettingChange::Keep,
            retry_schedule: RetryScheduleChange::Keep,
        };
        assert_eq!(change(json!({})), unchanged);
        let cleared = change(json!({ "description": null, "retry_schedule_s": null }));
        assert_eq!(
            (cleared.description, cleared.retry_schedule),
            (SettingChange::Unset, RetryScheduleChange::Shared)
        );
        let described = change(json!({ "description": "The warehouse", "enabled_events": [] }));
        assert_eq!(
            (described.description, described.enabled_events),
            (SettingChange::Set("The warehouse".to_owned()), Some(vec![]))
        );
    }
}
