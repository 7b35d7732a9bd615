//! Sessions of people who signed in. A session is found by the SHA-256 of its token, and ended by deleting its row.

use std::net::IpAddr;
use std::time::Duration;

use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::sea_query::{Condition, Expr};
use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::domain::access::session::{OpenSession, Session, SessionLimits, SessionOwner};
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::store::Store;
pub use crate::store::accounts::session_row::NewSession;
use crate::store::accounts::session_row::{Column, Entity, Model};
use crate::store::accounts::{person_accounts, second_factors};
use crate::store::operations::audit;

/// The maximum number of sessions of a person. Sessions that wait for a code are counted separately, with the same
/// maximum. A session beyond the maximum ends the one whose last use is longest ago. So a program that signs in for
/// each of its calls does not fill the table.
const SESSIONS_MAX: u64 = 50;

/// Opens a session for a person who has just entered the password and, if the account has a second factor, a code. Also
/// deletes expired sessions. `None` if the password no longer opens the account, or if a code is needed by now.
pub async fn open(
    store: &Store,
    new: NewSession<'_>,
    limits: SessionLimits,
    now: Timestamp,
) -> Result<Option<()>, StoreError> {
    let tx = store.begin().await?;
    if insert(&tx, &new, limits, false, now).await?.is_none() {
        return Ok(None);
    }
    let address = new.place.address;
    let entry = AuditEntry {
        address,
        ..audit_entry_by_owner(new.owner, AuditAction::SignIn, now)
    };
    audit::append(&tx, &[entry]).await?;
    tx.commit().await.map(Some)
}

/// Inserts a session; `None` if the password no longer opens the account, or if a code is needed by now. Locks the
/// account, so that a concurrent change of its password, second factor or rights either comes first and is seen here,
/// or comes later and ends this session.
async fn insert(
    tx: &Transaction,
    new: &NewSession<'_>,
    limits: SessionLimits,
    awaits_code: bool,
    now: Timestamp,
) -> Result<Option<()>, StoreError> {
    if !person_accounts::lock_person(tx, new.owner)
        .await?
        .is_some_and(|account| account.is_enabled_with_password(new.password_hash))
    {
        return Ok(None);
    }
    let needs_no_code = awaits_code || new.has_code;
    if !needs_no_code && second_factors::is_on(tx, new.owner).await? {
        return Ok(None);
    }
    Entity::delete_many()
        .filter(Column::ExpiresAt.lte(now.as_microsecond()))
        .exec(tx)
        .await?;
    if let Some(replaced) = new.replaces {
        Entity::delete_by_id(token_hash(replaced)).exec(tx).await?;
    }
    end_least_used(tx, new, awaits_code).await?;
    let row = Model::new(
        token_hash(new.token),
        new,
        &limits.new_session_times(now),
        awaits_code,
    );
    Entity::insert(row.into_active_model())
        .exec_without_returning(tx)
        .await?;
    Ok(Some(()))
}

/// Ends the sessions of a person whose last use is longest ago, to leave room for a new one within `SESSIONS_MAX`.
/// Sessions that wait for a code are counted separately: otherwise somebody who knows only the password could end the
/// person's sessions by signing in many times.
async fn end_least_used(
    tx: &Transaction,
    new: &NewSession<'_>,
    awaits_code: bool,
) -> Result<(), StoreError> {
    let same_kind = is_owned_by(new.owner).add(Column::AwaitsCode.eq(awaits_code));
    let kept = Entity::find()
        .select_only()
        .column(Column::Hash)
        .filter(same_kind.clone())
        .order_by_desc(Column::SeenAt)
        .order_by_desc(Column::Hash)
        .limit(SESSIONS_MAX - 1)
        .into_query();
    Entity::delete_many()
        .filter(same_kind)
        .filter(Column::Hash.not_in_subquery(kept))
        .exec(tx)
        .await?;
    Ok(())
}

/// The length of the hash prefix that identifies a session within a person's list of sessions.
const ID_CHARS: usize = 16;

/// The time that a person has to enter the code after the password.
const CODE_LIMITS: SessionLimits = SessionLimits {
    idle: Duration::from_mins(5),
    longest: Duration::from_mins(5),
};

