//! Invoices from files. Each format is converted to bodies of create requests, which the forms of the API then
//! validate. Data that a file lacks comes from the taxpayer's import profile.
//!
//! | Concept | File |
//! |---|---|
//! | a document of a file, and the places of its fields | `source` |
//! | the sums that a file states, compared with the computed ones | `stated_sums`, `table_sums` |
//! | tables, and documents in tables | `table`, `table_documents` |
//! | tables from CSV and XLSX | `csv_table`, `xlsx_table` |
//! | formats with which a sheet shows a number as something else | `xlsx_formats` |
//! | what the parts of an XLSX file would become in memory | `xlsx_parts` |
//! | numbers of a CSV that may be meant otherwise | `thousands` |
//! | product codes of which a spreadsheet has made numbers | `product_codes` |
//! | bodies of the API in JSON and NDJSON | `json_documents`, `array_elements` |
//! | a large file in pieces | `pieces` |
//! | documents from UBL, their parties, and the parts without a field | `ubl_document`, `ubl_standard`, `ubl_full`, `ubl_full_lines`, `body_members`, `ubl_parties`, `ubl_beside` |
//! | the warnings about a document | `warnings` |
//! | the values that a taxpayer gives in advance, and the answers that are added to them | `profile`, `answers` |
//! | the result of an import | `record`, `assembly`, `causes`, `totals`, `error_file` |

pub mod answers;
mod array_elements;
mod assembly;
mod body_members;
mod causes;
pub mod csv_table;
pub mod error_file;
pub mod json_documents;
pub mod pieces;
pub mod product_codes;
pub mod profile;
pub mod record;
pub mod source;
pub mod stated_sums;
pub mod table;
pub mod table_documents;
pub mod table_sums;
pub mod thousands;
pub mod totals;
mod ubl_beside;
pub mod ubl_document;
mod ubl_full;
mod ubl_full_lines;
pub mod ubl_parties;
mod ubl_standard;
pub mod warnings;
mod xlsx_formats;
mod xlsx_parts;
pub mod xlsx_table;
