//! NTLM over HTTP (MS-NTHT): writes the messages of `nlmp` into headers and reads them from headers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, WWW_AUTHENTICATE};
use secrecy::SecretString;

use super::credentials::Credentials;
use super::fault::AuthFault;
use super::nlmp::{self, NonceAndTime};

const SCHEME: &str = "NTLM";
/// The longest challenge that is accepted, in bytes.
const CHALLENGE_BYTES_MAX: usize = 16 * 1_024;

#[derive(Debug, Clone, Copy)]
pub struct NtlmLogin<'a> {
    pub username: &'a str,
    pub password: &'a SecretString,
    pub domain: &'a str,
}

/// The state of one sign-in. It keeps the first message, because the integrity code of the third message covers it.
pub(super) struct Negotiation {
    opening: Vec<u8>,
    nonce_and_time: NonceAndTime,
}

impl Negotiation {
    pub(super) fn begin(nonce_and_time: NonceAndTime) -> Self {
        Self {
            opening: nlmp::negotiate_message(),
            nonce_and_time,
        }
    }

    /// Returns the header with the first message of the handshake (NEGOTIATE).
    pub(super) fn opening_header(&self) -> Result<Credentials, AuthFault> {
        Credentials::authorization(SCHEME, &STANDARD.encode(&self.opening))
    }

    /// Returns the header with the third message (AUTHENTICATE), which responds to the server's challenge.
    pub(super) fn response(
        &self,
        challenge: &str,
        login: NtlmLogin<'_>,
    ) -> Result<Credentials, AuthFault> {
        if challenge.len() > CHALLENGE_BYTES_MAX.div_ceil(3) * 4 {
            return Err(AuthFault::NtlmUnreadable);
        }
        let challenge = STANDARD
            .decode(challenge)
            .map_err(|_| AuthFault::NtlmUnreadable)?;
        let message =
            nlmp::authenticate_message(&self.opening, &challenge, login, self.nonce_and_time);
        Credentials::authorization(
            SCHEME,
            &STANDARD.encode(message.ok_or(AuthFault::NtlmUnreadable)?),
        )
    }
}

/// Finds the second message (CHALLENGE) in the headers of a response.
pub(crate) fn challenge(headers: &HeaderMap) -> Option<String> {
    let offers = headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    offers.flat_map(|offer| offer.split(',')).find_map(|offer| {
        let (scheme, message) = offer.trim().split_once(' ')?;
        scheme
            .eq_ignore_ascii_case(SCHEME)
            .then(|| message.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn messages_are_base64_in_headers() {
        let negotiation = Negotiation::begin(NonceAndTime {
            nonce: [7; 8],
            now: Timestamp::UNIX_EPOCH,
        });
        let headers = negotiation.opening_header().unwrap().headers();
        assert_eq!(
            headers["authorization"],
            "NTLM TlRMTVNTUAABAAAABYIIAAAAAAAAAAAAAAAAAAAAAAA="
        );
        assert!(headers["authorization"].is_sensitive());
    }

    #[test]
    fn an_invalid_challenge_is_a_fault() {
        let secret = SecretString::default();
        let login = NtlmLogin {
            username: "User",
            password: &secret,
            domain: "",
        };
        let negotiation = Negotiation::begin(NonceAndTime {
            nonce: [7; 8],
            now: Timestamp::UNIX_EPOCH,
        });
        let long = STANDARD.encode(vec![0; CHALLENGE_BYTES_MAX + 3]);
        for text in [
            "",
            "*",
            "TlRMTVNTUAACAAAA",
            &STANDARD.encode([0; 64]),
            &long,
        ] {
            let fault = negotiation.response(text, login).unwrap_err();
            assert_eq!(fault, AuthFault::NtlmUnreadable, "{text:.40}");
        }
    }

    #[test]
    fn a_challenge_is_found_among_other_offers() {
        let found = |offers: &[&'static str]| {
            let headers = offers
                .iter()
                .map(|offer| (WWW_AUTHENTICATE, offer.parse().unwrap()));
            challenge(&headers.collect())
        };
        assert_eq!(found(&["Negotiate", "NTLM TlRM"]).as_deref(), Some("TlRM"));
        assert_eq!(
            found(&["Basic realm=\"x\", ntlm  TlRM "]).as_deref(),
            Some("TlRM")
        );
        assert_eq!(
            (
                found(&["NTLM"]),
                found(&["Basic realm=\"NTLM x\""]),
                found(&[])
            ),
            (None, None, None)
        );
    }
}
