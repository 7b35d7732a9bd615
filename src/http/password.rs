//! Password hashes: Argon2id in the PHC string format. Hashing is expensive on purpose, so the number of running and
//! waiting hashes is limited. Passwords of new taxpayers have limits of their own, which leave room for sign-ins, and
//! integrators take turns with them. Accounts with the same email share a salt, so one hash checks a password against
//! all of them: the time of a sign-in does not show how many accounts an email has.

use std::sync::Arc;

use argon2::password_hash::{CustomizedPasswordHasher, Error, PasswordHasher};
use argon2::{Argon2, Params, PasswordHash};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::actors::turn_gate::TurnGate;
use crate::domain::access::payer::Payer;
use crate::domain::kernel::ids::IntegratorId;
use crate::http::limits::KeyedSemaphores;
use crate::http::respond::error::{ApiError, RETRY_AFTER, overload_error};

/// The number of hashes that run at the same time. Each takes one core and 19 MiB.
const CONCURRENT_HASHES_MAX: usize = 2;
/// The maximum number of hashes for sign-ins that run or wait. The last of them waits less than a second.
const SIGN_IN_HASHES_MAX: usize = 32;
/// The maximum number of hashes for the new taxpayers of one integrator that run or wait.
const INTEGRATOR_HASHES_MAX: usize = 16;
/// The number of hashes for new taxpayers that run at the same time. The rest of `CONCURRENT_HASHES_MAX` is left to
/// people who sign in.
const CONCURRENT_ONBOARDINGS_MAX: usize = 1;

/// Hashes passwords. All requests of the process share one queue.
#[derive(Debug)]
pub struct Passwords {
    sign_in_slots: Semaphore,
    onboarding_slots: KeyedSemaphores<IntegratorId>,
    onboarding_turns: Arc<TurnGate>,
    running_slots: Semaphore,
}

impl Default for Passwords {
    fn default() -> Self {
        Self {
            sign_in_slots: Semaphore::new(SIGN_IN_HASHES_MAX),
            onboarding_slots: KeyedSemaphores::new(INTEGRATOR_HASHES_MAX),
            onboarding_turns: TurnGate::new(CONCURRENT_ONBOARDINGS_MAX),
            running_slots: Semaphore::new(CONCURRENT_HASHES_MAX),
        }
    }
}

impl Passwords {
    /// Hashes a password on a blocking thread. `same_email_hash` is the hash of another account with the same email,
    /// whose salt is used again. If too many hashes wait, the error asks the caller to retry.
    pub(crate) async fn hash(
        &self,
        password: SecretString,
        same_email_hash: Option<String>,
    ) -> Result<String, ApiError> {
        let hash = self
            .run_unless_queue_full(move || hash(&password, same_email_hash.as_deref()))
            .await?;
        hash.map_err(ApiError::internal)
    }

    /// Hashes the password that an integrator sets for the contact person of a new taxpayer. Integrators take turns. If
    /// too many hashes of this integrator wait, the error asks the caller to retry.
    pub(crate) async fn hash_for_integrator(
        &self,
        integrator: IntegratorId,
        password: SecretString,
        same_email_hash: Option<String>,
    ) -> Result<String, ApiError> {
        let slots = self.onboarding_slots.for_holder(integrator);
        let _slot = slots
            .try_acquire_owned()
            .map_err(|_| overload_error(RETRY_AFTER))?;
        let _turn = self
            .onboarding_turns
            .take(Some(Payer::Integrator(integrator)), 1)
            .await;
        let hash = self
            .run_blocking(move || hash(&password, same_email_hash.as_deref()))
            .await?;
        hash.map_err(ApiError::internal)
    }

    /// Returns the positions of the hashes that match the password. Computes one hash for each salt, and one if there
    /// are no hashes, so the time of an answer does not show whether an account exists.
    pub(crate) async fn find_matches(
        &self,
        password: SecretString,
        hashes: Vec<String>,
    ) -> Result<Vec<usize>, ApiError> {
        self.run_unless_queue_full(move || find_matches(&password, &hashes))
            .await
    }

    async fn run_unless_queue_full<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let _slot = self
            .sign_in_slots
            .try_acquire()
            .map_err(|_| overload_error(RETRY_AFTER))?;
        self.run_blocking(work).await
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let _running = self
            .running_slots
            .acquire()
            .await
            .map_err(ApiError::internal)?;
        spawn_blocking(work).await.map_err(ApiError::internal)
    }

    /// Takes every slot of this integrator, so that its further hashes are refused.
    #[cfg(test)]
    pub(crate) async fn take_all_slots(
        &self,
        integrator: IntegratorId,
    ) -> tokio::sync::OwnedSemaphorePermit {
        let slots = u32::try_from(INTEGRATOR_HASHES_MAX).unwrap();
        self.onboarding_slots
            .for_holder(integrator)
            .acquire_many_owned(slots)
            .await
            .unwrap()
    }
}

