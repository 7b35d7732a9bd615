//! Invitations: one-time links with which a person chooses a first password, or a new password in place of a forgotten
//! one. So nobody but the person ever knows the password.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

/// The path of the page to which a link leads. The token follows it.
pub const INVITATION_PATH: &str = "/sign-in/invitation/";

/// The time within which a link can be used.
pub const INVITATION_LIFETIME: Duration = Duration::from_hours(72);

/// The secret of a link: 32 random bytes in URL-safe base64. Its `Debug` text does not show it.
#[derive(Debug, Clone)]
pub struct InvitationToken(SecretString);

impl InvitationToken {
    pub fn new(random: [u8; 32]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(random).into())
    }

    /// Takes the token from its segment of a request's URL. It need not be a token that exists.
    pub fn from_url_segment(text: String) -> Self {
        Self(text.into())
    }

    pub fn text(&self) -> &str {
        self.0.expose_secret()
    }

    /// Returns the path of the page where the person chooses a password.
    pub fn page_path(&self) -> String {
        format!("{INVITATION_PATH}{}", self.text())
    }

    /// Returns the SHA-256 of the token, which is what is stored.
    pub fn hash(&self) -> String {
        hex::encode(Sha256::digest(self.text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_holds_the_token_and_no_log_does() {
        let token = InvitationToken::new([7; 32]);
        assert_eq!(token.text().len(), 43);
        assert_eq!(
            token.page_path(),
            format!("/sign-in/invitation/{}", token.text())
        );
        assert_eq!(
            InvitationToken::from_url_segment(token.text().to_owned()).hash(),
            token.hash()
        );
        assert_ne!(InvitationToken::new([8; 32]).hash(), token.hash());
        assert!(!format!("{token:?}").contains(token.text()));
    }
}
