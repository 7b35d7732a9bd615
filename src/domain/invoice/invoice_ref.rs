//! How a caller names an existing invoice.

use crate::domain::kernel::codes::UniqueNoType;

/// An invoice, named by one of its unique numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceRef {
    pub kind: UniqueNoType,
    pub text: String,
}
