//! The authority's key file, used to make QR codes: an RSA public key and a certificate.
//!
//! The file has one of two forms: a PEM block with the certificate in base64 before or after it, or JSON `{
//! "public_key": base64 of the PEM, "certificate": base64 }`.

use std::fmt;

use aws_lc_rs::rsa::{Pkcs1PublicEncryptingKey, PublicEncryptingKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// The algorithm identifier of an RSA key in DER (RFC 8017, A.1).
const RSA_ALGORITHM: [u8; 15] = [
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];

/// A fault of a key file, of a text for a QR code, or of an encrypted invoice that was downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CryptoError {
    #[error(
        "the key file is neither PEM followed by a certificate nor JSON with public_key and certificate"
    )]
    KeyFileForm,
    #[error("the key file's public key is no RSA key of 2048 to 8192 bits")]
    PublicKey,
    #[error("the key file's certificate is missing or not base64")]
    Certificate,
    #[error("the QR text is longer than the {max} bytes that the key can encrypt")]
    TooLong { max: usize },
    #[error("the encryption failed")]
    Encryption,
    #[error("the download's iv_hex is not 16 bytes in hexadecimal")]
    Iv,
    #[error("the download's pub and the first group of the API key do not make a key of 32 bytes")]
    KeyLength,
    #[error("the download's data is not base64")]
    Ciphertext,
    #[error("the download does not decrypt to a document: it was encrypted for another API key")]
    WrongKey,
    #[error("the download holds the document of another IRN")]
    OtherDocument,
}

/// The public key and the certificate from the authority's key file.
#[derive(Clone)]
pub struct CryptoKeys {
    /// The public key as `SubjectPublicKeyInfo` in DER.
    public_key: Vec<u8>,
    /// The certificate, in base64.
    certificate: String,
}

#[derive(Deserialize)]
struct JsonKeyFile {
    public_key: String,
    certificate: String,
}

impl CryptoKeys {
    /// Parses a key file: a PEM block and a certificate, or JSON.
    pub fn parse(file: &[u8]) -> Result<Self, CryptoError> {
        let text = std::str::from_utf8(file).map_err(|_| CryptoError::KeyFileForm)?;
        let text = text.trim_start_matches('\u{feff}').trim();
        let (pem, certificate) = if text.starts_with('{') {
            parse_json_form(text)?
        } else {
            split_pem_form(text).ok_or(CryptoError::KeyFileForm)?
        };
        let keys = Self {
            public_key: public_key_der(&pem)?,
            certificate: check_base64(&certificate)?,
        };
        keys.encrypting_key()?;
        Ok(keys)
    }

    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    pub(crate) fn encrypting_key(&self) -> Result<Pkcs1PublicEncryptingKey, CryptoError> {
        let key =
            PublicEncryptingKey::from_der(&self.public_key).map_err(|_| CryptoError::PublicKey)?;
        Pkcs1PublicEncryptingKey::new(key).map_err(|_| CryptoError::PublicKey)
    }
}

impl fmt::Debug for CryptoKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CryptoKeys").finish_non_exhaustive()
    }
}

/// Returns the PEM block and the certificate of a key file in the JSON form.
fn parse_json_form(text: &str) -> Result<(String, String), CryptoError> {
    let form: JsonKeyFile =
        strict_json::from_untrusted(text.as_bytes()).map_err(|_| CryptoError::KeyFileForm)?;
    if form.public_key.contains("-----BEGIN") {
        return Ok((form.public_key, form.certificate));
    }
    let pem = STANDARD
        .decode(without_blanks(&form.public_key))
        .map_err(|_| CryptoError::PublicKey)?;
    let pem = String::from_utf8(pem).map_err(|_| CryptoError::PublicKey)?;
    Ok((pem, form.certificate))
}

/// Splits a key file into the PEM block and the certificate, which is the text before or after the block.
fn split_pem_form(text: &str) -> Option<(String, String)> {
    let start = text.find("-----BEGIN")?;
    let last_line = start + text[start..].find("-----END")?;
    let end = text[last_line..]
        .find('\n')
        .map_or(text.len(), |offset| last_line + offset);
    Some((
        text[start..end].to_owned(),
        format!("{}{}", &text[..start], &text[end..]),
    ))
}

