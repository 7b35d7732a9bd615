//! Typesets an invoice or credit note as a tagged PDF/A-3 with its XML attached.
//!
//! [`render`] is synchronous and uses one core until it returns: milliseconds for a document of three lines, seconds
//! for one of thousands. Call it on a blocking thread, and let a semaphore limit concurrent calls to the number of
//! cores. The limits below bound the time and the memory of one call. A panic of typst unwinds to the caller.
//!
//! The same input gives the same bytes: the crate reads no clock, draws no random number and opens no file.

mod breaks;
mod columns;
mod content;
mod dates;
mod drawing;
mod drawn_shapes;
mod error;
mod facts;
mod figures;
mod fonts;
mod labelled;
mod logo;
mod look;
mod qr;
mod sums;
mod text;
mod typesetter;
mod world;

// The samples belong to the examples, which use this crate under its own name. So the tests need that name too.
#[cfg(test)]
extern crate self as invoice_pdf;
#[cfg(test)]
#[path = "../examples/samples/mod.rs"]
mod samples;

use trade_document::TradeDocument;

pub use error::PdfError;
pub use logo::{LOGO_BYTES_MAX, LOGO_PIXELS_MAX, Logo, LogoKind};
pub use look::{Colour, Look, Template};
pub use qr::can_print_qr;
pub use sums::tax_label;
pub use text::can_print;

/// The maximum number of lines of a document.
pub const LINES_MAX: usize = 5_000;

/// The maximum number of other printed entries: notes, references, discounts and fees, taxes and payment means.
pub const ENTRIES_MAX: usize = 20_000;

/// The maximum size of the attached XML, in bytes.
pub const UBL_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A document, and how to print it.
#[derive(Debug, Clone, Copy)]
pub struct Sheet<'a> {
    pub document: &'a TradeDocument,
    pub look: &'a Look,
    pub standing: Standing,
    /// The text of the QR code. Only a signed document has one. A code that `can_print_qr` refuses is left out, and the
    /// page says so.
    pub qr: Option<&'a str>,
    /// The address of the public page that shows whether the document is signed.
    pub verify_link: Option<&'a str>,
    /// The document as UBL, which is attached as `invoice.xml`.
    pub ubl: Option<&'a [u8]>,
}

impl<'a> Sheet<'a> {
    /// Returns the logo to print. A received document comes from somebody else, so the account's own logo would
    /// mislead.
    fn logo(&self) -> Option<&'a Logo> {
        let is_own = self.standing != Standing::Received;
        self.look.logo.as_ref().filter(|_| is_own)
    }
}

/// The state of a document, which its reader must know before relying on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// The authority has not signed the document. Every page says so.
    Draft,
    Signed,
    /// A signed document that another supplier sent. It is printed without the account's logo.
    Received,
}

/// Returns the document as the bytes of a PDF.
pub fn render(sheet: &Sheet<'_>) -> Result<Vec<u8>, PdfError> {
    check_limits(sheet)?;
    typesetter::typeset_sheet(sheet)
}

fn check_limits(sheet: &Sheet<'_>) -> Result<(), PdfError> {
    let document = sheet.document;
    let lines = document.lines.len();
    if lines > LINES_MAX {
        return Err(PdfError::TooManyLines {
            lines,
            max: LINES_MAX,
        });
    }
    let line_charges: usize = document.lines.iter().map(|line| line.charges.len()).sum();
    let entries = line_charges
        + document.charges.len()
        + document.notes.len()
        + document.references.len()
        + document.taxes.len()
        + document.payment_means.len();
    if entries > ENTRIES_MAX {
        return Err(PdfError::TooManyEntries {
            entries,
            max: ENTRIES_MAX,
        });
    }
    let bytes = sheet.ubl.map_or(0, <[u8]>::len);
    if bytes > UBL_BYTES_MAX {
        return Err(PdfError::AttachmentTooLarge {
            bytes,
            max: UBL_BYTES_MAX,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_beyond_a_limit_is_refused_with_the_limit() {
        let look = Look::default();
        let mut document = samples::invoice(1);
        let too_long = vec![document.lines[0].clone(); LINES_MAX + 1];
        let with_lines = TradeDocument {
            lines: too_long,
            ..document.clone()
        };
        document.notes = vec!["x".to_owned(); ENTRIES_MAX + 1];
        let xml = vec![b' '; UBL_BYTES_MAX + 1];
        let small = samples::invoice(1);
        for (document, ubl, refusal) in [
            (&with_lines, None, "5001 lines"),
            (&document, None, "20000 at most"),
            (&small, Some(xml.as_slice()), "leave it out"),
        ] {
            let refused = render(&Sheet {
                document,
                look: &look,
                standing: Standing::Signed,
                qr: None,
                verify_link: None,
                ubl,
            });
            let message = refused.unwrap_err().to_string();
            assert!(message.contains(refusal), "{message}");
        }
    }
}
