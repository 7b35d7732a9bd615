//! Changes the access of operators and integrators: revokes keys, disables, enables and removes accounts, and sets the
//! roles of operators. A function that takes access away ends the keys, the sessions, the sign-ins that wait for a
//! code, and the unused invitations that the account made, in one transaction. It returns only when no process accepts
//! an ended key any more. The service always keeps at least one enabled admin.

use database::column::RowRef;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::domain::access::caller::KeyKind;
use crate::domain::access::session::{OperatorRole, SessionOwner};
use crate::domain::kernel::audit::{AuditAction, AuditEntry};
use crate::domain::kernel::ids::IntegratorId;
use crate::store::Store;
use crate::store::accounts::{
    AccountChange, RevokedCounts, ended_invitations, integrator_row, key_leases, keys,
    lock_account, operator_row, second_factors, sessions,
};
use crate::store::operations::audit;

/// The result of a change of an account's access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessChangeOutcome {
    /// The change is in force. Holds the numbers of ended keys and sessions.
    Done(RevokedCounts),
    /// The account was already in the wanted state. Nothing was changed, and no audit entry was written.
    AlreadySo,
    /// There is no such account.
    Unknown,
    /// The change would leave the service without an enabled admin.
    LastAdmin,
}

/// Revokes all keys of an account and ends its sessions. With `includes_taxpayers`, also revokes the keys of an
/// integrator's taxpayers. `None` if there is no such account.
pub async fn revoke_account_access(
    store: &Store,
    change: AccountChange,
    includes_taxpayers: bool,
) -> Result<Option<RevokedCounts>, StoreError> {
    let Some(person) = change.owner.session_owner() else {
        return Ok(None);
    };
    let tx = store.begin().await?;
    if lock_account(&tx, change.owner).await?.is_none() {
        return Ok(None);
    }
    let ended = end_keys_and_sessions(&tx, &change, person, includes_taxpayers).await?;
    let actions = [
        AuditAction::RevokeIntegratorKeys,
        AuditAction::RevokeOperatorKeys,
    ];
    audit::append(&tx, &[change.audit_entry(actions, Some(ended.to_string()))]).await?;
    tx.commit().await?;
    key_leases::await_key_change_everywhere(store).await;
    Ok(Some(ended))
}

/// Revokes one key of an account and ends the sessions of the account. `None` if there is no such account or key.
pub async fn revoke_key(
    store: &Store,
    change: AccountChange,
    key: &str,
) -> Result<Option<RevokedCounts>, StoreError> {
    let Some(person) = change.owner.session_owner() else {
        return Ok(None);
    };
    let tx = store.begin().await?;
    if lock_account(&tx, change.owner).await?.is_none() {
        return Ok(None);
    }
    let revoked = keys::revoke_one(&tx, change.owner, key).await?;
    if revoked == 0 {
        roll_back_and_await_change(store, tx).await?;
        return Ok(None);
    }
    ended_invitations::delete_made_by(&tx, person, change.now).await?;
    let ended = RevokedCounts {
        revoked,
        revoked_of_taxpayers: 0,
        sessions: sessions::close_all(&tx, person).await?,
    };
    let actions = [
        AuditAction::RevokeIntegratorKeys,
        AuditAction::RevokeOperatorKeys,
    ];
    let note = format!("key {key}, sessions {}", ended.sessions);
    audit::append(&tx, &[change.audit_entry(actions, Some(note))]).await?;
    tx.commit().await?;
    key_leases::await_key_change_everywhere(store).await;
    Ok(Some(ended))
}

