//! The second factors of people: the sealed secret, the time step of the last accepted code, the number of wrong codes
//! in a day, and the hashes of the recovery codes. A second factor is in force only after the person has confirmed it
//! with a first code.

use std::collections::HashMap;
use std::time::Duration;

use database::column::RowRef;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, ExprTrait, IntoActiveModel, QueryFilter,
    QuerySelect, UpdateMany,
};

use crate::domain::access::second_factor::{RecoveryCode, TotpSecret};
use crate::domain::access::session::SessionOwner;
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::store::Store;
use crate::store::accounts::second_factor_row::{Column, Entity, Model};
use crate::store::accounts::{person_accounts, second_factor_code_row, sessions};
use crate::store::operations::audit;

/// After this many wrong codes in a day, the codes of the authenticator app are refused for the rest of the day. Only a
/// recovery code, or a reset by somebody else, then helps. At any time three of a million codes are right, so an
/// attacker who knows the password has at most 60 chances in a million each day.
const WRONG_CODES_PER_DAY_MAX: i64 = 20;
const DAY: Duration = Duration::from_hours(24);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondFactor {
    pub secret: TotpSecret,
    pub is_confirmed: bool,
    /// True if there were too many wrong codes today, so that only a recovery code is accepted.
    pub is_locked: bool,
}

/// The state of a person's second factor, for the people who may reset it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactorState {
    Off,
    On,
    /// There were too many wrong codes today.
    Locked,
}

/// Returns the text that identifies a person in the tables of second factors. The vault seals the secret under it, too.
fn person_key(owner: SessionOwner) -> String {
    format!("{}/{}", owner.kind(), owner.id())
}

/// Finds the second factor of a person, even if it is not confirmed yet.
pub async fn find(
    store: &Store,
    owner: SessionOwner,
    now: Timestamp,
) -> Result<Option<SecondFactor>, StoreError> {
    let key = person_key(owner);
    let Some(row) = Entity::find_by_id(key.as_str()).one(store.reader()).await? else {
        return Ok(None);
    };
    let text = store.vault().open(&key, &row.secret)?;
    let place = RowRef {
        table: "second_factors",
        id: owner.id(),
    };
    let secret =
        TotpSecret::parse(&text).ok_or_else(|| place.corrupt("the TOTP secret is not base32"))?;
    let is_confirmed = row.confirmed_at.is_some();
    Ok(Some(SecondFactor {
        secret,
        is_confirmed,
        is_locked: is_locked(&row, now),
    }))
}

/// The states of the second factors of the people for whom `load_states` was called.
#[derive(Debug)]
pub struct FactorStates(HashMap<String, FactorState>);

impl FactorStates {
    pub fn get(&self, owner: SessionOwner) -> FactorState {
        self.0
            .get(&person_key(owner))
            .copied()
            .unwrap_or(FactorState::Off)
    }
}

/// Loads the states of the second factors of these people.
pub async fn load_states(
    store: &Store,
    owners: impl Iterator<Item = SessionOwner>,
    now: Timestamp,
) -> Result<FactorStates, StoreError> {
    let found = Entity::find().filter(Column::Owner.is_in(owners.map(person_key)));
    let found = found
        .filter(Column::ConfirmedAt.is_not_null())
        .all(store.reader())
        .await?;
    let states = found.into_iter().map(|row| {
        let state = if is_locked(&row, now) {
            FactorState::Locked
        } else {
            FactorState::On
        };
        (row.owner, state)
    });
    Ok(FactorStates(states.collect()))
}

/// True if a sign-in of this person needs a code in addition to the password.
pub(super) async fn is_on(
    connection: &impl ConnectionTrait,
    owner: SessionOwner,
) -> Result<bool, StoreError> {
    let found = Entity::find_by_id(person_key(owner))
        .one(connection)
        .await?;
    Ok(found.is_some_and(|row| row.confirmed_at.is_some()))
}

