//! The field `seen` of the forms that act on an invoice: the time of its last change that the page knew of. So a page that
//! was open for long does nothing to an invoice that has changed since.

use jiff::Timestamp;

use crate::actors::taxpayer::commands::SeenInvoice;
use crate::console::form_values::FormValues;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::refusal::Refusal;

/// Returns the value of the field for the invoice as it is now.
pub(super) fn field_value(invoice: &Invoice) -> i64 {
    invoice.updated_at.as_microsecond()
}

/// Returns the invoice as the sender of a form saw it, for the command to check once more. Fails if it has changed, or if
/// the form does not say.
pub(super) fn read(form: &FormValues, invoice: &Invoice) -> Result<SeenInvoice, Refusal> {
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

impl From<&Invoice> for SeenInvoice {
    fn from(invoice: &Invoice) -> Self {
        Self {
            invoice: InvoiceRef {
                kind: UniqueNoType::PortalId,
                text: invoice.id.to_string(),
            },
            // An invoice that a command returns has a time that is more exact than the stored one.
            updated_at: Timestamp::from_microsecond(field_value(invoice))
                .unwrap_or(invoice.updated_at),
        }
    }
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
