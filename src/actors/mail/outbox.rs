//! Sends the due mails one after the other, and the due posts to chats, several at the same time.

use std::slice::from_ref;
use std::time::Duration;

use database::StoreError;
use futures_util::future::join_all;
use jiff::SignedDuration;
use secrecy::ExposeSecret as _;
use serde_json::json;
use tokio::time::timeout;
use webhook_client::PostRequest;

use crate::actors::mail::mailer::Mailer;
use crate::actors::mail::recipients::CHAT;
use crate::actors::mail::transport::SendFailure;
use crate::domain::access::invitation::InvitationToken;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::{TaxpayerId, parse_id};
use crate::domain::notice::{LINK_PLACEHOLDER, NoticeScope};
use crate::store::accounts::invitations::{self, NewInvitation};
use crate::store::lanes::leases;
use crate::store::lanes::{IfLocked, Lease};
use crate::store::operations::chat_hooks;
use crate::store::operations::mails::{self, Mail, MailChannel, MailOutcome};

/// The maximum number of mails, and of posts to chats, that are sent in one run of a lane's work.
const MAILS_MAX: u64 = 50;
/// The maximum number of posts to chats that are sent at the same time.
const CHATS_AT_ONCE: usize = 16;
/// The longest time that a chat may take for one post.
const CHAT_TIMEOUT: Duration = Duration::from_secs(5);
/// The waits before the second and later attempts to send a mail. The last wait repeats.
const RETRY_WAITS: [SignedDuration; 5] = [
    SignedDuration::from_mins(1),
    SignedDuration::from_mins(5),
    SignedDuration::from_mins(15),
    SignedDuration::from_hours(1),
    SignedDuration::from_hours(4),
];
/// A mail that could not be sent for this long is given up.
const GIVE_UP_AFTER: SignedDuration = SignedDuration::from_hours(3 * 24);

impl Mailer {
    /// Sends the mails that are due. Once the server cannot be reached, the remaining mails are postponed without an
    /// attempt.
    pub(super) async fn send_due(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut unreachable: Option<String> = None;
        let now = self.clock.now();
        for mail in mails::load_due(&self.store, now, MailChannel::Mail, MAILS_MAX).await? {
            let outcome = if let Some(error) = &unreachable {
                self.untried_outcome(&mail, error)
            } else {
                let sent = self.send(&mail).await?;
                if let Err(SendFailure::Unreachable(error)) = &sent {
                    unreachable = Some(error.clone());
                }
                self.attempt_outcome(&mail, sent)
            };
            self.record_attempt(lease, &mail, &outcome).await?;
        }
        Ok(())
    }

    /// Posts the due messages to the chats: one message for each chat, to several chats at the same time.
    pub(super) async fn post_due_to_chats(&self, lease: &Lease) -> Result<(), StoreError> {
        let now = self.clock.now();
        let due = mails::load_due(&self.store, now, MailChannel::Chat, MAILS_MAX).await?;
        for some in due.chunks(CHATS_AT_ONCE) {
            let posts = join_all(some.iter().map(|mail| self.post_to_chat(mail))).await;
            for (mail, posted) in some.iter().zip(posts) {
                let outcome = self.attempt_outcome(mail, posted);
                self.record_attempt(lease, mail, &outcome).await?;
            }
        }
        Ok(())
    }