fn is_locked(row: &Model, now: Timestamp) -> bool {
    row.refused >= WRONG_CODES_PER_DAY_MAX && row.refused_since > micros_one_day_before(now)
}

fn micros_one_day_before(now: Timestamp) -> i64 {
    now.saturating_sub(DAY)
        .unwrap_or(Timestamp::MIN)
        .as_microsecond()
}

/// Stores a secret that the person has yet to confirm. `None` if the person has a confirmed second factor, or does not
/// exist.
pub async fn begin_setup(
    store: &Store,
    owner: SessionOwner,
    secret: &TotpSecret,
) -> Result<Option<()>, StoreError> {
    let key = person_key(owner);
    let sealed = store.vault().seal(&key, &secret.text())?;
    let tx = store.begin().await?;
    if person_accounts::lock_person(&tx, owner).await?.is_none() {
        return Ok(None);
    }
    Entity::delete_many()
        .filter(Column::Owner.eq(key.as_str()))
        .filter(Column::ConfirmedAt.is_null())
        .exec(&tx)
        .await?;
    if Entity::find_by_id(key.as_str()).one(&tx).await?.is_some() {
        return Ok(None);
    }
    let row = Model {
        owner: key,
        secret: sealed,
        confirmed_at: None,
        last_step: 0,
        refused: 0,
        refused_since: 0,
    };
    Entity::insert(row.into_active_model())
        .exec_without_returning(&tx)
        .await?;
    tx.commit().await.map(Some)
}

/// The first right code, with which a person confirms a second factor.
#[derive(Debug, Clone, Copy)]
pub struct CodeConfirmation<'a> {
    pub owner: SessionOwner,
    /// The secret that the code was made with.
    pub secret: &'a TotpSecret,
    /// The time step of the code.
    pub step: i64,
    pub now: Timestamp,
}

/// Puts a second factor in force with these recovery codes and ends the person's sessions. `None` if no second factor
/// with this secret waits for confirmation, because a later setup has replaced the secret. Locks the account like
/// `sessions::open`, so that a sign-in without a code is either ended here or refused later.
pub async fn confirm_setup(
    store: &Store,
    confirmation: CodeConfirmation<'_>,
    codes: &[RecoveryCode],
) -> Result<Option<()>, StoreError> {
    let CodeConfirmation {
        owner,
        secret,
        step,
        now,
    } = confirmation;
    let tx = store.begin().await?;
    if person_accounts::lock_person(&tx, owner).await?.is_none()
        || !has_secret(store, &tx, owner, secret).await?
    {
        return Ok(None);
    }
    let confirmed = update_owned_by(owner)
        .filter(Column::ConfirmedAt.is_null())
        .col_expr(Column::ConfirmedAt, Expr::value(now.as_microsecond()))
        .col_expr(Column::LastStep, Expr::value(step))
        .exec(&tx)
        .await?;
    if confirmed.rows_affected == 0 {
        return Ok(None);
    }
    let rows = codes.iter().map(|code| {
        second_factor_code_row::Model {
            owner: person_key(owner),
            hash: code.hash(),
        }
        .into_active_model()
    });
    second_factor_code_row::Entity::insert_many(rows)
        .exec_without_returning(&tx)
        .await?;
    sessions::close_all(&tx, owner).await?;
    audit::append(
        &tx,
        &[sessions::audit_entry_by_owner(
            owner,
            AuditAction::EnableSecondFactor,
            now,
        )],
    )
    .await?;
    tx.commit().await.map(Some)
}

/// True if the second factor of a person, confirmed or not, has this secret.
async fn has_secret(
    store: &Store,
    tx: &Transaction,
    owner: SessionOwner,
    secret: &TotpSecret,
) -> Result<bool, StoreError> {
    let key = person_key(owner);
    let Some(row) = Entity::find_by_id(key.as_str()).one(tx).await? else {
        return Ok(false);
    };
    Ok(store.vault().open(&key, &row.secret)? == secret.text())
}

