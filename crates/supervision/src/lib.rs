//! Supervision of actix actors: an actor survives its panics, loses no command, and can be observed. actix's own
//! supervisor keeps no mailbox and does not restart after a panic.
//!
//! | File | Concept |
//! |---|---|
//! | `batch_actor` | an actor that processes its commands in batches; its logic is a `Worker` |
//! | `registry` | one actor per key: started on demand, passivated when idle |
//! | `admission` | permits per key and for the process; without one the caller gets 429 or 503 |
//! | `mailbox` | an actor's mailbox and its handle; the envelope of a command, and its outcome, such as *not started* or *interrupted* |
//! | `queue` | the actor's own queue, which survives a restart and quarantines commands that panic twice |
//! | `guard` | runs an actor, restarts it after a panic, escalates when the restart budget is spent |
//! | `policy` | limits and delays of restarts |
//! | `task` | runs one piece of work without an actor |
//! | `panics` | the panic hook, catching panics, and the check that panics unwind |
//! | `arbiters`, `own_thread` | the threads of the actors; a thread for work that computes for long |
//! | `tree`, `node`, `node_state` | the running actors, their kinds and their states; readiness of the process |
//! | `snapshot_format`, `snapshot`, `ranking` | the figures of the tree and its actors that operators see; how they are taken and ordered |
//! | `recent`, `panic_log` | the worst actors of the last hour, and the last panics, in bounded memory |
//! | `watchdog` | reports actors that spend too long on one batch |
//! | `quarantine` | quarantined commands |
//! | `periodic` | calls a function again and again |
//! | `counters`, `metrics` | counters for metrics and tests; how long commands wait and take |

mod admission;
mod arbiters;
pub mod batch_actor;
mod counters;
mod guard;
mod mailbox;
mod metrics;
mod node;
mod node_state;
mod own_thread;
mod panic_log;
mod panics;
mod periodic;
mod policy;
mod quarantine;
mod queue;
mod ranking;
mod recent;
mod registry;
mod snapshot;
mod snapshot_format;
mod task;
#[cfg(test)]
mod tests;
mod tree;
pub mod watchdog;

pub use admission::{Admission, AdmissionLimits};
pub use arbiters::{Arbiters, hash_key};
pub use counters::{Counter, CounterValues};
pub use guard::supervise;
pub use node::Node;
pub use node_state::{NodeKind, NodeState};
pub use own_thread::run_on_own_thread;
pub use panics::{assert_unwinding, install_hook};
pub use periodic::{Period, PeriodicActor};
pub use policy::RestartPolicy;
pub use quarantine::UnstoredCommand;
pub use queue::{CommandBatch, Task};
pub use ranking::{Measure, Ranking, Window, choose_worst};
pub use registry::{Registry, RegistrySettings, SendError};
pub use snapshot_format::{
    ActorFigures, ActorGroup, BatchFigures, PanicRecord, TreeSnapshot, WindowFigures,
};
pub use task::{TaskEnd, run_task, survive_panic};
pub use tree::{Tree, TreeTotals};
