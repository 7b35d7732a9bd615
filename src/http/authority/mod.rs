//! `/authority`: what the authority calls.

mod notifications;

pub(super) use notifications::notifications;
