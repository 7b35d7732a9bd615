//! Mails to people: `mailer` gathers notices into mails for the people whom `recipients` finds, `letter` writes the
//! texts, `outbox` sends mails and posts to chats, and `transport` hands mails to an SMTP server or, in development, to
//! a folder.
//!
//! | File | Content |
//! |---|---|
//! | `letter` | writes the text of a mail about several notices of one topic |
//! | `mailer` | gathers notices into mails and sends them |
//! | `outbox` | sends the due mails, and the due posts to chats |
//! | `recipients` | the recipients of a mail, found when it is made and checked when it is sent |
//! | `transport` | sends mails through an SMTP server, or writes them into a folder |

mod letter;
mod mailer;
mod outbox;
mod recipients;
#[cfg(test)]
mod tests;
mod transport;

pub use mailer::{LANES, LOOK_EVERY, MailPolicy, Mailer};
pub use transport::{MailTransport, TransportError};