/// Records the time step of a right code. Returns false if the code must be refused: a code of this step or of a later
/// one was accepted before, or there were too many wrong codes today.
pub async fn use_time_step(
    store: &Store,
    owner: SessionOwner,
    step: i64,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let is_open = Column::Refused
        .lt(WRONG_CODES_PER_DAY_MAX)
        .or(Column::RefusedSince.lte(micros_one_day_before(now)));
    let tx = store.begin().await?;
    let used = update_owned_by(owner)
        .filter(Column::ConfirmedAt.is_not_null())
        .filter(Column::LastStep.lt(step))
        .filter(is_open)
        .col_expr(Column::LastStep, Expr::value(step))
        .exec(&tx)
        .await?;
    tx.commit().await?;
    Ok(used.rows_affected > 0)
}

/// Uses up a recovery code and resets the number of wrong codes, so that the app's codes are accepted again. Returns
/// false if the person has no such code.
pub async fn use_recovery_code(
    store: &Store,
    owner: SessionOwner,
    code: &RecoveryCode,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let tx = store.begin().await?;
    let used = second_factor_code_row::Entity::delete_by_id((person_key(owner), code.hash()))
        .exec(&tx)
        .await?;
    if used.rows_affected == 0 {
        return Ok(false);
    }
    update_owned_by(owner)
        .col_expr(Column::Refused, Expr::value(0_i64))
        .exec(&tx)
        .await?;
    audit::append(
        &tx,
        &[sessions::audit_entry_by_owner(
            owner,
            AuditAction::UseRecoveryCode,
            now,
        )],
    )
    .await?;
    tx.commit().await?;
    Ok(true)
}

/// Counts a wrong code and records it in the audit. If the daily limit is now reached, also records this lock.
pub async fn record_wrong_code(
    store: &Store,
    owner: SessionOwner,
    now: Timestamp,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    let Some(row) = Entity::find_by_id(person_key(owner))
        .lock_exclusive()
        .one(&tx)
        .await?
    else {
        return Ok(());
    };
    let is_new_day = row.refused == 0 || row.refused_since <= micros_one_day_before(now);
    let refused = if is_new_day {
        1
    } else {
        row.refused.saturating_add(1)
    };
    let since = if is_new_day {
        now.as_microsecond()
    } else {
        row.refused_since
    };
    update_owned_by(owner)
        .col_expr(Column::Refused, Expr::value(refused))
        .col_expr(Column::RefusedSince, Expr::value(since))
        .exec(&tx)
        .await?;
    let mut entries = vec![sessions::audit_entry_by_owner(
        owner,
        AuditAction::RefuseCode,
        now,
    )];
    if refused == WRONG_CODES_PER_DAY_MAX {
        entries.push(sessions::audit_entry_by_owner(
            owner,
            AuditAction::LockSecondFactor,
            now,
        ));
    }
    audit::append(&tx, &entries).await?;
    tx.commit().await
}

/// The removal of a second factor, by its person or by somebody who resets it.
#[derive(Debug, Clone)]
pub struct FactorRemoval {
    pub owner: SessionOwner,
    pub by: Actor,
    pub action: AuditAction,
    pub reason: Option<String>,
    pub now: Timestamp,
}

/// Removes a second factor with its recovery codes and ends the person's sessions. Returns whether the factor was
/// confirmed; `None` if there is no such person.
pub async fn remove(store: &Store, removal: FactorRemoval) -> Result<Option<bool>, StoreError> {
    let FactorRemoval {
        owner,
        by,
        action,
        reason,
        now,
    } = removal;
    let tx = store.begin().await?;
    if person_accounts::lock_person(&tx, owner).await?.is_none() {
        return Ok(None);
    }
    let row = Entity::find_by_id(person_key(owner)).one(&tx).await?;
    delete_owned_by(&tx, owner).await?;
    sessions::close_all(&tx, owner).await?;
    let entry = AuditEntry {
        reason,
        ..sessions::audit_entry(by, owner, action, now)
    };
    audit::append(&tx, &[entry]).await?;
    tx.commit().await?;
    Ok(Some(row.is_some_and(|row| row.confirmed_at.is_some())))
}