/// Opens the session of a person who has entered the right password and has yet to enter a code. `None` if the password
/// no longer opens the account.
pub async fn open_awaiting_code(
    store: &Store,
    new: NewSession<'_>,
    now: Timestamp,
) -> Result<Option<()>, StoreError> {
    let tx = store.begin().await?;
    if insert(&tx, &new, CODE_LIMITS, true, now).await?.is_none() {
        return Ok(None);
    }
    tx.commit().await.map(Some)
}

/// Finds the session with this token, if it has not ended, and records its use. `None` if there is no such session. The
/// session may still wait for a code.
pub async fn find(
    store: &Store,
    token: &SecretString,
    limits: SessionLimits,
    now: Timestamp,
) -> Result<Option<Session>, StoreError> {
    let found = find_without_extending(store, token, limits, now).await?;
    if found
        .as_ref()
        .is_some_and(|session| session.times.must_update_seen_at(now))
    {
        let tx = store.begin().await?;
        let seen =
            Entity::update_many().col_expr(Column::SeenAt, Expr::value(now.as_microsecond()));
        seen.filter(Column::Hash.eq(token_hash(token)))
            .exec(&tx)
            .await?;
        tx.commit().await?;
    }
    Ok(found)
}

/// Finds the session with this token, if it has not ended, without recording a use. Use it for a page that stays
/// open and refreshes itself, because such a page must not keep the session alive.
pub async fn find_without_extending(
    store: &Store,
    token: &SecretString,
    limits: SessionLimits,
    now: Timestamp,
) -> Result<Option<Session>, StoreError> {
    let Some(row) = Entity::find_by_id(token_hash(token))
        .one(store.reader())
        .await?
    else {
        return Ok(None);
    };
    let times = row.times()?;
    if !limits.is_session_valid(&times, now) {
        return Ok(None);
    }
    let awaits_code = row.awaits_code;
    let confirmed_at = row.confirmed_at()?;
    let person = person_accounts::find_person(store, row.owner()?).await?;
    Ok(person.map(|person| Session {
        person,
        times,
        awaits_code,
        confirmed_at,
    }))
}

/// Records that the person of a session has entered password and code again.
pub async fn record_identity_confirmation(
    store: &Store,
    token: &SecretString,
    now: Timestamp,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    let confirmed =
        Entity::update_many().col_expr(Column::ConfirmedAt, Expr::value(now.as_microsecond()));
    confirmed
        .filter(Column::Hash.eq(token_hash(token)))
        .filter(Column::AwaitsCode.eq(false))
        .exec(&tx)
        .await?;
    tx.commit().await
}

/// Ends the session with this token.
pub async fn close(
    store: &Store,
    token: &SecretString,
    owner: SessionOwner,
    now: Timestamp,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    Entity::delete_by_id(token_hash(token)).exec(&tx).await?;
    audit::append(
        &tx,
        &[audit_entry_by_owner(owner, AuditAction::SignOut, now)],
    )
    .await?;
    tx.commit().await
}

/// Ends all sessions of a person, also those that wait for a code. Returns their number.
pub(super) async fn close_all(tx: &Transaction, owner: SessionOwner) -> Result<u64, StoreError> {
    Ok(Entity::delete_many()
        .filter(is_owned_by(owner))
        .exec(tx)
        .await?
        .rows_affected)
}

/// Loads the sessions of a person that have not ended, the last used one first. `own` is the token of the session that
/// makes the request.
pub async fn owned_by(
    store: &Store,
    owner: SessionOwner,
    own: &SecretString,
    limits: SessionLimits,
    now: Timestamp,
) -> Result<Vec<OpenSession>, StoreError> {
    let found = Entity::find()
        .filter(is_owned_by(owner))
        .filter(Column::AwaitsCode.eq(false));
    let rows = found
        .order_by_desc(Column::SeenAt)
        .all(store.reader())
        .await?;
    let own = token_hash(own);
    let mut sessions = Vec::with_capacity(rows.len());
    for row in rows {
        let times = row.times()?;
        if limits.is_session_valid(&times, now) {
            sessions.push(OpenSession {
                id: row.hash.chars().take(ID_CHARS).collect(),
                times,
                place: row.sign_in_place()?,
                is_own: row.hash == own,
            });
        }
    }
    Ok(sessions)
}

