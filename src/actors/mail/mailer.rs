//! Gathers notices into mails and sends them. There is one lane for mails and one for posts to chats. All replicas
//! share them, so only one replica at a time does the work of each. A mail is stored before it is sent and marked as
//! sent afterwards, so a crash in between sends it again under the same id.

use std::collections::HashSet;
use std::slice::from_ref;
use std::time::Duration;

use database::StoreError;
use jiff::{SignedDuration, Timestamp};
use timing::clock::SharedClock;
use webhook_client::GuardedClient;

use crate::actors::dispatch::WorkStatus;
use crate::actors::mail::letter::NoticeDigest;
use crate::actors::mail::transport::MailTransport;
use crate::domain::mail_links::MailLinks;
use crate::domain::notice::{Notice, NoticeScope, NoticeTopic};
use crate::store::Store;
use crate::store::lanes::leases::{self, LaneRelease};
use crate::store::lanes::{self, IfLocked, LaneKind, LanesToWake, Lease};
use crate::store::operations::mails::{self, MailChannel, NewMail};
use crate::store::operations::near_deadlines;
use crate::store::operations::notices::{self, GatherDelays, NoticeGroup};

/// The key of the lane whose holder writes and sends mails.
const MAILS: &str = "mails";
/// The key of the lane whose holder posts to chats. It is a lane of its own, so that a slow chat delays no mail.
const CHATS: &str = "chats";
/// The number of lanes of kind `Mail`.
pub const LANES: usize = 2;
/// The interval at which the service looks for mails to write or send.
pub const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The settings that decide when people are notified.
#[derive(Debug, Clone, Copy)]
pub struct MailPolicy {
    pub gather: GatherDelays,
    /// People are warned this long before the deadline of a submission that makes no progress.
    pub deadline_before: SignedDuration,
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
    /// Posts to chats. It applies the rules for addresses that customers choose.
    pub chat: GuardedClient,
}

impl Mailer {
    /// Makes the lanes due that have something to do. If none has, this only reads.
    pub async fn wake_due_lanes(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut keys = Vec::new();
        if self.has_mails_to_handle(now).await? {
            keys.push(MAILS.to_owned());
        }
        if self.has_due_messages(MailChannel::Chat, now).await? {
            keys.push(CHATS.to_owned());
        }
        if keys.is_empty() {
            return Ok(());
        }
        let tx = self.store.begin().await?;
        lanes::wake(&tx, LaneKind::Mail, &keys, LanesToWake::WithoutHolder).await?;
        tx.commit().await
    }

    /// True if a mail must be written or sent now.
    async fn has_mails_to_handle(&self, now: Timestamp) -> Result<bool, StoreError> {
        let store = &self.store;
        Ok(self.has_due_messages(MailChannel::Mail, now).await?
            || !notices::due_groups(store, now, self.policy.gather)
                .await?
                .is_empty()
            || near_deadlines::has_near_deadline(store, now, self.policy.deadline_before).await?)
    }

    async fn has_due_messages(
        &self,
        channel: MailChannel,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(!mails::load_due(&self.store, now, channel, 1)
            .await?
            .is_empty())
    }

    /// Does the work of the mail lane or of the chat lane, whichever this lease is for, and releases the lane.
    pub async fn work(&self, lease: &Lease) -> Result<WorkStatus, StoreError> {
        if lease.key == CHATS {
            self.post_due_to_chats(lease).await?;
        } else {
            self.write_due_mails(lease).await?;
            self.send_due(lease).await?;
        }
        let tx = self.store.begin().await?;
        leases::release(&tx, &[LaneRelease::new(lease, None)]).await?;
        tx.commit().await?;
        Ok(WorkStatus::Released)
    }

    /// Adds the notices about near deadlines, and writes the mails about notices that have waited for long enough.
    async fn write_due_mails(&self, lease: &Lease) -> Result<(), StoreError> {
        self.add_deadline_notices(lease).await?;
        let groups = notices::due_groups(&self.store, self.clock.now(), self.policy.gather).await?;
        for group in groups {
            self.write_notice_mails(lease, group).await?;
        }
        Ok(())
    }

