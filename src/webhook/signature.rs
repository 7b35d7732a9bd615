//! Standard Webhooks 1.0.0: secrets, signing and verifying.
//!
//! A signature is `v1,` and the base64 of HMAC-SHA256 over `{id}.{timestamp}.{body}`. While a secret is
//! being replaced, the old one signs along and the header carries both, parted by a space.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use rand::CryptoRng;
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use sha2::Sha256;
use subtle::ConstantTimeEq;

const PREFIX: &str = "whsec_";
const BYTES_MIN: usize = 24;
const BYTES_MAX: usize = 64;

/// A signing secret.
#[derive(Clone)]
pub struct Secret(SecretSlice<u8>);

/// Why a text is no signing secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    #[error("a signing secret starts with whsec_")]
    Prefix,
    #[error("a signing secret is base64 after its prefix")]
    Encoding,
    #[error("a signing secret has 24 to 64 bytes")]
    Length,
}

/// Why a message was not verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerifyFault {
    #[error("the timestamp is further from the present than tolerated")]
    Timestamp,
    #[error("no signature matches")]
    Signature,
}

/// What is signed: the headers webhook-id and webhook-timestamp (Unix seconds), and the body as sent.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    pub id: &'a str,
    pub timestamp: i64,
    pub body: &'a [u8],
}

impl Secret {
    /// Draws a secret of 32 bytes.
    pub fn generate(chance: &mut impl CryptoRng) -> Self {
        let mut bytes = vec![0; 32];
        chance.fill_bytes(&mut bytes);
        Self(bytes.into())
    }

    /// Reads `whsec_` and base64, padded.
    pub fn parse(text: &str) -> Result<Self, SecretFault> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretFault::Prefix)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretFault::Encoding)?;
        if !(BYTES_MIN..=BYTES_MAX).contains(&bytes.len()) {
            return Err(SecretFault::Length);
        }
        Ok(Self(bytes.into()))
    }

    /// The text that the receiver is given: `whsec_…`.
    pub fn text(&self) -> SecretString {
        format!("{PREFIX}{}", STANDARD.encode(self.0.expose_secret())).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret([REDACTED])")
    }
}

