//! Gathers notices into mails and sends them. One lane, which all replicas share, makes one of them do it at a time. A
//! mail is stored before it is sent and marked after it was taken, so a crash in between sends it again under the same id.

use std::collections::HashSet;
use std::slice::from_ref;
use std::time::Duration;

use database::StoreError;
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret as _;
use serde_json::json;
use timing::clock::SharedClock;
use webhook_client::{GuardedClient, PostRequest};

use crate::actors::dispatch::WorkStatus;
use crate::actors::mail::letter::Digest;
use crate::actors::mail::transport::{MailTransport, SendFailure};
use crate::domain::access::invitation::InvitationToken;
use crate::domain::access::session::{Person, SessionOwner};
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::{ContactId, TaxpayerId, parse_number};
use crate::domain::mail_links::MailLinks;
use crate::domain::notice::{LINK_PLACEHOLDER, NoticeScope, NoticeTopic};
use crate::store::Store;
use crate::store::accounts::invitations::{self, NewInvitation};
use crate::store::accounts::{contacts, owners, people, taxpayers};
use crate::store::lanes::leases::{self, LaneRelease};
use crate::store::lanes::{self, IfTaken, LaneKind, Lease, Wake};
use crate::store::operations::chat_hooks;
use crate::store::operations::mail_choices;
use crate::store::operations::mails::{self, Mail, MailOutcome, NewMail};
use crate::store::operations::notices::{self, GatherPolicy, NoticeGroup};

/// The key of the only lane of kind `Mail`.
const LANE: &str = "mails";
/// The recipient of what is posted to a chat, before the number of the taxpayer. No address of a mail begins like this.
const CHAT: &str = "chat/";
/// The most mails with a link that one address gets in `LINKS_DAY`.
const LINKS_MAX: u64 = 3;
const LINKS_DAY: SignedDuration = SignedDuration::from_hours(24);
/// The time between two looks for mails to send.
pub const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The maximum number of mails that are sent in one turn.
const MAILS_MAX: u64 = 50;
/// The waits between the attempts to send a mail. The last one repeats.
const RETRY_WAITS: [SignedDuration; 5] = [
    SignedDuration::from_mins(1),
    SignedDuration::from_mins(5),
    SignedDuration::from_mins(15),
    SignedDuration::from_hours(1),
    SignedDuration::from_hours(4),
];
/// A mail that could not be sent for this long is given up.
const GIVE_UP_AFTER: SignedDuration = SignedDuration::from_hours(3 * 24);

/// When people are told.
#[derive(Debug, Clone, Copy)]
pub struct MailPolicy {
    pub gather: GatherPolicy,
    /// Invoices that stand still are told this long before their deadline.
    pub deadline_before: SignedDuration,
}

/// A person who gets a mail.
struct Recipient {
    address: String,
    person: NoticeScope,
}

#[derive(Clone)]
pub struct Mailer {
    pub store: Store,
    pub clock: SharedClock,
    pub policy: MailPolicy,
    /// The address that the links in mails begin with.
    pub origin: String,
    pub links: MailLinks,
    pub transport: MailTransport,
    /// Calls the chats, within the rules for addresses that strangers have chosen.
    pub chat: GuardedClient,
}

impl Mailer {
    /// Makes the lane due if there is something to do. Reads only, if there is not.
    pub async fn look(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let store = &self.store;
        let has_work = !mails::due(store, now, 1).await?.is_empty()
            || !notices::due_groups(store, now, self.policy.gather)
                .await?
                .is_empty()
            || notices::has_near_deadlines(store, now, self.policy.deadline_before).await?;
        if !has_work {
            return Ok(());
        }
        let tx = store.begin().await?;
        lanes::wake(&tx, LaneKind::Mail, &[LANE.to_owned()], Wake::WithoutHolder).await?;
        tx.commit().await
    }

    /// Writes and sends what is due, and releases the lane.
    pub async fn work(&self, lease: &Lease) -> Result<WorkStatus, StoreError> {
        self.note_near_deadlines(lease).await?;
        let groups = notices::due_groups(&self.store, self.clock.now(), self.policy.gather).await?;
        for group in groups {
            self.gather(lease, group).await?;
        }
        self.send_due(lease).await?;
        let tx = self.store.begin().await?;
        leases::release(&tx, &[LaneRelease::new(lease, None)]).await?;
        tx.commit().await?;
        Ok(WorkStatus::Released)
    }

    async fn note_near_deadlines(&self, lease: &Lease) -> Result<(), StoreError> {
        let now = self.clock.now();
        let before = self.policy.deadline_before;
        if !notices::has_near_deadlines(&self.store, now, before).await? {
            return Ok(());
        }
        let tx = self.store.begin().await?;
        let held = leases::fence(&tx, from_ref(lease), IfTaken::Await).await?;
        held.require(lease)?;
        notices::add_near_deadlines(&tx, now, before).await?;
        tx.commit().await
    }

