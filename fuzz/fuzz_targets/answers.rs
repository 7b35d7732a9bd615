//! Feeds the readers of answers: from the authority, from receivers of webhooks, from token endpoints.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    einvoice::authority::fuzzing::answer(text);
    einvoice::webhook::fuzzing::answer(text);
    einvoice::http::fuzzing::endpoint_answer(text);
});
