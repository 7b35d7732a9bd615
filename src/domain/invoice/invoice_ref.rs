//! The reference by which a caller selects an existing invoice.

use crate::domain::kernel::codes::UniqueNoType;

/// A reference to an invoice: the kind of a unique number, and the number as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceRef {
    pub kind: UniqueNoType,
    pub text: String,
}
