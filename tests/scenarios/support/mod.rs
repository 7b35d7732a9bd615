//! What the scenarios share.
//!
//! | Concept | File |
//! |---|---|
//! | SQLite or PostgreSQL, fresh for each scenario; what it is a copy of | `database`, `template` |
//! | the binary as a child process, and its state when a test fails | `service`, `process_state` |
//! | the service with its authority and database, and what is always true of them | `deployment` |
//! | requests; a person at the console | `client`, `console` |
//! | faults of the machine that the process runs on | `machine` |
//! | a webhook endpoint that outlives the kills and fails as the test says, and the order it must see | `receiver` |
//! | an authority of which many calls fail | `chaos` |
//! | queries beside the process; a proxy before the database that goes silent | `database_queries`, `proxy` |
//! | how much there is of it | `size` |

pub(crate) mod chaos;
pub(crate) mod client;
pub(crate) mod console;
pub(crate) mod database;
pub(crate) mod database_queries;
pub(crate) mod deployment;
pub(crate) mod machine;
pub(crate) mod process_state;
pub(crate) mod proxy;
pub(crate) mod receiver;
pub(crate) mod service;
pub(crate) mod size;
pub(crate) mod template;

pub(crate) use self::database::run_case;
