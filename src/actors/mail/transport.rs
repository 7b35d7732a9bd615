//! Sends mails through an SMTP server, or writes them into a folder. The `Message-ID` of a mail contains the id of the
//! mail, so that a receiver recognises a mail that is sent again after a crash.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use lettre::message::header::{Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use secrecy::{ExposeSecret, SecretString};
use tokio::task::spawn_blocking;

use crate::store::operations::mails::Mail;

/// The longest time that the server may take to answer one SMTP command.
const TIMEOUT: Duration = Duration::from_secs(15);

/// A faulty setting with which no mail can be sent.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    #[error("mail.smtp_url cannot be used")]
    Url(#[source] lettre::transport::smtp::Error),
    #[error("mail.from is no email address")]
    From(#[source] lettre::address::AddressError),
}

/// Why a mail was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SendFailure {
    /// The server could not be reached, so other mails need not be tried now.
    Unreachable(String),
    /// The mail was not accepted now, but may be accepted later.
    Later(String),
    /// The mail will never be accepted, so it is not tried again.
    Refused(String),
    /// The recipient should no longer get this mail.
    NotTold,
}

#[derive(Clone)]
enum MailRoute {
    Folder(PathBuf),
    Smtp(AsyncSmtpTransport<Tokio1Executor>),
}

#[derive(Clone)]
pub struct MailTransport {
    from: Mailbox,
    route: MailRoute,
}

/// The header that marks a mail as written by a program (RFC 3834), so that mailboxes send no automatic replies.
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

/// The header with which a mail program offers to unsubscribe (RFC 2369).
#[derive(Clone)]
struct ListUnsubscribe(String);

/// The header that says that one POST to that address unsubscribes the recipient (RFC 8058).
#[derive(Clone)]
struct ListUnsubscribePost;

impl Header for ListUnsubscribe {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("List-Unsubscribe")
    }

    fn parse(text: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self(text.to_owned()))
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), format!("<{}>", self.0))
    }
}

impl Header for ListUnsubscribePost {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("List-Unsubscribe-Post")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "List-Unsubscribe=One-Click".to_owned())
    }
}

impl MailTransport {
    /// Sends mails to the server of a URL such as `smtps://user:password@mail.example`.
    pub fn smtp(url: &SecretString, from: &str) -> Result<Self, TransportError> {
        let server = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.expose_secret());
        let server = server.map_err(TransportError::Url)?.timeout(Some(TIMEOUT));
        Ok(Self {
            from: from.parse().map_err(TransportError::From)?,
            route: MailRoute::Smtp(server.build()),
        })
    }

    /// Writes each mail as a file into a folder, which it creates.
    pub fn folder(folder: PathBuf, from: &str) -> Result<Self, TransportError> {
        Ok(Self {
            from: from.parse().map_err(TransportError::From)?,
            route: MailRoute::Folder(folder),
        })
    }

    /// Sends a mail to the server, or writes it to a file, which replaces the file of an earlier attempt.
    pub(super) async fn send(&self, mail: &Mail) -> Result<(), SendFailure> {
        let message = self.message(mail).map_err(SendFailure::Refused)?;
        match &self.route {
            MailRoute::Folder(folder) => {
                let file = folder.join(format!("{}.eml", mail.id));
                let folder = folder.clone();
                let written = spawn_blocking(move || {
                    fs::create_dir_all(folder)?;
                    fs::write(file, message.formatted())
                })
                .await;
                let written = written.map_err(|error| SendFailure::Later(error.to_string()))?;
                written.map_err(|error| SendFailure::Later(error.to_string()))
            }
            MailRoute::Smtp(server) => match server.send(message).await {
                Ok(_) => Ok(()),
                Err(error) if error.is_permanent() => Err(SendFailure::Refused(error.to_string())),
                // A client error concerns only this mail, for example because the server does not support its address.
                Err(error) if error.is_transient() || error.is_client() => {
                    Err(SendFailure::Later(error.to_string()))
                }
                Err(error) => Err(SendFailure::Unreachable(error.to_string())),
            },
        }
    }

    fn message(&self, mail: &Mail) -> Result<Message, String> {
        let to: Mailbox = mail
            .recipient
            .parse()
            .map_err(|error| format!("the address of the recipient: {error}"))?;
        let id = format!("<{}@{}>", mail.id, self.from.email.domain());
        let letter = &mail.letter;
        let body = MultiPart::alternative_plain_html(letter.text.clone(), letter.html.clone());
        let message = Message::builder()
            .from(self.from.clone())
            .to(to)
            .subject(letter.subject.clone())
            .message_id(Some(id))
            .date(SystemTime::from(mail.created_at))
            .header(AutoSubmitted);
        let message = match &mail.unsubscribe {
            Some(address) => message
                .header(ListUnsubscribe(address.clone()))
                .header(ListUnsubscribePost),
            None => message,
        };
        message.multipart(body).map_err(|error| error.to_string())
    }
}