/// Ends the session of a person with this `id` (`OpenSession::id`) or, if `id` is `None`, all sessions of the person.
/// Never ends the session with the token `own`. Returns the number of ended sessions.
pub async fn close_others(
    store: &Store,
    owner: SessionOwner,
    own: &SecretString,
    id: Option<&str>,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let tx = store.begin().await?;
    let others = Entity::delete_many()
        .filter(is_owned_by(owner))
        .filter(Column::Hash.ne(token_hash(own)));
    let others = match id {
        Some(id) => others.filter(Column::Hash.starts_with(id)),
        None => others,
    };
    let ended = others.exec(&tx).await?.rows_affected;
    let entry = audit_entry_by_owner(owner, AuditAction::EndSessions, now);
    audit::append(
        &tx,
        &[entry.with_states(None, Some(format!("sessions {ended}")))],
    )
    .await?;
    tx.commit().await?;
    Ok(ended)
}

/// Records that a sign-in to an existing account was refused, and from where it was tried.
pub async fn record_refused_sign_in(
    store: &Store,
    owner: SessionOwner,
    address: Option<IpAddr>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    let entry = AuditEntry {
        address,
        ..audit_entry_by_owner(owner, AuditAction::RefuseSignIn, now)
    };
    audit::append(&tx, &[entry]).await?;
    tx.commit().await
}

/// Returns the audit entry for an action of a person on its own sign-in or account.
pub(super) fn audit_entry_by_owner(
    owner: SessionOwner,
    action: AuditAction,
    now: Timestamp,
) -> AuditEntry {
    audit_entry(owner.actor(), owner, action, now)
}

/// Returns the audit entry for an action of somebody on the sign-in or account of a person.
pub(super) fn audit_entry(
    by: Actor,
    owner: SessionOwner,
    action: AuditAction,
    now: Timestamp,
) -> AuditEntry {
    let entry = AuditEntry::new(by, action, &owner.id(), now);
    match owner {
        SessionOwner::Contact { taxpayer, .. } => entry.for_taxpayer(taxpayer),
        SessionOwner::Integrator(id) => entry.for_integrator(id),
        SessionOwner::Operator(_) => entry,
    }
}

fn is_owned_by(owner: SessionOwner) -> Condition {
    Condition::all()
        .add(Column::Kind.eq(owner.kind().as_str()))
        .add(Column::AccountId.eq(owner.id()))
}

