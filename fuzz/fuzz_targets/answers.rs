//! Feeds the readers of answers: from the authority, from receivers of webhooks, from token endpoints.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| einvoice::internals::fuzzing::read_answers(text));
