//! Password hashes: Argon2id in the PHC string format. Hashing is expensive on purpose, so the number of running and
//! waiting hashes is limited. The deployment's default password is hashed only once.

use argon2::Argon2;
use argon2::password_hash::{Error, PasswordHasher, PasswordVerifier};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::spawn_blocking;

use crate::http::respond::error::{ApiError, RETRY_AFTER, overloaded};

/// The number of hashes that run at the same time. Each takes one core and 19 MiB.
const AT_ONCE: usize = 2;
/// The largest number of hashes that run or wait. With this many hashes, the last one waits less than a second.
const ADMITTED_MAX: usize = 32;

/// Hashes passwords. All requests of the process share one queue.
#[derive(Debug)]
pub struct Passwords {
    /// The password that a contact person gets if Create Taxpayer names none.
    default: SecretString,
    default_hash: OnceCell<String>,
    admitted: Semaphore,
    working: Semaphore,
}

/// A password hash to store. `must_change` is true for the default password of the deployment.
#[derive(Debug)]
pub(crate) struct KeptPassword {
    pub(crate) hash: String,
    pub(crate) must_change: bool,
}

impl Passwords {
    pub fn new(default: SecretString) -> Self {
        let (admitted, working) = (Semaphore::new(ADMITTED_MAX), Semaphore::new(AT_ONCE));
        Self { default, default_hash: OnceCell::new(), admitted, working }
    }

    /// Hashes a password on a blocking thread. Without a password, returns the hash of the default password, which must
    /// be changed. If too many hashes wait, the error asks the caller to retry.
    pub(crate) async fn keep(&self, password: Option<SecretString>) -> Result<KeptPassword, ApiError> {
        let Some(password) = password else {
            let hash = self.default_hash.get_or_try_init(|| self.hashed(self.default.clone())).await?;
            return Ok(KeptPassword { hash: hash.clone(), must_change: true });
        };
        Ok(KeptPassword { hash: self.hashed(password).await?, must_change: false })
    }

    /// Returns true if the hash is one of this password. Without a hash, spends the same time and returns false, so that
    /// the time of an answer does not show whether an account exists.
    pub(crate) async fn is_right(
        &self,
        password: SecretString,
        hash: Option<String>,
    ) -> Result<bool, ApiError> {
        let _admitted = self.admitted.try_acquire().map_err(|_| overloaded(RETRY_AFTER))?;
        let _working = self.working.acquire().await.map_err(ApiError::internal)?;
        let checked = spawn_blocking(move || match hash {
            Some(hash) => verify(&password, &hash),
            None => self::hash(&password).is_err(),
        });
        checked.await.map_err(ApiError::internal)
    }

    /// Takes every place of the queue, so that further hashes are refused.
    #[cfg(test)]
    pub(crate) async fn fill(&self) -> tokio::sync::SemaphorePermit<'_> {
        let places = u32::try_from(ADMITTED_MAX).unwrap();
        self.admitted.acquire_many(places).await.unwrap()
    }

    async fn hashed(&self, password: SecretString) -> Result<String, ApiError> {
        let _admitted = self.admitted.try_acquire().map_err(|_| overloaded(RETRY_AFTER))?;
        let _working = self.working.acquire().await.map_err(ApiError::internal)?;
        let hash = spawn_blocking(move || hash(&password));
        hash.await.map_err(ApiError::internal)?.map_err(ApiError::internal)
    }
}

/// Hashes a password at the cost that OWASP recommends (19 MiB, two passes; about 20 ms).
pub(crate) fn hash(password: &SecretString) -> Result<String, Error> {
    let hash = Argon2::default().hash_password(password.expose_secret().as_bytes())?;
    Ok(hash.to_string())
}

fn verify(password: &SecretString, hash: &str) -> bool {
    Argon2::default().verify_password(password.expose_secret().as_bytes(), hash).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_names_its_cost_and_knows_its_password_and_no_other() {
        let [right, wrong] = ["correct horse", "correct hors"].map(SecretString::from);
        let hash = hash(&right).unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(verify(&right, &hash));
        assert!(!verify(&wrong, &hash));
    }

    #[actix_web::test]
    async fn the_deployments_password_is_hashed_once_and_has_to_be_changed() {
        let passwords = Passwords::new("the first password".into());
        let (one, two) = (passwords.keep(None).await.unwrap(), passwords.keep(None).await.unwrap());
        assert_eq!((&one.hash, one.must_change), (&two.hash, true));
        let own = passwords.keep(Some("the first password".into())).await.unwrap();
        assert!(own.hash != one.hash && !own.must_change);
    }

    #[actix_web::test]
    async fn where_many_wait_the_next_one_is_asked_to_come_back() {
        let passwords = Passwords::new("the first password".into());
        let _all = passwords.fill().await;
        let refused = passwords.keep(Some("another password".into())).await.unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after), (503, Some(RETRY_AFTER)));
    }

    #[test]
    fn the_same_password_has_another_hash_each_time() {
        let password = SecretString::from("correct horse");
        assert_ne!(hash(&password).unwrap(), hash(&password).unwrap());
    }
}