/// Deletes the second factor of a person, with its recovery codes.
pub(super) async fn delete_owned_by(
    tx: &Transaction,
    owner: SessionOwner,
) -> Result<(), StoreError> {
    Entity::delete_by_id(person_key(owner)).exec(tx).await?;
    let codes = second_factor_code_row::Entity::delete_many();
    codes
        .filter(second_factor_code_row::Column::Owner.eq(person_key(owner)))
        .exec(tx)
        .await?;
    Ok(())
}

fn update_owned_by(owner: SessionOwner) -> UpdateMany<Entity> {
    Entity::update_many().filter(Column::Owner.eq(person_key(owner)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::api_key::NewKey;
    use crate::domain::access::session::OperatorRole;
    use crate::store::accounts::{NewOperator, add_operator, people};
    use crate::store::testing::{TestStore, stores};

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    async fn operator(test: &TestStore) -> SessionOwner {
        let new = NewOperator {
            email: "op@example.com".into(),
            password_hash: "hash".into(),
            role: OperatorRole::Viewer,
            key: NewKey::from(secrecy::SecretString::from("opk_1")),
        };
        add_operator(&test.store, &new, now()).await.unwrap();
        people::find_accounts_by_email(&test.store, "op@example.com")
            .await
            .unwrap()[0]
            .person
            .owner
    }

    async fn is_in_force(test: &TestStore, owner: SessionOwner) -> bool {
        let person = person_accounts::find_person(&test.store, owner)
            .await
            .unwrap()
            .unwrap();
        person.has_second_factor
    }

    /// Puts a second factor with these recovery codes in force.
    async fn enrol(test: &TestStore, owner: SessionOwner, codes: &[RecoveryCode]) {
        let secret = TotpSecret::new([7; 20]);
        begin_setup(&test.store, owner, &secret)
            .await
            .unwrap()
            .unwrap();
        let confirmation = CodeConfirmation {
            owner,
            secret: &secret,
            step: 1,
            now: now(),
        };
        confirm_setup(&test.store, confirmation, codes)
            .await
            .unwrap()
            .unwrap();
    }

    async fn state(test: &TestStore, owner: SessionOwner, now: Timestamp) -> FactorState {
        load_states(&test.store, std::iter::once(owner), now)
            .await
            .unwrap()
            .get(owner)
    }

    #[tokio::test]
    async fn a_second_factor_counts_after_its_confirmation_and_each_code_once() {
        for test in stores().await {
            let store = &test.store;
            let owner = operator(&test).await;
            let secret = TotpSecret::new([7; 20]);
            let codes = RecoveryCode::draw_codes(|| [1; 10]);
            let confirmation = CodeConfirmation {
                owner,
                secret: &secret,
                step: 100,
                now: now(),
            };
            assert_eq!(
                confirm_setup(store, confirmation, &codes[..1])
                    .await
                    .unwrap(),
                None,
                "nothing is begun"
            );
            begin_setup(store, owner, &secret).await.unwrap().unwrap();
            assert!(
                !is_in_force(&test, owner).await
                    && !use_time_step(store, owner, 99, now()).await.unwrap()
            );
            confirm_setup(store, confirmation, &codes[..1])
                .await
                .unwrap()
                .unwrap();
            assert!(is_in_force(&test, owner).await);
            let found = find(store, owner, now()).await.unwrap().unwrap();
            assert_eq!(
                found,
                SecondFactor {
                    secret: secret.clone(),
                    is_confirmed: true,
                    is_locked: false
                }
            );
            assert_eq!(
                begin_setup(store, owner, &TotpSecret::new([8; 20]))
                    .await
                    .unwrap(),
                None,
                "one is in force"
            );
            for (step, is_new) in [(100, false), (101, true), (101, false), (99, false)] {
                assert_eq!(
                    use_time_step(store, owner, step, now()).await.unwrap(),
                    is_new,
                    "{step}"
                );
            }
            for is_left in [true, false] {
                assert_eq!(
                    use_recovery_code(store, owner, &codes[0], now())
                        .await
                        .unwrap(),
                    is_left
                );
            }
        }
    }

    #[tokio::test]
    async fn a_code_confirms_only_the_secret_that_it_was_made_with() {
        let secrets = [7, 8].map(|byte| TotpSecret::new([byte; 20]));
        let codes = RecoveryCode::draw_codes(|| [1; 10]);
        for (begun, shown, is_confirmed) in [
            (&secrets[..1], &secrets[0], true),
            // A second page began another setup while the code of the first one was checked.
            (&secrets[..], &secrets[0], false),
            (&secrets[..], &secrets[1], true),
        ] {
            for test in stores().await {
                let owner = operator(&test).await;
                for secret in begun {
                    let begins = begin_setup(&test.store, owner, secret).await;
                    begins.unwrap().unwrap();
                }
                let confirmation = CodeConfirmation {
                    owner,
                    secret: shown,
                    step: 1,
                    now: now(),
                };
                let confirmed = confirm_setup(&test.store, confirmation, &codes[..1]).await;
                assert_eq!(confirmed.unwrap().is_some(), is_confirmed, "{begun:?}");
                assert_eq!(is_in_force(&test, owner).await, is_confirmed);
            }
        }
    }

    #[tokio::test]
    async fn twenty_wrong_codes_in_a_day_leave_the_recovery_codes() {
        for test in stores().await {
            let store = &test.store;
            let owner = operator(&test).await;
            let codes = RecoveryCode::draw_codes(|| [1; 10]);
            enrol(&test, owner, &codes[..1]).await;
            for _ in 1..WRONG_CODES_PER_DAY_MAX {
                record_wrong_code(store, owner, now()).await.unwrap();
            }
            assert!(
                use_time_step(store, owner, 2, now()).await.unwrap(),
                "a right code is accepted"
            );
            assert_eq!(state(&test, owner, now()).await, FactorState::On);
            record_wrong_code(store, owner, now()).await.unwrap();
            assert_eq!(state(&test, owner, now()).await, FactorState::Locked);
            assert!(!use_time_step(store, owner, 3, now()).await.unwrap());
            let later = now() + DAY;
            assert_eq!(state(&test, owner, later).await, FactorState::On);
            assert!(use_time_step(store, owner, 4, later).await.unwrap());
            assert!(
                use_recovery_code(store, owner, &codes[0], now())
                    .await
                    .unwrap()
            );
            assert_eq!(state(&test, owner, now()).await, FactorState::On);
            assert!(use_time_step(store, owner, 5, now()).await.unwrap());
        }
    }

    #[tokio::test]
    async fn a_removed_second_factor_leaves_nothing() {
        for test in stores().await {
            let store = &test.store;
            let owner = operator(&test).await;
            let codes = RecoveryCode::draw_codes(|| [1; 10]);
            enrol(&test, owner, &codes[..1]).await;
            let removal = |owner| FactorRemoval {
                owner,
                by: Actor::CommandLine,
                action: AuditAction::ResetSecondFactor,
                reason: None,
                now: now(),
            };
            assert_eq!(remove(store, removal(owner)).await.unwrap(), Some(true));
            assert_eq!(remove(store, removal(owner)).await.unwrap(), Some(false));
            let nobody = SessionOwner::Operator(owner.id() + 1);
            assert_eq!(remove(store, removal(nobody)).await.unwrap(), None);
            assert_eq!(find(store, owner, now()).await.unwrap(), None);
            assert_eq!(state(&test, owner, now()).await, FactorState::Off);
            assert!(
                !use_recovery_code(store, owner, &codes[0], now())
                    .await
                    .unwrap()
            );
        }
    }
}
