//! Opens the database of the settings: for the service, for a command that writes, and for a command that only reads.

use std::time::Duration;

use database::vault::Vault;
use database::{PoolSettings, StoreError};
use secrecy::ExposeSecret;

use crate::app::error::StartError;
use crate::config::Settings;
use crate::store::Store;
use crate::store::reseal::{self, UnsealedSample};

/// The time that a command waits for a busy SQLite database.
const COMMAND_LINE_BUSY_WAIT: Duration = Duration::from_secs(30);

/// Opens the database of the settings and brings its schema up to date.
pub async fn open_store(settings: &Settings) -> Result<Store, StartError> {
    open_with_pools(settings, &pool_settings(settings)).await
}

/// Opens and migrates the database for a service that is not paused. Fails if the encryption key opens none of the
/// stored secrets: deliveries, second factors and repeated requests would fail while the service seems healthy.
pub(super) async fn open_for_service(settings: &Settings) -> Result<Store, StartError> {
    let store = open_store(settings).await?;
    let UnsealedSample { read, unopened } = reseal::unseal_sample(&store).await?;
    if read > 0 && unopened == read && !reseal::can_unseal_any(&store).await? {
        return Err(StartError::OtherEncryptionKey { read });
    }
    if unopened > 0 {
        tracing::error!(
            unopened,
            read,
            "secrets in the database do not open: add the key that sealed them to secrets.encryption_keys"
        );
    }
    Ok(store)
}

/// Opens and migrates the database for a command. If SQLite is busy, a command waits longer than the service does,
/// because the service may be writing.
pub(super) async fn open_beside_service(settings: &Settings) -> Result<Store, StartError> {
    open_with_pools(
        settings,
        &PoolSettings {
            busy_wait: COMMAND_LINE_BUSY_WAIT,
            ..pool_settings(settings)
        },
    )
    .await
}

async fn open_with_pools(settings: &Settings, pools: &PoolSettings) -> Result<Store, StartError> {
    let opened = Store::open(
        settings.database_url().expose_secret(),
        pools,
        vault(settings)?,
    )
    .await;
    let store = opened.map_err(|source| open_error(settings, source))?;
    store
        .migrate()
        .await
        .map_err(|source| open_error(settings, source))?;
    Ok(store)
}

/// Returns the error for a database that cannot be opened. The error shows no credentials of the URL.
fn open_error(settings: &Settings, source: StoreError) -> StartError {
    StartError::Database {
        location: settings.database_location(),
        source,
    }
}

fn pool_settings(settings: &Settings) -> PoolSettings {
    let database = &settings.database;
    PoolSettings {
        writers_max: database.writer_connections_max,
        readers_max: database.reader_connections_max,
        page_readers_max: database.page_connections_max,
        lock_timeout: Duration::from_secs(database.lock_timeout_s),
        statement_timeout: Duration::from_secs(database.statement_timeout_s),
        idle_in_transaction_timeout: Duration::from_secs(database.idle_in_transaction_timeout_s),
        ..PoolSettings::default()
    }
}

/// Opens the database of the settings without changing its schema.
pub(super) async fn open_existing(settings: &Settings) -> Result<Store, StartError> {
    let url = settings.database_url();
    let pools = pool_settings(settings);
    let opened = Store::open_existing(url.expose_secret(), &pools, vault(settings)?).await;
    opened.map_err(|source| open_error(settings, source))
}

/// Opens the database of the settings with as few connections as possible, and without changing its schema.
pub(super) async fn open_for_inspection(
    settings: &Settings,
    vault: Vault,
) -> Result<Store, StoreError> {
    let pools = PoolSettings {
        writers_max: 1,
        readers_max: 1,
        page_readers_max: 1,
        ..pool_settings(settings)
    };
    Store::open_existing(settings.database_url().expose_secret(), &pools, vault).await
}

