//! The reasons why an authentication failed, worded as advice for the endpoint's owner. They quote no text that was
//! sent or received, because it may contain secrets.

use std::fmt;

use address_policy::UrlFault;

/// The error codes that an authorization server may answer (RFC 6749, section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenError {
    InvalidRequest,
    InvalidClient,
    InvalidGrant,
    UnauthorizedClient,
    UnsupportedGrantType,
    InvalidScope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthFault {
    #[error(
        "the credentials were set for another host and were not sent: set the credentials again for this host"
    )]
    OtherOrigin,
    #[error("no token was asked for: {0}; correct auth.token_url")]
    TokenForbidden(UrlFault),
    #[error(
        "the token endpoint did not answer: see that auth.token_url is right and the server up"
    )]
    TokenUnreachable,
    #[error("the token endpoint answered {status} {error}: {}", advice(*error))]
    TokenRefused { status: u16, error: TokenError },
    #[error(
        "the token endpoint answered {0}: see that auth.token_url is right and the client may use it"
    )]
    TokenStatus(u16),
    #[error(
        "the token endpoint answered no bearer token of RFC 6749: see that auth.token_url is right"
    )]
    TokenUnreadable,
    #[error(
        "this service could not read or store what it needs to ask for a token; it is tried again"
    )]
    NotStored,
    #[error("the integration was changed meanwhile; it is tried again as it is now")]
    Changed,
    #[error("the endpoint did not ask for NTLM: enable it there, or set another auth_type")]
    NtlmNotAsked,
    #[error("the endpoint's NTLM challenge cannot be read: see that it speaks NTLMv2")]
    NtlmUnreadable,
    #[error("the credentials cannot be written into a header: set them again")]
    Unwritable,
}

impl TokenError {
    const ALL: [Self; 6] = [
        Self::InvalidRequest,
        Self::InvalidClient,
        Self::InvalidGrant,
        Self::UnauthorizedClient,
        Self::UnsupportedGrantType,
        Self::InvalidScope,
    ];

    fn code(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::InvalidScope => "invalid_scope",
        }
    }

    /// Parses a code without regard to case.
    pub(super) fn parse(code: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|error| error.code().eq_ignore_ascii_case(code))
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl AuthFault {
    /// Returns true if the server says that the refresh token is no longer valid.
    pub fn is_invalid_grant(self) -> bool {
        matches!(
            self,
            Self::TokenRefused {
                error: TokenError::InvalidGrant,
                ..
            }
        )
    }
}

fn advice(error: TokenError) -> &'static str {
    match error {
        TokenError::InvalidRequest => "set client_authentication as the server wants it",
        TokenError::InvalidClient => "correct client_id, client_secret or client_authentication",
        TokenError::InvalidGrant => "the refresh_token is no longer good; set a new one",
        TokenError::UnauthorizedClient | TokenError::UnsupportedGrantType => {
            "have the server let this client use this grant, or set another auth_type"
        }
        TokenError::InvalidScope => "correct scope",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_a_token_endpoint_comes_with_advice() {
        for error in TokenError::ALL {
            let fault = AuthFault::TokenRefused { status: 400, error };
            let text = fault.to_string();
            assert!(
                text.starts_with(&format!("the token endpoint answered 400 {error}: ")),
                "{text}"
            );
            let code = error.to_string().to_uppercase();
            assert_eq!(TokenError::parse(&code), Some(error));
        }
    }
}