/// Disables an account and ends its keys and sessions. The account keeps its password and second factor, but nobody can
/// sign in. With `includes_taxpayers`, also ends the keys of an integrator's taxpayers.
pub async fn disable_account(
    store: &Store,
    change: AccountChange,
    includes_taxpayers: bool,
) -> Result<AccessChangeOutcome, StoreError> {
    let Some(person) = change.owner.session_owner() else {
        return Ok(AccessChangeOutcome::Unknown);
    };
    let tx = store.begin().await?;
    if let Err(refused) = lock_unless_last_admin(&tx, &change, None).await? {
        return Ok(refused);
    }
    let was_enabled = set_disabled_at(&tx, &change, Some(change.now)).await?;
    let ended = end_keys_and_sessions(&tx, &change, person, includes_taxpayers).await?;
    ended_invitations::delete_owned_by(&tx, person).await?;
    if !was_enabled && ended == RevokedCounts::default() {
        roll_back_and_await_change(store, tx).await?;
        return Ok(AccessChangeOutcome::AlreadySo);
    }
    let actions = [AuditAction::DisableIntegrator, AuditAction::DisableOperator];
    audit::append(&tx, &[change.audit_entry(actions, Some(ended.to_string()))]).await?;
    tx.commit().await?;
    key_leases::await_key_change_everywhere(store).await;
    Ok(AccessChangeOutcome::Done(ended))
}

/// Enables a disabled account again. Its old keys and sessions stay ended. Sessions are deleted once more to be sure,
/// although `sessions::open` opens none for a disabled account.
pub async fn enable_account(
    store: &Store,
    change: AccountChange,
) -> Result<AccessChangeOutcome, StoreError> {
    let Some(person) = change.owner.session_owner() else {
        return Ok(AccessChangeOutcome::Unknown);
    };
    let tx = store.begin().await?;
    if lock_account(&tx, change.owner).await?.is_none() {
        return Ok(AccessChangeOutcome::Unknown);
    }
    if !set_disabled_at(&tx, &change, None).await? {
        return Ok(AccessChangeOutcome::AlreadySo);
    }
    let sessions = sessions::close_all(&tx, person).await?;
    let actions = [AuditAction::EnableIntegrator, AuditAction::EnableOperator];
    audit::append(&tx, &[change.audit_entry(actions, None)]).await?;
    tx.commit().await?;
    Ok(AccessChangeOutcome::Done(RevokedCounts {
        sessions,
        ..RevokedCounts::default()
    }))
}

/// Removes an operator for good. Integrators are disabled instead, because their taxpayers stay.
pub async fn remove_operator(
    store: &Store,
    change: AccountChange,
) -> Result<AccessChangeOutcome, StoreError> {
    let Some(person) = change.owner.session_owner() else {
        return Ok(AccessChangeOutcome::Unknown);
    };
    let tx = store.begin().await?;
    let had = match lock_unless_last_admin(&tx, &change, None).await? {
        Ok(had) => had,
        Err(refused) => {
            roll_back_and_await_change(store, tx).await?;
            return Ok(refused);
        }
    };
    let ended = end_keys_and_sessions(&tx, &change, person, false).await?;
    ended_invitations::delete_owned_by(&tx, person).await?;
    second_factors::delete_owned_by(&tx, person).await?;
    operator_row::Entity::delete_by_id(change.owner.id)
        .exec(&tx)
        .await?;
    let entry = change.audit_entry([AuditAction::RemoveOperator; 2], Some(ended.to_string()));
    audit::append(
        &tx,
        &[AuditEntry {
            from_state: Some(had),
            ..entry
        }],
    )
    .await?;
    tx.commit().await?;
    key_leases::await_key_change_everywhere(store).await;
    Ok(AccessChangeOutcome::Done(ended))
}

/// Gives an operator another role. The new role applies to the operator's keys and sessions from their next request on.
pub async fn set_operator_role(
    store: &Store,
    change: AccountChange,
    role: OperatorRole,
) -> Result<AccessChangeOutcome, StoreError> {
    let tx = store.begin().await?;
    let had = match lock_unless_last_admin(&tx, &change, Some(role)).await? {
        Ok(had) => had,
        Err(refused) => return Ok(refused),
    };
    if had.split(' ').next() == Some(role.as_str()) {
        roll_back_and_await_change(store, tx).await?;
        return Ok(AccessChangeOutcome::AlreadySo);
    }
    key_leases::start_new_generation(&tx).await?;
    if role != OperatorRole::Admin
        && let Some(person) = change.owner.session_owner()
    {
        ended_invitations::delete_made_by(&tx, person, change.now).await?;
    }
    operator_row::Entity::update_many()
        .col_expr(operator_row::Column::Role, Expr::value(role.as_str()))
        .filter(operator_row::Column::Id.eq(change.owner.id))
        .exec(&tx)
        .await?;
    let entry = change.audit_entry([AuditAction::ChangeOperatorRole; 2], Some(role.to_string()));
    audit::append(
        &tx,
        &[AuditEntry {
            from_state: Some(had),
            ..entry
        }],
    )
    .await?;
    tx.commit().await?;
    key_leases::await_key_change_everywhere(store).await;
    Ok(AccessChangeOutcome::Done(RevokedCounts::default()))
}

