//! Decrypts downloaded documents: AES-256 in CFB-128 without padding.
//!
//! The key is the download's field `pub`, followed by the API key up to its first dash. The cipher does not detect a
//! wrong key. It shows only in a decrypted text that is not a JSON object (`CryptoError::WrongKey`).

use aws_lc_rs::cipher::{AES_256, DecryptingKey, DecryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;

use crate::crypto::keys::CryptoError;

/// Decodes URL-safe base64, with or without padding.
const LENIENT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The data of `GET /invoice/download/{irn}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EncryptedDocument {
    /// The initialisation vector: 16 bytes in hexadecimal.
    pub iv_hex: String,
    /// The first 24 characters of the key that decrypts the document.
    #[serde(rename = "pub")]
    pub public_part: String,
    /// The encrypted document in URL-safe base64.
    pub data: String,
}

impl EncryptedDocument {
    /// Decrypts the document. `api_key` must be the `x-api-key` that was sent to download it.
    pub fn decrypt(&self, api_key: &SecretString) -> Result<Value, CryptoError> {
        let iv = hex::decode(self.iv_hex.trim()).map_err(|_| CryptoError::Iv)?;
        let iv: [u8; 16] = iv.try_into().map_err(|_| CryptoError::Iv)?;
        let first_group = api_key
            .expose_secret()
            .split('-')
            .next()
            .unwrap_or_default();
        let key = format!("{}{first_group}", self.public_part);
        let key =
            UnboundCipherKey::new(&AES_256, key.as_bytes()).map_err(|_| CryptoError::KeyLength)?;
        let key = DecryptingKey::cfb128(key).map_err(|_| CryptoError::KeyLength)?;
        let text = self.data.trim().replace('+', "-").replace('/', "_");
        let mut bytes = LENIENT_BASE64
            .decode(text)
            .map_err(|_| CryptoError::Ciphertext)?;
        let context = DecryptionContext::Iv128(FixedLength::from(iv));
        let plain = key
            .decrypt(&mut bytes, context)
            .map_err(|_| CryptoError::Ciphertext)?;
        let document: Value =
            strict_json::from_untrusted(plain).map_err(|_| CryptoError::WrongKey)?;
        if document.is_object() {
            Ok(document)
        } else {
            Err(CryptoError::WrongKey)
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};

    use super::*;
    use crate::testing::{PUBLIC_PART, encrypt};

    const API_KEY: &str = "0a1b2c3d-0000-4000-8000-000000000000";
    fn document(iv_hex: &str, data: String) -> EncryptedDocument {
        EncryptedDocument {
            iv_hex: iv_hex.to_owned(),
            public_part: PUBLIC_PART.to_owned(),
            data,
        }
    }

    #[test]
    fn a_download_decrypts_padded_or_not_and_keeps_every_digit() {
        let plain = r#"{"amount":1234567890123456789.10,"irn":"ä"}"#;
        let (iv, bytes) = encrypt(plain.as_bytes());
        for data in [URL_SAFE.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            let read = document(&iv, data).decrypt(&API_KEY.into()).unwrap();
            assert_eq!(read.to_string(), plain);
        }
    }

    /// Checks the cipher with the published example NIST SP 800-38A, F.3.17 (CFB128-AES256).
    #[test]
    fn the_mode_is_the_published_one() {
        let key = hex::decode("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
            .unwrap();
        let iv: [u8; 16] = hex::decode("000102030405060708090a0b0c0d0e0f")
            .unwrap()
            .try_into()
            .unwrap();
        let sealed = "dc7e84bfda79164b7ecd8486985d386039ffed143b28b1c832113c6331e5407b";
        let plain = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51";
        let key = DecryptingKey::cfb128(UnboundCipherKey::new(&AES_256, &key).unwrap()).unwrap();
        let mut bytes = hex::decode(sealed).unwrap();
        let read = key
            .decrypt(&mut bytes, DecryptionContext::Iv128(FixedLength::from(iv)))
            .unwrap();
        assert_eq!(hex::encode(read), plain);
    }

    #[test]
    fn the_fault_of_a_download_is_named() {
        let (iv, bytes) = encrypt(b"{\"irn\":\"X\"}");
        let sound = document(&iv, URL_SAFE.encode(&bytes));
        let decrypt = |document: &EncryptedDocument, key: &str| document.decrypt(&key.into()).err();
        assert_eq!(decrypt(&sound, API_KEY), None);
        assert_eq!(
            decrypt(&sound, "ffffffff-0000"),
            Some(CryptoError::WrongKey)
        );
        assert_eq!(decrypt(&sound, "short-0000"), Some(CryptoError::KeyLength));
        assert_eq!(
            decrypt(&document("00", sound.data.clone()), API_KEY),
            Some(CryptoError::Iv)
        );
        assert_eq!(
            decrypt(&document("zz", sound.data.clone()), API_KEY),
            Some(CryptoError::Iv)
        );
        assert_eq!(
            decrypt(&document(&iv, "*".into()), API_KEY),
            Some(CryptoError::Ciphertext)
        );
        let (iv, number) = encrypt(b"5");
        assert_eq!(
            decrypt(&document(&iv, URL_SAFE.encode(number)), API_KEY),
            Some(CryptoError::WrongKey)
        );
    }
}
