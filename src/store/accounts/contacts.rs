//! The contact persons of a taxpayer, who sign in for it: adds, disables, enables and removes them, and sets their
//! roles. An account always keeps at least one enabled owner.

use std::collections::{BTreeSet, HashMap};

use database::column::RowRef;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict};
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};

use crate::domain::access::session::{ContactRole, SessionOwner};
use crate::domain::kernel::audit::{
    Actor, AuditAction, AuditEntry, contact_state, split_contact_state,
};
use crate::domain::kernel::ids::{ContactId, TaxpayerId};
use crate::domain::notice::NoticeScope;
use crate::domain::party::Contact;
use crate::domain::party::email::email_key;
use crate::store::Store;
use crate::store::accounts::contact_row::{Column, Entity, Model};
use crate::store::accounts::{ended_invitations, saved_views, second_factors, sessions};
use crate::store::ids::IdKind;
use crate::store::operations::{audit, audit_row, mail_choices};

/// The maximum number of contact persons that the people of an account add to it.
pub const PEOPLE_MAX: usize = 200;

/// A contact person with its role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactAccess {
    pub contact: Contact,
    pub role: ContactRole,
    /// False until the person chooses a password through an invitation.
    pub has_password: bool,
    /// True if the person may not sign in.
    pub is_disabled: bool,
}

/// A change of a contact person: the account of the person, the actor who makes the change, and the time.
#[derive(Debug, Clone, Copy)]
pub struct ContactChange {
    pub taxpayer: TaxpayerId,
    pub by: Actor,
    pub now: Timestamp,
}

/// A contact person that is not stored yet. The person chooses a password through an invitation.
#[derive(Debug, Clone)]
pub struct NewPerson {
    pub first_name: String,
    pub last_name: String,
    pub email: String,
    pub role: ContactRole,
}

/// The result of a change of a contact person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContactChangeResult {
    /// The change is in force. It ended this many sessions.
    Done { ended_sessions: u64 },
    /// The account has no such person.
    Unknown,
    /// The change would leave the account without an enabled owner.
    LastOwner,
}

/// Loads the contact persons of a taxpayer, ordered by id.
pub async fn owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
) -> Result<Vec<ContactAccess>, StoreError> {
    let people = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .order_by_asc(Column::Id);
    people
        .all(store.reader())
        .await?
        .into_iter()
        .map(ContactAccess::try_from)
        .collect()
}

/// Loads the names of those of these contact persons who were removed from the account. Only the audit entry of the
/// removal keeps the name.
pub async fn removed_names(
    store: &Store,
    taxpayer: TaxpayerId,
    ids: &BTreeSet<ContactId>,
) -> Result<HashMap<i64, String>, StoreError> {
    use audit_row::Column;
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    // With the `||` and the plus sign, SQLite finds the few entries about these people by the index of subjects.
    let action = Expr::cust("action || ''").eq(AuditAction::RemoveContact.as_str());
    let rows: Vec<(String, Option<String>)> = audit_row::Entity::find()
        .select_only()
        .columns([Column::Subject, Column::FromState])
        .filter(Column::Subject.is_in(ids.iter().map(ToString::to_string)))
        .filter(Expr::cust("+taxpayer_id").eq(taxpayer.0))
        .filter(action)
        .into_tuple()
        .all(store.reader())
        .await?;
    let removed = rows.into_iter().filter_map(|(id, had)| {
        let (_, _, name) = split_contact_state(had.as_deref()?)?;
        Some((id.parse().ok()?, name.to_owned()))
    });
    Ok(removed.collect())
}

