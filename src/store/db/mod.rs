//! The database itself, and the cache of API keys. Other tables and queries are in the other modules of `store`.

mod broken;
pub mod column;
pub mod connections;
pub mod deadline;
pub mod error;
pub mod group_commit;
pub mod ids;
pub(crate) mod insert;
mod kept;
pub mod key_cache;
pub(crate) mod lookup;
pub mod metrics;
pub mod page;
pub(crate) mod payers;
pub mod pool;
mod pool_settings;
mod readers;
pub mod reseal;
pub(crate) mod sql;
mod transaction;
pub mod vault;
