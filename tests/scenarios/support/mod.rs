//! What every scenario stands on.
//!
//! | Concept | File |
//! |---|---|
//! | SQLite or PostgreSQL, fresh for each scenario | `database` |
//! | the binary as a child process, and how it looks where it failed | `service`, `autopsy` |
//! | the process with its authority, and what is always true of them | `scene` |
//! | requests | `client` |
//! | a webhook endpoint that outlives the kills and fails as it is told, what it must have seen | `receiver` |
//! | an authority of which many calls fail | `chaos` |
//! | what the database says beside the process; a proxy before it that swallows | `books`, `proxy` |
//! | how much there is of it | `size` |

pub(crate) mod autopsy;
pub(crate) mod books;
pub(crate) mod chaos;
pub(crate) mod client;
pub(crate) mod database;
pub(crate) mod proxy;
pub(crate) mod receiver;
pub(crate) mod scene;
pub(crate) mod service;
pub(crate) mod size;

pub(crate) use database::run_case;
