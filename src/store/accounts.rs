//! Integrators and operators: who may act for taxpayers, and who runs the service.

use jiff::Timestamp;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter};

use crate::domain::audit::{Actor, AuditAction, AuditEntry};
use crate::domain::caller::KeyKind;
use crate::domain::ids::IntegratorId;
use crate::store::audit;
use crate::store::database::Store;
use crate::store::entity::column::caseless;
use crate::store::entity::{integrator, operator};
use crate::store::failure::StoreError;
use crate::store::ids::IdKind;
use crate::store::keys;

/// Adds an integrator with its key. Accounts are made on the command line alone.
pub async fn add_integrator(
    store: &Store,
    name: &str,
    email: &str,
    key: &str,
    now: Timestamp,
) -> Result<IntegratorId, StoreError> {
    let id = store.ids().next(IdKind::Integrator).await?;
    let row = integrator::Model {
        id,
        name: name.to_owned(),
        email: email.to_owned(),
        email_key: caseless(email),
        created_at: now.as_microsecond(),
    };
    let tx = store.begin().await?;
    integrator::Entity::insert(row.into_active_model()).exec_without_returning(&tx).await?;
    keys::replace(&tx, KeyKind::Integrator, id, key, now).await?;
    let entry = AuditEntry::new(Actor::CommandLine, AuditAction::CreateIntegrator, &id, now);
    audit::append(&tx, &[entry.of_integrator(IntegratorId(id))]).await?;
    tx.commit().await?;
    Ok(IntegratorId(id))
}

/// Gives an integrator another key; the old one is refused at once.
pub async fn replace_integrator_key(
    store: &Store,
    id: IntegratorId,
    key: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    keys::replace(&tx, KeyKind::Integrator, id.0, key, now).await?;
    tx.commit().await
}

/// The integrator with this email.
pub async fn integrator_with_email(store: &Store, email: &str) -> Result<Option<IntegratorId>, StoreError> {
    let found = integrator::Entity::find()
        .filter(integrator::Column::EmailKey.eq(caseless(email)))
        .one(store.reader())
        .await?;
    Ok(found.map(|row| IntegratorId(row.id)))
}

/// Whether any integrator exists: a database without one is new.
pub async fn any_integrator(store: &Store) -> Result<bool, StoreError> {
    Ok(integrator::Entity::find().one(store.reader()).await?.is_some())
}

/// Adds an operator with its key.
pub async fn add_operator(
    store: &Store,
    email: &str,
    password_hash: &str,
    key: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let id = store.ids().next(IdKind::Operator).await?;
    let row = operator::Model {
        id,
        email: email.to_owned(),
        email_key: caseless(email),
        password_hash: password_hash.to_owned(),
        created_at: now.as_microsecond(),
    };
    let tx = store.begin().await?;
    operator::Entity::insert(row.into_active_model()).exec_without_returning(&tx).await?;
    keys::replace(&tx, KeyKind::Operator, id, key, now).await?;
    audit::append(&tx, &[AuditEntry::new(Actor::CommandLine, AuditAction::CreateOperator, &id, now)]).await?;
    tx.commit().await
}
