//! The examples of answers. A test writes them: they are what the service answered to the examples of the requests, in the
//! order of a story, with fixed secrets, ids and moments. The same test checks that they still look like what is answered:
//! `EINVOICE_WRITE_DOCS=1 cargo test --test api every_operation_answers` writes them anew.

use std::sync::LazyLock;

use serde_json::Value;

/// By operation, then by status.
static EXAMPLES: LazyLock<Value> = LazyLock::new(|| {
    strict_json::from_trusted(include_str!("examples/answers.json")).unwrap_or_default()
});

/// Returns the example of the answer of an operation with this status, if the story has one.
pub(super) fn answer_example(operation: &str, status: u16) -> Option<Value> {
    EXAMPLES.get(operation)?.get(status.to_string()).cloned()
}
