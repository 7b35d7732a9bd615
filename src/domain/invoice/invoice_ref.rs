//! The reference by which a caller selects an existing invoice.

use crate::domain::kernel::codes::UniqueNoType;

/// The kind of identifier by which a caller names an invoice, and the identifier as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceRef {
    pub kind: UniqueNoType,
    pub text: String,
}
