//! Reads the filter of pipeline runs: from the query of the operators' list of runs, and from the body of a bulk move,
//! which applies one operator action to many runs.

use std::time::Duration;

use uuid::Uuid;

use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::ids::{RunId, TaxpayerId};
use crate::domain::pipeline::{Operation, OperatorAction, RunState, Step, WaitReason};
use crate::http::forms::field::{IRN_FORMAT, LONG_TEXT_CHARS_MAX, TEXT_CHARS_MAX};
use crate::http::forms::query::Query;
use crate::http::forms::reader::Reader;
use crate::store::runs::run_list::{DeadlineState, RunFilter, RunOrder};

/// A request to apply an operator action, such as a retry, to all runs that match a filter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BulkMove {
    pub(crate) action: OperatorAction,
    pub(crate) filter: RunFilter,
    /// True if the runs are only counted and not changed.
    pub(crate) is_preview: bool,
    pub(crate) reason: Option<String>,
}

pub(crate) fn read_bulk_move(reader: &mut Reader<'_>) -> Option<BulkMove> {
    let action = reader
        .required("action")
        .word(OperatorAction::parse, OperatorAction::allowed_words);
    let filter = reader.required("filter").object(read);
    let is_preview = reader.optional("preview").boolean().unwrap_or_default();
    let reason = reader.optional("reason").long_text(0, LONG_TEXT_CHARS_MAX);
    if filter.as_ref().is_some_and(|filter| !filter.has_condition) {
        reader.report_fault(
            "filter",
            FieldRule::must_be("min", "an object with at least one condition"),
        );
        return None;
    }
    Some(BulkMove {
        action: action?,
        filter: filter?.filter,
        is_preview,
        reason,
    })
}

/// The names of the conditions that the query of the list of runs and the body of a bulk move may have.
pub(crate) const CONDITIONS: [&str; 9] = [
    "state",
    "operation",
    "taxpayer_id",
    "irn",
    "step",
    "wait_reason",
    "error",
    "older_than_s",
    "deadline",
];

/// The condition that only a bulk move may have: the ids of the runs.
const IDS_FIELD: &str = "ids";
/// The maximum number of ids in a filter.
const IDS_MAX: usize = 1_000;
const ID_CHARS: usize = 36;

struct BulkMoveFilter {
    filter: RunFilter,
    /// False for a filter without conditions. Such a filter would match every run, which is probably a mistake.
    has_condition: bool,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every form returns an `Option`, and this form requires no field"
)]
fn read(reader: &mut Reader<'_>) -> Option<BulkMoveFilter> {
    let older_than = reader.optional("older_than_s").whole_number(u32::MAX);
    let filter = RunFilter {
        ids: read_ids(reader),
        state: reader
            .optional("state")
            .word(RunState::parse, RunState::allowed_words),
        operation: reader
            .optional("operation")
            .word(Operation::parse, Operation::allowed_words),
        taxpayer_id: reader.optional("taxpayer_id").id().map(TaxpayerId),
        irn: reader.optional("irn").irn(),
        step: reader
            .optional("step")
            .word(Step::parse, Step::allowed_words),
        wait_reason: reader
            .optional("wait_reason")
            .word(WaitReason::parse, WaitReason::allowed_words),
        error: reader.optional("error").text(TEXT_CHARS_MAX),
        older_than: older_than.map(|seconds| Duration::from_secs(seconds.into())),
        deadline: reader
            .optional("deadline")
            .word(DeadlineState::parse, DeadlineState::allowed_words),
    };
    refuse_unknown_conditions(reader);
    Some(BulkMoveFilter {
        filter,
        has_condition: reader.has(IDS_FIELD) || CONDITIONS.iter().any(|name| reader.has(name)),
    })
}

fn read_ids(reader: &mut Reader<'_>) -> Option<Vec<RunId>> {
    let texts = reader
        .optional(IDS_FIELD)
        .limited_texts(IDS_MAX, ID_CHARS)?;
    let ids = texts.iter().enumerate().map(|(index, text)| {
        let id = Uuid::try_parse(text)
            .ok()
            .filter(|_| text.len() == ID_CHARS);
        if id.is_none() {
            let rule = FieldRule::must_be("format", "the id of a run");
            reader.report_fault(&format!("{IDS_FIELD}.{index}"), rule);
        }
        id
    });
    // The first `collect` checks all ids, so that the caller sees all faults. The second `collect` gives `None` if an
    // id is invalid.
    let ids: Vec<_> = ids.collect();
    ids.into_iter().collect()
}

/// Refuses unknown conditions, because a filter whose unknown conditions are ignored matches more runs than its sender
/// meant.
fn refuse_unknown_conditions(reader: &Reader<'_>) {
    let names = reader.names();
    let unknown_names = names.filter(|name| *name != IDS_FIELD && !CONDITIONS.contains(name));
    for name in unknown_names {
        let known_names = CONDITIONS.join(", ");
        let sentence = format!("is not a condition. The conditions are {IDS_FIELD}, {known_names}");
        reader.report_fault(name, FieldRule::other("one_of", sentence));
    }
}

