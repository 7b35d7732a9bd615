//! The form field `seen`: the time of the invoice's last change when the page was rendered. With it, a form that was
//! open for long does nothing if the invoice was changed meanwhile.

use jiff::Timestamp;

use crate::actors::taxpayer::commands::SeenInvoice;
use crate::console::form_values::FormValues;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::refusal::Refusal;

/// Returns the value of the field for the invoice as it is now.
pub(super) fn seen_field_value(invoice: &Invoice) -> i64 {
    invoice.updated_at.as_microsecond()
}

/// Returns the version of the invoice that the sender of a form saw, for the command to check again. Fails if the
/// invoice was changed since, or if the field is missing.
pub(super) fn read_seen_version(
    form: &FormValues,
    invoice: &Invoice,
) -> Result<SeenInvoice, Refusal> {
    let present = SeenInvoice::from(invoice);
    if parse(form.text("seen")) == Some(present.updated_at) {
        Ok(present)
    } else {
        Err(Refusal::InvoiceChanged)
    }
}

fn parse(text: &str) -> Option<Timestamp> {
    Timestamp::from_microsecond(text.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_whole_number_of_microseconds() {
        let at = |micros| Timestamp::from_microsecond(micros).ok();
        for (text, expected) in [
            ("1764000000000001", at(1_764_000_000_000_001)),
            ("0", at(0)),
            ("", None),
            ("soon", None),
            ("1.5", None),
            ("9223372036854775807", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
