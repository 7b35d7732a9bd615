//! The composition root (`composition`) and the commands of the program, most in a file of the same name. `accounts`
//! has the commands `migrate`, `create`, `password`, `totp-reset` and `subscription`; `access` has those that disable,
//! enable or remove an account or change a role. No lower layer looks for its dependencies: all are built here from the
//! settings and passed down.

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
