//! What the tests work with.
//!
//! | Concept | File |
//! |---|---|
//! | the application, one a database | `world` |
//! | its directory and its database | `home` |
//! | an ERP that asks for credentials | `erp`, its side of NTLM in `ntlm` |
//! | what suppliers send | `supplies` |
//! | what somebody else let the authority sign | `planted` |

pub(crate) mod erp;
pub(crate) mod home;
pub(crate) mod ntlm;
pub(crate) mod planted;
pub(crate) mod supplies;
pub(crate) mod world;

pub(crate) use world::{run_case, run_case_with};
