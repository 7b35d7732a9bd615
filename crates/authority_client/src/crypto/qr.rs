//! Makes the text of a QR code: the IRN, the time and the certificate, encrypted for the authority. Random padding
//! makes each result different, so callers store it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Serialize;

use crate::crypto::keys::{CryptoError, CryptoKeys};

/// The bytes that follow the IRN inside the text: a full stop and the unix seconds, which have 10 digits until 2286.
const STAMP_BYTES: usize = 11;

/// The QR code's text before encryption. The authority prescribes the order of the fields.
#[derive(Serialize)]
struct QrContent<'a> {
    irn: &'a str,
    certificate: &'a str,
}

impl CryptoKeys {
    /// Returns the length, in bytes, of the longest IRN of letters, digits and hyphens whose QR code the key can encrypt.
    pub fn irn_bytes_max(&self) -> Result<usize, CryptoError> {
        let without_irn = QrContent {
            irn: "",
            certificate: self.certificate(),
        };
        let rest = serde_json::to_vec(&without_irn).map_err(|_| CryptoError::Encryption)?;
        let room = self.encrypting_key()?.max_plaintext_size();
        Ok(room.saturating_sub(rest.len() + STAMP_BYTES))
    }

    /// Encrypts `{"irn":"<irn>.<unix seconds>","certificate":"…"}` with RSA PKCS#1 v1.5. Returns base64.
    pub fn qr_code(&self, irn: &str, at: Timestamp) -> Result<String, CryptoError> {
        let stamped = format!("{irn}.{}", at.as_second());
        let plain = QrContent {
            irn: &stamped,
            certificate: self.certificate(),
        };
        let plain = serde_json::to_vec(&plain).map_err(|_| CryptoError::Encryption)?;
        let key = self.encrypting_key()?;
        let max = key.max_plaintext_size();
        if plain.len() > max {
            return Err(CryptoError::TooLong { max });
        }
        let mut sealed = vec![0; key.ciphertext_size()];
        let sealed = key
            .encrypt(&plain, &mut sealed)
            .map_err(|_| CryptoError::Encryption)?;
        Ok(STANDARD.encode(sealed))
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rsa::{Pkcs1PrivateDecryptingKey, PrivateDecryptingKey};

    use super::*;
    use crate::testing::{CERTIFICATE, PRIVATE_KEY, PUBLIC_KEY_PEM};

    const IRN: &str = "INV0001-94ND90NR-20260101";

    fn keys() -> CryptoKeys {
        CryptoKeys::parse(format!("{PUBLIC_KEY_PEM}\n{CERTIFICATE}").as_bytes()).unwrap()
    }

    fn decrypt_qr_code(qr_code: &str) -> String {
        let private = STANDARD
            .decode(PRIVATE_KEY.split_whitespace().collect::<String>())
            .unwrap();
        let key =
            Pkcs1PrivateDecryptingKey::new(PrivateDecryptingKey::from_pkcs8(&private).unwrap())
                .unwrap();
        let mut plain = vec![0; key.min_output_size()];
        let plain = key
            .decrypt(&STANDARD.decode(qr_code).unwrap(), &mut plain)
            .unwrap();
        String::from_utf8(plain.to_vec()).unwrap()
    }

    #[test]
    fn the_authority_reads_back_irn_moment_and_certificate() {
        let at = Timestamp::from_second(1_767_225_600).unwrap();
        let plain = decrypt_qr_code(&keys().qr_code(IRN, at).unwrap());
        assert_eq!(
            plain,
            format!("{{\"irn\":\"{IRN}.1767225600\",\"certificate\":\"{CERTIFICATE}\"}}")
        );
    }

    #[test]
    fn two_codes_of_one_invoice_differ() {
        let at = Timestamp::UNIX_EPOCH;
        assert_ne!(keys().qr_code(IRN, at), keys().qr_code(IRN, at));
    }

    #[test]
    fn the_longest_irn_has_a_qr_code_and_a_longer_one_has_none() {
        let now = Timestamp::from_second(1_767_225_600).unwrap();
        let max = keys().irn_bytes_max().unwrap();
        for (length, has_code) in [(1, true), (max, true), (max + 1, false), (300, false)] {
            let code = keys().qr_code(&"X".repeat(length), now);
            assert_eq!(code.is_ok(), has_code, "{length} of {max}");
        }
    }

    #[test]
    fn a_text_too_long_for_the_key_is_refused() {
        let long = "X".repeat(300);
        assert_eq!(
            keys().qr_code(&long, Timestamp::UNIX_EPOCH),
            Err(CryptoError::TooLong { max: 245 })
        );
    }
}
