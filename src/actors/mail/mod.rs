//! Mails to people: `mailer` gathers notices into mails and sends them, `letter` writes them, `transport` hands them to
//! an SMTP server or, in development, to a folder.

mod letter;
mod mailer;
#[cfg(test)]
mod tests;
mod transport;

pub use mailer::{LOOK_EVERY, MailPolicy, Mailer};
pub use transport::{MailTransport, TransportError};
