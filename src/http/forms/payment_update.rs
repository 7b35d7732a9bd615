//! Update Payment Status on `/v1/tax-payers` (spec.md). If both are sent, `payment_status` wins over its alias
//! `status`.

use jiff::civil::Date;

use crate::domain::kernel::codes::PaymentStatus;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::payment::PaymentChange;
use crate::domain::payment::PaymentUpdate;
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::field::{LONG_TEXT_CHARS_MAX, TEXT_CHARS_MAX};
use crate::http::forms::reader::Reader;
use crate::http::forms::unique_no;
use crate::http::forms::update_status::REMARK_CHARS_MIN;

/// An earlier day of a payment is probably a mistake, such as the year 0026 in place of 2026.
const PAYMENT_DATE_MIN: Date = Date::constant(2000, 1, 1);

/// `latest_day` is the last day that is not in the future.
pub(crate) fn read(reader: &mut Reader<'_>, latest_day: Date) -> Option<PaymentUpdate> {
    let invoice = unique_no::read(reader);
    let status = read_status(reader);
    let is_partial = status == Some(PaymentStatus::Partial);
    let bounds = if is_partial {
        AmountBounds::POSITIVE
    } else {
        AmountBounds::Any
    };
    let amount = reader.required_if(is_partial, "amount").amount(bounds);
    let payment_date = read_payment_date(reader, latest_day);
    let reference = reader.optional("reference").identifier(TEXT_CHARS_MAX);
    let remark = reader
        .required("remark")
        .long_text(REMARK_CHARS_MIN, LONG_TEXT_CHARS_MAX);
    let change = match status? {
        PaymentStatus::Pending => PaymentChange::Pending,
        PaymentStatus::Rejected => PaymentChange::Rejected,
        PaymentStatus::Paid => PaymentChange::Paid,
        PaymentStatus::Partial => PaymentChange::Partial(amount?),
    };
    Some(PaymentUpdate {
        invoice: invoice?,
        change,
        unused_amount: amount.filter(|_| !is_partial),
        payment_date,
        reference,
        remark: remark?,
    })
}

fn read_payment_date(reader: &mut Reader<'_>, latest_day: Date) -> Option<Date> {
    let date = reader.optional("payment_date").date()?;
    if date > latest_day {
        reader.report_fault("payment_date", FieldRule::NOT_IN_FUTURE);
    } else if date < PAYMENT_DATE_MIN {
        let rule = FieldRule::with_expected(
            "after_or_equal",
            "must not be before 2000-01-01",
            "2000-01-01 or a later day",
        );
        reader.report_fault("payment_date", rule);
    }
    Some(date)
}