/// Adds a contact person and returns its id; `None` if a contact person already has this email.
pub async fn add(
    store: &Store,
    change: ContactChange,
    person: &NewPerson,
) -> Result<Option<ContactId>, StoreError> {
    let id = store.ids().next(IdKind::Contact).await?;
    let row = Model {
        taxpayer_id: change.taxpayer.0,
        id,
        first_name: person.first_name.clone(),
        last_name: person.last_name.clone(),
        email: person.email.clone(),
        email_key: email_key(&person.email),
        phone: None,
        password_hash: None,
        role: person.role.to_string(),
        created_at: change.now.as_microsecond(),
        updated_at: change.now.as_microsecond(),
        disabled_at: None,
    };
    // If another contact person already has this email, the statement adds no row instead of failing.
    let same_email = OnConflict::column(Column::EmailKey).do_nothing().to_owned();
    let tx = store.begin().await?;
    let added = Entity::insert(row.into_active_model())
        .on_conflict(same_email)
        .exec_without_returning(&tx)
        .await?;
    if added == 0 {
        return Ok(None);
    }
    let entry = change.audit_entry(AuditAction::AddContact, ContactId(id));
    let name = format!("{} {}", person.first_name, person.last_name);
    let added = contact_state(person.role.as_str(), &person.email, &name);
    audit::append(&tx, &[entry.with_states(None, Some(added))]).await?;
    tx.commit().await?;
    Ok(Some(ContactId(id)))
}

/// Gives a contact person another role, which applies from the person's next request on.
pub async fn set_role(
    store: &Store,
    change: ContactChange,
    id: ContactId,
    role: ContactRole,
) -> Result<ContactChangeResult, StoreError> {
    let tx = store.begin().await?;
    let before =
        match lock_unless_last_owner(&tx, change.taxpayer, id, role == ContactRole::Owner).await? {
            Ok(before) => before.role,
            Err(refused) => return Ok(refused),
        };
    if before == role {
        return Ok(ContactChangeResult::Done { ended_sessions: 0 });
    }
    Entity::update_many()
        .col_expr(Column::Role, Expr::value(role.as_str()))
        .col_expr(Column::UpdatedAt, Expr::value(change.now.as_microsecond()))
        .filter(Column::TaxpayerId.eq(change.taxpayer.0))
        .filter(Column::Id.eq(id.0))
        .exec(&tx)
        .await?;
    if before == ContactRole::Owner {
        let person = change.session_owner(id);
        ended_invitations::delete_made_by(&tx, person, change.now).await?;
    }
    let entry = change.audit_entry(AuditAction::ChangeContactRole, id);
    audit::append(
        &tx,
        &[entry.with_states(Some(before.to_string()), Some(role.to_string()))],
    )
    .await?;
    tx.commit()
        .await
        .map(|()| ContactChangeResult::Done { ended_sessions: 0 })
}

/// Disables a contact person and ends its sessions and its invitation. The person keeps role and password, but cannot
/// sign in.
pub async fn disable(
    store: &Store,
    change: ContactChange,
    id: ContactId,
) -> Result<ContactChangeResult, StoreError> {
    let tx = store.begin().await?;
    if let Err(refused) = lock_unless_last_owner(&tx, change.taxpayer, id, false).await? {
        return Ok(refused);
    }
    let was_enabled = set_disabled(&tx, change, id, true).await?;
    let ended_sessions = change.end_sessions_and_invitations(&tx, id).await?;
    if !was_enabled && ended_sessions == 0 {
        return Ok(ContactChangeResult::Done { ended_sessions });
    }
    audit::append(&tx, &[change.audit_entry(AuditAction::DisableContact, id)]).await?;
    tx.commit()
        .await
        .map(|()| ContactChangeResult::Done { ended_sessions })
}

/// Enables a disabled contact person again. Sessions are deleted once more to be sure, although `sessions::open` opens
/// none for a disabled person.
pub async fn enable(
    store: &Store,
    change: ContactChange,
    id: ContactId,
) -> Result<ContactChangeResult, StoreError> {
    let tx = store.begin().await?;
    if let Err(refused) = lock_unless_last_owner(&tx, change.taxpayer, id, true).await? {
        return Ok(refused);
    }
    if !set_disabled(&tx, change, id, false).await? {
        return Ok(ContactChangeResult::Done { ended_sessions: 0 });
    }
    let ended_sessions = change.end_sessions_and_invitations(&tx, id).await?;
    audit::append(&tx, &[change.audit_entry(AuditAction::EnableContact, id)]).await?;
    tx.commit()
        .await
        .map(|()| ContactChangeResult::Done { ended_sessions })
}

