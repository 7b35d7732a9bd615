//! The second factor of a sign-in: the codes of an authenticator app (RFC 6238: SHA-1, 6 digits, steps of 30 seconds,
//! which every app supports), and recovery codes for a person who has lost the app. A code of the app is accepted in
//! its own time step and in the steps before and after it. The store ensures that each code is accepted only once.

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use totp_rs::{Builder, Secret};

const CODE_DIGITS: usize = 6;
const RECOVERY_CODE_COUNT: usize = 10;
const RECOVERY_CODE_BYTES: usize = 10;
/// The length of a recovery code without the hyphens between its groups.
const RECOVERY_CODE_CHARS: usize = RECOVERY_CODE_BYTES * 8 / 5;

/// The secret that a person's authenticator app shares with this service. Its `Debug` text does not show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TotpSecret(Secret);

impl TotpSecret {
    pub const BYTES: usize = 20;

    pub fn new(random: [u8; Self::BYTES]) -> Self {
        Self(Secret::new(Box::new(random)))
    }

    /// Reads the secret from base32. Returns `None` if the text is not base32, or if the secret is too short to be
    /// safe.
    pub fn parse(text: &str) -> Option<Self> {
        let secret = Secret::try_from_base32(text).ok()?;
        (secret.as_bytes().len() >= Self::BYTES).then_some(Self(secret))
    }

    /// Returns the secret as base32, which a person can type into an app.
    pub fn text(&self) -> String {
        self.0.to_base32()
    }

    /// Returns the address that an app reads from a QR code.
    pub fn otpauth_url(&self, email: &str) -> String {
        let account: String = url::form_urlencoded::byte_serialize(email.as_bytes()).collect();
        format!(
            "otpauth://totp/einvoice:{account}?secret={}&issuer=einvoice",
            self.text()
        )
    }

    /// Returns the time step that this code belongs to: the present step, or the one before or after it. `None` if the
    /// code belongs to none of them.
    pub fn matching_time_step(&self, code: &str, now: Timestamp) -> Option<i64> {
        let code: String = code.chars().filter(|sign| !sign.is_whitespace()).collect();
        if code.len() != CODE_DIGITS || !code.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let totp = Builder::new().with_secret(self.0.clone()).build().ok()?;
        let step = totp.check(&code, u64::try_from(now.as_second()).ok()?)?;
        i64::try_from(step).ok()
    }
}

/// A code that can be used once instead of a code of the app. It has 80 random bits, so nobody can find it by hashing
/// all possible codes.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode(String);

impl RecoveryCode {
    /// Makes a new set of codes for one person.
    pub fn draw_codes(mut chance: impl FnMut() -> [u8; RECOVERY_CODE_BYTES]) -> Vec<Self> {
        (0..RECOVERY_CODE_COUNT)
            .map(|_| Self(Secret::new(Box::new(chance())).to_base32()))
            .collect()
    }

    /// Parses a code as a person typed it. Returns `None` if the text cannot be a recovery code.
    pub fn parse(typed: &str) -> Option<Self> {
        let text: String = typed.chars().filter(char::is_ascii_alphanumeric).collect();
        (text.len() == RECOVERY_CODE_CHARS).then(|| Self(text.to_ascii_uppercase()))
    }

    /// Returns the code in groups of four, as a person copies it.
    pub fn text(&self) -> String {
        let groups: Vec<_> = self
            .0
            .as_bytes()
            .chunks(4)
            .map(String::from_utf8_lossy)
            .collect();
        groups.join("-")
    }

    /// Returns the SHA-256 of the code, which is what is stored.
    pub fn hash(&self) -> String {
        hex::encode(Sha256::digest(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// The secret of RFC 6238, appendix B.
    fn secret() -> TotpSecret {
        TotpSecret::new(*b"12345678901234567890")
    }

    #[test]
    fn the_codes_are_those_of_rfc_6238() {
        for (second, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_234_567_890, "005924"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(
                secret().matching_time_step(code, at(second)),
                Some(second / 30)
            );
        }
    }

    #[test]
    fn a_code_is_right_in_its_step_and_in_those_beside_it() {
        let now = 1_111_111_109;
        for (late, is_right) in [
            (-60, false),
            (-30, true),
            (0, true),
            (30, true),
            (60, false),
        ] {
            assert_eq!(
                secret()
                    .matching_time_step("081 804", at(now + late))
                    .is_some(),
                is_right,
                "{late}"
            );
        }
        for other in ["", "81804", "0081804", "08180a", "+81804", "٠٨١٨٠٤"] {
            assert_eq!(secret().matching_time_step(other, at(now)), None, "{other}");
        }
    }

    #[test]
    fn an_app_reads_the_secret_and_no_log_does() {
        let text = secret().text();
        assert_eq!(TotpSecret::parse(&text), Some(secret()));
        assert_eq!(TotpSecret::parse("JBSWY3DP"), None, "too short");
        let address = secret().otpauth_url("a+b@x.example");
        assert_eq!(
            address,
            format!("otpauth://totp/einvoice:a%2Bb%40x.example?secret={text}&issuer=einvoice")
        );
        assert!(!format!("{:?}", secret()).contains(&text));
    }

    #[test]
    fn a_recovery_code_is_read_as_people_type_it() {
        let mut byte = 0;
        let codes = RecoveryCode::draw_codes(|| {
            byte += 1;
            [byte; RECOVERY_CODE_BYTES]
        });
        assert_eq!(codes.len(), 10);
        let shown = codes[0].text();
        assert_eq!(shown.len(), 19, "{shown}");
        let typed =
            RecoveryCode::parse(&format!(" {} ", shown.to_lowercase().replace('-', " "))).unwrap();
        assert_eq!(typed.hash(), codes[0].hash());
        assert_ne!(codes[1].hash(), codes[0].hash());
        assert!(RecoveryCode::parse("123456").is_none());
    }
}
