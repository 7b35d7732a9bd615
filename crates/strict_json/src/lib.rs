//! Reads JSON from outside: request bodies, and responses of receivers, token endpoints and the authority.
//!
//! No parser of `serde_json` may read such text. The build enables its features `raw_value` and
//! `arbitrary_precision`. With them, an object whose first key is a private token of the library makes
//! `Value` start a new parser, with a new depth limit, on the text of that member. Many such members inside
//! each other overflow the stack, which aborts the process. This crate uses a parser that has no such tokens
//! and does not recurse: it splits the text into events. For it a key is always a key and a number always a
//! number, so the tokens can be refused by name.
//!
//! The bans in clippy.toml keep every other parser out of the workspace.

mod error;
mod reader;

pub use error::{JsonError, KeyError, KeyErrorKind, PathSegment};
pub use reader::{JsonLimits, from_trusted, from_untrusted, member_text, read};
