//! Passwords as they are kept: Argon2id in the PHC string format, which names its own cost.

use argon2::Argon2;
use argon2::password_hash::{Error, PasswordHasher};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::http::error::ApiError;

/// Hashes worked on at a time: each takes a core and 19 MiB.
static HASHES: Semaphore = Semaphore::const_new(2);

/// Hashes a password off the threads that answer requests.
pub(crate) async fn hash_aside(password: SecretString) -> Result<String, ApiError> {
    let _place = HASHES.acquire().await.map_err(ApiError::internal)?;
    let hash = spawn_blocking(move || hash(&password));
    hash.await.map_err(ApiError::internal)?.map_err(ApiError::internal)
}

/// Hashes a password at the library's own cost (19 MiB, two passes), which is what OWASP advises: some 20 ms.
pub(crate) fn hash(password: &SecretString) -> Result<String, Error> {
    let hash = Argon2::default().hash_password(password.expose_secret().as_bytes())?;
    Ok(hash.to_string())
}

#[cfg(test)]
mod tests {
    use argon2::password_hash::PasswordVerifier;

    use super::*;

    #[test]
    fn a_hash_names_its_cost_and_knows_its_password_and_no_other() {
        let [right, wrong] = ["correct horse", "correct hors"].map(SecretString::from);
        let hash = hash(&right).unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        let verify = |password: &SecretString| {
            Argon2::default().verify_password(password.expose_secret().as_bytes(), &*hash)
        };
        assert!(verify(&right).is_ok());
        assert!(verify(&wrong).is_err());
    }

    #[test]
    fn the_same_password_has_another_hash_each_time() {
        let password = SecretString::from("correct horse");
        assert_ne!(hash(&password).unwrap(), hash(&password).unwrap());
    }
}