/// Returns the filter in the form of a query string, for the audit log.
pub(crate) fn describe_filter(filter: &RunFilter) -> String {
    let older_than = filter.older_than.map(|age| age.as_secs().to_string());
    let ids = filter.ids.as_ref().map(|ids| format!("{} runs", ids.len()));
    let conditions = [
        (IDS_FIELD, ids),
        ("state", filter.state.map(|word| word.to_string())),
        ("operation", filter.operation.map(|word| word.to_string())),
        ("taxpayer_id", filter.taxpayer_id.map(|id| id.to_string())),
        ("irn", filter.irn.as_ref().map(ToString::to_string)),
        ("step", filter.step.map(|word| word.to_string())),
        (
            "wait_reason",
            filter.wait_reason.map(|word| word.to_string()),
        ),
        ("error", filter.error.clone()),
        ("older_than_s", older_than),
        ("deadline", filter.deadline.map(|word| word.to_string())),
    ];
    let terms = conditions
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", value?)));
    terms.collect::<Vec<_>>().join("&")
}

/// Reads the filter and the order of the operators' list of runs.
pub(crate) fn read_query(query: &Query) -> Result<(RunFilter, RunOrder), Faults> {
    let mut faults = Faults::default();
    let filter = RunFilter {
        ids: None,
        state: faults.keep(query.word("state", RunState::parse, RunState::allowed_words)),
        operation: faults.keep(query.word("operation", Operation::parse, Operation::allowed_words)),
        taxpayer_id: query.taxpayer_id("taxpayer_id"),
        irn: faults.keep(read_irn(query)),
        step: faults.keep(query.word("step", Step::parse, Step::allowed_words)),
        wait_reason: faults.keep(query.word(
            "wait_reason",
            WaitReason::parse,
            WaitReason::allowed_words,
        )),
        error: query.trimmed_text("error"),
        older_than: faults
            .keep(query.whole_number("older_than_s", 0))
            .map(|seconds| Duration::from_secs(seconds.unsigned_abs())),
        deadline: faults.keep(query.word(
            "deadline",
            DeadlineState::parse,
            DeadlineState::allowed_words,
        )),
    };
    let order = faults.keep(query.word("order", RunOrder::parse, RunOrder::allowed_words));
    if faults.is_empty() {
        Ok((filter, order.unwrap_or(RunOrder::Newest)))
    } else {
        Err(faults)
    }
}

fn read_irn(query: &Query) -> Result<Option<Irn>, Fault> {
    let Some(text) = query.trimmed_text("irn") else {
        return Ok(None);
    };
    let rule = FieldRule::Written {
        id: "irn_malformed",
        format: IRN_FORMAT,
    };
    Irn::parse(&text)
        .map(Some)
        .map_err(|_| Fault::field("irn", rule))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::check;

    #[test]
    fn each_field_of_a_bulk_move_keeps_its_rule() {
        let body = json!({
            "action": "retry",
            "filter": { "state": "paused", "step": "sign", "older_than_s": 60 },
            "preview": true,
            "reason": "the authority is back",
        });
        let cases = [
            ("/action", None, "action: required"),
            ("/action", Some(json!("restart")), "action: one_of"),
            ("/filter", None, "filter: required"),
            ("/filter", Some(json!([])), "filter: type"),
            ("/filter", Some(json!({})), "filter: min"),
            (
                "/filter/state",
                Some(json!("stuck")),
                "filter.state: one_of",
            ),
            ("/filter/step", Some(json!("wait")), "filter.step: one_of"),
            (
                "/filter/irn",
                Some(json!("INV001")),
                "filter.irn: irn_malformed",
            ),
            (
                "/filter/older_than_s",
                Some(json!(-1)),
                "filter.older_than_s: integer",
            ),
            ("/filter/deadline", Some(json!("soon")), ""),
            (
                "/filter/taxpayer",
                Some(json!(6)),
                "filter.taxpayer: one_of",
            ),
            ("/filter/page", Some(json!(2)), "filter.page: one_of"),
            ("/filter/ids", Some(json!([])), ""),
            ("/filter/ids", Some(json!([Uuid::nil()])), ""),
            ("/filter/ids", Some(json!("x")), "filter.ids: type"),
            (
                "/filter/ids",
                Some(json!([Uuid::nil(), "x"])),
                "filter.ids.1: format",
            ),
            (
                "/filter/ids",
                Some(json!([Uuid::nil().simple()])),
                "filter.ids.0: format",
            ),
            (
                "/filter/ids",
                Some(json!(vec![Uuid::nil(); 1_001])),
                "filter.ids: max",
            ),
            ("/preview", Some(json!("yes")), "preview: type"),
            ("/reason", Some(json!(7)), "reason: type"),
        ];
        check(&body, &cases, read_bulk_move);
    }

    #[test]
    fn a_query_is_read_like_a_body_and_all_its_faults_are_reported() {
        let (filter, order) = read_query(&Query::from_text(
            "older_than_s=60&order=oldest&error=%20down",
        ))
        .unwrap();
        assert_eq!(
            (filter.older_than, order),
            (Some(Duration::from_mins(1)), RunOrder::Oldest)
        );
        assert_eq!(
            (filter.error.as_deref(), filter.state),
            (Some("down"), None)
        );
        assert_eq!(describe_filter(&filter), "error=down&older_than_s=60");
        let filter = RunFilter {
            ids: Some(vec![Uuid::nil(); 2]),
            ..filter
        };
        assert_eq!(
            describe_filter(&filter),
            "ids=2 runs&error=down&older_than_s=60"
        );
        let odd =
            "state=x&operation=sign&step=x&wait_reason=x&irn=x&order=x&older_than_s=-1&deadline=x";
        let faults = read_query(&Query::from_text(odd)).unwrap_err();
        let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
        let expected = [
            "state",
            "operation",
            "irn",
            "step",
            "wait_reason",
            "older_than_s",
            "deadline",
            "order",
        ];
        assert_eq!(paths, expected);
    }
}
