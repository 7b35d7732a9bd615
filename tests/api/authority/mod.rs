//! `/authority`, and what is asked of the authority when it does not call.

mod notifications;
mod pull;
mod sent;
