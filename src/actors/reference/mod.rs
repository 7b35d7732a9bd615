//! The snapshot of the authority's reference lists: fetched in the background, kept in the database, read by
//! the forms. No request ever waits for it. The reference endpoints do not use it: they ask the authority.
//!
//! | Concept | File |
//! |---|---|
//! | fetching what is due, and the timer that calls it | `snapshot` |

mod snapshot;

pub use snapshot::{Snapshot, SnapshotActor};
