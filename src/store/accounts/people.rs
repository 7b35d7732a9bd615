//! The people who sign in (operators, contact persons of taxpayers, and integrators), found by email, and their
//! passwords.

use database::page::{self, Page};
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::domain::access::session::{Person, SessionOwner};
use crate::domain::kernel::audit::{Actor, AuditAction};
use crate::domain::party::email::stored_email_keys;
use crate::store::Store;
use crate::store::accounts::person_accounts::{
    person_from_contact, person_from_integrator, person_from_operator,
};
use crate::store::accounts::{
    contact_row, ended_invitations, integrator_row, operator_row, person_accounts, second_factors,
    sessions,
};
use crate::store::operations::audit;

/// An account that a person may sign in to, with the hash of its password.
#[derive(Debug)]
pub struct SignInAccount {
    pub person: Person,
    pub password_hash: String,
    /// True if the account is disabled, so that even the right password does not open it.
    pub is_disabled: bool,
}

/// Finds the accounts with this email that have a password, ignoring case: at most one of each kind.
pub async fn find_accounts_by_email(
    store: &Store,
    email: &str,
) -> Result<Vec<SignInAccount>, StoreError> {
    let keys = stored_email_keys(email);
    // Two people may have one address in two encodings. The older person is taken, so that the newer one cannot lock
    // the older out.
    let contact = contact_row::Entity::find()
        .filter(contact_row::Column::EmailKey.is_in(&keys))
        .order_by_asc(contact_row::Column::Id);
    let operator = operator_row::Entity::find()
        .filter(operator_row::Column::EmailKey.is_in(&keys))
        .order_by_asc(operator_row::Column::Id);
    let integrator = integrator_row::Entity::find()
        .filter(integrator_row::Column::EmailKey.is_in(&keys))
        .order_by_asc(integrator_row::Column::Id);
    let mut found = Vec::new();
    if let Some(row) = contact.one(store.reader()).await?
        && let Some(password_hash) = row.password_hash.clone()
    {
        let is_disabled = row.disabled_at.is_some();
        found.push(SignInAccount {
            password_hash,
            is_disabled,
            person: person_from_contact(row)?,
        });
    }
    if let Some(row) = operator.one(store.reader()).await? {
        found.push(SignInAccount {
            password_hash: row.password_hash.clone(),
            is_disabled: row.disabled_at.is_some(),
            person: person_from_operator(row)?,
        });
    }
    if let Some(row) = integrator.one(store.reader()).await?
        && let Some(password_hash) = row.password_hash.clone()
    {
        let is_disabled = row.disabled_at.is_some();
        found.push(SignInAccount {
            password_hash,
            is_disabled,
            person: person_from_integrator(row),
        });
    }
    for account in &mut found {
        account.person.has_second_factor =
            second_factors::is_on(store.reader(), account.person.owner).await?;
    }
    Ok(found)
}

/// Returns the password hash of one of the accounts with this email; `None` if no such account has a password. A new
/// password of another account with this email is hashed with the same salt, so that a sign-in computes only one hash
/// for both accounts.
pub async fn find_password_hash_by_email(
    store: &Store,
    email: &str,
) -> Result<Option<String>, StoreError> {
    Ok(find_accounts_by_email(store, email)
        .await?
        .into_iter()
        .next()
        .map(|found| found.password_hash))
}

/// Returns the hash of a person's password; `None` if the person has none.
pub async fn password_hash(
    store: &Store,
    owner: SessionOwner,
) -> Result<Option<String>, StoreError> {
    let reader = store.reader();
    Ok(match owner {
        SessionOwner::Operator(id) => operator_row::Entity::find_by_id(id)
            .one(reader)
            .await?
            .map(|row| row.password_hash),
        SessionOwner::Contact { taxpayer, id } => {
            let found = contact_row::Entity::find_by_id((taxpayer.0, id.0))
                .one(reader)
                .await?;
            found.and_then(|row| row.password_hash)
        }
        SessionOwner::Integrator(id) => {
            let found = integrator_row::Entity::find_by_id(id.0).one(reader).await?;
            found.and_then(|row| row.password_hash)
        }
    })
}

/// Loads one page of the operators, ordered by id, and the number of all of them. Does not set `has_second_factor`;
/// `second_factors::load_states` loads it.
pub async fn load_operators_page(
    store: &Store,
    page: Page,
) -> Result<(Vec<Person>, u64), StoreError> {
    let all = operator_row::Entity::find().order_by_asc(operator_row::Column::Id);
    page::load(store, all, page).await
}

/// A new password of a person, and the actor who sets it.
#[derive(Debug, Clone, Copy)]
pub struct PasswordChange<'a> {
    pub owner: SessionOwner,
    pub hash: &'a str,
    /// The hash of the present password, which the actor has entered. `None` if the change needs no present password.
    pub replaces: Option<&'a str>,
    pub by: Actor,
}

/// Gives a person a new password and ends the sessions and the invitation of the person, and the invitations that the
/// person made for others: somebody who knew the old password may have made them. `None` if the account does not exist,
/// or if the entered password no longer opens it: whoever lost access while the new password was being hashed must not
/// regain it.
pub async fn set_password(
    store: &Store,
    change: PasswordChange<'_>,
    now: Timestamp,
) -> Result<Option<()>, StoreError> {
    let PasswordChange {
        owner,
        hash,
        replaces,
        by,
    } = change;
    let tx = store.begin().await?;
    let Some(account) = person_accounts::lock_person(&tx, owner).await? else {
        return Ok(None);
    };
    let may_change = replaces.is_none_or(|entered| account.is_enabled_with_password(entered));
    if !may_change || !write_password(&tx, owner, hash, now).await? {
        return Ok(None);
    }
    ended_invitations::delete_owned_and_made_by(&tx, owner, now).await?;
    sessions::close_all(&tx, owner).await?;
    audit::append(
        &tx,
        &[sessions::audit_entry(
            by,
            owner,
            AuditAction::ChangePassword,
            now,
        )],
    )
    .await?;
    tx.commit().await.map(Some)
}

