//! What makes an actix actor a supervised one: it survives its panics, loses no command, and is seen.
//!
//! | File | Concept |
//! |---|---|
//! | `serial` | the shell of an actor that works its commands off, one batch at a time; a `Worker` is what one writes |
//! | `registry` | one actor per key: started on demand, resent to, passivated |
//! | `admission` | permits per key and for the process; none left is 429 or 503 |
//! | `reply` | the envelope of a command; its answer tells *not started* from *interrupted* |
//! | `queue` | the actor's own queue, which survives a restart and quarantines what panics twice |
//! | `guard` | runs an actor, restarts it after a panic, escalates when the budget is spent |
//! | `policy` | how often and how soon an actor is restarted |
//! | `panics` | the panic hook, catching, and the proof that panics unwind |
//! | `arbiters` | the threads actors live on |
//! | `tree`, `node` | who runs, in which state; whether the process is ready |
//! | `snapshot` | the tree as operators read it |
//! | `watchdog` | who has been at one batch for too long |
//! | `quarantine` | the commands that were put aside |
//! | `janitor` | the timer that calls what is due |
//! | `observe` | counters, for operators and tests alike |

pub mod admission;
pub mod arbiters;
pub mod batch_actor;
pub mod counters;
pub mod guard;
pub mod janitor;
pub mod node;
pub mod panics;
pub mod policy;
pub mod quarantine;
pub mod queue;
pub mod registry;
pub mod reply;
pub mod snapshot;
#[cfg(test)]
mod tests;
pub mod tree;
pub mod watchdog;

pub use admission::{Admission, AdmissionLimits, Permit};
pub use arbiters::Arbiters;
pub use batch_actor::{BatchActor, Worker};
pub use guard::supervise;
pub use node::{Node, NodeState};
pub use panics::{assert_unwinding, install_hook};
pub use policy::RestartPolicy;
pub use queue::{Batch, Task, WorkQueue};
pub use registry::{Mailbox, Passivate, Registry, RegistrySettings, SendError, StartContext};
pub use reply::{CommandId, CommandOutcome, Envelope};
pub use tree::{ActorKind, Tree};
