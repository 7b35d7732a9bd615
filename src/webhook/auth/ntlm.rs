//! The messages of NTLM over HTTP (MS-NTHT, MS-NLMP): NTLMv2 only, with the integrity code over all three of them.
//! They are made by the crate `ntlmssp`, of which this is the one home.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ntlmssp::Ntlm;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

use super::credentials::Credentials;
use super::fault::AuthFault;
use crate::domain::integration::SecretText;

const SCHEME: &str = "NTLM";
/// The longest challenge that is looked at, in bytes: the lengths of its parts are 16 bits wide.
const CHALLENGE_MAX: usize = 16 * 1_024;

/// Who signs in.
#[derive(Debug, Clone, Copy)]
pub struct Login<'a> {
    pub username: &'a str,
    pub password: &'a SecretText,
    pub domain: &'a str,
}

/// One sign-in, from the first message on: the last one vouches for all of them.
pub(super) struct Negotiation(Ntlm);

impl Negotiation {
    pub(super) fn begin() -> Self {
        Self(Ntlm::new())
    }

    /// The first message.
    pub(super) fn opening(&self) -> Result<Credentials, AuthFault> {
        Credentials::authorization(SCHEME, &STANDARD.encode(self.0.negotiate()))
    }

    /// The third message, in answer to the second.
    pub(super) fn response(&self, challenge: &str, login: Login<'_>) -> Result<Credentials, AuthFault> {
        let challenge = STANDARD.decode(challenge).map_err(|_| AuthFault::NtlmUnreadable)?;
        if challenge.len() > CHALLENGE_MAX {
            return Err(AuthFault::NtlmUnreadable);
        }
        let Login { username, password, domain } = login;
        let (message, _) = self
            .0
            .authenticate(&challenge, domain, username, password.expose(), "")
            .map_err(|_| AuthFault::NtlmUnreadable)?;
        Credentials::authorization(SCHEME, &STANDARD.encode(message))
    }
}

