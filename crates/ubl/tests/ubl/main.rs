//! The tests of writing and reading. They share a set of documents.

mod examples;
mod export;
mod hostile;
mod import;
mod parts;
mod random;
mod round_trip;
mod test_set;
