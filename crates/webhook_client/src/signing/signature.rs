//! Signs and verifies messages (Standard Webhooks 1.0.0).
//!
//! A signature covers `{id}.{timestamp}.{body}` and is written as base64 after its version: `v1,` for HMAC-SHA256,
//! `v1a,` for Ed25519. While a secret is being replaced, the header has signatures of the old and the new secret.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use crate::signing::SigningSecret;

/// The reason why a message could not be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerifyFault {
    #[error("the timestamp is further from the present than tolerated")]
    Timestamp,
    #[error("no signature matches")]
    Signature,
}

/// The content that is signed: the headers webhook-id and webhook-timestamp (Unix seconds), and the exact body.
#[derive(Debug, Clone, Copy)]
pub struct SignedMessage<'a> {
    pub id: &'a str,
    pub timestamp: i64,
    pub body: &'a [u8],
}

impl SignedMessage<'_> {
    /// Returns the header webhook-signature: one signature per secret, separated by spaces.
    pub fn signature(&self, secrets: &[SigningSecret]) -> String {
        let content = self.content();
        let sign = |secret: &SigningSecret| {
            format!(
                "{},{}",
                secret.signature_version(),
                STANDARD.encode(secret.sign(&content))
            )
        };
        secrets.iter().map(sign).collect::<Vec<_>>().join(" ")
    }

    /// Returns the names and values of the three headers of the standard.
    pub fn headers(&self, secrets: &[SigningSecret]) -> Vec<(&'static str, String)> {
        vec![
            ("webhook-id", self.id.to_owned()),
            ("webhook-timestamp", self.timestamp.to_string()),
            ("webhook-signature", self.signature(secrets)),
        ]
    }

    /// Checks a header webhook-signature: one signature matches a secret, and the timestamp is within `tolerance`.
    pub fn verify(
        &self,
        header: &str,
        secrets: &[SigningSecret],
        now: Timestamp,
        tolerance: Duration,
    ) -> Result<(), VerifyFault> {
        if now.as_second().abs_diff(self.timestamp) > tolerance.as_secs() {
            return Err(VerifyFault::Timestamp);
        }
        let content = self.content();
        let given: Vec<(&str, Vec<u8>)> = header
            .split(' ')
            .filter_map(|part| part.split_once(','))
            .filter_map(|(version, text)| Some((version, STANDARD.decode(text).ok()?)))
            .collect();
        let is_signed = secrets.iter().any(|secret| {
            let mut of_its_kind = given
                .iter()
                .filter(|(version, _)| *version == secret.signature_version());
            of_its_kind.any(|(_, signature)| secret.verifies(&content, signature))
        });
        if is_signed {
            Ok(())
        } else {
            Err(VerifyFault::Signature)
        }
    }

    fn content(&self) -> Vec<u8> {
        let head = format!("{}.{}.", self.id, self.timestamp);
        [head.as_bytes(), self.body].concat()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    const TOLERANCE: Duration = Duration::from_mins(5);
    /// The secret of the example in the published standard.
    const PUBLISHED_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const PUBLISHED: SignedMessage<'static> = SignedMessage {
        id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp: 1_614_265_330,
        body: b"{\"test\": 2432232314}",
    };
    const PUBLISHED_SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn published_secret() -> SigningSecret {
        SigningSecret::parse(PUBLISHED_SECRET).unwrap()
    }

    fn draw_secret(seed: u64) -> SigningSecret {
        SigningSecret::generate(&mut StdRng::seed_from_u64(seed))
    }

    fn verify(
        message: &SignedMessage<'_>,
        header: &str,
        secrets: &[SigningSecret],
        second: i64,
    ) -> Result<(), VerifyFault> {
        message.verify(
            header,
            secrets,
            Timestamp::from_second(second).unwrap(),
            TOLERANCE,
        )
    }

    #[test]
    fn the_published_example_is_signed_as_published() {
        assert_eq!(
            PUBLISHED.signature(&[published_secret()]),
            PUBLISHED_SIGNATURE
        );
        let headers = PUBLISHED.headers(&[published_secret()]);
        let expected = [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", PUBLISHED_SIGNATURE),
        ];
        assert_eq!(
            headers,
            expected.map(|(name, value)| (name, value.to_owned()))
        );
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
            assert_eq!(
                verify(&PUBLISHED, PUBLISHED_SIGNATURE, &[published_secret()], at),
                expected,
                "{offset}"
            );
        }
        let eternal = SignedMessage {
            timestamp: i64::MIN,
            ..PUBLISHED
        };
        assert_eq!(
            verify(&eternal, PUBLISHED_SIGNATURE, &[published_secret()], 0),
            Err(VerifyFault::Timestamp)
        );
    }

    #[test]
    fn any_change_breaks_the_signature() {
        let changed = [
            SignedMessage {
                id: "msg_other",
                ..PUBLISHED
            },
            SignedMessage {
                timestamp: PUBLISHED.timestamp + 1,
                ..PUBLISHED
            },
            SignedMessage {
                body: b"{\"test\": 2432232315}",
                ..PUBLISHED
            },
        ];
        for message in changed {
            let result = verify(
                &message,
                PUBLISHED_SIGNATURE,
                &[published_secret()],
                message.timestamp,
            );
            assert_eq!(result, Err(VerifyFault::Signature));
        }
        for header in [
            "",
            "v1,",
            "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            "v1,g0hM",
            "v1",
        ] {
            let result = verify(
                &PUBLISHED,
                header,
                &[published_secret()],
                PUBLISHED.timestamp,
            );
            assert_eq!(result, Err(VerifyFault::Signature), "{header}");
        }
    }

    #[test]
    fn the_old_secret_signs_too() {
        let old = draw_secret(1);
        let new = draw_secret(2);
        let header = PUBLISHED.signature(&[new.clone(), old.clone()]);
        assert_eq!(header.split(' ').count(), 2);
        for known in [old, new] {
            assert_eq!(
                verify(&PUBLISHED, &header, &[known], PUBLISHED.timestamp),
                Ok(())
            );
        }
        let result = verify(&PUBLISHED, &header, &[draw_secret(3)], PUBLISHED.timestamp);
        assert_eq!(result, Err(VerifyFault::Signature));
    }

    #[test]
    fn secrets_of_both_kinds_sign_together() {
        let shared = draw_secret(1);
        let pair = SigningSecret::generate_pair(&mut StdRng::seed_from_u64(2));
        let header = PUBLISHED.signature(&[pair.clone(), shared.clone()]);
        let versions: Vec<_> = header
            .split(' ')
            .map(|part| part.split_once(',').unwrap().0)
            .collect();
        assert_eq!(versions, ["v1a", "v1"]);
        for known in [shared, pair.clone()] {
            assert_eq!(
                verify(&PUBLISHED, &header, &[known], PUBLISHED.timestamp),
                Ok(())
            );
        }
        // The version selects the algorithm, so a signature with another version is invalid.
        let renamed = header.replace("v1a,", "v1,");
        let result = verify(
            &PUBLISHED,
            &renamed,
            std::slice::from_ref(&pair),
            PUBLISHED.timestamp,
        );
        assert_eq!(result, Err(VerifyFault::Signature));
        let changed = SignedMessage {
            body: b"{}",
            ..PUBLISHED
        };
        assert_eq!(
            verify(&changed, &header, &[pair], PUBLISHED.timestamp),
            Err(VerifyFault::Signature)
        );
    }
}
