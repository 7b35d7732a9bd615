//! The pages for people, as a browser without scripts sees them.

mod sign_in;