    /// Turns the notices of a group into a mail for each recipient, in one transaction.
    pub(super) async fn gather(&self, lease: &Lease, group: NoticeGroup) -> Result<(), StoreError> {
        if group.topic == NoticeTopic::Access {
            return self.gather_links(lease, group).await;
        }
        let now = self.clock.now();
        let (recipients, account) = self.recipients(group, now).await?;
        let chat = self.find_chat(group.scope).await?;
        let tx = self.store.begin().await?;
        let held = leases::fence(&tx, from_ref(lease), IfTaken::Await).await?;
        held.require(lease)?;
        let taken = notices::take(&tx, group, now).await?;
        let people = recipients.into_iter().map(|one| {
            let unsubscribe = group.topic.may_be_muted().then(|| {
                let path = self.links.unsubscribe_path(one.person, group.topic);
                format!("{}{path}", self.origin)
            });
            (one.address, unsubscribe)
        });
        let told = people.chain(chat.map(|id| (format!("{CHAT}{id}"), None)));
        let mut new = Vec::new();
        for (recipient, unsubscribe) in told.filter(|_| !taken.is_empty()) {
            let digest = Digest {
                scope: group.scope,
                topic: group.topic,
                notices: &taken,
                account: &account,
                origin: &self.origin,
                unsubscribe: unsubscribe.as_deref(),
            };
            match digest.render() {
                Ok(letter) => new.push(NewMail {
                    recipient,
                    topic: group.topic,
                    letter,
                    unsubscribe,
                    link_for: None,
                }),
                Err(error) => tracing::error!(%error, "a mail could not be written"),
            }
        }
        mails::add(&tx, new, now).await?;
        tx.commit().await
    }

    /// Writes a mail with a one-time link for each person who was invited or lost a password.
    async fn gather_links(&self, lease: &Lease, group: NoticeGroup) -> Result<(), StoreError> {
        let now = self.clock.now();
        let tx = self.store.begin().await?;
        let held = leases::fence(&tx, from_ref(lease), IfTaken::Await).await?;
        held.require(lease)?;
        let taken = notices::take(&tx, group, now).await?;
        let mut told = HashSet::new();
        let mut new = Vec::new();
        for notice in &taken {
            for person in self.find_invited_people(group.scope, &notice.about).await? {
                let recent =
                    mails::count_links(&self.store, &person.email, now - LINKS_DAY).await?;
                if recent >= LINKS_MAX || !told.insert(person.owner) {
                    continue;
                }
                let digest = Digest {
                    scope: group.scope,
                    topic: group.topic,
                    notices: from_ref(notice),
                    account: "",
                    origin: &self.origin,
                    unsubscribe: None,
                };
                match digest.render() {
                    Ok(letter) => new.push(NewMail {
                        recipient: person.email,
                        topic: group.topic,
                        letter,
                        unsubscribe: None,
                        link_for: Some(NoticeScope::Person(person.owner)),
                    }),
                    Err(error) => tracing::error!(%error, "a mail could not be written"),
                }
            }
        }
        mails::add(&tx, new, now).await?;
        tx.commit().await
    }

    /// Returns the people of accounts who get a link: the one of the scope, or those with this email and a password.
    async fn find_invited_people(
        &self,
        scope: NoticeScope,
        email: &str,
    ) -> Result<Vec<Person>, StoreError> {
        let found = match scope {
            NoticeScope::Person(owner) => owners::find_person(&self.store, owner).await?,
            NoticeScope::Taxpayer(_) => None,
            NoticeScope::SignIn => {
                let found = people::with_email(&self.store, email).await?;
                let may = found.into_iter().filter(|found| !found.is_disabled);
                let people = may.map(|found| found.person);
                // Operators help each other: a mail alone must not open the console.
                let of_accounts =
                    people.filter(|person| !matches!(person.owner, SessionOwner::Operator(_)));
                return Ok(of_accounts.collect());
            }
        };
        Ok(found.into_iter().collect())
    }

    /// Returns a mail with the secret of its link, which it stores as its hash; `None` if the person is gone.
    async fn with_link(&self, mail: &Mail) -> Result<Option<Mail>, StoreError> {
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
        let made = invitations::add(&self.store, new).await?;
        Ok(made.map(|_| {
            let mut mail = mail.clone();
            mail.letter.text = mail.letter.text.replace(LINK_PLACEHOLDER, token.text());
            mail.letter.html = mail.letter.html.replace(LINK_PLACEHOLDER, token.text());
            mail
        }))
    }

    /// Sends a mail, with its link if it has one.
    async fn send(&self, mail: &Mail) -> Result<Result<(), SendFailure>, StoreError> {
        Ok(match self.with_link(mail).await? {
            Some(mail) => self.transport.send(&mail).await,
            None => Err(SendFailure::Refused("the person is gone".to_owned())),
        })
    }

