//! The only wiring: what the calls of the command line do. Everything is built here from the settings and
//! handed down; no floor below looks for anything itself.
//!
//! | Call | File |
//! |---|---|
//! | what a running process is made of | `house`, `upstream`, `staff`, `sole` |
//! | `serve`, `sandbox` | `serve`, `first_start` |
//! | `demo` | `demo` |
//! | `integrator`, `operator`, `taxpayer`, `migrate` | `accounts`, `keys` |
//! | `checkpoint`, `verify` | `checkpoint`, `verify` |
//! | `secrets reseal` | `secrets` |
//! | `reconcile` | `reconcile` |

mod accounts;
mod checkpoint;
mod demo;
mod error;
mod first_start;
mod house;
mod keys;
mod reconcile;
mod secrets;
mod serve;
mod sole;
mod staff;
mod upstream;
mod verify;

pub use accounts::{create_integrator, create_operator, migrate, set_subscription};
pub use checkpoint::checkpoint;
pub use demo::demo;
pub use error::StartError;
pub use first_start::{Accounts, accounts as demo_accounts};
pub use house::{House, open_store};
pub use keys::{list_accounts, revoke_keys, rotate_key};
pub use reconcile::{Reconciled, reconcile};
pub use secrets::{Resealing, reseal};
pub use serve::{Application, sandbox, serve};
pub use verify::{Against, Report, verify};
