//! Generates API keys and signing secrets. The randomness comes from the operating system.

use rand::TryRng;
use rand::rngs::SysRng;
use secrecy::SecretString;
use webhook_client::SigningSecret;

use crate::domain::access::caller::{KeyKind, new_key};
use crate::domain::events::endpoint::SecretType;
use crate::http::respond::error::ApiError;

pub(crate) fn generate_key(kind: KeyKind) -> Result<SecretString, ApiError> {
    let mut random = [0; 32];
    SysRng
        .try_fill_bytes(&mut random)
        .map_err(ApiError::internal)?;
    Ok(new_key(kind, random))
}

pub(crate) fn generate_webhook_secret(kind: SecretType) -> SigningSecret {
    match kind {
        SecretType::Hmac => SigningSecret::generate(&mut rand::rng()),
        SecretType::Ed25519 => SigningSecret::generate_pair(&mut rand::rng()),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn two_keys_differ() {
        let [one, other] = [
            generate_key(KeyKind::Taxpayer).unwrap(),
            generate_key(KeyKind::Taxpayer).unwrap(),
        ];
        assert_ne!(one.expose_secret(), other.expose_secret());
    }
}