/// Disables or enables a contact person. Returns false if the person was already in this state.
async fn set_disabled(
    tx: &Transaction,
    change: ContactChange,
    id: ContactId,
    is_disabled: bool,
) -> Result<bool, StoreError> {
    let now = change.now.as_microsecond();
    let is_other = if is_disabled {
        Column::DisabledAt.is_null()
    } else {
        Column::DisabledAt.is_not_null()
    };
    let updated = Entity::update_many()
        .col_expr(Column::DisabledAt, Expr::value(is_disabled.then_some(now)))
        .col_expr(Column::UpdatedAt, Expr::value(now))
        .filter(Column::TaxpayerId.eq(change.taxpayer.0))
        .filter(Column::Id.eq(id.0))
        .filter(is_other)
        .exec(tx)
        .await?;
    Ok(updated.rows_affected > 0)
}

/// Removes a contact person with the second factor, the saved views and the mail settings. Ends the sessions and the
/// invitation of the person.
pub async fn remove(
    store: &Store,
    change: ContactChange,
    id: ContactId,
) -> Result<ContactChangeResult, StoreError> {
    let tx = store.begin().await?;
    let before = match lock_unless_last_owner(&tx, change.taxpayer, id, false).await? {
        Ok(before) => before,
        Err(refused) => return Ok(refused),
    };
    Entity::delete_by_id((change.taxpayer.0, id.0))
        .exec(&tx)
        .await?;
    let person = change.session_owner(id);
    second_factors::delete_owned_by(&tx, person).await?;
    saved_views::delete_owned_by(&tx, person).await?;
    mail_choices::delete_owned_by(&tx, NoticeScope::Person(person)).await?;
    let ended_sessions = change.end_sessions_and_invitations(&tx, id).await?;
    let entry = change.audit_entry(AuditAction::RemoveContact, id);
    audit::append(&tx, &[entry.with_states(Some(before.to_state()), None)]).await?;
    tx.commit()
        .await
        .map(|()| ContactChangeResult::Done { ended_sessions })
}

/// Locks the contact persons of an account and returns one of them as it is now. Returns `LastOwner` if this person is
/// the only enabled owner, unless the person is still an owner after the change (`stays_owner`).
async fn lock_unless_last_owner(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    id: ContactId,
    stays_owner: bool,
) -> Result<Result<ContactAccess, ContactChangeResult>, StoreError> {
    let people = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .order_by_asc(Column::Id);
    let people = people.lock_exclusive().all(tx).await?;
    let people: Vec<_> = people
        .into_iter()
        .map(ContactAccess::try_from)
        .collect::<Result<_, _>>()?;
    let ContactId(id) = id;
    let Some(person) = people.iter().find(|one| one.contact.id == id) else {
        return Ok(Err(ContactChangeResult::Unknown));
    };
    let is_owner =
        |person: &ContactAccess| person.role == ContactRole::Owner && !person.is_disabled;
    let mut others = people.iter().filter(|other| other.contact.id != id);
    let keeps_owner = stays_owner || others.any(is_owner);
    let loses_none = !is_owner(person) || keeps_owner;
    Ok(if loses_none {
        Ok(person.clone())
    } else {
        Err(ContactChangeResult::LastOwner)
    })
}

impl ContactAccess {
    /// Returns first and last name in one text.
    pub fn name(&self) -> String {
        format!("{} {}", self.contact.first_name, self.contact.last_name)
    }

    /// Returns the state of the person as the audit keeps it.
    fn to_state(&self) -> String {
        contact_state(self.role.as_str(), &self.contact.email, &self.name())
    }
}

impl ContactChange {
    fn session_owner(self, id: ContactId) -> SessionOwner {
        SessionOwner::Contact {
            taxpayer: self.taxpayer,
            id,
        }
    }

    /// Ends the sessions and the invitation of a person, and the invitations that the person made for others. Returns
    /// the number of ended sessions.
    async fn end_sessions_and_invitations(
        self,
        tx: &Transaction,
        id: ContactId,
    ) -> Result<u64, StoreError> {
        let owner = self.session_owner(id);
        ended_invitations::delete_owned_and_made_by(tx, owner, self.now).await?;
        sessions::close_all(tx, owner).await
    }

    fn audit_entry(&self, action: AuditAction, id: ContactId) -> AuditEntry {
        AuditEntry::new(self.by, action, &id, self.now).for_taxpayer(self.taxpayer)
    }
}

