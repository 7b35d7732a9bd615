//! A notice that the authority sends about an invoice (docs/contract.md, "Supplier invoices"): the IRN and a message.

use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::NoticeMessage;
use crate::http::forms::reader::Reader;

/// The maximum size of the body, in bytes. It is small, because a notice is only two short texts.
pub(crate) const BYTES_MAX: usize = 4_096;

/// A notice about an invoice. The notice is not trusted: this service asks the authority for the invoice's state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) irn: Irn,
    pub(crate) message: NoticeMessage,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Notice> {
    let irn = reader.required("irn").irn();
    let message = reader
        .required("message")
        .word(NoticeMessage::parse, NoticeMessage::allowed_words);
    Some(Notice {
        irn: irn?,
        message: message?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::check;

    #[test]
    fn each_field_keeps_its_rule() {
        let body = json!({ "irn": "SUP1-5A0D0001-20260115", "message": "TRANSMITTING" });
        let long = format!("{}-5A0D0001-20260115", "A".repeat(256));
        let cases = [
            ("/irn", None, "irn: required"),
            ("/irn", Some(json!("odd")), "irn: irn_malformed"),
            ("/irn", Some(json!(long)), "irn: max"),
            ("/irn", Some(json!(7)), "irn: type"),
            ("/message", None, "message: required"),
            ("/irn", Some(json!(null)), "irn: required"),
            ("/message", Some(json!("SEEN")), "message: one_of"),
            ("/message", Some(json!("DELIVERED")), "message: one_of"),
            ("/message", Some(json!(7)), "message: type"),
            ("/message", Some(json!(null)), "message: required"),
            ("/message", Some(json!("ACKNOWLEDGED")), ""),
            ("/message", Some(json!("TRANSMITTED")), ""),
            ("/message", Some(json!("FAILED")), ""),
            ("/message", Some(json!("failed")), ""),
        ];
        check(&body, &cases, read);
    }
}
