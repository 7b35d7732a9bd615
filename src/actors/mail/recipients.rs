//! Finds the recipients of a mail about some notices, and checks when the mail is sent whether they should still get
//! it.

use database::StoreError;
use jiff::Timestamp;

use crate::actors::mail::mailer::Mailer;
use crate::domain::access::session::{Person, Rights, SessionOwner};
use crate::domain::kernel::ids::{ContactId, TaxpayerId};
use crate::domain::notice::NoticeScope;
use crate::store::accounts::{contacts, people, person_accounts, taxpayers};
use crate::store::operations::mails::Mail;
use crate::store::operations::notices::NoticeGroup;
use crate::store::operations::{chat_hooks, mail_choices};

/// The prefix of the recipient of a post to a chat, before the id of the taxpayer.
pub(super) const CHAT: &str = "chat/";

/// A person who gets a mail, or a chat that gets it as a post.
pub(super) struct Recipient {
    pub(super) address: String,
    /// `None` for a chat.
    pub(super) person: Option<NoticeScope>,
}

impl Mailer {
    /// Returns the people whom the topic concerns and who have not muted it, and the chat of the account, if it has
    /// one.
    pub(super) async fn find_unmuted_recipients(
        &self,
        group: NoticeGroup,
        now: Timestamp,
    ) -> Result<Vec<Recipient>, StoreError> {
        let mut told = self.find_recipients_with_muted(group).await?;
        if group.topic.may_be_muted() {
            let people: Vec<_> = told.iter().filter_map(|one| one.person).collect();
            let muted =
                mail_choices::find_muted_people(&self.store, &people, group.topic, now).await?;
            told.retain(|one| {
                one.person
                    .is_none_or(|person| !muted.contains(&person.to_string()))
            });
        }
        Ok(told)
    }

    /// Returns the people whom the topic concerns, also if they have muted it, and the chat of the account. Leaves out
    /// people who never chose a password: their address may have been mistyped when the account was created, and a
    /// stranger must not learn of its keys and invoices.
    async fn find_recipients_with_muted(
        &self,
        group: NoticeGroup,
    ) -> Result<Vec<Recipient>, StoreError> {
        match group.scope {
            NoticeScope::Taxpayer(id) => {
                let people = contacts::owned_by(&self.store, id).await?;
                let least = group.topic.least_role();
                let told = people.into_iter().filter(|person| {
                    person.has_password && !person.is_disabled && person.role >= least
                });
                let told = told.map(|access| Recipient {
                    person: Some(NoticeScope::Person(SessionOwner::Contact {
                        taxpayer: id,
                        id: ContactId(access.contact.id),
                    })),
                    address: access.contact.email,
                });
                Ok(told.chain(self.find_chat(id).await?).collect())
            }
            NoticeScope::Person(owner) => {
                let has_password = people::password_hash(&self.store, owner).await?.is_some();
                let person = person_accounts::find_person(&self.store, owner).await?;
                let told = person.filter(|_| has_password).map(|person| Recipient {
                    person: Some(group.scope),
                    address: person.email,
                });
                Ok(told.into_iter().collect())
            }
            NoticeScope::SignIn => Ok(Vec::new()),
        }
    }

    /// Returns the chat of a taxpayer, if it has one.
    async fn find_chat(&self, taxpayer: TaxpayerId) -> Result<Option<Recipient>, StoreError> {
        let hook = chat_hooks::owned_by(&self.store, taxpayer).await?;
        Ok(hook.map(|_| Recipient {
            address: format!("{CHAT}{taxpayer}"),
            person: None,
        }))
    }

    /// Returns the name and tax number of the account that a mail is about; empty if it is not about one account.
    pub(super) async fn account_label(&self, scope: NoticeScope) -> Result<String, StoreError> {
        let NoticeScope::Taxpayer(id) = scope else {
            return Ok(String::new());
        };
        let account = taxpayers::find_by_id(self.store.reader(), id).await?;
        let account = account.map(|one| format!("{}, TIN {}", one.name, one.tin));
        Ok(account.unwrap_or_default())
    }

    /// Returns the people who get a one-time link: the person of the scope or, if a password was lost, the people who
    /// sign in with this email, without operators and disabled people.
    pub(super) async fn find_invited_people(
        &self,
        scope: NoticeScope,
        email: &str,
    ) -> Result<Vec<Person>, StoreError> {
        let found = match scope {
            NoticeScope::Person(owner) => person_accounts::find_person(&self.store, owner).await?,
            NoticeScope::Taxpayer(_) => None,
            NoticeScope::SignIn => {
                let found = people::find_accounts_by_email(&self.store, email).await?;
                let may = found.into_iter().filter(|found| !found.is_disabled);
                let people = may.map(|found| found.person);
                // An operator who has lost the password asks another operator: a mailbox alone must not open the
                // operators' console.
                let of_accounts =
                    people.filter(|person| !matches!(person.owner, SessionOwner::Operator(_)));
                return Ok(of_accounts.collect());
            }
        };
        Ok(found.into_iter().collect())
    }

    /// True if the recipient of a mail should still get it at this address. A mail may have waited for days, and
    /// meanwhile the person may have left, or changed the address, the role or the choice of topics. A person without a
    /// password gets only the mail with the link to choose one. Other mails to such a person may be stored, because an
    /// earlier version of this program wrote them.
    pub(super) async fn is_still_recipient(&self, mail: &Mail) -> Result<bool, StoreError> {
        let Some(NoticeScope::Person(owner)) = mail.person else {
            return Ok(true);
        };
        let Some(person) = person_accounts::find_person(&self.store, owner).await? else {
            return Ok(false);
        };
        let has_role = match (mail.scope, person.rights) {
            (Some(NoticeScope::Taxpayer(_)), Rights::Account(role)) => {
                role >= mail.topic.least_role()
            }
            _ => true,
        };
        if !has_role || person.email != mail.recipient {
            return Ok(false);
        }
        if mail.link_for.is_none() && people::password_hash(&self.store, owner).await?.is_none() {
            return Ok(false);
        }
        if !mail.topic.may_be_muted() {
            return Ok(true);
        }
        let asked = [NoticeScope::Person(owner)];
        let now = self.clock.now();
        let muted = mail_choices::find_muted_people(&self.store, &asked, mail.topic, now).await?;
        Ok(muted.is_empty())
    }
}
