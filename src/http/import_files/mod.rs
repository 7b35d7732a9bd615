//! Reads files of invoices for the API and the dashboard. Each document of a file becomes the body of a create request
//! and passes the same form. The same file is imported once.
//!
//! | Concept | File |
//! |---|---|
//! | the options of a request with a file, and the format of the file | `request` |
//! | a file as a field of a form | `multipart` |
//! | a file that is imported by one command | `read` |
//! | a large file: stored in pieces, or previewed | `large` |
//! | the import of stored pieces, as durable work | `worker` |
//! | the error file of an import | `errors` |

mod errors;
mod large;
mod multipart;
mod read;
mod request;
mod worker;

pub(crate) use errors::{check_import_no, import_not_found, send_error_file};
pub(crate) use read::{PreparedImport, read};
pub(crate) use request::{CSV_TYPE, FILE_TYPES, FileRequest};
pub use worker::{IMPORTS_MAX, ImportWorker};