fn token_hash(token: &SecretString) -> String {
    hex::encode(Sha256::digest(token.expose_secret()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::api_key::NewKey;
    use crate::domain::access::second_factor::{RecoveryCode, TotpSecret};
    use crate::domain::access::session::{OperatorRole, SignInPlace};
    use crate::store::accounts::second_factors::CodeConfirmation;
    use crate::store::accounts::{NewOperator, add_operator, people};
    use crate::store::testing::{TestStore, stores};

    const LIMITS: SessionLimits = SessionLimits {
        idle: Duration::from_mins(30),
        longest: Duration::from_hours(12),
    };

    fn token() -> SecretString {
        "a token".to_owned().into()
    }

    async fn open_one(store: &Store, token: &SecretString, owner: SessionOwner, now: Timestamp) {
        let place = SignInPlace::default();
        let new = NewSession {
            token,
            owner,
            password_hash: "hash",
            has_code: false,
            place: &place,
            replaces: None,
        };
        open(store, new, LIMITS, now).await.unwrap().unwrap();
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
        let found = people::find_accounts_by_email(&test.store, " op@example.COM ")
            .await
            .unwrap();
        let owner = found[0].person.owner;
        open_one(&test.store, &token(), owner, now).await;
        owner
    }

    #[tokio::test]
    async fn a_session_lasts_until_it_is_closed() {
        for test in stores().await {
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            let owner = signed_in(&test, now).await;
            let found = find(&test.store, &token(), LIMITS, now)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(
                (found.person.owner, found.person.email.as_str()),
                (owner, "Op@Example.com")
            );
            let other = "another token".to_owned().into();
            assert_eq!(find(&test.store, &other, LIMITS, now).await.unwrap(), None);
            close(&test.store, &token(), owner, now).await.unwrap();
            assert_eq!(
                find(&test.store, &token(), LIMITS, now).await.unwrap(),
                None
            );
        }
    }

    #[tokio::test]
    async fn a_session_that_is_used_lives_on_and_one_that_is_not_ends() {
        for test in stores().await {
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            let after = |minutes| now + Duration::from_mins(minutes);
            signed_in(&test, now).await;
            for minutes in [29, 58, 80] {
                assert!(
                    find(&test.store, &token(), LIMITS, after(minutes))
                        .await
                        .unwrap()
                        .is_some()
                );
            }
            assert_eq!(
                find(&test.store, &token(), LIMITS, after(80 + 30))
                    .await
                    .unwrap(),
                None
            );
        }
    }

    #[tokio::test]
    async fn a_person_sees_its_sessions_and_ends_the_others() {
        for test in stores().await {
            let store = &test.store;
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            let owner = signed_in(&test, now).await;
            let tokens = ["second", "third", "fourth"].map(SecretString::from);
            let address = Some("192.0.2.7".parse().unwrap());
            let place = SignInPlace {
                address,
                browser: Some("Firefox".into()),
            };
            for token in &tokens[..2] {
                let new = NewSession {
                    token,
                    owner,
                    password_hash: "hash",
                    has_code: false,
                    place: &place,
                    replaces: None,
                };
                open(store, new, LIMITS, now).await.unwrap().unwrap();
            }
            // A new sign-in in the browser of the second session ends that session.
            let replaces = Some(&tokens[0]);
            let new = NewSession {
                token: &tokens[2],
                owner,
                password_hash: "hash",
                has_code: false,
                place: &place,
                replaces,
            };
            open(store, new, LIMITS, now).await.unwrap().unwrap();
            assert_eq!(find(store, &tokens[0], LIMITS, now).await.unwrap(), None);
            open_awaiting_code(
                store,
                NewSession {
                    token: &tokens[0],
                    ..new
                },
                now,
            )
            .await
            .unwrap()
            .unwrap();
            let listed = owned_by(store, owner, &tokens[1], LIMITS, now)
                .await
                .unwrap();
            assert_eq!(
                listed.len(),
                3,
                "those that wait for a code are none: {listed:?}"
            );
            assert_eq!(listed.iter().filter(|one| one.place == place).count(), 2);
            assert_eq!(listed.iter().filter(|one| one.is_own).count(), 1);
            let other = listed.iter().find(|one| one.place != place).unwrap();
            let end = async |id| {
                close_others(store, owner, &tokens[1], id, now)
                    .await
                    .unwrap()
            };
            assert_eq!(end(Some(&other.id)).await, 1);
            assert_eq!(find(store, &token(), LIMITS, now).await.unwrap(), None);
            let own = listed.iter().find(|one| one.is_own).unwrap();
            assert_eq!(
                end(Some(&own.id)).await,
                0,
                "a session does not end itself here"
            );
            assert_eq!(end(None).await, 2, "also the one that waits for a code");
            let left = owned_by(store, owner, &tokens[1], LIMITS, now)
                .await
                .unwrap();
            assert!(matches!(left.as_slice(), [own] if own.is_own), "{left:?}");
        }
    }

    #[tokio::test]
    async fn only_the_last_used_sessions_of_a_person_stay_open() {
        for test in stores().await {
            let store = &test.store;
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            let owner = signed_in(&test, now).await;
            let used = now + Duration::from_mins(5);
            let is_open = async |token: &SecretString| {
                let found = find(store, token, LIMITS, used).await;
                found.unwrap().is_some()
            };
            assert!(is_open(&token()).await);
            let place = SignInPlace::default();
            for awaits_code in [true, false] {
                let tokens = (0..SESSIONS_MAX + 5)
                    .map(|number| SecretString::from(format!("{awaits_code} {number}")));
                let tokens: Vec<_> = tokens.collect();
                for (second, token) in (0..).zip(&tokens) {
                    let at = now + Duration::from_secs(second);
                    if !awaits_code {
                        open_one(store, token, owner, at).await;
                        continue;
                    }
                    let new = NewSession {
                        token,
                        owner,
                        password_hash: "hash",
                        has_code: false,
                        place: &place,
                        replaces: None,
                    };
                    let waiting = open_awaiting_code(store, new, at).await.unwrap();
                    assert!(waiting.is_some());
                }
                let rows = Entity::find().filter(Column::AwaitsCode.eq(awaits_code));
                let rows = rows.all(store.reader()).await.unwrap();
                assert_eq!(rows.len(), 50, "waits for a code: {awaits_code}");
                let kept = |token: &&SecretString| {
                    let hash = token_hash(token);
                    rows.iter().any(|row| row.hash == hash)
                };
                // One of those with a code is the first session, which is still in use.
                let first_kept = if awaits_code { 5 } else { 6 };
                assert!(!tokens[..first_kept].iter().any(|token| kept(&token)));
                assert!(tokens[first_kept..].iter().all(|token| kept(&token)));
                assert!(is_open(&token()).await, "waits for a code: {awaits_code}");
            }
        }
    }

    #[tokio::test]
    async fn a_confirmation_lasts_for_some_minutes() {
        for test in stores().await {
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            signed_in(&test, now).await;
            let is_confirmed = async |minutes| {
                let now = now + Duration::from_mins(minutes);
                find(&test.store, &token(), LIMITS, now)
                    .await
                    .unwrap()
                    .unwrap()
                    .is_recently_confirmed(now)
            };
            assert!(is_confirmed(4).await && !is_confirmed(5).await);
            record_identity_confirmation(&test.store, &token(), now + Duration::from_mins(10))
                .await
                .unwrap();
            assert!(is_confirmed(14).await && !is_confirmed(15).await);
        }
    }

    #[tokio::test]
    async fn no_session_begins_with_a_password_that_was_changed_since_it_was_looked_at() {
        for test in stores().await {
            let store = &test.store;
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            let owner = signed_in(&test, now).await;
            let token = token();
            let place = SignInPlace::default();
            let new = NewSession {
                token: &token,
                owner,
                password_hash: "hash",
                has_code: false,
                place: &place,
                replaces: None,
            };
            let change = people::PasswordChange {
                owner,
                hash: "another hash",
                replaces: None,
                by: owner.actor(),
            };
            people::set_password(store, change, now)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(open(store, new, LIMITS, now).await.unwrap(), None);
            assert_eq!(open_awaiting_code(store, new, now).await.unwrap(), None);
            assert_eq!(find(store, &token, LIMITS, now).await.unwrap(), None);
            let new = NewSession {
                password_hash: "another hash",
                ..new
            };
            open(store, new, LIMITS, now).await.unwrap().unwrap();
            assert!(find(store, &token, LIMITS, now).await.unwrap().is_some());
        }
    }

    #[tokio::test]
    async fn no_session_begins_without_the_code_of_a_second_factor_that_was_set_up_since() {
        for test in stores().await {
            let store = &test.store;
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            let owner = signed_in(&test, now).await;
            let token = token();
            let place = SignInPlace::default();
            let new = |has_code| NewSession {
                token: &token,
                owner,
                password_hash: "hash",
                has_code,
                place: &place,
                replaces: Some(&token),
            };
            let begins = async |has_code| {
                open(store, new(has_code), LIMITS, now)
                    .await
                    .unwrap()
                    .is_some()
            };
            let secret = TotpSecret::new([7; 20]);
            second_factors::begin_setup(store, owner, &secret)
                .await
                .unwrap()
                .unwrap();
            assert!(begins(false).await, "the second factor is not in force yet");
            let codes = RecoveryCode::draw_codes(|| [1; 10]);
            let confirmation = CodeConfirmation {
                owner,
                secret: &secret,
                step: 1,
                now,
            };
            second_factors::confirm_setup(store, confirmation, &codes[..1])
                .await
                .unwrap()
                .unwrap();
            for has_code in [false, true] {
                assert_eq!(begins(has_code).await, has_code);
            }
            let waiting = open_awaiting_code(store, new(false), now).await.unwrap();
            assert!(waiting.is_some());
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
            assert_eq!(
                find(&test.store, &token(), LIMITS, now).await.unwrap(),
                None
            );
        }
    }
}
