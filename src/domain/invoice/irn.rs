//! The invoice reference number (IRN): `{invoice_no}-{service_id}-{YYYYMMDD}`. It is parsed from the right, since an
//! invoice number may contain hyphens. IRNs are compared ignoring the case of the service id, but are stored as they
//! were sent.

use std::fmt;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::domain::kernel::invisible::{is_invisible, is_unprintable};

/// The number of characters in a service id, which the authority assigns to each taxpayer.
pub const SERVICE_ID_CHARS: usize = 8;

/// The number of characters that follow the invoice number in an IRN: the service id, the date and two hyphens.
pub const IRN_SUFFIX_CHARS: usize = SERVICE_ID_CHARS + 10;

/// Returns true if the invoice number has only ASCII letters and digits. The authority accepts no others.
pub fn is_submittable_number(invoice_no: &str) -> bool {
    invoice_no.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// A well-formed invoice reference number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Irn {
    text: String,
    service_id_start: usize,
}

/// The error for a text that is not an invoice reference number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an IRN is written {{invoice_no}}-{{service_id}}-{{YYYYMMDD}}, with 8 hexadecimal characters and a date"
)]
pub struct MalformedIrn;

impl Irn {
    pub fn parse(text: &str) -> Result<Self, MalformedIrn> {
        let (rest, date) = text.rsplit_once('-').ok_or(MalformedIrn)?;
        let (invoice_no, service_id) = rest.rsplit_once('-').ok_or(MalformedIrn)?;
        let clean = !text
            .chars()
            .any(|letter| is_unprintable(letter) || is_invisible(letter));
        let whole = !invoice_no.is_empty()
            && is_service_id(service_id)
            && parse_compact_date(date).is_some();
        if whole && clean {
            Ok(Self {
                text: text.to_owned(),
                service_id_start: invoice_no.len() + 1,
            })
        } else {
            Err(MalformedIrn)
        }
    }

    /// Builds the IRN of an invoice that was sent without one.
    pub fn for_invoice(
        invoice_no: &str,
        service_id: &str,
        date: Date,
    ) -> Result<Self, MalformedIrn> {
        Self::parse(&format!(
            "{invoice_no}-{}-{}",
            service_id.to_ascii_uppercase(),
            date.strftime("%Y%m%d")
        ))
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn invoice_no(&self) -> &str {
        &self.text[..self.service_id_start - 1]
    }

    pub fn service_id(&self) -> &str {
        &self.text[self.service_id_start..self.service_id_start + SERVICE_ID_CHARS]
    }

    pub fn date(&self) -> Option<Date> {
        parse_compact_date(&self.text[self.service_id_start + SERVICE_ID_CHARS + 1..])
    }

    pub fn has_service_id(&self, service_id: &str) -> bool {
        self.service_id().eq_ignore_ascii_case(service_id)
    }

    /// Returns the IRN with its service id in upper case, so that all spellings of an IRN have the same key.
    pub fn key(&self) -> String {
        let mut key = self.text.clone();
        if let Some(part) =
            key.get_mut(self.service_id_start..self.service_id_start + SERVICE_ID_CHARS)
        {
            part.make_ascii_uppercase();
        }
        key
    }
}

/// True if the text is exactly 8 hexadecimal characters.
pub fn is_service_id(text: &str) -> bool {
    text.len() == SERVICE_ID_CHARS && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn parse_compact_date(text: &str) -> Option<Date> {
    if text.len() != 8 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Date::new(
        text[..4].parse().ok()?,
        text[4..6].parse().ok()?,
        text[6..].parse().ok()?,
    )
    .ok()
}

impl fmt::Display for Irn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Irn {
    type Error = MalformedIrn;

    fn try_from(text: String) -> Result<Self, MalformedIrn> {
        Self::parse(&text)
    }
}

impl std::str::FromStr for Irn {
    type Err = MalformedIrn;

    fn from_str(text: &str) -> Result<Self, MalformedIrn> {
        Self::parse(text)
    }
}

impl From<Irn> for String {
    fn from(irn: Irn) -> Self {
        irn.text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_invoice_number_may_hold_hyphens() {
        let irn = Irn::parse(
            "INV-2024-001-94ND90AA-20240611"
                .replace("ND", "CD")
                .as_str(),
        )
        .unwrap();
        assert_eq!(irn.invoice_no(), "INV-2024-001");
        assert_eq!(irn.service_id(), "94CD90AA");
        assert_eq!(irn.date(), Date::new(2024, 6, 11).ok());
    }

    #[test]
    fn a_malformed_irn_is_refused() {
        for text in [
            "",
            "INV",
            "INV-94CD90AA",
            "-94CD90AA-20240611",
            "INV-94CD90A-20240611",
            "INV-94CD90AG-20240611",
            "INV-94CD90AA-20241311",
            "INV-94CD90AA-2024061",
            "INV-94CD90AA-20240611 ",
            "I\0V-94CD90AA-20240611",
        ] {
            assert_eq!(Irn::parse(text), Err(MalformedIrn), "{text:?}");
        }
    }

    #[test]
    fn two_spellings_of_one_service_id_are_one_key() {
        let upper = Irn::parse("inv-94CD90AA-20240611").unwrap();
        let lower = Irn::parse("inv-94cd90aa-20240611").unwrap();
        assert_eq!(upper.key(), lower.key());
        assert!(lower.has_service_id("94CD90AA"));
        assert_ne!(upper.as_str(), lower.as_str());
    }

    proptest! {
        #[test]
        fn a_built_irn_is_read_back(no in "[A-Za-z0-9/%é-]{1,40}", id in "[0-9a-fA-F]{8}", days in 0_i32..40_000) {
            let date = Date::new(1970, 1, 1).unwrap().checked_add(jiff::Span::new().days(days)).unwrap();
            let irn = Irn::for_invoice(&no, &id, date).unwrap();
            prop_assert_eq!(irn.invoice_no(), no.as_str());
            prop_assert!(irn.has_service_id(&id));
            prop_assert_eq!(irn.date(), Some(date));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,60}") {
            let _ = Irn::parse(&text);
        }
    }
}