    /// Returns the taxpayer whose chat is told, if it has one.
    async fn find_chat(&self, scope: NoticeScope) -> Result<Option<TaxpayerId>, StoreError> {
        let NoticeScope::Taxpayer(id) = scope else {
            return Ok(None);
        };
        let hook = chat_hooks::owned_by(&self.store, id).await?;
        Ok(hook.map(|_| id))
    }

    /// Posts a mail to the chat of a taxpayer, in the form that the common chat tools take.
    async fn post_to_chat(&self, mail: &Mail, taxpayer: TaxpayerId) -> Result<(), SendFailure> {
        let hook = chat_hooks::owned_by(&self.store, taxpayer).await;
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
        let attempt = self.chat.post(post).await;
        match attempt.outcome.failure() {
            None => Ok(()),
            Some(error) if attempt.is_gone() => Err(SendFailure::Refused(error)),
            Some(error) => Err(SendFailure::Later(error)),
        }
    }

    /// Returns those who are told and want it, and the name of the account.
    async fn recipients(
        &self,
        group: NoticeGroup,
        now: Timestamp,
    ) -> Result<(Vec<Recipient>, String), StoreError> {
        let (mut told, account) = self.find_recipients(group).await?;
        if group.topic.may_be_muted() {
            let people: Vec<_> = told.iter().map(|one| one.person).collect();
            let muted = mail_choices::find_muted(&self.store, &people, group.topic, now).await?;
            told.retain(|one| !muted.contains(&one.person.to_string()));
        }
        Ok((told, account))
    }

    /// Returns those whom the topic concerns, and the name of the account.
    async fn find_recipients(
        &self,
        group: NoticeGroup,
    ) -> Result<(Vec<Recipient>, String), StoreError> {
        match group.scope {
            NoticeScope::Taxpayer(id) => {
                let people = contacts::owned_by(&self.store, id).await?;
                let least = group.topic.least_role();
                let told = people
                    .into_iter()
                    .filter(|person| !person.is_disabled && person.role >= least);
                let account = taxpayers::with_id(self.store.reader(), id).await?;
                let account = account.map(|one| format!("{}, TIN {}", one.name, one.tin));
                let told = told.map(|access| Recipient {
                    person: NoticeScope::Person(SessionOwner::Contact {
                        taxpayer: id,
                        id: ContactId(access.contact.id),
                    }),
                    address: access.contact.email,
                });
                Ok((told.collect(), account.unwrap_or_default()))
            }
            NoticeScope::Person(owner) => {
                let person = owners::find_person(&self.store, owner).await?;
                let told = person.map(|person| Recipient {
                    person: group.scope,
                    address: person.email,
                });
                Ok((told.into_iter().collect(), String::new()))
            }
            NoticeScope::SignIn => Ok((Vec::new(), String::new())),
        }
    }

    /// Sends the mails that are due. After the server was not reached, the others wait without an attempt.
    pub(super) async fn send_due(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut unreachable: Option<String> = None;
        for mail in mails::due(&self.store, self.clock.now(), MAILS_MAX).await? {
            let chat = mail.recipient.strip_prefix(CHAT).and_then(parse_number);
            let sent = match (chat, &unreachable) {
                (Some(id), _) => self.post_to_chat(&mail, TaxpayerId(id)).await,
                (None, None) => self.send(&mail).await?,
                (None, Some(error)) => Err(SendFailure::Unreachable(error.clone())),
            };
            if let Err(SendFailure::Unreachable(error)) = &sent {
                unreachable = Some(error.clone());
            }
            let outcome = self.outcome(&mail, sent);
            let tx = self.store.begin().await?;
            let held = leases::fence(&tx, from_ref(lease), IfTaken::Await).await?;
            held.require(lease)?;
            mails::record(&tx, &mail, &outcome, self.clock.now()).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    fn outcome(&self, mail: &Mail, sent: Result<(), SendFailure>) -> MailOutcome {
        let age = self.clock.now().duration_since(mail.created_at);
        let (error, is_final) = match sent {
            Ok(()) => return MailOutcome::Sent,
            Err(SendFailure::Refused(error)) => (error, true),
            Err(SendFailure::Later(error) | SendFailure::Unreachable(error)) => {
                (error, age > GIVE_UP_AFTER)
            }
        };
        if is_final {
            tracing::error!(
                mail = mail.id,
                error,
                "a mail could not be sent and is given up"
            );
            return MailOutcome::Failed(error);
        }
        tracing::warn!(mail = mail.id, error, "a mail was not sent; will retry");
        let attempt = usize::try_from(mail.attempts).unwrap_or_default();
        let wait = RETRY_WAITS[attempt.min(RETRY_WAITS.len() - 1)];
        MailOutcome::Retry(wait, error)
    }
}
