//! Seals the secrets that the database keeps (AES-256-GCM), so that a copy of it reveals none. The sealed
//! text is bound to its owner: moved to another row it does not open.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::store::failure::StoreError;

/// Bytes of the encryption key.
pub const KEY_LEN: usize = 32;

/// Holds the deployment's encryption key.
pub struct Vault(RandomizedNonceKey);

/// The encryption key is not 32 bytes in base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the encryption key must be {KEY_LEN} bytes in base64")]
pub struct BadKey;

impl Vault {
    pub fn new(key: &str) -> Result<Self, BadKey> {
        let bytes = STANDARD.decode(key.trim()).map_err(|_| BadKey)?;
        RandomizedNonceKey::new(&AES_256_GCM, &bytes).map(Self).map_err(|_| BadKey)
    }

    /// Seals a secret of an owner.
    pub(crate) fn seal(&self, owner: &str, secret: &str) -> Result<String, StoreError> {
        let mut sealed = secret.as_bytes().to_vec();
        let nonce = self
            .0
            .seal_in_place_append_tag(Aad::from(owner), &mut sealed)
            .map_err(|_| corrupt(owner, "the secret could not be sealed"))?;
        let mut text = nonce.as_ref().to_vec();
        text.append(&mut sealed);
        Ok(STANDARD.encode(text))
    }

    /// Opens a secret of an owner.
    pub(crate) fn open(&self, owner: &str, sealed: &str) -> Result<String, StoreError> {
        let wrong = || corrupt(owner, "the secret does not open with this encryption key");
        let mut bytes = STANDARD.decode(sealed).map_err(|_| wrong())?;
        let (nonce, text) = bytes.split_at_mut_checked(NONCE_LEN).ok_or_else(wrong)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| wrong())?;
        let plain = self.0.open_in_place(nonce, Aad::from(owner), text).map_err(|_| wrong())?;
        String::from_utf8(plain.to_vec()).map_err(|_| wrong())
    }
}

fn corrupt(owner: &str, reason: &str) -> StoreError {
    StoreError::Corrupt { table: "secrets", id: owner.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault(byte: u8) -> Vault {
        Vault::new(&STANDARD.encode([byte; KEY_LEN])).unwrap()
    }

    #[test]
    fn a_sealed_secret_opens_for_its_owner_only() {
        let sealed = vault(1).seal("7", "whsec_abc").unwrap();
        assert!(!sealed.contains("whsec"));
        assert_eq!(vault(1).open("7", &sealed).unwrap(), "whsec_abc");
        assert!(vault(1).open("8", &sealed).is_err());
        assert!(vault(2).open("7", &sealed).is_err());
        assert!(vault(1).open("7", "").is_err());
    }

    #[test]
    fn a_key_of_another_length_is_refused() {
        assert!(Vault::new("c2hvcnQ=").is_err());
        assert!(Vault::new("not base64!").is_err());
    }
}