fn read_status(reader: &mut Reader<'_>) -> Option<PaymentStatus> {
    let parse = PaymentStatus::parse;
    let allowed = PaymentStatus::allowed_words;
    let has_preferred = reader.has("payment_status");
    if !has_preferred && !reader.has("status") {
        for (name, sentence) in [
            (
                "payment_status",
                "is required; status is another name for it",
            ),
            (
                "status",
                "is required; payment_status is another name for it",
            ),
        ] {
            let rule = FieldRule::with_expected("required", sentence, "a value");
            reader.report_fault(name, rule);
        }
    }
    let preferred = reader
        .optional("payment_status")
        .word_in_either_case(parse, allowed);
    let alias = reader.optional("status");
    if has_preferred {
        preferred
    } else {
        alias.word_in_either_case(parse, allowed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::money::Amount;
    use crate::http::forms::testing::{
        INEXACT, broken_rules, check, check_refused, number, numbers, read as read_with, texts,
        with_member,
    };

    const TODAY: Date = Date::constant(2026, 3, 1);

    fn read_today(reader: &mut Reader<'_>) -> Option<PaymentUpdate> {
        read(reader, TODAY)
    }

    fn partial() -> Value {
        json!({
            "unique_no": "7", "unique_no_type": "PORTAL_ID", "payment_status": "partial",
            "amount": number("10.50"), "remark": "First part"
        })
    }

    #[test]
    fn each_field_keeps_its_rule() {
        let cases = [
            ("/unique_no", None, "unique_no: required"),
            ("/unique_no", Some(json!(7)), "unique_no: type"),
            ("/unique_no_type", None, "unique_no_type: required"),
            (
                "/unique_no_type",
                Some(json!("ID")),
                "unique_no_type: one_of",
            ),
            ("/unique_no_type", Some(json!("irn")), ""),
            (
                "/payment_status",
                Some(json!("CANCELLED")),
                "payment_status: one_of",
            ),
            ("/payment_status", Some(json!("PARTIAL")), ""),
            ("/amount", None, "amount: required"),
            ("/amount", Some(json!(0)), "amount: greater_than"),
            ("/amount", Some(json!("10.50")), "amount: type"),
            ("/payment_date", Some(json!("2026-03-01")), ""),
            ("/payment_date", Some(json!("2000-01-01")), ""),
            ("/payment_date", Some(json!("")), ""),
            (
                "/payment_date",
                Some(json!("2026-03-02")),
                "payment_date: before_or_equal",
            ),
            (
                "/payment_date",
                Some(json!("1999-12-31")),
                "payment_date: after_or_equal",
            ),
            (
                "/payment_date",
                Some(json!(20_260_301)),
                "payment_date: type",
            ),
            ("/reference", Some(json!("x".repeat(255))), ""),
            ("/reference", Some(json!("x".repeat(256))), "reference: max"),
            ("/remark", None, "remark: required"),
            ("/remark", Some(json!("ab")), "remark: min"),
            ("/remark", Some(json!("a\nb")), ""),
        ];
        check(&partial(), &cases, read_today);
        let control = texts(&["a\u{0}x", "a\u{1b}x"]);
        let cases = [
            ("/unique_no", "control_characters", control.clone()),
            ("/unique_no_type", "one_of", texts(&["NUMBER"])),
            (
                "/payment_status",
                "one_of",
                texts(&["cancelled", "settled"]),
            ),
            ("/amount", "greater_than", numbers(&["-1"])),
            ("/amount", "type", texts(&["1"])),
            ("/amount", "digits", numbers(&INEXACT)),
            (
                "/amount",
                "digits",
                numbers(&["0.0000001", "1000000000000000"]),
            ),
            (
                "/payment_date",
                "date",
                texts(&["2026-02-30", "2026-2-3", "03.02.2026", "soon"]),
            ),
            ("/reference", "control_characters", control.clone()),
            ("/remark", "control_characters", control),
        ];
        check_refused(&partial(), &cases, read_today);
    }

    #[test]
    fn payment_status_wins_over_its_alias() {
        let both = with_member(&partial(), "/status", Some(json!("paid")));
        let amount = Amount::parse("10.50").unwrap();
        assert_eq!(
            read_with(both.clone(), read_today).unwrap().value.change,
            PaymentChange::Partial(amount)
        );
        let alias = with_member(&both, "/payment_status", None);
        assert_eq!(
            read_with(alias, read_today).unwrap().value.change,
            PaymentChange::Paid
        );
        let neither =
            read_with(with_member(&partial(), "/payment_status", None), read_today).unwrap_err();
        assert_eq!(
            neither.summary(),
            "The payment_status field is required; status is another name for it. (and 1 more error)"
        );
        assert_eq!(
            neither.by_path()["status"],
            ["The status field is required; payment_status is another name for it."]
        );
        let odd = with_member(
            &with_member(&partial(), "/payment_status", None),
            "/status",
            Some(json!("odd")),
        );
        assert_eq!(broken_rules(read_with(odd, read_today)), ["status: one_of"]);
    }

    #[test]
    fn only_a_partial_payment_needs_its_amount() {
        for status in ["paid", "pending", "rejected"] {
            let body = with_member(&partial(), "/payment_status", Some(json!(status)));
            assert_eq!(
                broken_rules(read_with(with_member(&body, "/amount", None), read_today)),
                [""; 0],
                "{status}"
            );
        }
    }

    #[test]
    fn a_payment_without_a_date_has_none() {
        for (sent, expected) in [
            (Some(json!("2026-02-03")), Some(Date::constant(2026, 2, 3))),
            (Some(json!(null)), None),
            (None, None),
        ] {
            let body = with_member(&partial(), "/payment_date", sent.clone());
            let update = read_with(body, read_today).unwrap().value;
            assert_eq!(update.payment_date, expected, "{sent:?}");
        }
    }
}
