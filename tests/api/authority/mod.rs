//! `/authority`, and what is asked of the authority when it does not call.

mod dialects;
mod notifications;
mod pull;
mod sent;
