//! Known browsers. After a sign-in, a browser keeps a token that only this service can make and that is valid for this
//! person only. The token gives no access. It distinguishes the sign-in attempts of the person from those of strangers,
//! so that a stranger who tries passwords cannot lock the person out (OWASP, "Slow down online guessing attacks with
//! device cookies").

use database::StoreError;
use rand::RngExt;
use secrecy::{ExposeSecret, SecretString};
use timing::clock;

use crate::domain::access::session::SessionOwner;
use crate::store::Store;

/// A browser in which somebody has signed in, identified by a random number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device(u128);

/// Makes the token of a browser in which this person has signed in.
pub fn new_token(store: &Store, owner: SessionOwner) -> Result<SecretString, StoreError> {
    let device: u128 = clock::system_rng().random();
    store
        .vault()
        .seal(&name_in_vault(owner), &format!("{device:032x}"))
        .map(SecretString::from)
}

/// Returns the browser if the token was made for this person, otherwise `None`.
pub fn recognise(store: &Store, owner: SessionOwner, token: &SecretString) -> Option<Device> {
    let opened = store
        .vault()
        .open(&name_in_vault(owner), token.expose_secret())
        .ok()?;
    u128::from_str_radix(&opened, 16).ok().map(Device)
}

/// Returns the name under which the vault seals the token, so that it opens only for this person and this purpose.
fn name_in_vault(owner: SessionOwner) -> String {
    format!("device of {} {}", owner.kind(), owner.id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::ids::IntegratorId;
    use crate::store::testing::sqlite_store;

    #[tokio::test]
    async fn a_browser_is_known_to_one_person_only() {
        let store = &sqlite_store().await.store;
        let person = SessionOwner::Operator(7);
        let other = SessionOwner::Operator(8);
        let tokens = [
            new_token(store, person).unwrap(),
            new_token(store, person).unwrap(),
        ];
        let devices = tokens
            .each_ref()
            .map(|token| recognise(store, person, token).unwrap());
        assert_ne!(devices[0], devices[1]);
        assert_eq!(recognise(store, other, &tokens[0]), None);
        assert_eq!(
            recognise(store, SessionOwner::Integrator(IntegratorId(7)), &tokens[0]),
            None
        );
        for forged in ["", "v2.x.y", &"0".repeat(32)] {
            assert_eq!(recognise(store, person, &forged.to_owned().into()), None);
        }
    }
}
