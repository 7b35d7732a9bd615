//! Callers, their API keys, sessions, passwords and invitations, and the idempotency claim of a request.
//!
//! | File | Content |
//! |---|---|
//! | `api_key` | an API key as it is stored: scope, expiry and last use |
//! | `caller` | authenticated callers |
//! | `claim` | the idempotency claim of a request: of several requests with the same `Idempotency-Key`, only one is processed |
//! | `invitation` | invitations: one-time links with which a person chooses a password |
//! | `password` | the rules for the passwords that people choose |
//! | `payer` | the account to which the use of the API is charged |
//! | `second_factor` | the second factor of a sign-in: the codes of an authenticator app, and recovery codes |
//! | `session` | the session of a person who signed in: who it is, what the person may do, and when the session ends |

pub mod api_key;
pub mod caller;
pub mod claim;
pub mod invitation;
pub mod password;
pub mod payer;
pub mod second_factor;
pub mod session;