impl Message<'_> {
    /// The value of the header webhook-signature: one signature per secret, parted by spaces.
    pub fn signature(&self, secrets: &[Secret]) -> String {
        let sign = |secret| format!("v1,{}", STANDARD.encode(self.digest(secret)));
        secrets.iter().map(sign).collect::<Vec<_>>().join(" ")
    }

    /// The three headers of the standard, by name.
    pub fn headers(&self, secrets: &[Secret]) -> Vec<(&'static str, String)> {
        vec![
            ("webhook-id", self.id.to_owned()),
            ("webhook-timestamp", self.timestamp.to_string()),
            ("webhook-signature", self.signature(secrets)),
        ]
    }

    /// Checks a header webhook-signature against any of the secrets, in constant time.
    ///
    /// The timestamp may be `tolerance` from `now` either way; the standard suggests five minutes.
    pub fn verify(
        &self,
        header: &str,
        secrets: &[Secret],
        now: Timestamp,
        tolerance: Duration,
    ) -> Result<(), VerifyFault> {
        if now.as_second().abs_diff(self.timestamp) > tolerance.as_secs() {
            return Err(VerifyFault::Timestamp);
        }
        let given: Vec<Vec<u8>> = header
            .split(' ')
            .filter_map(|part| part.strip_prefix("v1,"))
            .filter_map(|text| STANDARD.decode(text).ok())
            .collect();
        let matches = |secret| {
            let expected = self.digest(secret);
            given.iter().any(|signature| bool::from(signature.as_slice().ct_eq(expected.as_slice())))
        };
        if secrets.iter().any(matches) { Ok(()) } else { Err(VerifyFault::Signature) }
    }

    fn digest(&self, secret: &Secret) -> [u8; 32] {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.0.expose_secret()) else {
            unreachable!("HMAC takes keys of any length")
        };
        mac.update(self.id.as_bytes());
        mac.update(b".");
        mac.update(self.timestamp.to_string().as_bytes());
        mac.update(b".");
        mac.update(self.body);
        mac.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    const TOLERANCE: Duration = Duration::from_mins(5);
    /// The example of the published standard.
    const PUBLISHED_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const PUBLISHED: Message<'static> = Message {
        id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp: 1_614_265_330,
        body: b"{\"test\": 2432232314}",
    };
    const PUBLISHED_SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn published() -> Secret {
        Secret::parse(PUBLISHED_SECRET).unwrap()
    }

    fn drawn(seed: u64) -> Secret {
        Secret::generate(&mut StdRng::seed_from_u64(seed))
    }

    fn verify(
        message: &Message<'_>,
        header: &str,
        secrets: &[Secret],
        second: i64,
    ) -> Result<(), VerifyFault> {
        message.verify(header, secrets, Timestamp::from_second(second).unwrap(), TOLERANCE)
    }

    #[test]
    fn the_published_example_is_signed_as_published() {
        assert_eq!(PUBLISHED.signature(&[published()]), PUBLISHED_SIGNATURE);
        let headers = PUBLISHED.headers(&[published()]);
        let expected = [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", PUBLISHED_SIGNATURE),
        ];
        assert_eq!(headers, expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn the_published_example_is_verified_within_its_tolerance() {
        for (offset, expected) in [
            (0, Ok(())),
            (300, Ok(())),
            (-300, Ok(())),
            (301, Err(VerifyFault::Timestamp)),
            (-301, Err(VerifyFault::Timestamp)),
        ] {
            let at = PUBLISHED.timestamp + offset;
            assert_eq!(verify(&PUBLISHED, PUBLISHED_SIGNATURE, &[published()], at), expected, "{offset}");
        }
        let eternal = Message { timestamp: i64::MIN, ..PUBLISHED };
        assert_eq!(verify(&eternal, PUBLISHED_SIGNATURE, &[published()], 0), Err(VerifyFault::Timestamp));
    }

    #[test]
    fn any_change_breaks_the_signature() {
        let changed = [
            Message { id: "msg_other", ..PUBLISHED },
            Message { timestamp: PUBLISHED.timestamp + 1, ..PUBLISHED },
            Message { body: b"{\"test\": 2432232315}", ..PUBLISHED },
        ];
        for message in changed {
            let result = verify(&message, PUBLISHED_SIGNATURE, &[published()], message.timestamp);
            assert_eq!(result, Err(VerifyFault::Signature));
        }
        for header in ["", "v1,", "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", "v1,g0hM", "v1"] {
            let result = verify(&PUBLISHED, header, &[published()], PUBLISHED.timestamp);
            assert_eq!(result, Err(VerifyFault::Signature), "{header}");
        }
    }

    #[test]
    fn an_old_secret_signs_along() {
        let (old, new) = (drawn(1), drawn(2));
        let header = PUBLISHED.signature(&[new.clone(), old.clone()]);
        assert_eq!(header.split(' ').count(), 2);
        for known in [old, new] {
            assert_eq!(verify(&PUBLISHED, &header, &[known], PUBLISHED.timestamp), Ok(()));
        }
        let result = verify(&PUBLISHED, &header, &[drawn(3)], PUBLISHED.timestamp);
        assert_eq!(result, Err(VerifyFault::Signature));
    }

    #[test]
    fn a_drawn_secret_is_read_back_from_its_text() {
        let secret = drawn(7);
        let text = secret.text();
        let text = text.expose_secret();
        assert_eq!(STANDARD.decode(text.strip_prefix(PREFIX).unwrap()).unwrap().len(), 32);
        let again = Secret::parse(text).unwrap();
        assert_eq!(PUBLISHED.signature(&[again]), PUBLISHED.signature(&[secret]));
        assert_ne!(drawn(7).text().expose_secret(), drawn(8).text().expose_secret());
    }

    #[test]
    fn a_text_that_is_no_secret_is_refused() {
        let of_length = |length: usize| format!("whsec_{}", STANDARD.encode(vec![1; length]));
        let cases = [
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned(), Some(SecretFault::Prefix)),
            ("whsec_*".to_owned(), Some(SecretFault::Encoding)),
            (of_length(23), Some(SecretFault::Length)),
            (of_length(24), None),
            (of_length(64), None),
            (of_length(65), Some(SecretFault::Length)),
        ];
        for (text, fault) in cases {
            assert_eq!(Secret::parse(&text).err(), fault, "{text}");
        }
    }

    #[test]
    fn a_secret_is_not_shown_by_debug() {
        assert_eq!(format!("{:?}", published()), "Secret([REDACTED])");
    }
}
