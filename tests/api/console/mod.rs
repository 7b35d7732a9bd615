//! The pages for people, as a browser without scripts sees them.

mod accounts;
mod sign_in;
