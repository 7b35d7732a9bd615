//! How a request to an ERP authenticates itself. Each part does one thing once; what is kept between requests, and
//! when it is asked for anew, is not here.
//!
//! | Concept | File |
//! |---|---|
//! | what goes into headers | `credentials` |
//! | tokens of an authorization server | `token` |
//! | the messages of NTLM, how they stand in headers, and their exchange | `nlmp`, `ntlm`, `handshake` |
//! | what went wrong, for the owner of the endpoint | `fault` |

mod credentials;
mod fault;
mod handshake;
mod nlmp;
mod ntlm;
mod token;

pub use credentials::{Credentials, HEADER_DEFAULT, is_free_header};
pub use fault::{AuthFault, TokenError};
pub use handshake::Handshakes;
pub use nlmp::Fresh;
pub use ntlm::Login;
pub(in crate::webhook) use ntlm::challenge;
#[cfg(any(test, fuzzing))]
pub(in crate::webhook) use token::read_answer as read_token;
pub use token::{Token, fetch};