/// Rolls back a transaction that changed nothing, because an earlier call had already made the change. Then waits until
/// all processes know of the change, because the earlier call may have been interrupted before its own wait.
async fn roll_back_and_await_change(store: &Store, tx: Transaction) -> Result<(), StoreError> {
    tx.rollback().await?;
    key_leases::await_key_change_everywhere(store).await;
    Ok(())
}

/// Ends the keys of an account, the sessions of its person and the unused invitations that it made for others. With
/// `includes_taxpayers`, also ends the keys of an integrator's taxpayers. Also locks the invitation of the person, which
/// the caller may end.
async fn end_keys_and_sessions(
    tx: &Transaction,
    change: &AccountChange,
    person: SessionOwner,
    includes_taxpayers: bool,
) -> Result<RevokedCounts, StoreError> {
    let revoked = keys::revoke_all(tx, change.owner).await?;
    let revoked_of_taxpayers = match change.owner.kind {
        KeyKind::Integrator if includes_taxpayers => {
            keys::revoke_taxpayer_keys(tx, IntegratorId(change.owner.id)).await?
        }
        _ => 0,
    };
    ended_invitations::lock_owned_and_made_by(tx, person, change.now).await?;
    ended_invitations::delete_made_by(tx, person, change.now).await?;
    let sessions = sessions::close_all(tx, person).await?;
    Ok(RevokedCounts {
        revoked,
        revoked_of_taxpayers,
        sessions,
    })
}

/// Disables an account at the time `at`, or enables it if `at` is `None`. Returns false if the account was already in
/// this state.
async fn set_disabled_at(
    tx: &Transaction,
    change: &AccountChange,
    at: Option<Timestamp>,
) -> Result<bool, StoreError> {
    let disables = at.is_some();
    let at = Expr::value(at.map(Timestamp::as_microsecond));
    let updated = match change.owner.kind {
        KeyKind::Operator => {
            use operator_row::Column;
            let update = operator_row::Entity::update_many();
            let update = update.col_expr(Column::DisabledAt, at);
            update
                .filter(Column::Id.eq(change.owner.id))
                .filter(is_change_needed(Column::DisabledAt, disables))
                .exec(tx)
                .await?
        }
        KeyKind::Integrator | KeyKind::Taxpayer => {
            use integrator_row::Column;
            let update = integrator_row::Entity::update_many();
            let update = update.col_expr(Column::DisabledAt, at);
            update
                .filter(Column::Id.eq(change.owner.id))
                .filter(is_change_needed(Column::DisabledAt, disables))
                .exec(tx)
                .await?
        }
    };
    Ok(updated.rows_affected > 0)
}

/// Returns the condition that an account is not yet in the wanted state: disabled if `disables`, otherwise enabled.
fn is_change_needed(disabled_at: impl ColumnTrait, disables: bool) -> Expr {
    if disables {
        disabled_at.is_null()
    } else {
        disabled_at.is_not_null()
    }
}

