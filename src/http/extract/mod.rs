//! The parts of a request that handlers take as arguments.
//!
//! | Part | File |
//! |---|---|
//! | the caller, from its API key; the lookup of the key | `callers`, `auth` |
//! | the taxpayer that a call acts for | `acting_taxpayer` |
//! | the text by which people recognise the API key | `api_key_label` |
//! | the body and the JSON object in it; its whole text; the parser | `body`, `body_text`, `json` |
//! | the form of a page | `form` |
//! | NUL in addresses and forms | `nul` |
//! | ids in the path | `path_ids` |
//! | the message for a missing or refused key | `key_refusal` |
//! | how long the caller waits for a run | `prefer` |
//! | the right to go on reading a long answer | `reading_right` |
//! | the least operator role that a handler requires | `role` |

pub(crate) mod acting_taxpayer;
pub(crate) mod api_key_label;
pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod body_text;
mod callers;
pub(crate) mod form;
pub(crate) mod json;
mod key_refusal;
pub(crate) mod nul;
pub(crate) mod path_ids;
pub(crate) mod prefer;
pub(crate) mod reading_right;
pub(crate) mod role;
