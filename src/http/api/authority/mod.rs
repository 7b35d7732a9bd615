//! `/authority`: calls from the authority to this service.

mod notice_token;
mod notifications;

pub(crate) use notifications::notifications;