/// Hashes a password at the cost that OWASP recommends (19 MiB, two passes; about 20 ms), with the salt of another hash
/// of the same email, or with a random one.
pub(crate) fn hash(
    password: &SecretString,
    same_email_hash: Option<&str>,
) -> Result<String, Error> {
    let hasher = Argon2::default();
    let password = password.expose_secret().as_bytes();
    let salted_hash = same_email_hash.and_then(|hash| PasswordHash::new(hash).ok());
    let hash: PasswordHash = match salted_hash.and_then(|hash| hash.salt) {
        Some(salt) => hasher.hash_password_with_salt(password, &salt)?,
        None => hasher.hash_password(password)?,
    };
    Ok(hash.to_string())
}

fn find_matches(password: &SecretString, hashes: &[String]) -> Vec<usize> {
    let mut computed: Vec<PasswordHash> = Vec::new();
    let mut positions = Vec::new();
    for (index, stored) in hashes.iter().enumerate() {
        let Ok(stored) = PasswordHash::new(stored) else {
            continue;
        };
        let known = computed
            .iter()
            .position(|hash| has_same_hash_parameters(hash, &stored));
        if known.is_none() {
            computed.extend(hash_with_stored_parameters(password, &stored));
        }
        let own = known.map_or_else(|| computed.last(), |known| computed.get(known));
        // The comparison of outputs takes constant time. All hashes are compared, even after a match.
        let is_right = own
            .is_some_and(|own| has_same_hash_parameters(own, &stored) && own.hash == stored.hash);
        if is_right {
            positions.push(index);
        }
    }
    if computed.is_empty() && hash(password, None).is_err() {
        return Vec::new();
    }
    positions
}

/// Hashes a password with the salt and the cost of a stored hash.
fn hash_with_stored_parameters(
    password: &SecretString,
    stored: &PasswordHash,
) -> Option<PasswordHash> {
    let salt = stored.salt.as_ref()?;
    let algorithm = Some(stored.algorithm.as_str());
    let params = Params::try_from(stored).ok()?;
    let password = password.expose_secret().as_bytes();
    Argon2::default()
        .hash_password_customized(password, salt, algorithm, stored.version, params)
        .ok()
}

fn has_same_hash_parameters(left: &PasswordHash, right: &PasswordHash) -> bool {
    left.algorithm == right.algorithm
        && left.version == right.version
        && left.params == right.params
        && left.salt == right.salt
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passwords() -> [SecretString; 2] {
        ["correct horse", "correct hors"].map(SecretString::from)
    }

    #[test]
    fn a_hash_names_its_cost_and_knows_its_password_and_no_other() {
        let [right, wrong] = passwords();
        let hash = hash(&right, None).unwrap();
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        assert_eq!(find_matches(&right, std::slice::from_ref(&hash)), [0]);
        assert!(find_matches(&wrong, &[hash]).is_empty());
        assert!(find_matches(&right, &[]).is_empty());
    }

    #[test]
    fn the_matching_hashes_of_one_email_are_found() {
        let [one, two] = passwords();
        let first = hash(&one, None).unwrap();
        let second = hash(&two, Some(&first)).unwrap();
        let foreign = hash(&two, None).unwrap();
        let salt = |hash: &str| PasswordHash::new(hash).unwrap().salt;
        assert_eq!(salt(&first), salt(&second));
        assert_ne!(salt(&first), salt(&foreign));
        let all = [first, "odd".to_owned(), second, foreign];
        assert_eq!(find_matches(&one, &all), [0]);
        assert_eq!(find_matches(&two, &all), [2, 3], "salts may differ");
        assert!(find_matches(&"another".into(), &all).is_empty());
    }

    #[actix_web::test]
    async fn an_integrator_with_too_many_waiting_hashes_is_refused_and_others_are_not() {
        let passwords = Passwords::default();
        let _all = passwords.take_all_slots(IntegratorId(1)).await;
        let password = || SecretString::from("another password");
        let refused = passwords
            .hash_for_integrator(IntegratorId(1), password(), None)
            .await
            .unwrap_err();
        assert_eq!(
            (refused.status.as_u16(), refused.retry_after),
            (503, Some(RETRY_AFTER))
        );
        assert!(
            passwords
                .hash_for_integrator(IntegratorId(2), password(), None)
                .await
                .is_ok()
        );
        assert!(passwords.hash(password(), None).await.is_ok());
    }

    #[actix_web::test]
    async fn new_taxpayers_leave_a_slot_to_people_who_sign_in() {
        let passwords = Passwords::default();
        let _turn = passwords
            .onboarding_turns
            .take(None, CONCURRENT_ONBOARDINGS_MAX)
            .await;
        let mut waiting = Box::pin(passwords.hash_for_integrator(
            IntegratorId(1),
            "another password".into(),
            None,
        ));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        assert_eq!(
            passwords.running_slots.available_permits(),
            CONCURRENT_HASHES_MAX
        );
        assert!(
            passwords
                .find_matches("another password".into(), Vec::new())
                .await
                .is_ok()
        );
    }

    #[test]
    fn the_same_password_has_another_hash_each_time() {
        let password = SecretString::from("correct horse");
        assert_ne!(
            hash(&password, None).unwrap(),
            hash(&password, None).unwrap()
        );
    }
}
