//! Accounts: integrators, who act for taxpayers, and operators, who run the service.
//!
//! | File | Content |
//! |---|---|
//! | `access` | changes the access of operators and integrators: keys, accounts and roles |
//! | `api_key_row` | the table of API keys |
//! | `contact_row` | the table of contact persons of taxpayers |
//! | `contacts` | the contact persons of a taxpayer, who sign in for it: adds, disables, enables and removes them, and sets their roles |
//! | `devices` | known browsers, whose attempts to sign in are told apart from those of strangers |
//! | `ended_invitations` | ends invitations, which it locks in one order |
//! | `integrator_row` | the table of integrators |
//! | `invitation_row` | the table of invitations |
//! | `invitations` | invitations: one-time links with which a person chooses a password |
//! | `key_leases` | keeps the keys that all processes have cached in agreement with the database (docs/adr/0014) |
//! | `key_list` | the operators' list of API keys of all accounts |
//! | `keys` | API keys, stored as their SHA-256 |
//! | `logos` | the logos that taxpayers print on their documents |
//! | `operator_row` | the table of operators of the service |
//! | `people` | the people who sign in (operators, contact persons of taxpayers, and integrators), found by email, and their passwords |
//! | `person_accounts` | the account of a person, which owns the person's sessions, second factor and invitation |
//! | `saved_views` | the saved views: filters of the list of invoices that a person has stored under names |
//! | `second_factor_code_row` | the table of recovery codes |
//! | `second_factor_row` | the table of second factors |
//! | `second_factors` | the second factors of people, with their wrong codes and recovery codes |
//! | `session_row` | the table of sessions |
//! | `sessions` | sessions of people who signed in |
//! | `stored_settings` | converts the settings of a taxpayer to and from the JSON object of their column, which leaves out default values |
//! | `taken_values` | finds the values of a taxpayer that another taxpayer already has, although they must be unique |
//! | `taxpayer_row` | the table of taxpayers |
//! | `taxpayers` | taxpayers and their contact persons |

pub mod access;
pub mod api_key_row;
pub mod contact_row;
pub mod contacts;
pub mod devices;
mod ended_invitations;
pub mod integrator_row;
mod invitation_row;
pub mod invitations;
pub mod key_leases;
pub mod key_list;
pub mod keys;
pub mod logos;
pub mod operator_row;
pub mod people;
pub mod person_accounts;
pub mod saved_views;
mod second_factor_code_row;
mod second_factor_row;
pub mod second_factors;
mod session_row;
pub mod sessions;
mod stored_settings;
pub mod taken_values;
pub mod taxpayer_row;
pub mod taxpayers;

use std::fmt;
use std::net::IpAddr;

use database::page::{self, Page};
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};

use crate::domain::access::api_key::{AccountWithKeys, KeyOwner, NewKey};
use crate::domain::access::caller::KeyKind;
use crate::domain::access::session::OperatorRole;
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::domain::kernel::ids::IntegratorId;
use crate::domain::party::email::email_key;
use crate::store::Store;
use crate::store::ids::IdKind;
use crate::store::operations::audit;

/// An integrator that is not stored yet.
#[derive(Debug)]
pub struct NewIntegrator {
    pub name: String,
    pub email: String,
    /// `None` if nobody signs in for the integrator.
    pub password_hash: Option<String>,
    pub key: NewKey,
}

/// Adds an integrator with its first key, for the command line and for the demo accounts.
pub async fn add_integrator(
    store: &Store,
    new: &NewIntegrator,
    now: Timestamp,
) -> Result<IntegratorId, StoreError> {
    let id = store.ids().next(IdKind::Integrator).await?;
    let row = integrator_row::Model {
        id,
        name: new.name.clone(),
        email: new.email.clone(),
        email_key: email_key(&new.email),
        password_hash: new.password_hash.clone(),
        created_at: now.as_microsecond(),
        disabled_at: None,
    };
    let tx = store.begin().await?;
    let same_email = OnConflict::column(integrator_row::Column::EmailKey)
        .do_nothing()
        .to_owned();
    let added = integrator_row::Entity::insert(row.into_active_model())
        .on_conflict(same_email)
        .exec_without_returning(&tx)
        .await?;
    require_row_added(added, "integrators.email_key")?;
    keys::rotate(
        &tx,
        KeyOwner {
            kind: KeyKind::Integrator,
            id,
        },
        &new.key,
        now,
    )
    .await?;
    let entry = AuditEntry::new(Actor::CommandLine, AuditAction::CreateIntegrator, &id, now);
    audit::append(&tx, &[entry.for_integrator(IntegratorId(id))]).await?;
    tx.commit().await?;
    Ok(IntegratorId(id))
}

