//! Update Payment Status on `/v1/app` (spec.md). Its statuses differ from those on `/v1/tax-payers`.

use crate::domain::kernel::codes::RelayedPaymentStatus;
use crate::domain::payment::RelayedPayment;
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::reader::Reader;

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<RelayedPayment> {
    let parse = RelayedPaymentStatus::parse;
    let allowed = RelayedPaymentStatus::allowed_words;
    let payment_status = reader.required("payment_status").word(parse, allowed);
    let remark = reader.optional("remark").long_text(0, TEXT_CHARS_MAX);
    Some(RelayedPayment {
        payment_status: payment_status?,
        remark,
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
            ("/payment_status", None, "payment_status: required"),
            (
                "/payment_status",
                Some(json!(null)),
                "payment_status: required",
            ),
            (
                "/payment_status",
                Some(json!("")),
                "payment_status: required",
            ),
            ("/payment_status", Some(json!(1)), "payment_status: type"),
            (
                "/payment_status",
                Some(json!("odd")),
                "payment_status: one_of",
            ),
            ("/payment_status", Some(json!("rejected")), ""),
            ("/payment_status", Some(json!("PENDING")), ""),
            (
                "/payment_status",
                Some(json!("PARTIAL")),
                "payment_status: one_of",
            ),
            (
                "/payment_status",
                Some(json!("CANCELLED")),
                "payment_status: one_of",
            ),
            ("/remark", Some(json!("x".repeat(255))), ""),
            ("/remark", Some(json!("x".repeat(256))), "remark: max"),
            ("/remark", Some(json!(1)), "remark: type"),
        ];
        check(
            &json!({ "payment_status": "PAID", "remark": "In cash" }),
            &cases,
            read,
        );
    }
}
