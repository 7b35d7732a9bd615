//! Secrets that are made here: keys, signing secrets, hashes of passwords. Chance is the operating system's.

use argon2::Argon2;
use argon2::password_hash::PasswordHasher;
use rand::TryRng;
use rand::rngs::SysRng;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::domain::caller::{KeyKind, new_key};
use crate::domain::delivery::SecretType;
use crate::http::error::ApiError;
use crate::webhook::Secret;

/// Hashes worked on at a time: each takes a core and 19 MiB.
static HASHES: Semaphore = Semaphore::const_new(2);

pub(crate) fn key(kind: KeyKind) -> Result<SecretString, ApiError> {
    let mut random = [0; 32];
    SysRng.try_fill_bytes(&mut random).map_err(ApiError::internal)?;
    Ok(new_key(kind, random))
}

pub(crate) fn webhook_secret(kind: SecretType) -> Secret {
    match kind {
        SecretType::Hmac => Secret::generate(&mut rand::rng()),
        SecretType::Ed25519 => Secret::generate_pair(&mut rand::rng()),
    }
}

/// Argon2id in the PHC string format, off the threads that answer requests.
pub(crate) async fn password_hash(password: SecretString) -> Result<String, ApiError> {
    let _place = HASHES.acquire().await.map_err(ApiError::internal)?;
    let hash = spawn_blocking(move || {
        let hash = Argon2::default().hash_password(password.expose_secret().as_bytes());
        hash.map(|hash| hash.to_string())
    });
    hash.await.map_err(ApiError::internal)?.map_err(ApiError::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn a_password_is_hashed_with_argon2id() {
        let hash = password_hash("correct horse battery".into()).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$"), "{hash}");
    }

    #[test]
    fn two_keys_differ() {
        let [one, other] = [key(KeyKind::Taxpayer).unwrap(), key(KeyKind::Taxpayer).unwrap()];
        assert_ne!(one.expose_secret(), other.expose_secret());
    }
}
