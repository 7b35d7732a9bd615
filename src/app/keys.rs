//! Commands that list, rotate and revoke API keys. A command that ends keys returns only when no running service
//! accepts these keys any more.

use database::page::Page;
use rand::RngExt;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use timing::clock::{self, Clock, SystemClock};

use crate::app::database::open_beside_service;
use crate::app::error::StartError;
use crate::config::Settings;
use crate::domain::access::api_key::{KeyOwner, KeyTerms, NewKey};
use crate::domain::access::caller::{KeyKind, new_key};
use crate::domain::kernel::audit::Actor;
use crate::http::views::account::{AccountView, NewApiKey, RevokedKeys};
use crate::store::Store;
use crate::store::accounts::{self, AccountChange, KeyRotationOutcome, access};

/// The number of accounts read at a time.
const PER_PAGE: u64 = 500;

/// Lists all integrators or all operators with facts about their API keys. The keys themselves are not stored.
pub async fn list_accounts(settings: Settings, kind: KeyKind) -> Result<Value, StartError> {
    let store = open_beside_service(&settings).await?;
    let accounts = load_accounts(&store, kind).await;
    store.close().await;
    let name = if kind == KeyKind::Operator {
        "operators"
    } else {
        "integrators"
    };
    Ok(json!({ name: accounts? }))
}

async fn load_accounts(store: &Store, kind: KeyKind) -> Result<Vec<Value>, StartError> {
    let mut views = Vec::new();
    let mut number = 1;
    loop {
        let (page, total) = accounts::load_account_page(
            store,
            kind,
            Page {
                number,
                per_page: PER_PAGE,
            },
        )
        .await?;
        views.extend(
            page.iter()
                .map(|account| json!(AccountView::new(account, SystemClock.now()))),
        );
        if number * PER_PAGE >= total {
            return Ok(views);
        }
        number += 1;
    }
}

/// Gives an account a new API key. The returned JSON is the only place where the new key can be read.
pub async fn rotate_key(
    settings: Settings,
    owner: KeyOwner,
    terms: KeyTerms,
) -> Result<Value, StartError> {
    let change = account_change(owner, &terms)?;
    let store = open_beside_service(&settings).await?;
    let key = new_key(owner.kind, clock::system_rng().random());
    let outcome = accounts::rotate_key(&store, change, &NewKey::new(key.clone(), terms)).await;
    store.close().await;
    match outcome? {
        KeyRotationOutcome::Done => {}
        KeyRotationOutcome::Unknown => return Err(StartError::no_account(owner)),
        KeyRotationOutcome::Disabled => {
            return Err(StartError::DisabledAccount {
                kind: owner.kind,
                id: owner.id,
            });
        }
    }
    Ok(json!(NewApiKey {
        id: owner.id,
        api_key: key.expose_secret()
    }))
}

/// Revokes all API keys of an account and ends its sessions. With `includes_taxpayers`, also revokes the keys of the
/// integrator's taxpayers.
pub async fn revoke_keys(
    settings: Settings,
    owner: KeyOwner,
    includes_taxpayers: bool,
) -> Result<Value, StartError> {
    let change = account_change(owner, &KeyTerms::default())?;
    let store = open_beside_service(&settings).await?;
    let counts = access::revoke_account_access(&store, change, includes_taxpayers).await;
    store.close().await;
    let counts = counts?.ok_or_else(|| StartError::no_account(owner))?;
    Ok(json!(RevokedKeys::new(owner.id, counts)))
}

/// Returns the key change to carry out. Fails if `terms` has an expiry time that has passed.
fn account_change(owner: KeyOwner, terms: &KeyTerms) -> Result<AccountChange, StartError> {
    let now = SystemClock.now();
    check_not_expired(terms)?;
    Ok(AccountChange {
        owner,
        by: Actor::CommandLine,
        reason: None,
        address: None,
        now,
    })
}

/// Refuses terms whose expiry time has passed.
pub(super) fn check_not_expired(terms: &KeyTerms) -> Result<(), StartError> {
    match terms.expires_at.filter(|end| *end <= SystemClock.now()) {
        Some(end) => Err(StartError::KeyEndPassed(end)),
        None => Ok(()),
    }
}
