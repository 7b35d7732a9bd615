//! Reads JSON that comes from outside: bodies of requests, answers of receivers, token endpoints and the authority.
//!
//! No parser of `serde_json` may read such text. The build turns on its features `raw_value` and
//! `arbitrary_precision`, and with them an object whose first key is one of the library's private tokens makes `Value`
//! start a new parser, with a new depth limit, on the text of that member. Nested, that overflows the stack, and an
//! overflow aborts the process. Here the text is split into events by a parser that knows no such token and does not
//! recurse. A key of the text is always a key and a number always a number, so the tokens can be refused by name.
//!
//! The bans of clippy.toml keep every other parser out of the workspace.

mod error;
mod reader;

pub use error::{JsonError, KeyError, KeyErrorKind, PathSegment};
pub use reader::{JsonLimits, from_trusted, from_untrusted, read};
