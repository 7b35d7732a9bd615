//! Update Invoice Status (spec.md): the status to set, and the remark.

use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::kernel::codes::SettableStatus;
use crate::http::forms::field::LONG_TEXT_CHARS_MAX;
use crate::http::forms::reader::Reader;
use crate::http::forms::unique_no;

/// The minimum length of a remark, in characters.
pub(crate) const REMARK_CHARS_MIN: usize = 3;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UpdateStatus {
    pub(crate) invoice: InvoiceRef,
    pub(crate) status: SettableStatus,
    pub(crate) remark: String,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<UpdateStatus> {
    let invoice = unique_no::read(reader);
    let status = reader
        .required("status")
        .word(SettableStatus::parse, SettableStatus::allowed_words);
    let remark = reader
        .required("remark")
        .long_text(REMARK_CHARS_MIN, LONG_TEXT_CHARS_MAX);
    Some(UpdateStatus {
        invoice: invoice?,
        status: status?,
        remark: remark?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::check;

    #[test]
    fn each_field_keeps_its_rule() {
        let body = json!({
            "unique_no": "INV001", "unique_no_type": "INTERNAL_INVOICE_NO", "status": "approved", "remark": "Fine"
        });
        let cases = [
            ("/unique_no", None, "unique_no: required"),
            ("/status", None, "status: required"),
            ("/status", Some(json!("paid")), "status: one_of"),
            ("/status", Some(json!("validated")), "status: one_of"),
            ("/status", Some(json!("APPROVED")), ""),
            ("/remark", Some(json!("no")), "remark: min"),
            ("/remark", Some(json!("yes")), ""),
            ("/remark", Some(json!("x".repeat(1_001))), "remark: max"),
            (
                "/remark",
                Some(json!("a\u{0}b")),
                "remark: control_characters",
            ),
            (
                "/remark",
                Some(json!("a\u{1b}b")),
                "remark: control_characters",
            ),
            ("/remark", None, "remark: required"),
            (
                "/unique_no",
                Some(json!("a\u{0}b")),
                "unique_no: control_characters",
            ),
            (
                "/unique_no",
                Some(json!("a\u{1b}b")),
                "unique_no: control_characters",
            ),
            ("/unique_no_type", None, "unique_no_type: required"),
            (
                "/unique_no_type",
                Some(json!("NUMBER")),
                "unique_no_type: one_of",
            ),
            ("/status", Some(json!("submitted")), "status: one_of"),
            ("/status", Some(json!(1)), "status: type"),
        ];
        check(&body, &cases, read);
    }
}
