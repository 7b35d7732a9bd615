//! Responses: the envelope of a success, and the code, status and body of a failure.

pub(crate) mod code;
pub(crate) mod details;
pub(crate) mod entity_tag;
pub(crate) mod envelope;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod logged_failure;
mod outside_error;
pub(crate) mod redirect;
pub(crate) mod render;
