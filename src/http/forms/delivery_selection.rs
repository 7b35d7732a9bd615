//! Reads the selection of deliveries to send again: ids of deliveries, or conditions that the deliveries meet. The ids
//! or the conditions are required, so that a forgotten field cannot cause many events to be sent.

use uuid::Uuid;

use crate::domain::events::delivery::DeliveryState;
use crate::domain::events::event::EventKind;
use crate::domain::events::log_position::LogPosition;
use crate::domain::kernel::field_rule::FieldRule;
use crate::http::forms::field::IRN_CHARS_MAX;
use crate::http::forms::reader::Reader;

const IDS_FIELD: &str = "delivery_ids";
const MATCHING_FIELD: &str = "matching";
/// The maximum number of deliveries that are chosen by their ids.
const IDS_MAX: usize = 1_000;
const ID_CHARS: usize = 36;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SelectionForm {
    Chosen(Vec<Uuid>),
    Matching(MatchForm),
}

/// The conditions that a delivery must all meet. A field that is `None` is no condition.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MatchForm {
    pub(crate) state: Option<DeliveryState>,
    pub(crate) event: Option<EventKind>,
    pub(crate) irn: Option<String>,
    pub(crate) since: Option<LogPosition>,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<SelectionForm> {
    let has_matching = reader.has(MATCHING_FIELD);
    // `required_if` makes the API document list the ids as conditional. The code below checks whether they are
    // required, because only there can the fault name both fields.
    let ids = reader
        .required_if(false, IDS_FIELD)
        .limited_texts(IDS_MAX, ID_CHARS);
    let matching = reader.optional(MATCHING_FIELD).object(read_match);
    let is_empty = ids.as_ref().is_some_and(Vec::is_empty);
    let is_absent = reader.is_null(IDS_FIELD) || reader.names().all(|name| name != IDS_FIELD);
    let ids = ids.filter(|_| !is_empty);
    match (ids, matching) {
        (Some(_), Some(_)) => {
            let sentence = "must not be sent together with matching";
            reader.report_fault(IDS_FIELD, FieldRule::other("conflict", sentence));
            None
        }
        (Some(ids), None) if !has_matching => parse_ids(reader, &ids),
        (None, Some(matching)) => Some(SelectionForm::Matching(matching)),
        (None, None) if (is_empty || is_absent) && !has_matching => {
            let rule = FieldRule::with_expected(
                "required",
                "or matching is required",
                "the ids of deliveries, or matching",
            );
            reader.report_fault(IDS_FIELD, rule);
            None
        }
        _ => None,
    }
}

fn parse_ids(reader: &Reader<'_>, ids: &[String]) -> Option<SelectionForm> {
    let ids = ids.iter().enumerate().map(|(index, text)| {
        let id = Uuid::parse_str(text).ok();
        if id.is_none() {
            let rule = FieldRule::must_be("format", "the id of a delivery");
            reader.report_fault(&format!("{IDS_FIELD}.{index}"), rule);
        }
        id
    });
    // The first `collect` checks all ids, so that the caller sees all faults. The second `collect` gives `None` if an
    // id is invalid.
    let ids: Vec<_> = ids.collect();
    ids.into_iter()
        .collect::<Option<_>>()
        .map(SelectionForm::Chosen)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every form returns an `Option`, and this form requires no field"
)]
fn read_match(reader: &mut Reader<'_>) -> Option<MatchForm> {
    let state = reader
        .optional("state")
        .word(DeliveryState::parse, DeliveryState::allowed_words);
    let event = reader
        .optional("event")
        .word(EventKind::parse, EventKind::allowed_words);
    let irn = reader.optional("irn").text(IRN_CHARS_MAX);
    let since = reader.optional("since").log_position();
    Some(MatchForm {
        state,
        event,
        irn,
        since,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::http::forms::testing::{broken_rules, read as read_with};

    const ID: &str = "01900000-0000-7000-8000-000000000001";

    #[test]
    fn one_of_the_two_ways_to_choose_is_required() {
        let cases: [(Value, &[&str]); 10] = [
            (json!({}), &["delivery_ids: required"]),
            (json!({ "delivery_ids": [] }), &["delivery_ids: required"]),
            (json!({ "delivery_ids": ID }), &["delivery_ids: type"]),
            (json!({ "delivery_ids": [1] }), &["delivery_ids.0: type"]),
            (
                json!({ "delivery_ids": ["a", ID, "b"] }),
                &["delivery_ids.0: format", "delivery_ids.2: format"],
            ),
            (
                json!({ "delivery_ids": vec![ID; 1_001] }),
                &["delivery_ids: max"],
            ),
            (
                json!({ "delivery_ids": [ID], "matching": {} }),
                &["delivery_ids: conflict"],
            ),
            (json!({ "matching": "all" }), &["matching: type"]),
            (
                json!({ "matching": { "state": "lost" } }),
                &["matching.state: one_of"],
            ),
            (
                json!({ "matching": { "since": "soon" } }),
                &["matching.since: format"],
            ),
        ];
        for (body, rules) in cases {
            assert_eq!(broken_rules(read_with(body.clone(), read)), rules, "{body}");
        }
    }

    #[test]
    fn without_a_choice_both_ways_to_choose_are_named() {
        let neither = "The delivery_ids field or matching is required.";
        let misspelt =
            "The delivery_ids field is required (you sent delivery_id, which is no field).";
        for (body, expected) in [
            (json!({}), neither),
            (json!({ "delivery_ids": null }), neither),
            (json!({ "delivery_ids": [], "matching": null }), neither),
            (json!({ "delivery_id": [ID] }), misspelt),
        ] {
            let faults = read_with(body, read).unwrap_err();
            let sentences: Vec<_> = faults.iter().map(ToString::to_string).collect();
            assert_eq!(sentences, [expected]);
        }
    }

    #[test]
    fn ids_or_conditions_are_read() {
        let form = |body| read_with(body, read).unwrap().value;
        let id = Uuid::parse_str(ID).unwrap();
        assert_eq!(
            form(json!({ "delivery_ids": [ID] })),
            SelectionForm::Chosen(vec![id])
        );
        assert_eq!(
            form(json!({ "matching": {} })),
            SelectionForm::Matching(MatchForm::default())
        );
        let matching =
            json!({ "matching": { "state": "dead", "event": "invoice.created", "since": 7 } });
        assert_eq!(
            form(matching),
            SelectionForm::Matching(MatchForm {
                state: Some(DeliveryState::Dead),
                event: Some(EventKind::InvoiceCreated),
                irn: None,
                since: Some(LogPosition::Sequence(7)),
            })
        );
    }
}
