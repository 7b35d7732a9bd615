//! The invoice reference number (IRN): `{invoice_no}-{service_id}-{YYYYMMDD}`.
//!
//! The invoice number consists of letters and digits, the service id of eight hexadecimal characters, and the last
//! segment is a calendar day.

use jiff::civil::Date;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Irn<'a> {
    pub(crate) invoice_no: &'a str,
    pub(crate) service_id: &'a str,
    pub(crate) day: Date,
}

impl<'a> Irn<'a> {
    /// Splits a reference number into its parts. The error is the rule that the text breaks.
    pub(crate) fn parse(text: &'a str) -> Result<Self, &'static str> {
        let parts: Vec<&str> = text.split('-').collect();
        let [invoice_no, service_id, day] = parts[..] else {
            return Err("must have the form {invoice_no}-{service_id}-{YYYYMMDD}");
        };
        if invoice_no.is_empty() || !invoice_no.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err("must begin with an invoice number of letters and digits only");
        }
        if service_id.len() != 8 || !service_id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("must hold a service id of 8 hexadecimal characters");
        }
        let day = parse_day(day).ok_or("must end with a date of the form YYYYMMDD")?;
        Ok(Self {
            invoice_no,
            service_id,
            day,
        })
    }
}

fn parse_day(text: &str) -> Option<Date> {
    if text.len() != 8 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Date::strptime("%Y%m%d", text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_number_comes_apart_into_its_three_segments() {
        let irn = Irn::parse("INV001-94ND90NR-20261121");
        assert_eq!(
            irn,
            Err("must hold a service id of 8 hexadecimal characters")
        );
        let irn = Irn::parse("INV001-94AD90FB-20261121").unwrap();
        assert_eq!((irn.invoice_no, irn.service_id), ("INV001", "94AD90FB"));
        assert_eq!(irn.day, jiff::civil::date(2026, 11, 21));
    }

    #[test]
    fn a_hyphen_in_the_invoice_number_is_refused() {
        assert!(Irn::parse("INV-001-94AD90FB-20261121").is_err());
    }

    #[test]
    fn a_day_that_is_not_in_the_calendar_is_refused() {
        assert!(Irn::parse("INV001-94AD90FB-20260230").is_err());
        assert!(Irn::parse("INV001-94AD90FB-2026022").is_err());
    }
}