impl TryFrom<Model> for ContactAccess {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let role = RowRef {
            table: "contacts",
            id: row.id,
        }
        .parse(&row.role)?;
        let has_password = row.password_hash.is_some();
        let is_disabled = row.disabled_at.is_some();
        Ok(Self {
            contact: Contact::try_from(row)?,
            role,
            has_password,
            is_disabled,
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;
    use crate::domain::notice::NoticeTopic;
    use crate::store::accounts::saved_views::{VIEWS_MAX, ViewOwner};
    use crate::store::operations::mail_choices::MailChoice;
    use crate::store::testing::{TestStore, stores};

    const CHANGE: ContactChange = ContactChange {
        taxpayer: TaxpayerId(1),
        by: Actor::CommandLine,
        now: Timestamp::UNIX_EPOCH,
    };

    const DONE: ContactChangeResult = ContactChangeResult::Done { ended_sessions: 0 };

    async fn add_person(test: &TestStore, email: &str, role: ContactRole) -> Option<ContactId> {
        let person = NewPerson {
            first_name: "Ada".into(),
            last_name: "Obi".into(),
            email: email.into(),
            role,
        };
        add(&test.store, CHANGE, &person).await.unwrap()
    }

    async fn add_two_owners(test: &TestStore) -> [ContactId; 2] {
        let add = async |email| add_person(test, email, ContactRole::Owner).await.unwrap();
        [add("a@example.com").await, add("b@example.com").await]
    }

    async fn roles(test: &TestStore) -> Vec<ContactRole> {
        owned_by(&test.store, TaxpayerId(1))
            .await
            .unwrap()
            .iter()
            .map(|person| person.role)
            .collect()
    }

    #[tokio::test]
    async fn an_email_belongs_to_one_person() {
        for test in stores().await {
            for (email, is_added) in [
                ("a@example.com", true),
                ("a@example.com", false),
                ("A@Example.com", false),
                ("b@example.com", true),
                ("B@example.com", false),
                ("\u{e9}@example.com", true),
                ("e\u{301}@example.com", false),
            ] {
                let added = add_person(&test, email, ContactRole::Owner).await;
                assert_eq!(added.is_some(), is_added, "{email}");
            }
            assert_eq!(roles(&test).await, [ContactRole::Owner; 3]);
        }
    }

    #[tokio::test]
    async fn an_account_keeps_an_owner() {
        for test in stores().await {
            add_person(&test, "a@example.com", ContactRole::Owner)
                .await
                .unwrap();
            add_person(&test, "b@example.com", ContactRole::ReadOnly)
                .await
                .unwrap();
            let people = owned_by(&test.store, TaxpayerId(1)).await.unwrap();
            let [first, second] = [0, 1].map(|at: usize| ContactId(people[at].contact.id));
            let demote = async |id, role| set_role(&test.store, CHANGE, id, role).await.unwrap();
            assert_eq!(
                demote(first, ContactRole::Accountant).await,
                ContactChangeResult::LastOwner
            );
            assert_eq!(
                remove(&test.store, CHANGE, first).await.unwrap(),
                ContactChangeResult::LastOwner
            );
            assert_eq!(demote(first, ContactRole::Owner).await, DONE);
            assert_eq!(demote(second, ContactRole::Owner).await, DONE);
            assert_eq!(demote(first, ContactRole::ReadOnly).await, DONE);
            assert_eq!(
                roles(&test).await,
                [ContactRole::ReadOnly, ContactRole::Owner]
            );
            assert_eq!(remove(&test.store, CHANGE, first).await.unwrap(), DONE);
            assert_eq!(
                remove(&test.store, CHANGE, first).await.unwrap(),
                ContactChangeResult::Unknown
            );
            let other = ContactChange {
                taxpayer: TaxpayerId(2),
                ..CHANGE
            };
            assert_eq!(
                remove(&test.store, other, second).await.unwrap(),
                ContactChangeResult::Unknown
            );
            assert_eq!(roles(&test).await, [ContactRole::Owner]);
        }
    }

    #[tokio::test]
    async fn a_disabled_owner_does_not_count_as_one() {
        for test in stores().await {
            let store = &test.store;
            let [first, second] = add_two_owners(&test).await;
            assert_eq!(disable(store, CHANGE, first).await.unwrap(), DONE);
            assert_eq!(
                disable(store, CHANGE, second).await.unwrap(),
                ContactChangeResult::LastOwner
            );
            assert_eq!(
                remove(store, CHANGE, second).await.unwrap(),
                ContactChangeResult::LastOwner
            );
            assert_eq!(enable(store, CHANGE, first).await.unwrap(), DONE);
            assert_eq!(disable(store, CHANGE, second).await.unwrap(), DONE);
            let enabled: Vec<_> = owned_by(store, TaxpayerId(1)).await.unwrap();
            assert_eq!(
                [false, true],
                [enabled[0].is_disabled, enabled[1].is_disabled]
            );
            let other = ContactChange {
                taxpayer: TaxpayerId(2),
                ..CHANGE
            };
            for id in [first, second] {
                assert_eq!(
                    disable(store, other, id).await.unwrap(),
                    ContactChangeResult::Unknown
                );
                assert_eq!(
                    enable(store, other, id).await.unwrap(),
                    ContactChangeResult::Unknown
                );
            }
        }
    }

    #[tokio::test]
    async fn concurrent_calls_keep_no_more_views_than_the_maximum() {
        for test in stores().await {
            let store = &test.store;
            let id = add_person(&test, "a@example.com", ContactRole::ReadOnly).await;
            let person = |id| ViewOwner {
                person: SessionOwner::Contact {
                    taxpayer: TaxpayerId(1),
                    id,
                },
                taxpayer: TaxpayerId(1),
            };
            let owner = person(id.unwrap());
            let names = (0..VIEWS_MAX + 5).map(|number| format!("View {number}"));
            let names: Vec<String> = names.collect();
            let calls = names
                .iter()
                .map(|name| saved_views::save(store, owner, name, "overdue=true"));
            let kept = join_all(calls).await.into_iter();
            let kept = kept.filter(|kept| *kept.as_ref().unwrap()).count();
            let views = saved_views::owned_by(store, owner).await.unwrap();
            assert_eq!([kept, views.len()], [20, 20]);
            let keep = async |owner, name: &str| {
                let kept = saved_views::save(store, owner, name, "status=draft").await;
                kept.unwrap()
            };
            assert!(keep(owner, &views[0].0).await, "a known name has room");
            assert!(!keep(owner, "another").await);
            assert!(!keep(person(ContactId(9)), "x").await, "nobody has this id");
        }
    }

    #[tokio::test]
    async fn what_a_removed_person_kept_is_removed_too() {
        for test in stores().await {
            let store = &test.store;
            let ids = add_two_owners(&test).await;
            let [removed, other] = ids.map(|id| SessionOwner::Contact {
                taxpayer: TaxpayerId(1),
                id,
            });
            let views = |person| ViewOwner {
                person,
                taxpayer: TaxpayerId(1),
            };
            let never = [(NoticeTopic::Outage, MailChoice::Never)];
            for person in [removed, other] {
                saved_views::save(store, views(person), "Late", "overdue=true")
                    .await
                    .unwrap();
                mail_choices::set_choices(store, NoticeScope::Person(person), &never)
                    .await
                    .unwrap();
            }
            assert_eq!(remove(store, CHANGE, ids[0]).await.unwrap(), DONE);
            for (person, kept) in [(removed, 0), (other, 1)] {
                let kept_views = saved_views::owned_by(store, views(person)).await.unwrap();
                let now = Timestamp::UNIX_EPOCH;
                let choices = mail_choices::owned_by(store, NoticeScope::Person(person), now).await;
                assert_eq!([kept_views.len(), choices.unwrap().len()], [kept, kept]);
            }
        }
    }

    #[tokio::test]
    async fn a_removed_person_is_still_named_in_its_own_account_only() {
        for test in stores().await {
            let store = &test.store;
            let ids = add_two_owners(&test).await;
            assert_eq!(remove(store, CHANGE, ids[0]).await.unwrap(), DONE);
            let expected = HashMap::from([(ids[0].0, "Ada Obi".to_owned())]);
            for (taxpayer, ids, expected) in [
                (1, BTreeSet::from(ids), expected),
                (2, BTreeSet::from(ids), HashMap::new()),
                (1, BTreeSet::from([ids[1]]), HashMap::new()),
                (1, BTreeSet::new(), HashMap::new()),
            ] {
                let names = removed_names(store, TaxpayerId(taxpayer), &ids).await;
                assert_eq!(names.unwrap(), expected, "{taxpayer} {ids:?}");
            }
        }
    }
}
