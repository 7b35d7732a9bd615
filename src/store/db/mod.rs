//! The database itself: connections, transactions and their errors, portal ids, and secrets at rest.

pub mod any;
pub mod column;
pub mod counter_row;
pub mod database;
pub mod deadline;
pub mod error;
pub mod group_commit;
pub mod ids;
pub mod pool;
pub mod reseal;
pub mod vault;
