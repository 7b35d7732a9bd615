//! Reads the part of an event log to replay. Both fields are required, so that a forgotten field cannot cause many
//! events to be sent.

use crate::domain::events::log_position::LogPosition;
use crate::domain::events::replay::{AfterEnable, ReplayScope};
use crate::http::forms::reader::Reader;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReplayForm {
    pub(crate) since: LogPosition,
    pub(crate) scope: ReplayScope,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<ReplayForm> {
    let since = reader.required("since").log_position();
    let scope = reader.required("only").word(
        ReplayScope::parse_requestable_scope,
        ReplayScope::requestable_scope_list,
    );
    Some(ReplayForm {
        since: since?,
        scope: scope?,
    })
}

/// Reads the body of a request to enable a webhook. By default no events are replayed.
#[expect(
    clippy::unnecessary_wraps,
    reason = "every form returns an `Option`, and this form requires no field"
)]
pub(crate) fn read_enable_request(reader: &mut Reader<'_>) -> Option<AfterEnable> {
    let replay = reader
        .optional("replay")
        .word(AfterEnable::parse, AfterEnable::allowed_words);
    Some(replay.unwrap_or(AfterEnable::None))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::{broken_rules, check, read as read_with};

    #[test]
    fn each_field_keeps_its_rule() {
        let cases = [
            ("/since", None, "since: required"),
            ("/since", Some(json!("")), "since: required"),
            ("/since", Some(json!(null)), "since: required"),
            ("/since", Some(json!(1e300)), "since: format"),
            ("/since", Some(json!("2026-01-15")), "since: format"),
            ("/since", Some(json!(-1)), "since: format"),
            ("/since", Some(json!(1.5)), "since: format"),
            ("/since", Some(json!("soon")), "since: format"),
            ("/since", Some(json!(u64::MAX)), "since: format"),
            ("/since", Some(json!(true)), "since: type"),
            ("/since", Some(json!(["1"])), "since: type"),
            ("/since", Some(json!(0)), ""),
            ("/since", Some(json!("2026-01-15T10:00:00Z")), ""),
            ("/only", None, "only: required"),
            ("/only", Some(json!("")), "only: required"),
            ("/only", Some(json!("none")), "only: one_of"),
            ("/only", Some(json!("selected")), "only: one_of"),
            ("/only", Some(json!(1)), "only: type"),
            ("/only", Some(json!("MISSING")), ""),
        ];
        check(&json!({ "since": 1, "only": "all" }), &cases, read);
    }

    #[test]
    fn enabling_replays_nothing_unless_the_caller_requests_a_replay() {
        let scope = |body| read_with(body, read_enable_request).unwrap().value.scope();
        assert_eq!(scope(json!({})), None);
        assert_eq!(scope(json!({ "replay": "none" })), None);
        assert_eq!(
            scope(json!({ "replay": "Failed" })),
            Some(ReplayScope::Failed)
        );
        assert_eq!(
            scope(json!({ "replay": "missing" })),
            Some(ReplayScope::Missing)
        );
        for (odd, rule) in [
            (json!("all"), "one_of"),
            (json!("some"), "one_of"),
            (json!(true), "type"),
            (json!(["none"]), "type"),
        ] {
            let rules = broken_rules(read_with(json!({ "replay": odd }), read_enable_request));
            assert_eq!(rules, [format!("replay: {rule}")]);
        }
    }
}
