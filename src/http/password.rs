//! Passwords as they are kept: Argon2id in the PHC string format, which names its own cost.

use argon2::password_hash::{Error, PasswordHasher};
use argon2::{Algorithm, Argon2, Params, Version};
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

/// Hashes a password; it takes some 20 ms.
pub(crate) fn hash(password: &SecretString) -> Result<String, Error> {
    let hash = argon2().hash_password(password.expose_secret().as_bytes())?;
    Ok(hash.to_string())
}

/// The library's own cost (19 MiB, two passes), which is what OWASP advises. Builds with debug assertions are for
/// tests, which make hundreds of accounts.
fn argon2() -> Argon2<'static> {
    if cfg!(debug_assertions) {
        let params = Params::new(Params::MIN_M_COST, Params::MIN_T_COST, Params::MIN_P_COST, None);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params.unwrap_or_default())
    } else {
        Argon2::default()
    }
}

#[cfg(test)]
mod tests {
    use argon2::password_hash::PasswordVerifier;

    use super::*;

    #[test]
    fn a_hash_names_its_cost_and_knows_its_password_and_no_other() {
        let [right, wrong] = ["correct horse", "correct hors"].map(SecretString::from);
        let hash = hash(&right).unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m="), "{hash}");
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