/// Writes the hash of a person's password. Returns false if the account does not exist.
pub(super) async fn write_password(
    tx: &Transaction,
    owner: SessionOwner,
    hash: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let changed = match owner {
        SessionOwner::Operator(id) => {
            let change = operator_row::Entity::update_many()
                .col_expr(operator_row::Column::PasswordHash, Expr::value(hash));
            change
                .filter(operator_row::Column::Id.eq(id))
                .exec(tx)
                .await?
        }
        SessionOwner::Contact { taxpayer, id } => {
            let change = contact_row::Entity::update_many()
                .col_expr(contact_row::Column::PasswordHash, Expr::value(hash))
                .col_expr(
                    contact_row::Column::UpdatedAt,
                    Expr::value(now.as_microsecond()),
                );
            let change = change.filter(contact_row::Column::TaxpayerId.eq(taxpayer.0));
            change
                .filter(contact_row::Column::Id.eq(id.0))
                .exec(tx)
                .await?
        }
        SessionOwner::Integrator(id) => {
            let change = integrator_row::Entity::update_many()
                .col_expr(integrator_row::Column::PasswordHash, Expr::value(hash));
            change
                .filter(integrator_row::Column::Id.eq(id.0))
                .exec(tx)
                .await?
        }
    };
    Ok(changed.rows_affected > 0)
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::domain::access::api_key::NewKey;
    use crate::domain::access::session::OperatorRole;
    use crate::store::accounts::{NewOperator, add_operator};
    use crate::store::testing::stores;

    #[tokio::test]
    async fn an_address_that_was_stored_in_another_encoding_still_signs_in() {
        for test in stores().await {
            let store = &test.store;
            let now = Timestamp::UNIX_EPOCH;
            let new = NewOperator {
                email: "e\u{301}@example.com".into(),
                password_hash: "first".into(),
                role: OperatorRole::Viewer,
                key: NewKey::from(SecretString::from("opk_1")),
            };
            add_operator(store, &new, now).await.unwrap();
            for (stored, typed, is_found) in [
                ("\u{e9}@example.com", "\u{e9}@example.com", true),
                ("\u{e9}@example.com", "E\u{301}@Example.com", true),
                ("e\u{301}@example.com", "E\u{301}@Example.com", true),
                ("e\u{301}@example.com", "e@example.com", false),
            ] {
                let tx = store.begin().await.unwrap();
                operator_row::Entity::update_many()
                    .col_expr(operator_row::Column::EmailKey, Expr::value(stored))
                    .exec(&tx)
                    .await
                    .unwrap();
                tx.commit().await.unwrap();
                let found = find_accounts_by_email(store, typed).await.unwrap();
                assert_eq!(!found.is_empty(), is_found, "{stored:?} {typed:?}");
            }
            add_namesake(store, "\u{e9}@example.com", "e\u{301}@example.com").await;
            for typed in ["\u{e9}@example.com", "e\u{301}@example.com"] {
                let found = find_accounts_by_email(store, typed).await.unwrap();
                assert_eq!(found[0].password_hash, "first", "the older one: {typed:?}");
            }
        }
    }

    /// Stores the address of the only operator as `own_key`, and adds an operator whose address is `new_key`.
    async fn add_namesake(store: &Store, own_key: &str, new_key: &str) {
        let new = NewOperator {
            email: "second@example.com".into(),
            password_hash: "second".into(),
            role: OperatorRole::Viewer,
            key: NewKey::from(SecretString::from("opk_2")),
        };
        let added = add_operator(store, &new, Timestamp::UNIX_EPOCH).await;
        let added = added.unwrap();
        let tx = store.begin().await.unwrap();
        for (is_added, key) in [(false, own_key), (true, new_key)] {
            let id = operator_row::Column::Id;
            let chosen = if is_added { id.eq(added) } else { id.ne(added) };
            operator_row::Entity::update_many()
                .col_expr(operator_row::Column::EmailKey, Expr::value(key))
                .filter(chosen)
                .exec(&tx)
                .await
                .unwrap();
        }
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn a_password_is_replaced_only_while_the_entered_one_is_the_present_one() {
        for test in stores().await {
            let store = &test.store;
            let now = Timestamp::UNIX_EPOCH;
            let new = NewOperator {
                email: "op@example.com".into(),
                password_hash: "first".into(),
                role: OperatorRole::Viewer,
                key: NewKey::from(SecretString::from("opk_1")),
            };
            let owner = SessionOwner::Operator(add_operator(store, &new, now).await.unwrap());
            for (replaces, hash, present) in [
                (Some("other"), "second", "first"),
                (Some("first"), "second", "second"),
                (Some("first"), "third", "second"),
                (None, "third", "third"),
            ] {
                let change = PasswordChange {
                    owner,
                    hash,
                    replaces,
                    by: owner.actor(),
                };
                let changed = set_password(store, change, now).await.unwrap();
                assert_eq!(changed.is_some(), hash == present, "{replaces:?} {hash}");
                let stored = password_hash(store, owner).await.unwrap();
                assert_eq!(stored.as_deref(), Some(present), "{replaces:?} {hash}");
            }
        }
    }
}
