//! Encrypts a downloaded document with AES-256 in mode CFB-128, without padding and without an authentication tag.
//!
//! The key is 24 random characters, which the answer contains as `pub`, followed by the first eight characters of the
//! caller's API key. So only the caller can decrypt the document.

use aws_lc_rs::{
    cipher::{AES_256, EncryptingKey, UnboundCipherKey},
    error::Unspecified,
    rand,
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE},
};
use serde_json::{Value, json};

/// Encrypts the document. Fails if `api_key` does not have eight characters before its first hyphen.
pub(crate) fn encrypt_document(document: &str, api_key: &str) -> Result<Value, Unspecified> {
    let mut half = [0; 18];
    rand::fill(&mut half)?;
    // 18 bytes make 24 characters of base64, without padding.
    let public = STANDARD.encode(half);
    let key = format!("{public}{}", api_key.split('-').next().unwrap_or_default());
    let cipher = EncryptingKey::cfb128(UnboundCipherKey::new(&AES_256, key.as_bytes())?)?;
    let mut text = document.as_bytes().to_vec();
    let context = cipher.encrypt(&mut text)?;
    let iv: &[u8] = (&context).try_into()?;
    Ok(json!({ "iv_hex": hex::encode(iv), "pub": public, "data": URL_SAFE.encode(text) }))
}
