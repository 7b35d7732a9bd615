//! Update Webhook (spec.md). Events that are not sent stay; an empty list clears them. A name that is no
//! event is kept and named in a warning.

use crate::domain::event::EventKind;
use crate::http::forms::field::TEXT_MAX;
use crate::http::forms::reader::Reader;
use crate::webhook::{AddressPolicy, UrlFault};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Webhook {
    pub(crate) url: String,
    pub(crate) enabled_events: Option<Vec<String>>,
}

pub(crate) fn read(reader: &mut Reader<'_>, policy: &AddressPolicy) -> Option<Webhook> {
    let url = reader.required("webhook_url").checked_by(|text| match policy.check_url(text) {
        Ok(_) => Ok(()),
        Err(fault) => Err((rule(fault), what(fault))),
    });
    let enabled_events = reader.optional("enabled_events").texts(TEXT_MAX);
    let unknown = enabled_events.iter().flatten().filter(|name| !is_event(name));
    let unknown: Vec<_> = unknown.take(20).map(String::as_str).collect();
    if !unknown.is_empty() {
        reader.warn(format!("unknown event: {}", unknown.join(", ")));
    }
    Some(Webhook { url: url?, enabled_events })
}

/// Matched as it is written: the names are not read in any case.
fn is_event(name: &str) -> bool {
    EventKind::ALL.iter().any(|kind| kind.as_str() == name)
}

fn rule(fault: UrlFault) -> &'static str {
    match fault {
        UrlFault::TooLong => "max",
        UrlFault::Malformed => "url",
        UrlFault::Scheme => "url_scheme",
        UrlFault::UserInfo => "url_user",
        UrlFault::AddressRefused => "url_address",
    }
}

fn what(fault: UrlFault) -> &'static str {
    match fault {
        UrlFault::TooLong => "must not be greater than 500 characters",
        UrlFault::Malformed => "must be a valid absolute URL",
        UrlFault::Scheme => "must be an https URL",
        UrlFault::UserInfo => "must not carry a user name or password",
        UrlFault::AddressRefused => "must lead to a public address",
    }
}
