//! Sessions of people who signed in. A session is found by the SHA-256 of its token, and ended by deleting its row.

use std::time::Duration;

use jiff::Timestamp;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, ExprTrait, IntoActiveModel, QueryFilter};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::domain::access::session::{Session, SessionLimits, SessionOwner};
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::store::accounts::people;
use crate::store::accounts::session_row::{Column, Entity, Model};
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::operations::audit;

/// Opens a session for a person who has just signed in, and deletes the sessions that have expired.
pub async fn open(
    store: &Store,
    token: &SecretString,
    owner: SessionOwner,
    limits: SessionLimits,
    now: Timestamp,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    delete_expired(&tx, now).await?;
    let row = Model::new(hash(token), owner, &limits.begin(now), false);
    Entity::insert(row.into_active_model()).exec_without_returning(&tx).await?;
    audit::append(&tx, &[entry(owner, AuditAction::SignIn, now)]).await?;
    tx.commit().await
}

/// The time that a person has for the code, after the password.
const CODE_LIMITS: SessionLimits =
    SessionLimits { idle: Duration::from_mins(5), longest: Duration::from_mins(5) };

/// Opens the session of a person whose password was right, and who has yet to enter a code.
pub async fn await_code(
    store: &Store,
    token: &SecretString,
    owner: SessionOwner,
    now: Timestamp,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    delete_expired(&tx, now).await?;
    let row = Model::new(hash(token), owner, &CODE_LIMITS.begin(now), true);
    Entity::insert(row.into_active_model()).exec_without_returning(&tx).await?;
    tx.commit().await
}

/// Ends the session of a person who waited for this code; the session that follows has another token.
pub async fn end_wait(store: &Store, token: &SecretString) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    Entity::delete_by_id(hash(token)).exec(&tx).await?;
    tx.commit().await
}

/// Finds the session of a token, if it is in force, and records its use. `None` if nobody is signed in with the token.
pub async fn find(
    store: &Store,
    token: &SecretString,
    limits: SessionLimits,
    now: Timestamp,
) -> Result<Option<Session>, StoreError> {
    let hash = hash(token);
    let Some(row) = Entity::find_by_id(hash.as_str()).one(store.reader()).await? else { return Ok(None) };
    let times = row.times()?;
    if !limits.allow(&times, now) {
        return Ok(None);
    }
    let awaits_code = row.awaits_code;
    let Some(person) = people::with_owner(store, row.owner()?).await? else { return Ok(None) };
    if times.is_use_due(now) {
        let tx = store.begin().await?;
        let seen = Entity::update_many().col_expr(Column::SeenAt, Expr::value(now.as_microsecond()));
        seen.filter(Column::Hash.eq(hash)).exec(&tx).await?;
        tx.commit().await?;
    }
    Ok(Some(Session { person, times, awaits_code }))
}

/// Ends the session of a token.
pub async fn close(
    store: &Store,
    token: &SecretString,
    owner: SessionOwner,
    now: Timestamp,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    Entity::delete_by_id(hash(token)).exec(&tx).await?;
    audit::append(&tx, &[entry(owner, AuditAction::SignOut, now)]).await?;
    tx.commit().await
}

/// Ends all sessions of a person.
pub(super) async fn close_all(tx: &Transaction, owner: SessionOwner) -> Result<(), StoreError> {
    let of_owner = Column::Kind.eq(owner.kind().as_str()).and(Column::AccountId.eq(owner.id()));
    Entity::delete_many().filter(of_owner).exec(tx).await?;
    Ok(())
}

/// Records that a sign-in to an existing account was refused.
pub async fn note_refused(store: &Store, owner: SessionOwner, now: Timestamp) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    audit::append(&tx, &[entry(owner, AuditAction::RefuseSignIn, now)]).await?;
    tx.commit().await
}

/// Returns the entry of what a person did to its own sign-in.
pub(super) fn entry(owner: SessionOwner, action: AuditAction, now: Timestamp) -> AuditEntry {
    entry_by(owner.actor(), owner, action, now)
}

/// Returns the entry of what somebody did to the sign-in of a person.
pub(super) fn entry_by(by: Actor, owner: SessionOwner, action: AuditAction, now: Timestamp) -> AuditEntry {
    let entry = AuditEntry::new(by, action, &owner.id(), now);
    match owner {
        SessionOwner::Contact { taxpayer, .. } => entry.of_taxpayer(taxpayer),
        SessionOwner::Integrator(id) => entry.of_integrator(id),
        SessionOwner::Operator(_) => entry,
    }
}

async fn delete_expired(tx: &Transaction, now: Timestamp) -> Result<(), StoreError> {
    Entity::delete_many().filter(Column::ExpiresAt.lte(now.as_microsecond())).exec(tx).await?;
    Ok(())
}

fn hash(token: &SecretString) -> String {
    hex::encode(Sha256::digest(token.expose_secret()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::api_key::NewKey;
    use crate::domain::access::session::OperatorRole;
    use crate::store::accounts::{NewOperator, add_operator};
    use crate::store::testing::{TestStore, stores};

    const LIMITS: SessionLimits =
        SessionLimits { idle: Duration::from_mins(30), longest: Duration::from_hours(12) };

    fn token() -> SecretString {
        "a token".to_owned().into()
    }

    /// Adds an operator and opens a session for it.
    async fn signed_in(test: &TestStore, now: Timestamp) -> SessionOwner {
        let operator = NewOperator {
            email: "Op@Example.com".into(),
            password_hash: "hash".into(),
            role: OperatorRole::Viewer,
            key: NewKey::from(SecretString::from("opk_1")),
        };
        add_operator(&test.store, &operator, now).await.unwrap();
        let found = people::with_email(&test.store, " op@example.COM ").await.unwrap();
        let owner = found[0].person.owner;
        open(&test.store, &token(), owner, LIMITS, now).await.unwrap();
        owner
    }

    #[tokio::test]
    async fn a_session_lasts_until_it_is_closed() {
        for test in stores().await {
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            let owner = signed_in(&test, now).await;
            let found = find(&test.store, &token(), LIMITS, now).await.unwrap().unwrap();
            assert_eq!((found.person.owner, found.person.email.as_str()), (owner, "Op@Example.com"));
            let other = "another token".to_owned().into();
            assert_eq!(find(&test.store, &other, LIMITS, now).await.unwrap(), None);
            close(&test.store, &token(), owner, now).await.unwrap();
            assert_eq!(find(&test.store, &token(), LIMITS, now).await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn a_session_that_is_used_lives_on_and_one_that_is_not_ends() {
        for test in stores().await {
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            let after = |minutes| now + Duration::from_mins(minutes);
            signed_in(&test, now).await;
            for minutes in [29, 58, 80] {
                assert!(find(&test.store, &token(), LIMITS, after(minutes)).await.unwrap().is_some());
            }
            assert_eq!(find(&test.store, &token(), LIMITS, after(80 + 30)).await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn all_sessions_of_a_person_end_together() {
        for test in stores().await {
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            let owner = signed_in(&test, now).await;
            let tx = test.store.begin().await.unwrap();
            close_all(&tx, owner).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(find(&test.store, &token(), LIMITS, now).await.unwrap(), None);
        }
    }
}
