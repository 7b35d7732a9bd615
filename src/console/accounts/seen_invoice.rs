//! The form field `seen`: the time of the invoice's last change when the page was rendered. With it, a form that was
//! open for long does nothing if the invoice was changed meanwhile. A form about many invoices has this time beside the
//! id of each.

use jiff::Timestamp;

use crate::actors::taxpayer::commands::SeenInvoice;
use crate::console::form_values::FormValues;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::ids::{InvoiceId, parse_id};
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
    if parse_micros(form.text("seen")) == Some(present.updated_at) {
        Ok(present)
    } else {
        Err(Refusal::InvoiceChanged)
    }
}

/// Returns the id of an invoice together with the time of its last change, for a form about many invoices.
pub(super) fn id_with_seen_time(invoice: &Invoice) -> String {
    format!("{}-{}", invoice.id, seen_field_value(invoice))
}

/// Reads the text of `id_with_seen_time`. The time is `None` in a text with only an id.
pub(super) fn parse_id_with_seen_time(text: &str) -> Option<(InvoiceId, Option<Timestamp>)> {
    let (id, seen) = text.split_once('-').unwrap_or((text, ""));
    Some((InvoiceId(parse_id(id)?), parse_micros(seen)))
}

fn parse_micros(text: &str) -> Option<Timestamp> {
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
            assert_eq!(parse_micros(text), expected, "{text}");
        }
    }

    #[test]
    fn a_form_about_many_invoices_has_the_time_beside_each_id() {
        let at = Timestamp::from_microsecond(1_764_000_000_000_001).ok();
        for (text, expected) in [
            ("42-1764000000000001", Some((InvoiceId(42), at))),
            ("42", Some((InvoiceId(42), None))),
            ("42-", Some((InvoiceId(42), None))),
            ("42-soon", Some((InvoiceId(42), None))),
            ("-42", None),
            ("x-1764000000000001", None),
            ("", None),
        ] {
            assert_eq!(parse_id_with_seen_time(text), expected, "{text}");
        }
    }
}
