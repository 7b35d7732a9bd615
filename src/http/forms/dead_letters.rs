//! Reads a request to replay the dead letters of a taxpayer: the log position to start from, and the reason.

use crate::domain::events::log_position::LogPosition;
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::forms::field::LONG_TEXT_CHARS_MAX;
use crate::http::forms::reader::Reader;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DeadLetterReplay {
    pub(crate) taxpayer_id: TaxpayerId,
    /// Replays only dead letters from this log position on; `None` replays all dead letters of the taxpayer.
    pub(crate) since: Option<LogPosition>,
    pub(crate) reason: Option<String>,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<DeadLetterReplay> {
    let taxpayer_id = reader.required("taxpayer_id").id();
    let since = reader.optional("since").log_position();
    let reason = reader.optional("reason").long_text(0, LONG_TEXT_CHARS_MAX);
    Some(DeadLetterReplay {
        taxpayer_id: TaxpayerId(taxpayer_id?),
        since,
        reason,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::check;

    #[test]
    fn each_field_keeps_its_rule() {
        let cases = [
            ("/taxpayer_id", None, "taxpayer_id: required"),
            ("/taxpayer_id", Some(json!("7")), "taxpayer_id: type"),
            ("/since", None, ""),
            ("/since", Some(json!("2026-01-15T10:00:00Z")), ""),
            ("/since", Some(json!("soon")), "since: format"),
            ("/since", Some(json!(true)), "since: type"),
            ("/reason", None, ""),
            ("/reason", Some(json!("x".repeat(1_001))), "reason: max"),
        ];
        check(
            &json!({ "taxpayer_id": 7, "since": 1, "reason": "repaired" }),
            &cases,
            read,
        );
    }
}
