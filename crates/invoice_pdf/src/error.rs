//! The reasons why a document cannot be printed, each with advice for the user.

/// The reason why a document was not printed: a fault of its input, or in the last case of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PdfError {
    #[error(
        "The document has {lines} lines and a PDF takes {max} at most: send the XML, or split the document"
    )]
    TooManyLines { lines: usize, max: usize },
    #[error(
        "The document has {entries} notes, references, charges, taxes and payment means and a PDF takes {max} at most: send the XML"
    )]
    TooManyEntries { entries: usize, max: usize },
    #[error(
        "The colour {0:?} is not of the form #rrggbb: write six hexadecimal digits after the #"
    )]
    Colour(String),
    #[error("The logo has {bytes} bytes and may have {max} at most: save it smaller")]
    LogoTooLarge { bytes: usize, max: usize },
    #[error("The logo cannot be used: {0}")]
    Logo(&'static str),
    #[error("The attached XML has {bytes} bytes and may have {max} at most: leave it out")]
    AttachmentTooLarge { bytes: usize, max: usize },
    /// A fault of this crate or of typst. The text is for the log.
    #[error("The PDF could not be made: {0}")]
    Internal(String),
}
