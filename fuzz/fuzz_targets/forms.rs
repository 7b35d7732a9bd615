//! Bodies of requests, as far as they come without an account: the object, then every form of it.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| einvoice::internals::fuzzing::read_forms(text));