/// Fails with `Duplicate` if an insert added no row, because another row has the same value in this unique column.
fn require_row_added(rows: u64, column: &str) -> Result<(), StoreError> {
    if rows == 0 {
        return Err(StoreError::Duplicate(column.to_owned()));
    }
    Ok(())
}

/// Adds a new key to an integrator. The terms of the new key say when the existing keys expire.
pub async fn rotate_integrator_key(
    store: &Store,
    id: IntegratorId,
    key: &NewKey,
    now: Timestamp,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    keys::rotate(
        &tx,
        KeyOwner {
            kind: KeyKind::Integrator,
            id: id.0,
        },
        key,
        now,
    )
    .await?;
    tx.commit().await?;
    key_leases::await_key_change_everywhere(store).await;
    Ok(())
}

/// A change of an account, with the actor and the reason for the audit trail.
#[derive(Debug, Clone)]
pub struct AccountChange {
    pub owner: KeyOwner,
    pub by: Actor,
    pub reason: Option<String>,
    /// The address from which the change was requested; `None` for the command line.
    pub address: Option<IpAddr>,
    pub now: Timestamp,
}

/// The numbers of ended keys of the account, of ended keys of the taxpayers that the account onboarded, and of ended
/// sessions. Sign-ins that waited for a code count as sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RevokedCounts {
    pub revoked: u64,
    pub revoked_of_taxpayers: u64,
    pub sessions: u64,
}

/// Writes the numbers as the audit entry shows them.
impl fmt::Display for RevokedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            revoked,
            revoked_of_taxpayers,
            sessions,
        } = self;
        write!(
            f,
            "keys {revoked}, of taxpayers {revoked_of_taxpayers}, sessions {sessions}"
        )
    }
}

/// The result of adding a new key to an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRotationOutcome {
    Done,
    /// There is no such account.
    Unknown,
    /// The account is disabled, so it got no key.
    Disabled,
}

impl AccountChange {
    /// Returns the audit entry of this change: with the first of the two actions for an integrator, with the second for
    /// an operator. `noted` becomes the state after the change.
    fn audit_entry(&self, actions: [AuditAction; 2], noted: Option<String>) -> AuditEntry {
        let [of_integrator, of_operator] = actions;
        let is_integrator = self.owner.kind == KeyKind::Integrator;
        let action = if is_integrator {
            of_integrator
        } else {
            of_operator
        };
        let entry = AuditEntry::new(self.by, action, &self.owner.id, self.now);
        let entry = entry.with_states(None, noted);
        let entry = AuditEntry {
            reason: self.reason.clone(),
            ..entry.with_address(self.address)
        };
        if is_integrator {
            entry.for_integrator(IntegratorId(self.owner.id))
        } else {
            entry
        }
    }
}

/// Adds a new key to an integrator or an operator. The terms of the new key say when the existing keys expire.
pub async fn rotate_key(
    store: &Store,
    change: AccountChange,
    new: &NewKey,
) -> Result<KeyRotationOutcome, StoreError> {
    let tx = store.begin().await?;
    match lock_account(&tx, change.owner).await? {
        None => return Ok(KeyRotationOutcome::Unknown),
        Some(AccountState::Disabled) => return Ok(KeyRotationOutcome::Disabled),
        Some(AccountState::Enabled) => {}
    }
    keys::rotate(&tx, change.owner, new, change.now).await?;
    let actions = [
        AuditAction::RotateIntegratorKey,
        AuditAction::RotateOperatorKey,
    ];
    audit::append(&tx, &[change.audit_entry(actions, new.terms.audit_note())]).await?;
    tx.commit().await?;
    key_leases::await_key_change_everywhere(store).await;
    Ok(KeyRotationOutcome::Done)
}

/// The state of an existing account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AccountState {
    Enabled,
    Disabled,
}

/// Locks an account for the rest of the transaction. Returns `None` if the account does not exist.
async fn lock_account(
    tx: &Transaction,
    owner: KeyOwner,
) -> Result<Option<AccountState>, StoreError> {
    let disabled_at = match owner.kind {
        KeyKind::Integrator => {
            let found = integrator_row::Entity::find_by_id(owner.id)
                .lock_exclusive()
                .one(tx)
                .await?;
            found.map(|row| row.disabled_at)
        }
        KeyKind::Operator => {
            let found = operator_row::Entity::find_by_id(owner.id)
                .lock_exclusive()
                .one(tx)
                .await?;
            found.map(|row| row.disabled_at)
        }
        KeyKind::Taxpayer => None,
    };
    Ok(disabled_at.map(|at| {
        if at.is_some() {
            AccountState::Disabled
        } else {
            AccountState::Enabled
        }
    }))
}

