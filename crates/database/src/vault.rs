//! Seals stored secrets (AES-256-GCM), so that a copy of the database reveals none. A sealed text opens only for the
//! owner of its row. It names its encryption key, so that keys can be rotated: the current key seals and opens, older
//! keys only open.
//!
//! For each text a key of its own is derived from the encryption key and a random salt of 32 bytes
//! (HKDF-SHA256), so one encryption key may seal any number of texts. The format is `v2.<key id>.<base64 of
//! salt and ciphertext>`. A text without the prefix `v2.` has the earlier format: base64 of a nonce and the
//! ciphertext.

use aws_lc_rs::aead::{
    AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, RandomizedNonceKey, UnboundKey,
};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::error::StoreError;

/// The length of an encryption key in bytes.
pub const KEY_LEN: usize = 32;
const SALT_LEN: usize = 32;
const FORM_PREFIX: &str = "v2.";
/// The purpose given to HKDF, so that the derived keys differ from keys that are derived for other uses.
const PURPOSE: &[u8] = b"einvoice sealed text v2";
const ID_PURPOSE: &[u8] = b"einvoice encryption key id";
const SIGNING_PURPOSE: &[u8] = b"einvoice signature v1";
/// The length of a key id in bytes. A written id has two hexadecimal digits for each byte.
const ID_LEN: usize = 4;

pub struct Vault {
    current: EncryptionKey,
    old: Vec<EncryptionKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the encryption key must be {KEY_LEN} bytes in base64")]
pub struct InvalidEncryptionKey;

struct EncryptionKey {
    id: String,
    bytes: [u8; KEY_LEN],
}

impl Vault {
    /// Creates a vault with one key, which seals and opens.
    pub fn new(key: &str) -> Result<Self, InvalidEncryptionKey> {
        Ok(Self {
            current: EncryptionKey::parse(key)?,
            old: Vec::new(),
        })
    }

    /// Adds older keys. They only open texts that were sealed before; new texts are sealed with the current key.
    pub fn with_old_keys<'k>(
        self,
        keys: impl IntoIterator<Item = &'k str>,
    ) -> Result<Self, InvalidEncryptionKey> {
        let old = keys
            .into_iter()
            .map(EncryptionKey::parse)
            .collect::<Result<_, _>>()?;
        Ok(Self { old, ..self })
    }

    /// Returns the id of the current key.
    pub fn key_id(&self) -> &str {
        &self.current.id
    }

    /// Seals a secret. Only the same owner can open the result.
    pub fn seal(&self, owner: &str, secret: &str) -> Result<String, StoreError> {
        let mut text = vec![0; SALT_LEN];
        aws_lc_rs::rand::fill(&mut text).map_err(|_| sealing_error(owner))?;
        let mut sealed = secret.as_bytes().to_vec();
        let key = self
            .current
            .derive_text_key(&text)
            .ok_or_else(|| sealing_error(owner))?;
        key.seal_in_place_append_tag(constant_nonce(), Aad::from(owner), &mut sealed)
            .map_err(|_| sealing_error(owner))?;
        text.append(&mut sealed);
        Ok(format!(
            "{FORM_PREFIX}{}.{}",
            self.current.id,
            STANDARD.encode(text)
        ))
    }

    /// Opens a sealed secret. Fails if it was sealed for another owner or with an unknown key.
    pub fn open(&self, owner: &str, sealed: &str) -> Result<String, StoreError> {
        let opened = match sealed
            .strip_prefix(FORM_PREFIX)
            .and_then(|rest| rest.split_once('.'))
        {
            Some((id, text)) => {
                if !self.keys().any(|key| key.id == id) {
                    return Err(corrupt_secret_error(
                        owner,
                        &format!(
                            "the secret was sealed with the key {id}, which is not among the keys given"
                        ),
                    ));
                }
                self.keys()
                    .filter(|key| key.id == id)
                    .find_map(|key| key.open(owner, text))
            }
            None => self
                .keys()
                .find_map(|key| key.open_earlier_format(owner, sealed)),
        };
        opened.ok_or_else(|| {
            corrupt_secret_error(owner, "the secret does not open with this encryption key")
        })
    }