/// The second message, where the headers of an answer hold one.
pub(in crate::webhook) fn challenge(headers: &HeaderMap) -> Option<String> {
    let offers = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    offers.flat_map(|offer| offer.split(',')).find_map(|offer| {
        let (scheme, message) = offer.trim().split_once(' ')?;
        scheme.eq_ignore_ascii_case(SCHEME).then(|| message.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use hmac::{Hmac, KeyInit, Mac};
    use md4::{Digest, Md4};
    use md5::Md5;

    use super::*;

    /// `NTOWFv2` of the account of MS-NLMP, 4.2.1: user `User`, domain `Domain`, password `Password`.
    const PUBLISHED_KEY: &str = "0c868a403bfd7a93a3001ef22ef02e3f";
    /// The challenge and the information of the server of 4.2.1 and 4.2.4.1.3.
    const SERVER_CHALLENGE: [u8; 8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
    const TARGET: &str = "02000c0044006f006d00610069006e0001000c0053006500720076006500720000000000";

    fn keyed(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let mut mac = Hmac::<Md5>::new_from_slice(key).unwrap();
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().to_vec()
    }

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn key_of(user: &str, domain: &str, password: &str) -> Vec<u8> {
        let hash = Md4::digest(wide(password));
        keyed(&hash, &[&wide(&user.to_uppercase()), &wide(domain)])
    }

    fn challenge_message() -> Vec<u8> {
        let target = hex::decode(TARGET).unwrap();
        let mut message = b"NTLMSSP\0\x02\0\0\0".to_vec();
        message.extend([0; 8]);
        message.extend(0xe28a_8233_u32.to_le_bytes());
        message.extend(SERVER_CHALLENGE);
        message.extend([0; 8]);
        let length = u16::try_from(target.len()).unwrap().to_le_bytes();
        message.extend([length, length].concat());
        message.extend(48_u32.to_le_bytes());
        message.extend(target);
        message
    }

    fn bytes_of(credentials: &Credentials) -> Vec<u8> {
        let headers = credentials.headers();
        let text = headers["authorization"].to_str().unwrap();
        STANDARD.decode(text.strip_prefix("NTLM ").unwrap()).unwrap()
    }

    fn part(message: &[u8], at: usize) -> &[u8] {
        let length = usize::from(u16::from_le_bytes(message[at..at + 2].try_into().unwrap()));
        let from = u32::from_le_bytes(message[at + 4..at + 8].try_into().unwrap()) as usize;
        &message[from..from + length]
    }

    #[test]
    fn the_published_account_is_proved_as_published() {
        assert_eq!(hex::encode(key_of("User", "Domain", "Password")), PUBLISHED_KEY);
        let published = hex::decode(PUBLISHED_KEY).unwrap();
        // 4.2.4.1.3: the blob of an answer at time 0 with the client's challenge aa…; 4.2.4.2.2: its proof.
        let blob = ["01010000000000000000000000000000aaaaaaaaaaaaaaaa00000000", TARGET, "00000000"].concat();
        let proof = keyed(&published, &[&SERVER_CHALLENGE, &hex::decode(blob).unwrap()]);
        assert_eq!(hex::encode(proof), "68cd0ab851e51c96aabc927bebef6a1c");
    }

    #[test]
    fn a_response_proves_the_password_over_the_challenge() {
        let negotiation = Negotiation::begin();
        let opening = bytes_of(&negotiation.opening().unwrap());
        assert!(opening.starts_with(b"NTLMSSP\0\x01\0\0\0"));
        let secret = "Password".to_owned().into();
        let login = Login { username: "User", password: &secret, domain: "Domain" };
        let challenge = challenge_message();
        let response = negotiation.response(&STANDARD.encode(&challenge), login).unwrap();
        let message = bytes_of(&response);
        assert!(message.starts_with(b"NTLMSSP\0\x03\0\0\0"));
        assert_eq!((part(&message, 28), part(&message, 36)), (&*wide("Domain"), &*wide("User")));
        let key = hex::decode(PUBLISHED_KEY).unwrap();
        let (proof, blob) = part(&message, 20).split_at(16);
        assert_eq!(proof, keyed(&key, &[&SERVER_CHALLENGE, blob]));
        assert!(blob.windows(36).any(|window| window == hex::decode(TARGET).unwrap()));
        let session_key = keyed(&key, &[proof]);
        let mut blank = message.clone();
        blank[72..88].fill(0);
        assert_eq!(
            message[72..88],
            keyed(&session_key, &[&opening, &challenge, &blank]),
            "the integrity code"
        );
        assert!(!message.windows(16).any(|window| window == session_key), "no key is sent");
    }

    #[test]
    fn a_challenge_that_is_none_is_a_fault() {
        let secret = SecretText::default();
        let login = Login { username: "User", password: &secret, domain: "" };
        let good = challenge_message();
        let cut = |length: usize| STANDARD.encode(&good[..length]);
        let mut beyond = good.clone();
        beyond[44..48].copy_from_slice(&u32::MAX.to_le_bytes());
        let mut long = good.clone();
        long.extend(vec![0; CHALLENGE_MAX]);
        let others = [String::new(), "*".into(), cut(12), cut(47), cut(50), STANDARD.encode(beyond)];
        for text in others.into_iter().chain([STANDARD.encode(long), STANDARD.encode([0; 64])]) {
            let fault = Negotiation::begin().response(&text, login).unwrap_err();
            assert_eq!(fault, AuthFault::NtlmUnreadable, "{text:.40}");
        }
        assert!(Negotiation::begin().response(&STANDARD.encode(good), login).is_ok());
    }

    #[test]
    fn a_challenge_is_found_among_other_offers() {
        let found = |offers: &[&'static str]| {
            let headers = offers.iter().map(|offer| (WWW_AUTHENTICATE, offer.parse().unwrap()));
            challenge(&headers.collect())
        };
        assert_eq!(found(&["Negotiate", "NTLM TlRM"]).as_deref(), Some("TlRM"));
        assert_eq!(found(&["Basic realm=\"x\", ntlm  TlRM "]).as_deref(), Some("TlRM"));
        assert_eq!((found(&["NTLM"]), found(&["Basic realm=\"NTLM x\""]), found(&[])), (None, None, None));
    }
}
