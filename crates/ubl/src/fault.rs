//! The messages about a document: why it cannot be read or written, and how reading changed it.

use std::fmt;

/// The kind of a fault or change, by which they can be counted. Its text never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The bytes are not XML, or it is XML that is not safe to read.
    Xml,
    /// The document exceeds a limit.
    Limit,
    /// The XML is neither an invoice nor a credit note of UBL 2.
    Format,
    /// A mandatory part of an invoice is missing.
    Missing,
    /// A text is not a valid date, time or number.
    Malformed,
    Currency,
    DocumentType,
    TaxCategory,
    PaymentMeans,
    Unit,
    Quantity,
    Price,
    /// The amount of a line is not quantity × price less its discounts plus its fees.
    LineAmount,
    NegativeDocument,
    NegativeLine,
    NegativeCharge,
    /// A number has more digits than are kept, or a date or time has a time zone.
    Precision,
    /// The totals do not follow from the lines, charges and taxes.
    Totals,
    ItemKind,
    Classification,
    DueDate,
    /// A discount or fee of the document was moved to its lines.
    Allocation,
    /// A part on which a browser would act was left out.
    ActiveContent,
}

impl Cause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Xml => "xml",
            Self::Limit => "limit",
            Self::Format => "format",
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::Currency => "currency",
            Self::DocumentType => "document_type",
            Self::TaxCategory => "tax_category",
            Self::PaymentMeans => "payment_means",
            Self::Unit => "unit",
            Self::Quantity => "quantity",
            Self::Price => "price",
            Self::LineAmount => "line_amount",
            Self::NegativeDocument => "negative_document",
            Self::NegativeLine => "negative_line",
            Self::NegativeCharge => "negative_charge",
            Self::Precision => "precision",
            Self::Totals => "totals",
            Self::ItemKind => "item_kind",
            Self::Classification => "classification",
            Self::DueDate => "due_date",
            Self::Allocation => "allocation",
            Self::ActiveContent => "active_content",
        }
    }

    /// True if such a change may change an amount of the document or the meaning of an amount.
    pub fn is_about_money(self) -> bool {
        matches!(
            self,
            Self::Currency
                | Self::DocumentType
                | Self::TaxCategory
                | Self::Quantity
                | Self::Price
                | Self::LineAmount
                | Self::NegativeDocument
                | Self::NegativeLine
                | Self::NegativeCharge
                | Self::Precision
                | Self::Totals
                | Self::Allocation
        )
    }
}

/// A reason why a document cannot be read, or why its charges cannot be allocated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {sentence}")]
pub struct Fault {
    pub cause: Cause,
    /// The path of the element, such as `/Invoice/cac:InvoiceLine[2]/cbc:LineExtensionAmount`.
    pub path: String,
    pub sentence: String,
}

/// A difference between the XML and the document that was read from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub cause: Cause,
    pub path: String,
    pub sentence: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.sentence)
    }
}

/// The reason why a document cannot be written as UBL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnwritableDocument {
    #[error("UBL has no invoice for {}", type_label(.code, .name))]
    DocumentType { code: String, name: String },
    #[error("UBL has no tax category for {0}")]
    TaxCategory(String),
    #[error("a document without lines cannot be written")]
    NoLines,
    #[error("UBL has room for one order reference; this document has {0}")]
    Orders(usize),
    #[error("{element} has the character U+{character:04X}, which XML cannot carry")]
    Character { element: String, character: u32 },
}

/// Returns the words for a document type of which the code or the name may be unknown.
fn type_label(code: &str, name: &str) -> String {
    match (code.is_empty(), name.is_empty()) {
        (true, true) => "a document without a document type".to_owned(),
        (true, false) => format!("the document type {name}"),
        (false, true) => format!("the document type {code}"),
        (false, false) => format!("the document type {code} ({name})"),
    }
}
