//! Commands that change accounts, and may run beside a service on the same database. A change of a taxpayer raises the
//! version of the taxpayer's row in the table `lanes`, which tells the service to load the taxpayer again.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use database::StoreError;
use rand::RngExt;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use supervision::{AdmissionLimits, Arbiters, Tree};
use timing::clock::{self, Clock, SharedClock, SystemClock};

use crate::actors::kinds;
use crate::actors::notifiers::Notifiers;
use crate::actors::taxpayer::TaxpayerDeps;
use crate::actors::taxpayer::commands::SetSubscription;
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::actors::taxpayer::scheduled_panics::ScheduledPanics;
use crate::app::database::open_beside_service;
use crate::app::error::StartError;
use crate::app::keys::check_not_expired;
use crate::config::Settings;
use crate::domain::access::api_key::{KeyOwner, KeyTerms, NewKey};
use crate::domain::access::caller::{KeyKind, new_key};
use crate::domain::access::session::{OperatorRole, SessionOwner};
use crate::domain::kernel::audit::{Actor, AuditAction};
use crate::domain::kernel::codes::Subscription;
use crate::domain::kernel::ids::{ContactId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::email::is_email;
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::reference::catalog::SharedCatalog;
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::text_checks::check_single_line;
use crate::http::password;
use crate::store::Store;
use crate::store::accounts::people::{self, PasswordChange};
use crate::store::accounts::person_accounts;
use crate::store::accounts::second_factors::{self, FactorRemoval};
use crate::store::accounts::{self, NewIntegrator, NewOperator};

/// Brings the database schema up to date.
pub async fn migrate(settings: Settings) -> Result<(), StartError> {
    open_beside_service(&settings).await?.close().await;
    Ok(())
}

/// Creates an integrator. The returned JSON is the only place where the password and the API key can be read.
pub async fn create_integrator(
    settings: Settings,
    name: String,
    email: String,
    terms: KeyTerms,
) -> Result<Value, StartError> {
    let name = check_name(&name)?;
    check_email(&email)?;
    check_not_expired(&terms)?;
    let store = open_beside_service(&settings).await?;
    let key = new_key(KeyKind::Integrator, clock::system_rng().random());
    let password = random_password();
    let integrator = NewIntegrator {
        name: name.clone(),
        email: email.clone(),
        password_hash: Some(hash_password(&store, &email, &password).await?),
        key: NewKey::new(key.clone(), terms),
    };
    let id = accounts::add_integrator(&store, &integrator, SystemClock.now()).await;
    store.close().await;
    let id = id.map_err(|error| email_taken_error(error, &email))?;
    let password = password.expose_secret();
    let key = key.expose_secret();
    Ok(json!({ "id": id, "name": name, "email": email, "password": password, "api_key": key }))
}

/// Creates an operator. The returned JSON is the only place where the password and the API key can be read.
pub async fn create_operator(
    settings: Settings,
    email: String,
    role: OperatorRole,
    terms: KeyTerms,
) -> Result<Value, StartError> {
    check_email(&email)?;
    check_not_expired(&terms)?;
    let store = open_beside_service(&settings).await?;
    let password = random_password();
    let hash = hash_password(&store, &email, &password).await?;
    let key = new_key(KeyKind::Operator, clock::system_rng().random());
    let now = SystemClock.now();
    let stored_key = NewKey::new(key.clone(), terms);
    let operator = NewOperator {
        email: email.clone(),
        password_hash: hash,
        role,
        key: stored_key,
    };
    let id = accounts::add_operator(&store, &operator, now).await;
    store.close().await;
    let id = id.map_err(|error| email_taken_error(error, &email))?;
    let password = password.expose_secret();
    let key = key.expose_secret();
    Ok(json!({ "id": id, "email": email, "role": role, "password": password, "api_key": key }))
}

/// Gives an operator or an integrator a new password. The returned JSON is the only place where the password can be
/// read.
pub async fn set_new_password(settings: Settings, account: KeyOwner) -> Result<Value, StartError> {
    let owner = account
        .session_owner()
        .ok_or_else(|| StartError::no_account(account))?;
    let password = random_password();
    let store = open_beside_service(&settings).await?;
    let person = person_accounts::find_person(&store, owner).await?;
    let person = person.ok_or_else(|| StartError::no_account(account))?;
    let hash = hash_password(&store, &person.email, &password).await?;
    let change = PasswordChange {
        owner,
        hash: &hash,
        replaces: None,
        by: Actor::CommandLine,
    };
    let outcome = people::set_password(&store, change, SystemClock.now()).await;
    store.close().await;
    outcome?.ok_or_else(|| StartError::no_account(account))?;
    Ok(json!({ "id": account.id, "password": password.expose_secret() }))
}

/// Removes the second factor of an operator or an integrator. Until the person sets up a new one, the password alone is
/// enough to sign in.
pub async fn reset_totp(settings: Settings, account: KeyOwner) -> Result<Value, StartError> {
    let owner = account
        .session_owner()
        .ok_or_else(|| StartError::no_account(account))?;
    remove_second_factor(settings, owner)
        .await?
        .ok_or_else(|| StartError::no_account(account))
}

/// Removes the second factor of a contact person of a taxpayer.
pub async fn reset_contact_totp(
    settings: Settings,
    taxpayer: TaxpayerId,
    id: ContactId,
) -> Result<Value, StartError> {
    remove_second_factor(settings, SessionOwner::Contact { taxpayer, id })
        .await?
        .ok_or(StartError::NoContact { taxpayer, id })
}

async fn remove_second_factor(
    settings: Settings,
    owner: SessionOwner,
) -> Result<Option<Value>, StartError> {
    let store = open_beside_service(&settings).await?;
    let removal = FactorRemoval {
        owner,
        by: Actor::CommandLine,
        action: AuditAction::ResetSecondFactor,
        reason: None,
        now: SystemClock.now(),
    };
    let outcome = second_factors::remove(&store, removal).await;
    store.close().await;
    Ok(outcome?.map(|had_totp| json!({ "id": owner.id(), "had_totp": had_totp })))
}

/// Hashes a password with the salt of another account with this email, if there is one. A sign-in with this email may
/// mean any of the accounts, and so needs to hash the typed password only once.
async fn hash_password(
    store: &Store,
    email: &str,
    password: &SecretString,
) -> Result<String, StartError> {
    let salt = people::find_password_hash_by_email(store, email).await?;
    password::hash(password, salt.as_deref()).map_err(|_| StartError::PasswordHash)
}

/// Returns a password of 144 random bits.
pub(super) fn random_password() -> SecretString {
    SecretString::from(URL_SAFE_NO_PAD.encode(clock::system_rng().random::<[u8; 18]>()))
}

/// Returns the trimmed name of an account. Rejects a name that the API would reject, too.
fn check_name(name: &str) -> Result<String, StartError> {
    let name = name.trim();
    if name.is_empty() {
        return Err(StartError::EmptyName);
    }
    check_single_line(name, 0, TEXT_CHARS_MAX).map_err(StartError::InvalidName)
}

/// Rejects text that is not an email address.
fn check_email(email: &str) -> Result<(), StartError> {
    if is_email(email) {
        Ok(())
    } else {
        Err(StartError::InvalidEmail(email.to_owned()))
    }
}

fn email_taken_error(error: StoreError, email: &str) -> StartError {
    match error {
        StoreError::Duplicate(_) => StartError::EmailTaken(email.to_owned()),
        other => other.into(),
    }
}

/// Sets whether a taxpayer may create invoices.
pub async fn set_subscription(
    settings: Settings,
    id: i64,
    subscription: Subscription,
) -> Result<(), StartError> {
    let store = open_beside_service(&settings).await?;
    let clock: SharedClock = Arc::new(SystemClock);
    let arbiters = Arc::new(Arbiters::start(1));
    let taxpayer_deps = TaxpayerDeps {
        store: store.clone(),
        clock: clock.clone(),
        notifiers: Notifiers::default(),
        deadlines: DeadlinePolicy::default(),
        verification: VerificationPolicy::Warn,
        scheduled_panics: ScheduledPanics::default(),
        catalog: SharedCatalog::default(),
    };
    let taxpayers = TaxpayerHandle::new(
        taxpayer_deps,
        &Tree::new(clock, kinds::ALL),
        &arbiters,
        AdmissionLimits::default(),
    );
    let outcome = taxpayers
        .send(
            TaxpayerId(id),
            SetSubscription {
                to: subscription,
                by: Actor::CommandLine,
            },
        )
        .await;
    arbiters.stop();
    arbiters.join().await;
    store.close().await;
    match outcome {
        Err(TaxpayerError::Refused(Refusal::TaxpayerNotFound)) => Err(StartError::NoTaxpayer(id)),
        other => other.map(drop).map_err(StartError::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn an_account_needs_a_name_and_an_address() {
        let settings = || Settings::load(None, std::iter::empty()).unwrap();
        let integrator = |name: &str, email: &str| {
            create_integrator(
                settings(),
                name.to_owned(),
                email.to_owned(),
                KeyTerms::default(),
            )
        };
        assert!(matches!(
            integrator(" ", "a@example.com").await,
            Err(StartError::EmptyName)
        ));
        let letters = "\u{e9}".repeat(256);
        for (name, expected) in [
            (
                letters.as_str(),
                "the name of an account must not be greater than 255 characters",
            ),
            (
                "a\nb",
                "the name of an account must not contain control characters or noncharacters",
            ),
        ] {
            let error = integrator(name, "a@example.com").await.unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        assert_eq!(check_name(&letters[2..]).unwrap().chars().count(), 255);
        assert_eq!(check_name(" One ").unwrap(), "One");
        assert!(matches!(
            integrator("One", "a@b").await,
            Err(StartError::InvalidEmail(_))
        ));
        let error = create_operator(
            settings(),
            "op".to_owned(),
            OperatorRole::Viewer,
            KeyTerms::default(),
        )
        .await
        .unwrap_err();
        assert_eq!(error.to_string(), "\"op\" is not an email address");
    }
}
