//! Reads the time for which a link to a delivery is valid.

use crate::domain::kernel::field_rule::FieldRule;
use crate::http::forms::reader::Reader;

const LIFETIME_FIELD: &str = "valid_for_s";
/// The shortest time, in seconds. A link with a shorter time would expire before anybody opens it.
const VALID_FOR_S_MIN: u32 = 60;

/// Returns the time for which the link is valid, in seconds: `default_s` if the caller sent none. More than `max_s`, or
/// less than `VALID_FOR_S_MIN`, is a fault.
pub(crate) fn read_lifetime_s(reader: &mut Reader<'_>, max_s: u32, default_s: u32) -> Option<u32> {
    let sent_seconds = reader.optional(LIFETIME_FIELD).whole_number(max_s);
    if sent_seconds.is_some_and(|seconds| seconds < VALID_FOR_S_MIN) {
        let sentence = format!("must be at least {VALID_FOR_S_MIN}");
        reader.report_fault(LIFETIME_FIELD, FieldRule::other("min", sentence));
        return None;
    }
    Some(sent_seconds.unwrap_or(default_s))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::check;

    #[test]
    fn each_field_keeps_its_rule() {
        let cases = [
            ("/valid_for_s", None, ""),
            ("/valid_for_s", Some(json!(60)), ""),
            ("/valid_for_s", Some(json!(900)), ""),
            ("/valid_for_s", Some(json!(59)), "valid_for_s: min"),
            ("/valid_for_s", Some(json!(901)), "valid_for_s: integer"),
            ("/valid_for_s", Some(json!("day")), "valid_for_s: type"),
        ];
        check(&json!({ "valid_for_s": 300 }), &cases, |reader| {
            read_lifetime_s(reader, 900, 300)
        });
    }
}