    async fn record_attempt(
        &self,
        lease: &Lease,
        mail: &Mail,
        outcome: &MailOutcome,
    ) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        let held = leases::fence(&tx, from_ref(lease), IfLocked::Await).await?;
        held.require_held(lease)?;
        mails::record_outcome(&tx, mail, outcome, self.clock.now()).await?;
        tx.commit().await
    }

    /// Sends a mail, with its one-time link if it has one, unless its recipient should no longer get it.
    async fn send(&self, mail: &Mail) -> Result<Result<(), SendFailure>, StoreError> {
        if !self.is_still_recipient(mail).await? {
            return Ok(Err(SendFailure::NotTold));
        }
        Ok(match self.add_one_time_link(mail).await? {
            Some(mail) => self.transport.send(&mail).await,
            None => Err(SendFailure::NotTold),
        })
    }

    /// Creates the invitation for the one-time link of a mail and puts its secret, of which only the hash is stored,
    /// into the mail. Returns a mail without a link unchanged. Returns `None` if the person is gone or needs the link
    /// no longer.
    async fn add_one_time_link(&self, mail: &Mail) -> Result<Option<Mail>, StoreError> {
        let Some(NoticeScope::Person(owner)) = mail.link_for else {
            return Ok(Some(mail.clone()));
        };
        let token = InvitationToken::new(self.links.invitation_secret(&mail.id));
        let new = NewInvitation {
            owner,
            token: &token,
            by: Actor::Service,
            reason: Some("sent by mail".to_owned()),
            claim: None,
            now: self.clock.now(),
        };
        let made = invitations::add_for_mailed_link(&self.store, new, mail.created_at).await?;
        Ok(made.map(|_| {
            let mut mail = mail.clone();
            mail.letter.text = mail.letter.text.replace(LINK_PLACEHOLDER, token.text());
            mail.letter.html = mail.letter.html.replace(LINK_PLACEHOLDER, token.text());
            mail
        }))
    }

    /// Posts a mail to the chat of a taxpayer, as the JSON object with the field `text` that common chat tools accept.
    async fn post_to_chat(&self, mail: &Mail) -> Result<(), SendFailure> {
        let taxpayer = mail.recipient.strip_prefix(CHAT).and_then(parse_id);
        let taxpayer = taxpayer.ok_or_else(|| SendFailure::Refused("no address".to_owned()))?;
        let hook = chat_hooks::owned_by(&self.store, TaxpayerId(taxpayer)).await;
        let hook = hook.map_err(|error| SendFailure::Later(error.to_string()))?;
        let hook = hook
            .ok_or_else(|| SendFailure::Refused("the account has no chat any more".to_owned()))?;
        let text = format!("{}\n\n{}", mail.letter.subject, mail.letter.text);
        let body = json!({ "text": text }).to_string();
        let post = PostRequest {
            url: hook.expose_secret(),
            headers: &[],
            body: body.as_bytes(),
            keep_bytes: 0,
        };
        let attempt = timeout(CHAT_TIMEOUT, self.chat.post(post)).await;
        let attempt = attempt.map_err(|_| {
            let seconds = CHAT_TIMEOUT.as_secs();
            SendFailure::Later(format!("the chat did not answer in {seconds} seconds"))
        })?;
        match attempt.outcome.failure_sentence() {
            None => Ok(()),
            Some(error) if attempt.is_gone() => Err(SendFailure::Refused(error)),
            Some(error) => Err(SendFailure::Later(error)),
        }
    }

    fn attempt_outcome(&self, mail: &Mail, sent: Result<(), SendFailure>) -> MailOutcome {
        let error = match sent {
            Ok(()) => return MailOutcome::Sent,
            Err(SendFailure::NotTold) => {
                tracing::info!(
                    mail = mail.id,
                    "dropped a mail whose recipient is no longer told"
                );
                return MailOutcome::Failed("no longer told".to_owned());
            }
            Err(SendFailure::Refused(error)) => return failed_outcome(mail, error),
            Err(SendFailure::Later(error) | SendFailure::Unreachable(error)) => error,
        };
        if self.is_too_old(mail) {
            return failed_outcome(mail, error);
        }
        tracing::warn!(mail = mail.id, error, "a mail was not sent; will retry");
        let attempt = usize::try_from(mail.attempts).unwrap_or_default();
        let wait = RETRY_WAITS[attempt.min(RETRY_WAITS.len() - 1)];
        MailOutcome::Retry(wait, error)
    }

    /// Returns the outcome of a mail that was not tried, because the server could not be reached for an earlier mail.
    fn untried_outcome(&self, mail: &Mail, error: &str) -> MailOutcome {
        if self.is_too_old(mail) {
            return failed_outcome(mail, error.to_owned());
        }
        MailOutcome::Postponed(RETRY_WAITS[0])
    }

    fn is_too_old(&self, mail: &Mail) -> bool {
        self.clock.now().duration_since(mail.created_at) > GIVE_UP_AFTER
    }
}

fn failed_outcome(mail: &Mail, error: String) -> MailOutcome {
    tracing::error!(
        mail = mail.id,
        error,
        "a mail could not be sent and is given up"
    );
    MailOutcome::Failed(error)
}
