//! The second factors of operators: a sealed secret, the step of the last code that was accepted, and the hashes of
//! the recovery codes. A factor counts only after the operator has confirmed it with a first code.

use jiff::Timestamp;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QuerySelect, UpdateMany};

use crate::domain::access::second_factor::{RecoveryCode, TotpSecret};
use crate::domain::access::session::SessionOwner;
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::store::accounts::operator_row::{Column, Entity};
use crate::store::accounts::{recovery_code_row, sessions};
use crate::store::db::column::RowRef;
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::operations::audit;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondFactor {
    pub secret: TotpSecret,
    pub is_confirmed: bool,
}

/// Returns the owner for which the vault seals an operator's secret.
pub(in crate::store) fn owner(operator: &str) -> String {
    format!("operator/{operator}")
}

/// Finds the second factor of an operator, also one that is not confirmed yet.
pub async fn find(store: &Store, operator: i64) -> Result<Option<SecondFactor>, StoreError> {
    let Some(row) = Entity::find_by_id(operator).one(store.reader()).await? else { return Ok(None) };
    let Some(sealed) = row.totp_secret else { return Ok(None) };
    let text = store.vault().open(&owner(&operator.to_string()), &sealed)?;
    let place = RowRef { table: "operators", id: operator };
    let secret = TotpSecret::parse(&text).ok_or_else(|| place.corrupt("the TOTP secret is not base32"))?;
    Ok(Some(SecondFactor { secret, is_confirmed: row.totp_confirmed_at.is_some() }))
}

/// Stores a secret that the operator has yet to confirm. `None` if the operator has a second factor already.
pub async fn begin(store: &Store, operator: i64, secret: &TotpSecret) -> Result<Option<()>, StoreError> {
    let sealed = store.vault().seal(&owner(&operator.to_string()), &secret.text())?;
    let tx = store.begin().await?;
    let begun = of_operator(operator)
        .filter(Column::TotpConfirmedAt.is_null())
        .col_expr(Column::TotpSecret, Expr::value(sealed))
        .col_expr(Column::TotpLastStep, Expr::value(0_i64))
        .exec(&tx)
        .await?;
    tx.commit().await?;
    Ok((begun.rows_affected > 0).then_some(()))
}

/// A first code that was right.
#[derive(Debug, Clone, Copy)]
pub struct Confirmation {
    pub operator: i64,
    /// The time step of the code.
    pub step: i64,
    pub now: Timestamp,
}

/// Puts a second factor in force and ends the operator's sessions. `None` if the operator has one already.
pub async fn confirm(
    store: &Store,
    confirmation: Confirmation,
    codes: &[RecoveryCode],
) -> Result<Option<()>, StoreError> {
    let Confirmation { operator, step, now } = confirmation;
    let tx = store.begin().await?;
    let confirmed = of_operator(operator)
        .filter(Column::TotpConfirmedAt.is_null())
        .filter(Column::TotpSecret.is_not_null())
        .col_expr(Column::TotpConfirmedAt, Expr::value(now.as_microsecond()))
        .col_expr(Column::TotpLastStep, Expr::value(step))
        .exec(&tx)
        .await?;
    if confirmed.rows_affected == 0 {
        return Ok(None);
    }
    let rows = codes.iter().map(|code| recovery_code_row::Model::new(operator, code).into_active_model());
    recovery_code_row::Entity::insert_many(rows).exec_without_returning(&tx).await?;
    let owner = SessionOwner::Operator(operator);
    sessions::close_all(&tx, owner).await?;
    audit::append(&tx, &[sessions::entry(owner, AuditAction::EnableSecondFactor, now)]).await?;
    tx.commit().await.map(Some)
}

/// Records the step of a code that is right. Returns false if a code of this step or a later one was accepted before.
pub async fn use_step(store: &Store, operator: i64, step: i64) -> Result<bool, StoreError> {
    let tx = store.begin().await?;
    let used = of_operator(operator)
        .filter(Column::TotpConfirmedAt.is_not_null())
        .filter(Column::TotpLastStep.lt(step))
        .col_expr(Column::TotpLastStep, Expr::value(step))
        .exec(&tx)
        .await?;
    tx.commit().await?;
    Ok(used.rows_affected > 0)
}

/// Uses up a recovery code. Returns false if the operator has no such code.
pub async fn use_recovery_code(
    store: &Store,
    operator: i64,
    code: &RecoveryCode,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let tx = store.begin().await?;
    let used = recovery_code_row::Entity::delete_by_id((operator, code.hash())).exec(&tx).await?;
    if used.rows_affected == 0 {
        return Ok(false);
    }
    let owner = SessionOwner::Operator(operator);
    audit::append(&tx, &[sessions::entry(owner, AuditAction::UseRecoveryCode, now)]).await?;
    tx.commit().await?;
    Ok(true)
}

/// Records that a code was refused.
pub async fn note_refused(store: &Store, operator: i64, now: Timestamp) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    let entry = sessions::entry(SessionOwner::Operator(operator), AuditAction::RefuseCode, now);
    audit::append(&tx, &[entry]).await?;
    tx.commit().await
}

