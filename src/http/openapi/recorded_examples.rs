//! The examples of successful and failed responses. Tests record them: real responses of the service, with fixed
//! secrets, ids and times. The same tests check that current responses still look like them.
//! `EINVOICE_WRITE_DOCS=1 cargo test --test api answers` records them again.

use std::sync::LazyLock;

use serde_json::Value;
use utoipa::openapi::example::{Example, ExampleBuilder};
use utoipa::openapi::{Ref, RefOr};

use crate::http::respond::code::ErrorCode;

/// The examples of successful answers: by operation, then by status.
static ANSWERS: LazyLock<Value> =
    LazyLock::new(|| parse_examples(include_str!("examples/answers.json")));
/// The examples of failures: by error code.
static FAILURES: LazyLock<Value> =
    LazyLock::new(|| parse_examples(include_str!("examples/failures.json")));

fn parse_examples(text: &str) -> Value {
    strict_json::from_trusted(text).unwrap_or_default()
}

/// Returns the example of the answer of an operation with this status, if the tests have recorded one.
pub(super) fn answer_example(operation: &str, status: u16) -> Option<Value> {
    ANSWERS.get(operation)?.get(status.to_string()).cloned()
}

/// Returns the components of the document that are examples of failures, each with the name of its error code.
pub(super) fn failure_examples() -> impl Iterator<Item = (&'static str, Example)> {
    let codes = ErrorCode::ALL.iter().map(|code| code.as_str());
    codes.filter_map(|code| {
        let example = ExampleBuilder::new().value(Some(FAILURES.get(code)?.clone()));
        Some((code, example.build()))
    })
}

/// Returns references to the examples of these error codes. Codes without an example are left out.
pub(super) fn example_references(
    codes: &[ErrorCode],
) -> impl Iterator<Item = (&'static str, RefOr<Example>)> {
    let codes = codes.iter().map(|code| code.as_str());
    let shown = codes.filter(|code| FAILURES.get(code).is_some());
    shown.map(|code| {
        let path = format!("#/components/examples/{code}");
        (code, RefOr::Ref(Ref::new(path)))
    })
}
