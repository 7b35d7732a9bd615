//! Deletes links (table `invitations`) that may no longer be used: the invited person got a password or another link,
//! the link has expired, or its maker lost the right to make links.
//!
//! A transaction that deletes several links first locks all of them, in the order of their hashes. Otherwise two people
//! who invited each other and get new passwords at once could each lock one link and wait for the other one. The
//! accounts are locked before the links, and so is the generation of the keys (`key_leases`).

use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, ExprTrait, QueryFilter, Statement,
};

use crate::domain::access::session::SessionOwner;
use crate::domain::kernel::audit::AuditAction;
use crate::store::accounts::invitation_row::{Column, Entity};

/// A query for the hash of the link of the person whose kind is `$1` and whose account id is `$2`.
const OWNED_LINK_QUERY: &str = "SELECT hash FROM invitations WHERE kind = $1 AND account_id = $2";

/// Locks links in the order of their hashes. `hash_query` selects these hashes; `values` are its parameters.
async fn lock_links(
    tx: &Transaction,
    hash_query: &str,
    values: Vec<sea_orm::Value>,
) -> Result<(), StoreError> {
    let backend = tx.get_database_backend();
    // In SQLite only one transaction writes at a time.
    if backend != DbBackend::Postgres {
        return Ok(());
    }
    let sql = format!(
        "SELECT hash FROM invitations WHERE hash IN ({hash_query}) ORDER BY hash FOR UPDATE"
    );
    tx.query_all_raw(Statement::from_sql_and_values(backend, sql, values))
        .await?;
    Ok(())
}

/// Deletes the link of a person, if there is one, and the expired links of all people.
pub(super) async fn delete_owned_and_expired(
    tx: &Transaction,
    owner: SessionOwner,
    now: Timestamp,
) -> Result<(), StoreError> {
    let hash_query =
        format!("{OWNED_LINK_QUERY} UNION ALL SELECT hash FROM invitations WHERE expires_at <= $3");
    let mut values = owner_values(owner);
    values.push(now.as_microsecond().into());
    lock_links(tx, &hash_query, values).await?;
    delete_owned_by(tx, owner).await?;
    Entity::delete_many()
        .filter(Column::ExpiresAt.lte(now.as_microsecond()))
        .exec(tx)
        .await?;
    Ok(())
}

/// Deletes the link of a person, if there is one, and the unused links that the person made for others.
pub(super) async fn delete_owned_and_made_by(
    tx: &Transaction,
    person: SessionOwner,
    now: Timestamp,
) -> Result<(), StoreError> {
    lock_owned_and_made_by(tx, person, now).await?;
    delete_owned_by(tx, person).await?;
    delete_made_by(tx, person, now).await
}

/// Locks the link of a person and the unused links that the person made for others, so that they can be deleted in any
/// order.
pub(super) async fn lock_owned_and_made_by(
    tx: &Transaction,
    person: SessionOwner,
    now: Timestamp,
) -> Result<(), StoreError> {
    let made = made_by_condition(person, 3);
    let hash_query =
        format!("{OWNED_LINK_QUERY} UNION ALL SELECT hash FROM invitations WHERE {made}");
    let mut values = owner_values(person);
    values.extend(maker_values(person, now));
    lock_links(tx, &hash_query, values).await
}

/// Deletes the link of a person, if there is one. A transaction that deletes other links, too, must lock all of them
/// first.
pub(super) async fn delete_owned_by(
    tx: &Transaction,
    owner: SessionOwner,
) -> Result<(), StoreError> {
    let of_owner = Column::Kind
        .eq(owner.kind().as_str())
        .and(Column::AccountId.eq(owner.id()));
    Entity::delete_many().filter(of_owner).exec(tx).await?;
    Ok(())
}

/// Deletes the unused links that this person made for others. Call this when the person loses the right to make links,
/// or gets a new password because somebody else may know the old one. Otherwise a kept link could still be used to
/// choose another person's password.
pub(super) async fn delete_made_by(
    tx: &Transaction,
    maker: SessionOwner,
    now: Timestamp,
) -> Result<(), StoreError> {
    let condition = made_by_condition(maker, 1);
    let values = maker_values(maker, now);
    let hash_query = format!("SELECT hash FROM invitations WHERE {condition}");
    lock_links(tx, &hash_query, values.clone()).await?;
    let sql = format!("DELETE FROM invitations WHERE {condition}");
    let backend = tx.get_database_backend();
    tx.execute_raw(Statement::from_sql_and_values(backend, sql, values))
        .await?;
    Ok(())
}

/// Returns the parameters of `OWNED_LINK_QUERY`.
fn owner_values(owner: SessionOwner) -> Vec<sea_orm::Value> {
    vec![owner.kind().as_str().into(), owner.id().into()]
}

/// Returns the SQL condition of the unused links that this person made. Its values are `maker_values`, numbered from
/// `first` on. The audit entry with the account and the time of a link names its maker.
fn made_by_condition(maker: SessionOwner, first: usize) -> String {
    let column = match maker {
        SessionOwner::Operator(_) => "operator_id",
        SessionOwner::Integrator(_) => "integrator_id",
        SessionOwner::Contact { .. } => "contact_id",
    };
    let action = first + 1;
    let actor = first + 2;
    let id = first + 3;
    // The `||` and the plus sign keep SQLite from using the indexes of the action and the actor, in which it would read
    // all their entries. It finds the entries by their subject instead.
    format!(
        "expires_at > ${first} AND EXISTS (SELECT 1 FROM audit \
         WHERE audit.subject = CAST(invitations.account_id AS TEXT) AND audit.at = invitations.created_at \
         AND audit.action || '' = ${action} AND audit.actor = ${actor} AND +audit.{column} = ${id})"
    )
}

fn maker_values(maker: SessionOwner, now: Timestamp) -> Vec<sea_orm::Value> {
    vec![
        now.as_microsecond().into(),
        AuditAction::MakeInvitation.as_str().into(),
        maker.actor().kind().as_str().into(),
        maker.id().into(),
    ]
}
