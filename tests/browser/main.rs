//! The pages in a real browser: headless Chromium, driven by `WebDriver`, opens every page as every role and goes the ways
//! that people go. It needs `chromium` and `chromedriver`, so only the feature `browser` builds it.
//!
//! `EINVOICE_PICTURES=directory` writes a picture of each page there: light, dark, and as wide as a phone.

#![expect(clippy::unwrap_used, reason = "what a test cannot do without ends it")]

mod every_page;
mod journeys;
mod layout;
mod once;
mod person;
mod showcase;
#[expect(
    dead_code,
    unused_imports,
    reason = "the tests of the API use more of it"
)]
#[path = "../api/support/mod.rs"]
mod support;
mod webdriver;

use support::world::{ALONE, Case};
use testkit::Backend;

/// Runs a case on an application of its own. On SQLite: the tests of the API show each page on both databases.
fn run_alone(name: &str, case: Case) {
    support::run_case_with(Backend::Sqlite, &format!("browser-{name}"), ALONE, case);
}
