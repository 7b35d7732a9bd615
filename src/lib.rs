//! An e-invoicing relay between taxpayers and a national tax authority.
//!
//! The layers, from the bottom: `domain` (pure); `config` and `telemetry`; `store` (the tables); `actors`; `http`;
//! `console`; `app` and `cli`. A file imports only from lower layers and its own; `tests/tidy.rs` checks this rule.
//! Code that talks to the outside world, such as the authority's client, is in `crates` and knows nothing of the
//! service.

mod actors;
pub mod app;
pub mod cli;
pub mod config;
mod console;
mod domain;
mod http;
mod store;
pub mod telemetry;

/// Items for tests, benchmarks and fuzz targets only. The modules themselves stay private, so that the compiler finds
/// unused code in them.
#[doc(hidden)]
pub mod internals {
    pub use crate::actors::taxpayer::commands::{
        ChangeProfile, CreateInvoice, Onboard, SetStatus, SetWebhook,
    };
    pub use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
    pub use crate::console::{
        OperatorPath, guide_paths, once_and_repeatable_form_patterns, operator_paths, page_patterns,
    };
    pub use crate::domain::access::api_key::KeyTerms;
    pub use crate::domain::access::session::OperatorRole;
    pub use crate::domain::events::endpoint::RetryScheduleChange;
    pub use crate::domain::events::event::{EventKind, EventStamp, NewEvent};
    pub use crate::domain::invoice::invoice_ref::InvoiceRef;
    pub use crate::domain::invoice::invoice_view::InvoiceObject;
    pub use crate::domain::invoice::irn::Irn;
    pub use crate::domain::invoice::{Draft, Invoice, InvoiceIdentity, Line};
    pub use crate::domain::kernel::audit::Actor;
    pub use crate::domain::kernel::codes::{
        Category, DeclaredPaymentStatus, ItemType, SettableStatus, Subscription, UniqueNoType,
    };
    pub use crate::domain::kernel::fault::Faults;
    pub use crate::domain::kernel::ids::{
        ContactId, CustomerId, IntegratorId, InvoiceId, TaxpayerId,
    };
    pub use crate::domain::mail_links::MailLinks;
    pub use crate::domain::notice::{NoticeScope, NoticeTopic};
    pub use crate::domain::party::{
        Address, BusinessLocation, CustomerDetails, InvoiceCustomer, NewContact, ProfileChange,
    };
    pub use crate::domain::reconciliation::day::day_at;
    pub use crate::store::Store;
    pub use crate::store::accounts::{NewIntegrator, add_integrator};
    pub use crate::store::events::{append as append_events, log_head as event_head};
    pub use crate::store::ids::IdKind;
    pub use crate::store::invoices::save as save_invoices;
    pub use crate::store::lanes::{IfLocked, LaneKind, LaneName, lock as lock_lanes};

    #[cfg(fuzzing)]
    pub use crate::http::fuzzing;
}
