//! Authenticates the requests to an ERP, the receiver's business software. Nothing is cached here; the delivery actors
//! cache access tokens.
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
pub use fault::AuthFault;
#[cfg(test)]
pub use fault::TokenError;
pub use handshake::NtlmConnections;
pub use nlmp::NonceAndTime;
pub use ntlm::NtlmLogin;
pub(in crate::webhook) use ntlm::challenge;
#[cfg(any(test, fuzzing))]
pub(in crate::webhook) use token::read_answer as read_token;
pub use token::{Token, fetch};
