//! The pages of accounts. The files mirror the pages.

mod activity;
mod batches;
mod bulk;
mod contacts;
mod correct;
mod customers;
mod import;
mod inbox;
mod integration;
mod invoice_acts;
mod invoices;
mod keys;
mod money;
mod notifications;
mod once;
mod overview;
mod profile;
mod reports;
mod requests;
mod rights;
mod saved_views;
mod taxpayers;
mod typed_amounts;
mod webhooks;

pub(super) use crate::support::account::{Account, PASSWORD, signed_in};

/// Asserts that a page has each of these texts.
#[track_caller]
pub(super) fn assert_shows(page: &str, texts: &[&str]) {
    for text in texts {
        assert!(page.contains(text), "{text:?} is missing in {page}");
    }
}
