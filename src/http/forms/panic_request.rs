//! Reads an operator's request to make the actor of a taxpayer panic, which tests the recovery (development only).

use crate::actors::taxpayer::scheduled_panics::PANICS_MAX;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::forms::field::LONG_TEXT_CHARS_MAX;
use crate::http::forms::reader::Reader;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PanicRequest {
    pub(crate) taxpayer_id: TaxpayerId,
    /// The number of panics to cause. After the first one, the actor executes its commands again. A command that panics
    /// twice is quarantined.
    pub(crate) panics: u32,
    pub(crate) reason: Option<String>,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<PanicRequest> {
    let taxpayer_id = reader.required("taxpayer_id").id();
    let panics = reader
        .optional("panics")
        .whole_number(PANICS_MAX)
        .unwrap_or(1);
    if panics == 0 {
        reader.report_fault("panics", FieldRule::must_be("integer", "1 or 2"));
    }
    let reason = reader.optional("reason").long_text(0, LONG_TEXT_CHARS_MAX);
    Some(PanicRequest {
        taxpayer_id: TaxpayerId(taxpayer_id?),
        panics,
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
            ("/panics", None, ""),
            ("/panics", Some(json!(1)), ""),
            ("/panics", Some(json!(0)), "panics: integer"),
            ("/panics", Some(json!(3)), "panics: integer"),
            ("/reason", Some(json!("to see it")), ""),
            ("/reason", Some(json!(7)), "reason: type"),
        ];
        check(&json!({ "taxpayer_id": 7, "panics": 2 }), &cases, read);
    }
}