    /// Seals a sealed secret again with the current key. Returns `None` if it is already sealed with this key.
    pub fn reseal(&self, owner: &str, sealed: &str) -> Result<Option<String>, StoreError> {
        let is_current = sealed
            .strip_prefix(FORM_PREFIX)
            .and_then(|rest| rest.split_once('.'))
            .is_some_and(|(id, _)| id == self.current.id);
        if is_current {
            return Ok(None);
        }
        self.seal(owner, &self.open(owner, sealed)?).map(Some)
    }

    /// Signs a text (HMAC-SHA256) with a key that is derived for this purpose alone. Without the encryption key nobody
    /// can make the signature. `None` if no signing key can be derived.
    pub fn sign(&self, purpose: &str, text: &[u8]) -> Option<Vec<u8>> {
        let key = self.current.derive_signing_key(purpose)?;
        Some(hmac::sign(&key, text).as_ref().to_vec())
    }

    /// Returns true if the current key or an older one made this signature.
    pub fn verifies(&self, purpose: &str, text: &[u8], signature: &[u8]) -> bool {
        let mut keys = self
            .keys()
            .filter_map(|key| key.derive_signing_key(purpose));
        keys.any(|key| hmac::verify(&key, text, signature).is_ok())
    }

    fn keys(&self) -> impl Iterator<Item = &EncryptionKey> {
        std::iter::once(&self.current).chain(&self.old)
    }
}

impl EncryptionKey {
    fn parse(text: &str) -> Result<Self, InvalidEncryptionKey> {
        let decoded = STANDARD
            .decode(text.trim())
            .map_err(|_| InvalidEncryptionKey)?;
        let bytes: [u8; KEY_LEN] = decoded.try_into().map_err(|_| InvalidEncryptionKey)?;
        let digest = Sha256::new()
            .chain_update(ID_PURPOSE)
            .chain_update(bytes)
            .finalize();
        Ok(Self {
            id: hex::encode(&digest[..ID_LEN]),
            bytes,
        })
    }

    /// Derives the key for the one text that has this salt.
    fn derive_text_key(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let extracted = Salt::new(HKDF_SHA256, salt).extract(&self.bytes);
        let expanded = extracted.expand(&[PURPOSE], &AES_256_GCM).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(expanded)))
    }

    fn derive_signing_key(&self, purpose: &str) -> Option<hmac::Key> {
        let extracted = Salt::new(HKDF_SHA256, SIGNING_PURPOSE).extract(&self.bytes);
        let info = [purpose.as_bytes()];
        let expanded = extracted.expand(&info, hmac::HMAC_SHA256).ok()?;
        Some(hmac::Key::from(expanded))
    }

    fn open(&self, owner: &str, text: &str) -> Option<String> {
        let mut bytes = STANDARD.decode(text).ok()?;
        let (salt, sealed) = bytes.split_at_mut_checked(SALT_LEN)?;
        let plain = self
            .derive_text_key(salt)?
            .open_in_place(constant_nonce(), Aad::from(owner), sealed)
            .ok()?;
        String::from_utf8(plain.to_vec()).ok()
    }

    fn open_earlier_format(&self, owner: &str, text: &str) -> Option<String> {
        let key = RandomizedNonceKey::new(&AES_256_GCM, &self.bytes).ok()?;
        let mut bytes = STANDARD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let plain = key.open_in_place(nonce, Aad::from(owner), sealed).ok()?;
        String::from_utf8(plain.to_vec()).ok()
    }
}

/// Returns a constant nonce, which is safe because each derived key seals only one text.
fn constant_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

fn sealing_error(owner: &str) -> StoreError {
    corrupt_secret_error(owner, "the secret could not be sealed")
}

