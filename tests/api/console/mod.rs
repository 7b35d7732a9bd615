//! The pages for people, as a browser without scripts sees them.

mod accounts;
mod answers;
mod breakers;
mod bulk;
mod bulk_drift;
mod invitations;
mod keys;
mod list_pages;
mod listeners;
mod mails;
mod nul;
mod overview;
mod quarantine;
mod rights;
mod runs;
mod second_factor;
mod sessions;
mod sign_in;
mod taxpayers;
