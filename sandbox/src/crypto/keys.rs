//! The key pair behind QR codes, and the keys file a taxpayer would download.
//!
//! The certificate is an opaque text that goes into every QR code; it is short, because RSA of 2048 bits takes 245
//! bytes in all. The pair is made when it is first asked for: making it takes a moment, and most runs need it once.

use std::sync::OnceLock;

use aws_lc_rs::{
    encoding::{AsDer, PublicKeyX509Der},
    error::Unspecified,
    rsa::{KeySize, Pkcs1PrivateDecryptingKey, PrivateDecryptingKey},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

const CERTIFICATE: &[u8] = b"certificate of the simulated authority";

#[derive(Default)]
pub(crate) struct CryptoKeys(OnceLock<Result<Pair, Unspecified>>);

struct Pair {
    private: Pkcs1PrivateDecryptingKey,
    public_pem: String,
}

impl CryptoKeys {
    /// `{ public_key, certificate }`: base64 of the PEM, and the certificate as it goes into a QR code.
    pub(crate) fn file(&self) -> Result<Value, String> {
        let pair = self.pair()?;
        Ok(json!({
            "public_key": STANDARD.encode(&pair.public_pem),
            "certificate": STANDARD.encode(CERTIFICATE),
        }))
    }

    /// The plain text of a QR code made with these keys.
    pub(crate) fn open_qr(&self, qr_code: &str) -> Result<String, String> {
        let pair = self.pair()?;
        let sealed =
            STANDARD.decode(qr_code).map_err(|error| format!("the QR code is not base64: {error}"))?;
        let mut room = vec![0; pair.private.min_output_size()];
        let plain = pair.private.decrypt(&sealed, &mut room);
        let plain = plain.map_err(|_| "the QR code was not made with these keys")?;
        String::from_utf8(plain.to_vec()).map_err(|_| "the QR code holds no text".to_owned())
    }

    fn pair(&self) -> Result<&Pair, String> {
        self.0.get_or_init(Pair::generate).as_ref().map_err(|_| "no key pair could be made".to_owned())
    }
}

impl Pair {
    fn generate() -> Result<Self, Unspecified> {
        let private = PrivateDecryptingKey::generate(KeySize::Rsa2048)?;
        let der: PublicKeyX509Der<'_> = private.public_key().as_der()?;
        let public_pem = pem(der.as_ref());
        Ok(Self { private: Pkcs1PrivateDecryptingKey::new(private)?, public_pem })
    }
}

/// RFC 7468: base64 in lines of 64 characters between two labels.
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