    async fn add_deadline_notices(&self, lease: &Lease) -> Result<(), StoreError> {
        let now = self.clock.now();
        let before = self.policy.deadline_before;
        if !near_deadlines::has_near_deadline(&self.store, now, before).await? {
            return Ok(());
        }
        let tx = self.store.begin().await?;
        let held = leases::fence(&tx, from_ref(lease), IfLocked::Await).await?;
        held.require_held(lease)?;
        near_deadlines::add_notices(&tx, now, before).await?;
        tx.commit().await
    }

    /// Turns the notices of a group into a mail for each recipient, in one transaction.
    pub(super) async fn write_notice_mails(
        &self,
        lease: &Lease,
        group: NoticeGroup,
    ) -> Result<(), StoreError> {
        if group.topic == NoticeTopic::Access {
            return self.write_link_mails(lease, group).await;
        }
        let now = self.clock.now();
        let recipients = self.find_unmuted_recipients(group, now).await?;
        let account = self.account_label(group.scope).await?;
        let tx = self.store.begin().await?;
        let held = leases::fence(&tx, from_ref(lease), IfLocked::Await).await?;
        held.require_held(lease)?;
        let taken = notices::take_notices(&tx, group, now).await?;
        let about: Vec<_> = taken.iter().map(|notice| notice.about.as_str()).collect();
        let settled = notices::find_settled_invoices(&tx, group, &about).await?;
        let open = taken.into_iter();
        let open = open.filter(|notice| !settled.contains(&notice.about));
        let open: Vec<Notice> = open
            .map(|notice| notice.update_deadline_kind(now))
            .collect();
        let mut new = Vec::new();
        for recipient in recipients.into_iter().filter(|_| !open.is_empty()) {
            let muting = recipient.person.filter(|_| group.topic.may_be_muted());
            let unsubscribe = muting.map(|person| {
                let path = self.links.unsubscribe_path(person, group.topic);
                format!("{}{path}", self.origin)
            });
            let digest = NoticeDigest {
                scope: group.scope,
                topic: group.topic,
                notices: &open,
                account: &account,
                origin: &self.origin,
                unsubscribe: unsubscribe.as_deref(),
            };
            let letter = digest.render();
            new.push(NewMail {
                recipient: recipient.address,
                topic: group.topic,
                letter,
                unsubscribe,
                link_for: None,
                scope: group.scope,
                person: recipient.person,
            });
        }
        mails::add(&tx, new, now).await?;
        tx.commit().await
    }

    /// Writes a mail with a one-time link for each person who was invited or has lost the password.
    async fn write_link_mails(&self, lease: &Lease, group: NoticeGroup) -> Result<(), StoreError> {
        let now = self.clock.now();
        let tx = self.store.begin().await?;
        let held = leases::fence(&tx, from_ref(lease), IfLocked::Await).await?;
        held.require_held(lease)?;
        let taken = notices::take_notices(&tx, group, now).await?;
        let mut told = HashSet::new();
        let mut new = Vec::new();
        for notice in &taken {
            for person in self.find_invited_people(group.scope, &notice.about).await? {
                let email = &person.email;
                let may = mails::may_get_link_mail(&self.store, email, notice.kind, now).await?;
                if !may || !told.insert(person.owner) {
                    continue;
                }
                let digest = NoticeDigest {
                    scope: group.scope,
                    topic: group.topic,
                    notices: from_ref(notice),
                    account: "",
                    origin: &self.origin,
                    unsubscribe: None,
                };
                let letter = digest.render();
                new.push(NewMail {
                    recipient: person.email,
                    topic: group.topic,
                    letter,
                    unsubscribe: None,
                    link_for: Some(NoticeScope::Person(person.owner)),
                    scope: group.scope,
                    person: Some(NoticeScope::Person(person.owner)),
                });
            }
        }
        mails::add(&tx, new, now).await?;
        tx.commit().await
    }
}