fn corrupt_secret_error(owner: &str, reason: &str) -> StoreError {
    StoreError::Corrupt {
        table: "secrets",
        id: owner.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> String {
        STANDARD.encode([byte; KEY_LEN])
    }

    fn vault(byte: u8) -> Vault {
        Vault::new(&key(byte)).unwrap()
    }

    #[test]
    fn a_signature_counts_for_its_text_its_purpose_and_its_key() {
        let signature = vault(1).sign("a link", b"text").unwrap();
        assert!(vault(1).verifies("a link", b"text", &signature));
        assert!(!vault(1).verifies("a link", b"texts", &signature));
        assert!(!vault(1).verifies("a ticket", b"text", &signature));
        assert!(!vault(1).verifies("a link", b"text", &signature[1..]));
        assert!(!vault(2).verifies("a link", b"text", &signature));
        let old = key(1);
        let rotated = vault(2).with_old_keys([old.as_str()]).unwrap();
        assert!(rotated.verifies("a link", b"text", &signature));
    }

    /// Seals a secret in the earlier format, which does not say which key was used.
    fn sealed_in_the_first_form(byte: u8, owner: &str, secret: &str) -> String {
        let key = RandomizedNonceKey::new(&AES_256_GCM, &[byte; KEY_LEN]).unwrap();
        let mut sealed = secret.as_bytes().to_vec();
        let nonce = key
            .seal_in_place_append_tag(Aad::from(owner), &mut sealed)
            .unwrap();
        STANDARD.encode([nonce.as_ref(), sealed.as_slice()].concat())
    }

    #[test]
    fn a_sealed_secret_opens_for_its_owner_only() {
        let sealed = vault(1).seal("7", "whsec_abc").unwrap();
        assert!(!sealed.contains("whsec"));
        assert_eq!(vault(1).open("7", &sealed).unwrap(), "whsec_abc");
        assert!(vault(1).open("8", &sealed).is_err());
        assert!(vault(2).open("7", &sealed).is_err());
        for spoilt in [
            "",
            "v2.",
            "v2..",
            "v2.00000000.AAAA",
            &sealed[..sealed.len() - 8],
        ] {
            assert!(vault(1).open("7", spoilt).is_err(), "{spoilt}");
        }
        assert_ne!(
            sealed,
            vault(1).seal("7", "whsec_abc").unwrap(),
            "each text has a key of its own"
        );
    }

    #[test]
    fn an_old_key_opens_and_does_not_seal() {
        let old = vault(1).seal("7", "hush").unwrap();
        let both = vault(2).with_old_keys([key(1).as_str()]).unwrap();
        assert_eq!(both.open("7", &old).unwrap(), "hush");
        let new = both.seal("7", "hush").unwrap();
        assert_eq!(vault(2).open("7", &new).unwrap(), "hush");
        let refused = vault(2).open("7", &old).unwrap_err().to_string();
        assert!(
            refused.contains(&format!(
                "the key {}, which is not among",
                vault(1).key_id()
            )),
            "{refused}"
        );
    }

    #[test]
    fn a_resealed_value_opens_without_the_old_key() {
        let both = vault(2).with_old_keys([key(1).as_str()]).unwrap();
        for old in [
            vault(1).seal("7", "hush").unwrap(),
            sealed_in_the_first_form(1, "7", "hush"),
        ] {
            assert!(vault(2).open("7", &old).is_err());
            let new = both.reseal("7", &old).unwrap().unwrap();
            assert_eq!(vault(2).open("7", &new).unwrap(), "hush");
            assert_eq!(both.reseal("7", &new).unwrap(), None);
            assert!(both.reseal("8", &old).is_err());
        }
    }

    #[test]
    fn a_text_without_a_key_id_opens_with_any_key() {
        let old = sealed_in_the_first_form(1, "7", "hush");
        assert_eq!(vault(1).open("7", &old).unwrap(), "hush");
        let both = vault(2)
            .with_old_keys([key(3).as_str(), key(1).as_str()])
            .unwrap();
        assert_eq!(both.open("7", &old).unwrap(), "hush");
        assert!(vault(2).open("7", &old).is_err());
    }

    #[test]
    fn a_key_of_another_length_is_refused() {
        assert!(Vault::new("c2hvcnQ=").is_err());
        assert!(Vault::new("not base64!").is_err());
        assert!(vault(1).with_old_keys(["c2hvcnQ="]).is_err());
    }
}
