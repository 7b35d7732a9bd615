//! Signing keys (Standard Webhooks 1.0.0): a secret (`whsec_…`), or an Ed25519 key pair (`whsk_…`, `whpk_…`).

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rand::CryptoRng;
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use sha2::Sha256;
use subtle::ConstantTimeEq;

const SHARED_PREFIX: &str = "whsec_";
const PRIVATE_PREFIX: &str = "whsk_";
const PUBLIC_PREFIX: &str = "whpk_";
const SECRET_BYTES_MIN: usize = 24;
const SECRET_BYTES_MAX: usize = 64;
/// The number of bytes of a generated shared secret or private key.
const GENERATED_BYTES: usize = 32;

/// A signing key: a shared secret or an Ed25519 key pair.
#[derive(Clone)]
pub struct SigningSecret {
    bytes: SecretSlice<u8>,
    /// `None` if the key is a shared secret.
    pair: Option<Arc<Ed25519KeyPair>>,
}

/// The reason why a text is not a signing key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    #[error("a signing secret starts with whsec_, a private key with whsk_")]
    Prefix,
    #[error("a signing secret is base64 after its prefix")]
    Encoding,
    #[error("a signing secret has 24 to 64 bytes, a private key 32")]
    Length,
}

impl SigningSecret {
    /// Generates a shared secret.
    pub fn generate(chance: &mut impl CryptoRng) -> Self {
        Self {
            bytes: draw_bytes(chance).into(),
            pair: None,
        }
    }

    /// Generates an Ed25519 key pair.
    pub fn generate_pair(chance: &mut impl CryptoRng) -> Self {
        let Ok(secret) = Self::from_private_key(draw_bytes(chance)) else {
            unreachable!("any 32 bytes are a private key")
        };
        secret
    }

    /// Parses `whsec_` or `whsk_` followed by padded base64.
    pub fn parse(text: &str) -> Result<Self, SecretFault> {
        let decode = |encoded| STANDARD.decode(encoded).map_err(|_| SecretFault::Encoding);
        if let Some(encoded) = text.strip_prefix(PRIVATE_PREFIX) {
            return Self::from_private_key(decode(encoded)?);
        }
        let bytes = decode(
            text.strip_prefix(SHARED_PREFIX)
                .ok_or(SecretFault::Prefix)?,
        )?;
        if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len()) {
            return Err(SecretFault::Length);
        }
        Ok(Self {
            bytes: bytes.into(),
            pair: None,
        })
    }

    fn from_private_key(bytes: Vec<u8>) -> Result<Self, SecretFault> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&bytes).map_err(|_| SecretFault::Length)?;
        Ok(Self {
            bytes: bytes.into(),
            pair: Some(Arc::new(pair)),
        })
    }

    /// Returns the text that is stored: `whsec_…`, which the receiver also has, or `whsk_…`, which only we may have.
    pub fn text(&self) -> SecretString {
        let prefix = if self.pair.is_some() {
            PRIVATE_PREFIX
        } else {
            SHARED_PREFIX
        };
        format!("{prefix}{}", STANDARD.encode(self.bytes.expose_secret())).into()
    }

    /// Returns the public key `whpk_…` for the receiver; `None` for a shared secret.
    pub fn public_key(&self) -> Option<String> {
        let pair = self.pair.as_ref()?;
        Some(format!(
            "{PUBLIC_PREFIX}{}",
            STANDARD.encode(pair.public_key().as_ref())
        ))
    }

    /// Returns the version with which each signature of this key starts.
    pub(crate) fn signature_version(&self) -> &'static str {
        if self.pair.is_some() { "v1a" } else { "v1" }
    }

    pub(crate) fn sign(&self, content: &[u8]) -> Vec<u8> {
        match &self.pair {
            Some(pair) => pair.sign(content).as_ref().to_vec(),
            None => self.digest(content),
        }
    }

    /// Verifies a signature. For a shared secret the comparison takes constant time.
    pub(crate) fn verifies(&self, content: &[u8], signature: &[u8]) -> bool {
        match &self.pair {
            Some(pair) => {
                let key = UnparsedPublicKey::new(&ED25519, pair.public_key().as_ref());
                key.verify(content, signature).is_ok()
            }
            None => self.digest(content).ct_eq(signature).into(),
        }
    }

    fn digest(&self, content: &[u8]) -> Vec<u8> {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.bytes.expose_secret()) else {
            unreachable!("HMAC takes keys of any length")
        };
        mac.update(content);
        mac.finalize().into_bytes().to_vec()
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SigningSecret([REDACTED])")
    }
}

