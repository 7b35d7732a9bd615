//! Invoices from files. Each format is read into documents in the shape of a create request, so that the forms of the
//! API check them. What a file lacks comes from the taxpayer's profile. Nothing here judges an invoice.
//!
//! | Concept | File |
//! |---|---|
//! | a document of a file, and its places in the file | `source` |
//! | the sums that a file states, beside those of its invoice | `stated_sums` |
//! | rows and columns, and documents of them | `table`, `table_documents` |
//! | CSV and XLSX as rows and columns | `csv_table`, `xlsx_table` |
//! | bodies of the API in JSON and NDJSON | `json_documents`, `array_elements` |
//! | a large file in pieces | `pieces` |
//! | UBL as documents, their parties, and what no field takes | `ubl_document`, `ubl_standard`, `ubl_full`, `ubl_parties`, `ubl_beside` |
//! | the warnings about a document | `warnings` |
//! | what a taxpayer answers in advance | `profile` |
//! | what became of a file | `record`, `causes`, `error_file` |

mod array_elements;
mod causes;
pub mod csv_table;
pub mod error_file;
pub mod json_documents;
pub mod pieces;
pub mod profile;
pub mod record;
pub mod source;
pub mod stated_sums;
pub mod table;
pub mod table_documents;
mod ubl_beside;
pub mod ubl_document;
mod ubl_full;
pub mod ubl_parties;
mod ubl_standard;
pub mod warnings;
pub mod xlsx_table;
