//! The cipher of a download: AES-256 in CFB-128, no padding, no tag.
//!
//! The key is the 24 characters of `pub` and the first eight of the caller's x-api-key, so only the caller can read
//! it. Each download has a key and an initialisation vector of its own.

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

/// Returns `{ iv_hex, pub, data }`, or an error if the caller's key has no first group of eight characters.
pub(crate) fn seal(document: &str, api_key: &str) -> Result<Value, Unspecified> {
    let mut half = [0; 18];
    rand::fill(&mut half)?;
    // 18 bytes are 24 characters of base64, without padding.
    let public = STANDARD.encode(half);
    let key = format!("{public}{}", api_key.split('-').next().unwrap_or_default());
    let cipher = EncryptingKey::cfb128(UnboundCipherKey::new(&AES_256, key.as_bytes())?)?;
    let mut text = document.as_bytes().to_vec();
    let context = cipher.encrypt(&mut text)?;
    let iv: &[u8] = (&context).try_into()?;
    Ok(json!({ "iv_hex": hex::encode(iv), "pub": public, "data": URL_SAFE.encode(text) }))
}
