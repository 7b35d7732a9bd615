//! How large a scenario is: small in the ordinary run of the tests, as large as the environment says on demand.

use std::env;
use std::fmt::Debug;
use std::str::FromStr;

/// The number that a variable holds, else the ordinary one.
pub(crate) fn size(variable: &str, ordinary: usize) -> usize {
    env::var(variable).map_or(ordinary, |text| number(variable, &text))
}

/// The numbers that a variable holds, with commas between, else the ordinary one.
pub(crate) fn sizes(variable: &str, ordinary: u64) -> Vec<u64> {
    match env::var(variable) {
        Ok(text) => text
            .split(',')
            .map(|one| number(variable, one.trim()))
            .collect(),
        Err(_) => vec![ordinary],
    }
}

fn number<T: FromStr<Err: Debug>>(variable: &str, text: &str) -> T {
    text.parse()
        .unwrap_or_else(|error| panic!("{variable} holds {text:?}: {error:?}"))
}