fn draw_bytes(chance: &mut impl CryptoRng) -> Vec<u8> {
    let mut bytes = vec![0; GENERATED_BYTES];
    chance.fill_bytes(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    fn chance(seed: u64) -> StdRng {
        StdRng::seed_from_u64(seed)
    }

    #[test]
    fn a_generated_secret_is_parsed_back_from_its_text() {
        type Draw = fn(u64) -> SigningSecret;
        let draws: [(Draw, &str); 2] = [
            (|seed| SigningSecret::generate(&mut chance(seed)), "whsec_"),
            (
                |seed| SigningSecret::generate_pair(&mut chance(seed)),
                "whsk_",
            ),
        ];
        for (draw, prefix) in draws {
            let secret = draw(7);
            let text = secret.text();
            let text = text.expose_secret();
            assert_eq!(
                STANDARD
                    .decode(text.strip_prefix(prefix).unwrap())
                    .unwrap()
                    .len(),
                32
            );
            let again = SigningSecret::parse(text).unwrap();
            assert_eq!(again.public_key(), secret.public_key());
            assert!(again.verifies(b"content", &secret.sign(b"content")));
            assert!(!again.verifies(b"other", &secret.sign(b"content")));
            assert!(!draw(8).verifies(b"content", &secret.sign(b"content")));
        }
    }

    #[test]
    fn a_text_that_is_not_a_secret_is_refused() {
        let of_length =
            |prefix: &str, length: usize| format!("{prefix}{}", STANDARD.encode(vec![1; length]));
        let cases = [
            (
                "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned(),
                Some(SecretFault::Prefix),
            ),
            (of_length("whpk_", 32), Some(SecretFault::Prefix)),
            ("whsec_*".to_owned(), Some(SecretFault::Encoding)),
            (of_length("whsec_", 23), Some(SecretFault::Length)),
            (of_length("whsec_", 24), None),
            (of_length("whsec_", 64), None),
            (of_length("whsec_", 65), Some(SecretFault::Length)),
            ("whsk_*".to_owned(), Some(SecretFault::Encoding)),
            (of_length("whsk_", 31), Some(SecretFault::Length)),
            (of_length("whsk_", 32), None),
            (of_length("whsk_", 64), Some(SecretFault::Length)),
        ];
        for (text, fault) in cases {
            assert_eq!(SigningSecret::parse(&text).err(), fault, "{text}");
        }
    }

    /// Checks the test vector of RFC 8032, section 7.1, test 2.
    #[test]
    fn a_key_pair_signs_as_published() {
        let bytes = |text: &str| hex::decode(text).unwrap();
        let private = bytes("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
        let public = bytes("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
        let secret = SigningSecret::parse(&format!("whsk_{}", STANDARD.encode(private))).unwrap();
        assert_eq!(
            secret.public_key().unwrap(),
            format!("whpk_{}", STANDARD.encode(public))
        );
        let signature = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        assert_eq!(secret.sign(b"\x72"), bytes(signature));
    }

    #[test]
    fn a_secret_is_not_shown_by_debug() {
        for secret in [
            SigningSecret::generate(&mut chance(1)),
            SigningSecret::generate_pair(&mut chance(1)),
        ] {
            assert_eq!(format!("{secret:?}"), "SigningSecret([REDACTED])");
        }
    }
}