/// The removal of a second factor, by its operator or by somebody who resets it.
#[derive(Debug, Clone)]
pub struct Removal {
    pub operator: i64,
    pub by: Actor,
    pub action: AuditAction,
    pub reason: Option<String>,
    pub now: Timestamp,
}

/// Removes a second factor with its recovery codes and ends the operator's sessions. Returns whether there was one;
/// `None` if there is no such operator.
pub async fn remove(store: &Store, removal: Removal) -> Result<Option<bool>, StoreError> {
    let Removal { operator, by, action, reason, now } = removal;
    let tx = store.begin().await?;
    let Some(row) = Entity::find_by_id(operator).lock_exclusive().one(&tx).await? else { return Ok(None) };
    clear(&tx, operator).await?;
    let owner = SessionOwner::Operator(operator);
    sessions::close_all(&tx, owner).await?;
    let entry = AuditEntry { reason, ..sessions::entry_by(by, owner, action, now) };
    audit::append(&tx, &[entry]).await?;
    tx.commit().await?;
    Ok(Some(row.totp_confirmed_at.is_some()))
}

async fn clear(tx: &Transaction, operator: i64) -> Result<(), StoreError> {
    of_operator(operator)
        .col_expr(Column::TotpSecret, Expr::value(None::<String>))
        .col_expr(Column::TotpConfirmedAt, Expr::value(None::<i64>))
        .col_expr(Column::TotpLastStep, Expr::value(0_i64))
        .exec(tx)
        .await?;
    let codes = recovery_code_row::Entity::delete_many();
    codes.filter(recovery_code_row::Column::OperatorId.eq(operator)).exec(tx).await?;
    Ok(())
}

fn of_operator(id: i64) -> UpdateMany<Entity> {
    Entity::update_many().filter(Column::Id.eq(id))
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

    async fn operator(test: &TestStore) -> i64 {
        let new = NewOperator {
            email: "op@example.com".into(),
            password_hash: "hash".into(),
            role: OperatorRole::Viewer,
            key: NewKey::from(secrecy::SecretString::from("opk_1")),
        };
        add_operator(&test.store, &new, now()).await.unwrap();
        people::with_email(&test.store, "op@example.com").await.unwrap()[0].person.owner.id()
    }

    async fn is_in_force(test: &TestStore, id: i64) -> bool {
        let person = people::with_owner(&test.store, SessionOwner::Operator(id)).await.unwrap().unwrap();
        person.has_second_factor
    }

    #[tokio::test]
    async fn a_second_factor_counts_after_its_confirmation_and_each_code_once() {
        for test in stores().await {
            let (store, id) = (&test.store, operator(&test).await);
            let secret = TotpSecret::new([7; 20]);
            let codes = RecoveryCode::make(|| [1; 10]);
            let confirmation = Confirmation { operator: id, step: 100, now: now() };
            assert_eq!(confirm(store, confirmation, &codes[..1]).await.unwrap(), None, "nothing is begun");
            begin(store, id, &secret).await.unwrap().unwrap();
            assert!(!is_in_force(&test, id).await && !use_step(store, id, 99).await.unwrap());
            confirm(store, confirmation, &codes[..1]).await.unwrap().unwrap();
            assert!(is_in_force(&test, id).await);
            let found = find(store, id).await.unwrap().unwrap();
            assert_eq!(found, SecondFactor { secret, is_confirmed: true });
            assert_eq!(begin(store, id, &TotpSecret::new([8; 20])).await.unwrap(), None, "one is in force");
            for (step, is_new) in [(100, false), (101, true), (101, false), (99, false)] {
                assert_eq!(use_step(store, id, step).await.unwrap(), is_new, "{step}");
            }
            for is_left in [true, false] {
                assert_eq!(use_recovery_code(store, id, &codes[0], now()).await.unwrap(), is_left);
            }
        }
    }

    #[tokio::test]
    async fn a_removed_second_factor_leaves_nothing() {
        for test in stores().await {
            let (store, id) = (&test.store, operator(&test).await);
            let codes = RecoveryCode::make(|| [1; 10]);
            begin(store, id, &TotpSecret::new([7; 20])).await.unwrap().unwrap();
            let confirmation = Confirmation { operator: id, step: 1, now: now() };
            confirm(store, confirmation, &codes[..1]).await.unwrap().unwrap();
            let removal = |operator| Removal {
                operator,
                by: Actor::CommandLine,
                action: AuditAction::ResetSecondFactor,
                reason: None,
                now: now(),
            };
            assert_eq!(remove(store, removal(id)).await.unwrap(), Some(true));
            assert_eq!(remove(store, removal(id)).await.unwrap(), Some(false));
            assert_eq!(remove(store, removal(id + 1)).await.unwrap(), None);
            assert_eq!(find(store, id).await.unwrap(), None);
            assert!(!use_recovery_code(store, id, &codes[0], now()).await.unwrap());
        }
    }
}
