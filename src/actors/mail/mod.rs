//! Mails to people: `mailer` gathers notices into mails for the people whom `recipients` finds, `letter` writes the
//! texts, `outbox` sends mails and posts to chats, and `transport` hands mails to an SMTP server or, in development, to
//! a folder.

mod letter;
mod mailer;
mod outbox;
mod recipients;
#[cfg(test)]
mod tests;
mod transport;

pub use mailer::{LANES, LOOK_EVERY, MailPolicy, Mailer};
pub use transport::{MailTransport, TransportError};