/// Returns the key of a PEM block (`PUBLIC KEY` or `RSA PUBLIC KEY`) as `SubjectPublicKeyInfo` in DER.
fn public_key_der(pem: &str) -> Result<Vec<u8>, CryptoError> {
    let body: String = pem
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("-----"))
        .collect();
    let der = STANDARD
        .decode(without_blanks(&body))
        .map_err(|_| CryptoError::PublicKey)?;
    if pem.contains("-----BEGIN PUBLIC KEY-----") {
        Ok(der)
    } else if pem.contains("-----BEGIN RSA PUBLIC KEY-----") {
        let bits = encode_element(0x03, &[&[0], der.as_slice()].concat());
        Ok(encode_element(
            0x30,
            &[RSA_ALGORITHM.as_slice(), &bits].concat(),
        ))
    } else {
        Err(CryptoError::PublicKey)
    }
}

/// Encodes a DER element: tag, length, content.
fn encode_element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut element = vec![tag];
    match significant.as_slice() {
        [] => element.push(0),
        [short] if *short < 0x80 => element.push(*short),
        long => {
            element.push(0x80 | u8::try_from(long.len()).unwrap_or(0x7f));
            element.extend_from_slice(long);
        }
    }
    element.extend_from_slice(content);
    element
}

fn check_base64(text: &str) -> Result<String, CryptoError> {
    let text = without_blanks(text);
    let sound = !text.is_empty() && STANDARD.decode(&text).is_ok();
    sound.then_some(text).ok_or(CryptoError::Certificate)
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CERTIFICATE, PUBLIC_KEY_PEM, RSA_PUBLIC_KEY_PEM};

    fn json(public_key: &str, certificate: &str) -> Vec<u8> {
        serde_json::json!({ "public_key": public_key, "certificate": certificate })
            .to_string()
            .into_bytes()
    }

    #[test]
    fn every_form_of_the_key_file_gives_the_same_keys() {
        let files = [
            format!("{PUBLIC_KEY_PEM}\n{CERTIFICATE}\n").into_bytes(),
            format!(
                "\u{feff}{}\r\n\r\n{CERTIFICATE}",
                PUBLIC_KEY_PEM.replace('\n', "\r\n")
            )
            .into_bytes(),
            format!("{CERTIFICATE}\n{RSA_PUBLIC_KEY_PEM}").into_bytes(),
            json(&STANDARD.encode(PUBLIC_KEY_PEM), CERTIFICATE),
            json(PUBLIC_KEY_PEM, CERTIFICATE),
        ];
        let first = CryptoKeys::parse(&files[0]).unwrap();
        for file in files {
            let keys = CryptoKeys::parse(&file).unwrap();
            assert_eq!(
                (&keys.public_key, &keys.certificate),
                (&first.public_key, &first.certificate)
            );
        }
    }

    #[test]
    fn the_fault_of_a_key_file_is_named() {
        let cases = [
            (b"".to_vec(), CryptoError::KeyFileForm),
            (b"\xff\xfe".to_vec(), CryptoError::KeyFileForm),
            (b"{}".to_vec(), CryptoError::KeyFileForm),
            (PUBLIC_KEY_PEM.as_bytes().to_vec(), CryptoError::Certificate),
            (
                format!("{PUBLIC_KEY_PEM}\nnot base64!").into_bytes(),
                CryptoError::Certificate,
            ),
            (json("!", CERTIFICATE), CryptoError::PublicKey),
            (
                json(&STANDARD.encode("no pem"), CERTIFICATE),
                CryptoError::PublicKey,
            ),
            (
                format!(
                    "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n{CERTIFICATE}"
                )
                .into_bytes(),
                CryptoError::PublicKey,
            ),
        ];
        for (file, expected) in cases {
            assert_eq!(
                CryptoKeys::parse(&file).err(),
                Some(expected),
                "{}",
                String::from_utf8_lossy(&file)
            );
        }
    }

    #[test]
    fn keys_are_not_shown_by_debug() {
        let keys = CryptoKeys::parse(&json(PUBLIC_KEY_PEM, CERTIFICATE)).unwrap();
        assert_eq!(format!("{keys:?}"), "CryptoKeys { .. }");
    }
}
