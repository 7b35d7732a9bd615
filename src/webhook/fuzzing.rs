//! Readers of webhook responses, for the fuzz targets in `fuzz/`. Compiled only for fuzzing and for tests.

use super::attempt::{AttemptOutcome, AttemptResult};
use super::auth::read_token;
use super::format::interpret_body;
use crate::domain::integration::Format;

/// Reads the bytes as a response in each format that has a result in the body, and as a response of a token endpoint.
pub(crate) fn read_response(text: &[u8]) {
    let delivered = response(text, 200, AttemptOutcome::Delivered);
    let empty = String::new;
    for format in [
        Format::Soap {
            action: empty(),
            namespace: empty(),
            method: empty(),
        },
        Format::GraphQl { mutation: empty() },
        Format::JsonRpc { method: empty() },
    ] {
        drop(interpret_body(delivered.clone(), &format, "e1", 64));
    }
    drop(read_token(&delivered));
    drop(read_token(&response(
        text,
        400,
        AttemptOutcome::Rejected(400),
    )));
}

/// Returns an attempt that got these bytes as its response.
pub(crate) fn response(text: &[u8], status: u16, outcome: AttemptOutcome) -> AttemptResult {
    let response_head = String::from_utf8_lossy(text).into_owned();
    AttemptResult {
        status: Some(status),
        response_head,
        ..AttemptResult::without_response(outcome)
    }
}
