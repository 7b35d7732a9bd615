//! Authenticates the requests to a receiver. Nothing is cached here: the caller caches access tokens.
//!
//! | Concept | File |
//! |---|---|
//! | authentication headers | `credentials` |
//! | access tokens of an authorization server | `token` |
//! | NTLM: its messages, their headers, their exchange | `nlmp`, `ntlm`, `handshake` |
//! | faults, worded for the owner of the endpoint | `fault` |

mod credentials;
mod fault;
mod handshake;
mod nlmp;
mod ntlm;
mod token;

pub use credentials::{API_KEY_HEADER_DEFAULT, Credentials, is_free_header};
pub use fault::{AuthFault, TokenError};
pub use handshake::NtlmConnections;
pub use nlmp::NonceAndTime;
pub use ntlm::NtlmLogin;
pub(crate) use ntlm::challenge;
pub use token::{AccessTokenRequest, Token, fetch, read_token};
