//! Encryption: downloads for the caller, QR codes for the authority.

use aws_lc_rs::{
    cipher::{AES_256, DecryptingKey, DecryptionContext, UnboundCipherKey},
    iv::FixedLength,
    rsa::{Pkcs1PublicEncryptingKey, PublicEncryptingKey},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE},
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{API_KEY, Authority, IRN, document, read};

fn unseal(sealed: &Value, api_key: &str) -> Vec<u8> {
    let key = format!(
        "{}{}",
        sealed["pub"].as_str().unwrap_or_default(),
        &api_key[..8]
    );
    let mut iv = [0; 16];
    hex::decode_to_slice(sealed["iv_hex"].as_str().unwrap_or_default(), &mut iv).expect("an IV");
    let context = DecryptionContext::Iv128(FixedLength::from(iv));
    let mut text = URL_SAFE
        .decode(sealed["data"].as_str().unwrap_or_default())
        .expect("base64");
    let key = UnboundCipherKey::new(&AES_256, key.as_bytes()).expect("a key of 32 bytes");
    DecryptingKey::cfb128(key)
        .and_then(|key| key.decrypt(&mut text, context).map(|text| text.to_vec()))
        .expect("CFB")
}

#[actix_rt::test]
async fn a_download_opens_with_the_callers_key_and_holds_the_document() {
    let authority = Authority::start().await;
    authority.sign(IRN).await;
    let (status, body) = authority.get(&format!("/invoice/download/{IRN}")).await;
    assert_eq!(
        (status, body["data"]["pub"].as_str().unwrap().len()),
        (200, 24)
    );
    let opened: Value = strict_json::from_untrusted(&unseal(&body["data"], API_KEY)).unwrap();
    // A document that was signed without a time has the member all the same.
    let mut expected = document(IRN);
    expected["issue_time"] = Value::Null;
    assert_eq!(opened, expected);
    let wrong = unseal(&body["data"], "00000000-0000");
    assert!(strict_json::from_untrusted::<Value>(&wrong).is_err());
}

#[actix_rt::test]
async fn a_download_shows_the_payment_status_of_today() {
    let authority = Authority::start().await;
    authority.sign(IRN).await;
    authority
        .patch(
            &format!("/invoice/update/{IRN}"),
            &json!({ "payment_status": "PAID" }),
        )
        .await;
    let (_, body) = authority.get(&format!("/invoice/download/{IRN}")).await;
    let opened: Value = strict_json::from_untrusted(&unseal(&body["data"], API_KEY)).unwrap();
    assert_eq!(opened["payment_status"], "PAID");
}

#[actix_rt::test]
async fn a_qr_code_made_with_the_keys_file_opens() {
    let authority = Authority::start().await;
    let (_, keys) = read(
        authority
            .bare(Method::GET, "/sandbox/crypto_keys")
            .send()
            .await
            .unwrap(),
    )
    .await;
    let pem = String::from_utf8(
        STANDARD
            .decode(keys["public_key"].as_str().unwrap())
            .unwrap(),
    )
    .unwrap();
    let body: String = pem
        .lines()
        .filter(|line| !line.starts_with("-----"))
        .collect();
    let key = PublicEncryptingKey::from_der(&STANDARD.decode(body).unwrap()).unwrap();
    let key = Pkcs1PublicEncryptingKey::new(key).unwrap();
    let certificate = keys["certificate"].as_str().unwrap();
    let longest = format!("{}-94AD90FB-20261121", "A".repeat(82));
    let plain = format!("{{\"irn\":\"{longest}.1795000000\",\"certificate\":\"{certificate}\"}}");
    let mut sealed = vec![0; key.ciphertext_size()];
    let sealed = key.encrypt(plain.as_bytes(), &mut sealed).unwrap();
    assert_eq!(
        authority
            .sandbox
            .state()
            .decrypt_qr(&STANDARD.encode(sealed)),
        Ok(plain)
    );
    assert!(
        authority
            .sandbox
            .state()
            .decrypt_qr("bm90IGEgUVIgY29kZQ==")
            .is_err()
    );
}
