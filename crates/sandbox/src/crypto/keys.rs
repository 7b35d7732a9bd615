//! The key pair for QR codes, and the keys file that a taxpayer would download.
//!
//! The certificate is part of the text that is encrypted into the QR code. It is short, because RSA with 2048 bits
//! encrypts at most 245 bytes. The key pair is generated once per process, because generating one is slow.

use std::sync::LazyLock;

use aws_lc_rs::{
    encoding::{AsDer, PublicKeyX509Der},
    error::Unspecified,
    rsa::{KeySize, Pkcs1PrivateDecryptingKey, PrivateDecryptingKey},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

const CERTIFICATE: &[u8] = b"certificate of the simulated authority";

static KEY_PAIR: LazyLock<Result<KeyPair, Unspecified>> = LazyLock::new(KeyPair::generate);

/// The authority's keys for QR codes.
pub(crate) struct CryptoKeys;

struct KeyPair {
    private: Pkcs1PrivateDecryptingKey,
    public_pem: String,
}

impl CryptoKeys {
    /// Returns the keys file: the public key as PEM and the certificate, both in base64.
    pub(crate) fn key_file() -> Result<Value, String> {
        let pair = Self::key_pair()?;
        Ok(json!({
            "public_key": STANDARD.encode(&pair.public_pem),
            "certificate": STANDARD.encode(CERTIFICATE),
        }))
    }

    /// Decrypts a QR code that was made with these keys.
    pub(crate) fn decrypt_qr(qr_code: &str) -> Result<String, String> {
        let pair = Self::key_pair()?;
        let sealed = STANDARD
            .decode(qr_code)
            .map_err(|error| format!("the QR code is not base64: {error}"))?;
        let mut room = vec![0; pair.private.min_output_size()];
        let plain = pair.private.decrypt(&sealed, &mut room);
        let plain = plain.map_err(|_| "the QR code was not made with these keys")?;
        String::from_utf8(plain.to_vec()).map_err(|_| "the QR code holds no text".to_owned())
    }

    fn key_pair() -> Result<&'static KeyPair, String> {
        KEY_PAIR
            .as_ref()
            .map_err(|_| "no key pair could be made".to_owned())
    }
}

impl KeyPair {
    fn generate() -> Result<Self, Unspecified> {
        let private = PrivateDecryptingKey::generate(KeySize::Rsa2048)?;
        let der: PublicKeyX509Der<'_> = private.public_key().as_der()?;
        let public_pem = pem(der.as_ref());
        Ok(Self {
            private: Pkcs1PrivateDecryptingKey::new(private)?,
            public_pem,
        })
    }
}

/// Encodes a public key in PEM (RFC 7468): base64 in lines of 64 characters between two labels.
fn pem(der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut text = String::from("-----BEGIN PUBLIC KEY-----\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text.push_str("-----END PUBLIC KEY-----\n");
    text
}