pub(super) fn vault(settings: &Settings) -> Result<Vault, StartError> {
    let secrets = &settings.secrets;
    let old = secrets
        .encryption_keys
        .iter()
        .map(ExposeSecret::expose_secret);
    Ok(Vault::new(secrets.encryption_key.expose_secret())?.with_old_keys(old)?)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sea_orm::ConnectionTrait as _;

    use super::*;
    use crate::store::testing::stores;

    async fn open_failure(url: String) -> String {
        let variable = ("EINVOICE__DATABASE__URL".to_owned(), url);
        let key = (
            "EINVOICE__SECRETS__ENCRYPTION_KEY".to_owned(),
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".into(),
        );
        let settings = Settings::load(None, [variable, key].into_iter()).unwrap();
        open_store(&settings).await.unwrap_err().to_string()
    }

    #[actix_web::test]
    async fn a_service_with_the_key_of_another_database_does_not_start() {
        let key = |byte: u8| STANDARD.encode([byte; 32]);
        for test in stores().await {
            let sealed = test.store.vault().seal("chat/7", "a secret").unwrap();
            let settings = |key_byte: u8, old_keys: &str| {
                let pairs = [
                    ("EINVOICE__DATABASE__URL", test.url.clone()),
                    ("EINVOICE__SECRETS__ENCRYPTION_KEY", key(key_byte)),
                    ("EINVOICE__SECRETS__ENCRYPTION_KEYS", old_keys.to_owned()),
                ];
                let pairs = pairs.map(|(name, value)| (name.to_owned(), value));
                Settings::load(None, pairs.into_iter()).unwrap()
            };
            open_for_service(&settings(8, "[]")).await.unwrap();
            let insert_answer = format!(
                "INSERT INTO idempotency_keys (id, fingerprint, answer, expires_at) \
                 VALUES ('chat/7', 'f', '{sealed}', 1)"
            );
            // Most endpoints have never replaced their secret.
            let endpoint = test.store.vault().seal("7", "whsec").unwrap();
            let insert_endpoint = format!(
                "INSERT INTO webhooks (taxpayer_id, id, url, enabled_events, is_active, secret, previous_secrets, \
                 created_at, updated_at) VALUES (7, 7, 'u', '[]', TRUE, '{endpoint}', '[]', 1, 1)"
            );
            let tx = test.store.begin().await.unwrap();
            tx.execute_unprepared(&insert_endpoint).await.unwrap();
            tx.execute_unprepared(&insert_answer).await.unwrap();
            tx.commit().await.unwrap();
            let refused = open_for_service(&settings(8, "[]")).await.unwrap_err();
            assert!(
                refused.to_string().contains("secrets.encryption_keys"),
                "{refused}"
            );
            open_for_service(&settings(7, "[]")).await.unwrap();
            let old_keys = format!("[\"{}\"]", key(7));
            open_for_service(&settings(8, &old_keys)).await.unwrap();
        }
    }

    #[actix_web::test]
    async fn a_service_with_a_new_key_starts_as_soon_as_it_opens_one_secret_of_many() {
        let sealed_by = |byte: u8, owner: i64| {
            let vault = Vault::new(&STANDARD.encode([byte; 32])).unwrap();
            vault.seal(&owner.to_string(), "whsec").unwrap()
        };
        for test in stores().await {
            let tx = test.store.begin().await.unwrap();
            // More endpoints than a sample reads. Only the last one has a secret of the new key.
            for id in 1..=250 {
                let secret = sealed_by(8, id);
                let insert_endpoint = format!(
                    "INSERT INTO webhooks (taxpayer_id, id, url, enabled_events, is_active, secret, previous_secrets, \
                     created_at, updated_at) VALUES ({id}, {id}, 'u', '[]', TRUE, '{secret}', '[]', 1, 1)"
                );
                tx.execute_unprepared(&insert_endpoint).await.unwrap();
            }
            tx.commit().await.unwrap();
            let pairs = [
                ("EINVOICE__DATABASE__URL", test.url.clone()),
                (
                    "EINVOICE__SECRETS__ENCRYPTION_KEY",
                    STANDARD.encode([9; 32]),
                ),
            ];
            let pairs = pairs.map(|(name, value)| (name.to_owned(), value));
            let settings = Settings::load(None, pairs.into_iter()).unwrap();
            open_for_service(&settings).await.unwrap_err();
            let replace_secret = format!(
                "UPDATE webhooks SET secret = '{}' WHERE taxpayer_id = 250",
                sealed_by(9, 250)
            );
            let tx = test.store.begin().await.unwrap();
            tx.execute_unprepared(&replace_secret).await.unwrap();
            tx.commit().await.unwrap();
            open_for_service(&settings).await.unwrap();
        }
    }

    #[actix_web::test]
    async fn a_database_that_cannot_be_opened_is_named_without_its_password() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("nowhere").join("einvoice.db");
        let expected = format!("the database {} cannot be opened", file.display());
        assert_eq!(
            open_failure(format!("sqlite://{}", file.display())).await,
            expected
        );
        let server = open_failure("postgres://user:s3cret@127.0.0.1:9/einvoice".to_owned()).await;
        assert_eq!(server, "the database 127.0.0.1:9/einvoice cannot be opened");
    }
}