/// Locks the account that `change` gives the role `to`, or whose access it takes away if `to` is `None`. Returns the
/// current role and email of an operator as one text, which is empty for an integrator. Returns the outcome instead if
/// the change is refused. Locks all operators, so that two admins cannot disable each other at the same time.
async fn lock_unless_last_admin(
    tx: &Transaction,
    change: &AccountChange,
    to: Option<OperatorRole>,
) -> Result<Result<String, AccessChangeOutcome>, StoreError> {
    if change.owner.kind != KeyKind::Operator {
        let found = lock_account(tx, change.owner).await?;
        return Ok(found
            .map(|_| String::new())
            .ok_or(AccessChangeOutcome::Unknown));
    }
    let all = operator_row::Entity::find().order_by_asc(operator_row::Column::Id);
    let mut admins_left = to == Some(OperatorRole::Admin);
    let mut found = None;
    for row in all.lock_exclusive().all(tx).await? {
        let role: OperatorRole = RowRef {
            table: "operators",
            id: row.id,
        }
        .parse(&row.role)?;
        let is_admin = role == OperatorRole::Admin && row.disabled_at.is_none();
        if row.id == change.owner.id {
            found = Some((row, role, is_admin));
        } else {
            admins_left |= is_admin;
        }
    }
    Ok(match found {
        None => Err(AccessChangeOutcome::Unknown),
        Some((_, _, true)) if !admins_left => Err(AccessChangeOutcome::LastAdmin),
        Some((row, role, _)) => Ok(format!("{role} {}", row.email)),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use database::PoolSettings;
    use database::page::Page;
    use database::vault::{KEY_LEN, Vault};
    use secrecy::SecretString;
    use tokio::time::timeout;

    use super::*;
    use crate::domain::access::api_key::{KeyOwner, NewKey};
    use crate::domain::access::invitation::InvitationToken;
    use crate::domain::access::session::{ContactRole, SessionLimits, SessionOwner, SignInPlace};
    use crate::domain::kernel::audit::Actor;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::store::accounts::contacts::{self, ContactChange, NewPerson};
    use crate::store::accounts::invitations::{self, NewInvitation};
    use crate::store::accounts::sessions::NewSession;
    use crate::store::accounts::{self, KeyRotationOutcome, NewIntegrator, NewOperator};
    use crate::store::operations::audit::AuditFilter;
    use crate::store::testing::{TestStore, stores};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    async fn operator(test: &TestStore, name: &str, role: OperatorRole) -> KeyOwner {
        let new = NewOperator {
            email: format!("{name}@example.com"),
            password_hash: "hash".into(),
            role,
            key: NewKey::from(SecretString::from(format!("opk_{name}"))),
        };
        let id = accounts::add_operator(&test.store, &new, NOW)
            .await
            .unwrap();
        KeyOwner {
            kind: KeyKind::Operator,
            id,
        }
    }

    fn change(owner: KeyOwner) -> AccountChange {
        AccountChange {
            owner,
            by: Actor::CommandLine,
            reason: None,
            address: None,
            now: NOW,
        }
    }

    #[tokio::test]
    async fn a_disabled_operator_has_no_session_and_none_that_waits_for_a_code() {
        for test in stores().await {
            let store = &test.store;
            operator(&test, "ada", OperatorRole::Admin).await;
            let bola = operator(&test, "bola", OperatorRole::Operator).await;
            let owner = SessionOwner::Operator(bola.id);
            let limits = SessionLimits {
                idle: Duration::from_mins(30),
                longest: Duration::from_hours(12),
            };
            let tokens = ["open", "waiting", "late"].map(SecretString::from);
            let is_found = async |token| {
                sessions::find(store, token, limits, NOW)
                    .await
                    .unwrap()
                    .is_some()
            };
            let place = SignInPlace::default();
            let [open, waiting, late] = tokens.each_ref().map(|token| NewSession {
                token,
                owner,
                password_hash: "hash",
                has_code: false,
                place: &place,
                replaces: None,
            });
            sessions::open(store, open, limits, NOW)
                .await
                .unwrap()
                .unwrap();
            sessions::open_awaiting_code(store, waiting, NOW)
                .await
                .unwrap()
                .unwrap();
            assert!(is_found(&tokens[0]).await && is_found(&tokens[1]).await);
            let ended = RevokedCounts {
                revoked: 1,
                sessions: 2,
                ..RevokedCounts::default()
            };
            assert_eq!(
                disable_account(store, change(bola), false).await.unwrap(),
                AccessChangeOutcome::Done(ended)
            );
            // This sign-in checked the password before the account was disabled.
            assert_eq!(
                sessions::open(store, late, limits, NOW).await.unwrap(),
                None
            );
            for token in &tokens {
                assert!(!is_found(token).await);
            }
            let again = disable_account(store, change(bola), false).await.unwrap();
            assert_eq!(again, AccessChangeOutcome::AlreadySo);
            let done = AccessChangeOutcome::Done(RevokedCounts::default());
            for outcome in [done, AccessChangeOutcome::AlreadySo] {
                assert_eq!(enable_account(store, change(bola)).await.unwrap(), outcome);
            }
            for action in [AuditAction::DisableOperator, AuditAction::EnableOperator] {
                let filter = AuditFilter {
                    action: Some(action),
                    ..AuditFilter::default()
                };
                let first = Page {
                    number: 1,
                    per_page: 10,
                };
                let (_, recorded) = audit::page(store, filter, first).await.unwrap();
                assert_eq!(recorded, 1, "{action}");
            }
            for token in &tokens {
                assert!(!is_found(token).await, "enabling brings no session back");
            }
        }
    }

    async fn role_of_key(test: &TestStore, name: &str) -> Option<OperatorRole> {
        let key = format!("opk_{name}");
        let found = keys::find_valid(&test.store, KeyKind::Operator, &key, NOW)
            .await
            .unwrap();
        found.and_then(|key| key.role)
    }

    #[tokio::test]
    async fn the_service_keeps_an_enabled_admin() {
        for test in stores().await {
            let ada = operator(&test, "ada", OperatorRole::Admin).await;
            let bola = operator(&test, "bola", OperatorRole::Viewer).await;
            let store = &test.store;
            let refused = AccessChangeOutcome::LastAdmin;
            assert_eq!(
                disable_account(store, change(ada), false).await.unwrap(),
                refused
            );
            assert_eq!(remove_operator(store, change(ada)).await.unwrap(), refused);
            assert_eq!(
                set_operator_role(store, change(ada), OperatorRole::Operator)
                    .await
                    .unwrap(),
                refused
            );
            assert_eq!(role_of_key(&test, "ada").await, Some(OperatorRole::Admin));
            let done = AccessChangeOutcome::Done(RevokedCounts::default());
            assert_eq!(
                set_operator_role(store, change(ada), OperatorRole::Admin)
                    .await
                    .unwrap(),
                AccessChangeOutcome::AlreadySo
            );
            assert_eq!(
                set_operator_role(store, change(bola), OperatorRole::Admin)
                    .await
                    .unwrap(),
                done
            );
            assert!(matches!(
                disable_account(store, change(ada), false).await.unwrap(),
                AccessChangeOutcome::Done(_)
            ));
            // A disabled admin does not count, and may still be removed.
            assert_eq!(
                disable_account(store, change(bola), false).await.unwrap(),
                refused
            );
            assert!(matches!(
                remove_operator(store, change(ada)).await.unwrap(),
                AccessChangeOutcome::Done(_)
            ));
            assert_eq!(
                remove_operator(store, change(ada)).await.unwrap(),
                AccessChangeOutcome::Unknown
            );
        }
    }

    #[tokio::test]
    async fn a_key_has_the_present_role_of_its_operator() {
        for test in stores().await {
            operator(&test, "ada", OperatorRole::Admin).await;
            let bola = operator(&test, "bola", OperatorRole::Viewer).await;
            // While the process has a lease, keys come from its cache. A change of the role must take effect there,
            // too.
            let mut lease = key_leases::KeyLease::new(test.store.clone());
            assert_eq!(role_of_key(&test, "bola").await, Some(OperatorRole::Viewer));
            assert!(lease.refresh_unless_unused().await.unwrap());
            for role in OperatorRole::ALL {
                set_operator_role(&test.store, change(bola), *role)
                    .await
                    .unwrap();
                for _ in 0..2 {
                    assert_eq!(role_of_key(&test, "bola").await, Some(*role));
                }
            }
        }
    }

    /// Opens the database again, as another process would.
    async fn other_process(test: &TestStore) -> Store {
        let vault = Vault::new(&STANDARD.encode([7; KEY_LEN])).unwrap();
        Store::open(&test.url, &PoolSettings::default(), vault)
            .await
            .unwrap()
    }

    /// Returns the roles that the keys of these operators have in this process; `None` for a key that it refuses.
    async fn roles_of_keys(store: &Store, names: &[&str]) -> Vec<Option<OperatorRole>> {
        let mut roles = Vec::new();
        for name in names {
            let key = format!("opk_{name}");
            let found = keys::find_valid(store, KeyKind::Operator, &key, NOW);
            roles.push(found.await.unwrap().and_then(|key| key.role));
        }
        roles
    }

    #[tokio::test]
    async fn a_change_whose_answer_was_lost_is_known_everywhere_when_its_repetition_is_answered() {
        for test in stores().await {
            let store = &test.store;
            operator(&test, "ada", OperatorRole::Admin).await;
            let names = ["bola", "chidi", "dayo", "efe"];
            let mut owners = Vec::new();
            for name in names {
                owners.push(operator(&test, name, OperatorRole::Operator).await);
            }
            let stored = keys::owned_by_accounts(store, KeyKind::Operator, &[owners[1].id])
                .await
                .unwrap();
            let key = stored[&owners[1].id][0].id.as_str();
            let second = other_process(&test).await;
            let mut lease = key_leases::KeyLease::new(second.clone());
            let before = vec![Some(OperatorRole::Operator); names.len()];
            assert_eq!(roles_of_keys(&second, &names).await, before);
            assert!(lease.refresh_unless_unused().await.unwrap());
            assert_eq!(roles_of_keys(&second, &names).await, before);
            let perform = async || {
                tokio::join!(
                    Box::pin(disable_account(store, change(owners[0]), false)),
                    Box::pin(revoke_key(store, change(owners[1]), key)),
                    Box::pin(set_operator_role(
                        store,
                        change(owners[2]),
                        OperatorRole::Viewer
                    )),
                    Box::pin(remove_operator(store, change(owners[3]))),
                )
            };
            let lost = timeout(Duration::from_secs(1), perform()).await;
            assert!(lost.is_err(), "the other process has not acknowledged");
            assert_eq!(roles_of_keys(&second, &names).await, before);
            let (disabled, revoked, role, removed) = perform().await;
            assert_eq!(disabled.unwrap(), AccessChangeOutcome::AlreadySo);
            assert_eq!(revoked.unwrap(), None);
            assert_eq!(role.unwrap(), AccessChangeOutcome::AlreadySo);
            assert_eq!(removed.unwrap(), AccessChangeOutcome::Unknown);
            let after = [None, None, Some(OperatorRole::Viewer), None];
            assert_eq!(roles_of_keys(&second, &names).await, after);
        }
    }

    async fn invite(
        store: &Store,
        token: &InvitationToken,
        owner: SessionOwner,
        by: KeyOwner,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let new = NewInvitation {
            owner,
            token,
            by: by.session_owner().unwrap().actor(),
            reason: None,
            claim: None,
            now,
        };
        invitations::add(store, new).await.unwrap()
    }

    #[tokio::test]
    async fn the_links_that_an_account_made_end_with_its_access() {
        for test in stores().await {
            let store = &test.store;
            operator(&test, "ada", OperatorRole::Admin).await;
            let bola = operator(&test, "bola", OperatorRole::Admin).await;
            let new = NewIntegrator {
                name: "Ledgers".into(),
                email: "ledgers@example.com".into(),
                password_hash: None,
                key: NewKey::from(SecretString::from("sik_one")),
            };
            let id = accounts::add_integrator(store, &new, NOW).await.unwrap().0;
            let ledgers = KeyOwner {
                kind: KeyKind::Integrator,
                id,
            };
            let mut guests = Vec::new();
            for (taxpayer, name) in [(TaxpayerId(1), "guest"), (TaxpayerId(2), "other")] {
                let place = ContactChange {
                    taxpayer,
                    by: Actor::CommandLine,
                    now: NOW,
                };
                let person = NewPerson {
                    first_name: name.into(),
                    last_name: "Obi".into(),
                    email: format!("{name}@example.com"),
                    role: ContactRole::Owner,
                };
                let id = contacts::add(store, place, &person).await.unwrap();
                guests.push(SessionOwner::Contact {
                    taxpayer,
                    id: id.unwrap(),
                });
            }
            for (byte, end) in [(1, "revoke"), (2, "disable"), (3, "demote"), (4, "remove")] {
                let now = NOW + Duration::from_secs(u64::from(byte));
                let makers = if byte < 3 {
                    [ledgers, bola]
                } else {
                    [bola, ledgers]
                };
                enable_account(store, change(ledgers)).await.unwrap();
                set_operator_role(store, change(bola), OperatorRole::Admin)
                    .await
                    .unwrap();
                let tokens = [byte, byte + 10].map(|byte| InvitationToken::new([byte; 32]));
                for ((token, guest), maker) in tokens.iter().zip(&guests).zip(makers) {
                    let made = invite(store, token, *guest, maker, now).await;
                    assert!(made.is_some(), "{end}");
                }
                let change = change(makers[0]);
                let viewer = OperatorRole::Viewer;
                let outcome = match end {
                    "revoke" => revoke_account_access(store, change, false)
                        .await
                        .map(|ended| AccessChangeOutcome::Done(ended.unwrap())),
                    "disable" => disable_account(store, change, false).await,
                    "demote" => set_operator_role(store, change, viewer).await,
                    _ => remove_operator(store, change).await,
                };
                assert!(
                    matches!(outcome.unwrap(), AccessChangeOutcome::Done(_)),
                    "{end}"
                );
                let mut open = Vec::new();
                for token in &tokens {
                    let found = invitations::find(store, token, now).await;
                    open.push(found.unwrap().is_some());
                }
                assert_eq!(open, [false, true], "{end}");
                // The right was checked before it ended, and the link is stored after.
                let late = InvitationToken::new([byte + 20; 32]);
                let made = invite(store, &late, guests[0], makers[0], now).await;
                assert_eq!(made.is_some(), end == "revoke", "{end}");
            }
        }
    }

    #[tokio::test]
    async fn a_disabled_account_has_no_key_and_gets_none() {
        for test in stores().await {
            let store = &test.store;
            operator(&test, "ada", OperatorRole::Admin).await;
            let bola = operator(&test, "bola", OperatorRole::Operator).await;
            let new = NewIntegrator {
                name: "Ledgers".into(),
                email: "ledgers@example.com".into(),
                password_hash: None,
                key: NewKey::from(SecretString::from("sik_one")),
            };
            let id = accounts::add_integrator(store, &new, NOW).await.unwrap().0;
            let integrator = KeyOwner {
                kind: KeyKind::Integrator,
                id,
            };
            for (owner, key) in [(bola, "opk_bola"), (integrator, "sik_one")] {
                let ended = RevokedCounts {
                    revoked: 1,
                    ..RevokedCounts::default()
                };
                assert!(
                    keys::find_valid(store, owner.kind, key, NOW)
                        .await
                        .unwrap()
                        .is_some()
                );
                let done = disable_account(store, change(owner), false).await.unwrap();
                assert_eq!(done, AccessChangeOutcome::Done(ended));
                assert_eq!(
                    keys::find_valid(store, owner.kind, key, NOW).await.unwrap(),
                    None
                );
                let next = NewKey::from(SecretString::from(format!("{key}_next")));
                let rotated = accounts::rotate_key(store, change(owner), &next)
                    .await
                    .unwrap();
                assert_eq!(rotated, KeyRotationOutcome::Disabled);
                enable_account(store, change(owner)).await.unwrap();
                assert_eq!(
                    keys::find_valid(store, owner.kind, key, NOW).await.unwrap(),
                    None
                );
                let rotated = accounts::rotate_key(store, change(owner), &next)
                    .await
                    .unwrap();
                assert_eq!(rotated, KeyRotationOutcome::Done);
            }
        }
    }
}
