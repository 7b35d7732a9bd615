//! `/authority`: what the authority calls.

mod notice_token;
mod notifications;

pub(crate) use notifications::notifications;
