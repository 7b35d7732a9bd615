//! The reasons why a text is not read: faults of the text or of one of its keys.

use serde_json::Error;

/// The reason why a text yields no value.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// Lines and columns count from 1. Columns count bytes, not characters.
    #[error("{message} at line {line} column {column}")]
    Syntax {
        message: String,
        line: u64,
        column: u64,
    },
    #[error("it is nested more than {max} levels deep")]
    TooDeep { max: usize },
    #[error("it has more values than a text of its length may have")]
    TooManyValues,
    /// A forbidden key. `read` does not fail with this: it passes such keys to `on_fault` instead.
    #[error("the key {path} is {}", kind.reason())]
    Key { path: String, kind: KeyErrorKind },
    /// The text is well-formed JSON, but not of the requested type.
    #[error("{0}")]
    Shape(Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyErrorKind {
    /// The object has this key already. The first value is kept.
    Duplicate,
    /// The key begins with a private token of `serde_json`. The member is left out.
    Reserved,
}

impl KeyErrorKind {
    fn reason(self) -> &'static str {
        match self {
            Self::Duplicate => "sent twice",
            Self::Reserved => "reserved",
        }
    }
}

/// One step from a container to a value in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathSegment<'s> {
    Key(&'s str),
    Index(usize),
}

/// A forbidden key. Its path ends at the key itself and is built on demand.
#[derive(Debug, Clone, Copy)]
pub struct KeyError<'f> {
    pub kind: KeyErrorKind,
    pub(crate) open: &'f [crate::reader::Container],
}

impl<'f> KeyError<'f> {
    /// Returns the steps from the root to the key.
    pub fn steps(&self) -> impl Iterator<Item = PathSegment<'f>> + use<'f> {
        self.open.iter().map(crate::reader::Container::step)
    }
}
