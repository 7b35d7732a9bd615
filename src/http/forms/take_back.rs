//! The request to take back a payment that was recorded by mistake.

use crate::domain::payment::TakeBack;
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::field::{LONG_TEXT_CHARS_MAX, TEXT_CHARS_MAX};
use crate::http::forms::reader::Reader;
use crate::http::forms::update_status::REMARK_CHARS_MIN;

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<TakeBack> {
    let amount = reader.optional("amount").amount(AmountBounds::POSITIVE);
    let reference = reader.optional("reference").identifier(TEXT_CHARS_MAX);
    let remark = reader
        .required("remark")
        .long_text(REMARK_CHARS_MIN, LONG_TEXT_CHARS_MAX);
    Some(TakeBack {
        amount,
        reference,
        remark: remark?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::money::Amount;
    use crate::http::forms::testing::{
        INEXACT, check, check_refused, number, numbers, read as read_with, texts, with_member,
    };

    #[test]
    fn each_field_keeps_its_rule() {
        let body = json!({
            "amount": number("10.50"), "reference": "TRX-1", "remark": "Paid for another invoice"
        });
        let cases = [
            ("/amount", None, ""),
            ("/amount", Some(json!(0)), "amount: greater_than"),
            ("/amount", Some(json!("10.50")), "amount: type"),
            ("/reference", None, ""),
            ("/reference", Some(json!("x".repeat(255))), ""),
            ("/reference", Some(json!("x".repeat(256))), "reference: max"),
            ("/remark", None, "remark: required"),
            ("/remark", Some(json!("ab")), "remark: min"),
            ("/remark", Some(json!("a\nb")), ""),
        ];
        check(&body, &cases, read);
        let control = texts(&["a\u{0}x", "a\u{1b}x"]);
        let cases = [
            ("/amount", "greater_than", numbers(&["-1"])),
            ("/amount", "digits", numbers(&INEXACT)),
            ("/reference", "control_characters", control.clone()),
            ("/remark", "control_characters", control),
        ];
        check_refused(&body, &cases, read);
        for (amount, expected) in [
            (Some(number("10.50")), Amount::parse("10.50").ok()),
            (None, None),
        ] {
            let read = read_with(with_member(&body, "/amount", amount), read).unwrap();
            assert_eq!(read.value.amount, expected);
        }
    }
}
