//! The composition root (`composition`) and the commands of the program, most in a file of the same name. `accounts`
//! has the commands `migrate`, `create`, `password`, `totp-reset` and `subscription`; `access` has those that disable,
//! enable or remove an account or change a role. No lower layer looks for its dependencies: all are built here from the
//! settings and passed down.
//!
//! | File | Content |
//! |---|---|
//! | `access` | commands that disable, enable or remove an account or a contact person, and commands that change a role |
//! | `accounts` | commands that create and change accounts, and may run beside a service on the same database |
//! | `api_state` | builds the state of the API from the parts of the app and the settings |
//! | `authority_connection` | the connection to the authority: a client of the remote authority, or the embedded simulator and a client of it |
//! | `background_actors` | the actors that run for the life of the process, and the start of all of them |
//! | `build_context` | the parts that most actors need, from which handles and workers are built while the app starts |
//! | `checkpoint` | the command `checkpoint`, and the periodic checkpoints of a running service |
//! | `composition` | builds the store, the authority's client and the actors |
//! | `database` | opens the database of the settings: for the service, for a command that writes, and for a command that only reads |
//! | `demo` | the command `demo`: takes one invoice through the whole service on a temporary database |
//! | `doctor` | the command `doctor`: checks a deployment before a start |
//! | `drill` | the command `drill`: causes a fault in a running development service, and waits until the service reports the incident and its end |
//! | `error` | the reasons why a command fails, each as a sentence for the person who ran it |
//! | `first_start` | the demo accounts that the first start of a new database creates in development |
//! | `import` | the command `import`: sends a file of invoices to a running service |
//! | `invitations` | commands that make one-time links with which people choose a password |
//! | `keys` | commands that list, rotate and revoke API keys |
//! | `mails` | builds the mailer from the settings and starts its actors |
//! | `periodic_actors` | the actors that repeat work at intervals, such as the janitor, checkpoints and the watch over clocks |
//! | `process_lock` | a lock file in `data_dir`, held while a process serves |
//! | `reconcile` | the command `reconcile`: has one day of a taxpayer compared with the authority's ledger, and waits for the result |
//! | `secrets` | the command `secrets reseal`: encrypts (seals) every secret in the database again, with the current encryption key |
//! | `serve` | the commands `serve` and `sandbox`: builds the app, starts the HTTP server, and shuts both down in order |
//! | `serve_mode` | the modes of a process that serves: normal, or paused, in which it sends nothing |
//! | `server` | the HTTP server of the process |
//! | `verification_report` | the report of the command `verify`, in words for an operator |
//! | `verify` | the command `verify`: checks one or all event chains, and compares them with signed checkpoints |

mod access;
mod accounts;
mod api_state;
mod authority_connection;
mod background_actors;
mod build_context;
mod checkpoint;
mod composition;
mod database;
mod demo;
mod doctor;
mod drill;
mod error;
mod first_start;
mod import;
mod invitations;
mod keys;
mod mails;
mod periodic_actors;
mod process_lock;
mod reconcile;
mod secrets;
mod serve;
mod serve_mode;
mod server;
mod verification_report;
mod verify;

pub use self::database::open_store;
pub use crate::domain::access::api_key::KeyOwner;
pub use crate::domain::access::caller::KeyKind;
pub use crate::domain::kernel::ids::{ContactId, TaxpayerId};
pub use crate::http::openapi_document;
pub use access::{AccessAct, ContactAct, change_access, change_contact};
pub use accounts::{
    create_integrator, create_operator, migrate, reset_contact_totp, reset_totp, set_new_password,
    set_subscription,
};
pub use checkpoint::checkpoint;
pub use composition::App;
pub use demo::demo;
pub use doctor::{DoctorReport, doctor};
pub use drill::{DrillError, drill};
pub use error::StartError;
pub use import::{ImportError, import};
pub use invitations::{invite, invite_contact};
pub use keys::{list_accounts, revoke_keys, rotate_key};
pub use reconcile::{ReconciliationReport, reconcile};
pub use secrets::{ResealReport, reseal};
pub use serve::{Application, serve, serve_sandbox};
pub use serve_mode::ServeMode;
pub use verification_report::VerificationReport;
pub use verify::{CheckpointSource, verify};