/// Loads one page of the integrators or the operators with their keys, ordered by id, and the number of all of them.
pub async fn load_account_page(
    store: &Store,
    kind: KeyKind,
    page: Page,
) -> Result<(Vec<AccountWithKeys>, u64), StoreError> {
    let (mut found, total): (Vec<AccountWithKeys>, u64) = match kind {
        KeyKind::Operator => {
            let all = operator_row::Entity::find().order_by_asc(operator_row::Column::Id);
            page::load(store, all, page).await?
        }
        KeyKind::Integrator | KeyKind::Taxpayer => {
            let all = integrator_row::Entity::find().order_by_asc(integrator_row::Column::Id);
            page::load(store, all, page).await?
        }
    };
    let ids: Vec<_> = found.iter().map(|holder| holder.id).collect();
    let mut keys = keys::owned_by_accounts(store, kind, &ids).await?;
    for holder in &mut found {
        holder.keys = keys.remove(&holder.id).unwrap_or_default();
    }
    Ok((found, total))
}

/// Finds an integrator by email, ignoring case.
pub async fn find_integrator_by_email(
    store: &Store,
    email: &str,
) -> Result<Option<IntegratorId>, StoreError> {
    let found = integrator_row::Entity::find()
        .filter(integrator_row::Column::EmailKey.eq(email_key(email)))
        .one(store.reader())
        .await?;
    Ok(found.map(|row| IntegratorId(row.id)))
}

/// True if there is any integrator. In a new database there is none.
pub async fn has_integrator(store: &Store) -> Result<bool, StoreError> {
    Ok(integrator_row::Entity::find()
        .one(store.reader())
        .await?
        .is_some())
}

/// An operator that is not stored yet.
#[derive(Debug)]
pub struct NewOperator {
    pub email: String,
    pub password_hash: String,
    pub role: OperatorRole,
    pub key: NewKey,
}

/// Adds an operator with its first key. Returns its id.
pub async fn add_operator(
    store: &Store,
    new: &NewOperator,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let id = store.ids().next(IdKind::Operator).await?;
    let row = operator_row::Model {
        id,
        email: new.email.clone(),
        email_key: email_key(&new.email),
        password_hash: new.password_hash.clone(),
        role: new.role.to_string(),
        created_at: now.as_microsecond(),
        disabled_at: None,
    };
    let tx = store.begin().await?;
    let same_email = OnConflict::column(operator_row::Column::EmailKey)
        .do_nothing()
        .to_owned();
    let added = operator_row::Entity::insert(row.into_active_model())
        .on_conflict(same_email)
        .exec_without_returning(&tx)
        .await?;
    require_row_added(added, "operators.email_key")?;
    keys::rotate(
        &tx,
        KeyOwner {
            kind: KeyKind::Operator,
            id,
        },
        &new.key,
        now,
    )
    .await?;
    audit::append(
        &tx,
        &[AuditEntry::new(
            Actor::CommandLine,
            AuditAction::CreateOperator,
            &id,
            now,
        )],
    )
    .await?;
    tx.commit().await?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::store::testing::stores;

    #[tokio::test]
    async fn a_taken_email_is_found_out_without_a_statement_that_fails() {
        let key = |name: &str| NewKey::from(SecretString::from(name.to_owned()));
        for test in stores().await {
            let store = &test.store;
            for (email, is_free) in [
                ("a@house.example", true),
                ("a@house.example", false),
                ("A@House.example", false),
                ("b@house.example", true),
            ] {
                let operator = NewOperator {
                    email: email.into(),
                    password_hash: "hash".into(),
                    role: OperatorRole::Viewer,
                    key: key(&format!("opk_{email}")),
                };
                let integrator = NewIntegrator {
                    name: "One".into(),
                    email: email.into(),
                    password_hash: None,
                    key: key(&format!("sik_{email}")),
                };
                let now = Timestamp::UNIX_EPOCH;
                let added = [
                    add_operator(store, &operator, now).await.map(drop),
                    add_integrator(store, &integrator, now).await.map(drop),
                ];
                for (added, column) in added.into_iter().zip(["operators", "integrators"]) {
                    let refused = added.err().map(|error| error.to_string());
                    // The text of an error of the database would be longer.
                    let taken = format!("the row exists already: {column}.email_key");
                    assert_eq!(refused, (!is_free).then_some(taken), "{email}");
                }
            }
            test.store.close().await;
        }
    }
}
