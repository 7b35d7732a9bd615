//! A part of the API, as the API document lists it.

use crate::http::openapi::document::Tag;
use crate::http::openapi::operation::Operation;
use crate::http::paths::api_path::Path;

/// A part of the API: its name and purpose in the API document, and its paths.
pub(crate) struct ApiPart {
    pub(crate) name: &'static str,
    pub(crate) purpose: &'static str,
    pub(crate) paths: Vec<Path>,
}

impl ApiPart {
    pub(crate) fn operations(&self) -> impl Iterator<Item = Operation> {
        self.paths.iter().flat_map(Path::operations)
    }

    /// Returns this part of the API as the API document lists it.
    pub(crate) fn tag(&self) -> Tag {
        Tag {
            name: self.name,
            purpose: self.purpose,
            operations: self.operations().collect(),
        }
    }
}
