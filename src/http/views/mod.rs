//! What callers are shown. The Invoice object itself is of the domain, since events carry it too.
//!
//! | Concept | File |
//! |---|---|
//! | an invoice with its lines and its ledger | `invoice` |
//! | a page of a list | `paginator` |
//! | what became of a batch | `batch` |
//! | what happened to an invoice | `timeline` |
//! | a taxpayer, as created and as read | `taxpayer` |
//! | the integration record | `integration` |
//! | the supplier inbox | `inbox` |
//! | a pipeline run | `run` |
//! | the event feed | `feed` |
//! | option lists | `choice` |
//! | what is shown once | `secret` |

pub(crate) mod batch;
pub(crate) mod choice;
pub(crate) mod feed;
pub(crate) mod inbox;
pub(crate) mod integration;
pub(crate) mod invoice;
pub(crate) mod paginator;
pub(crate) mod run;
pub(crate) mod secret;
pub(crate) mod taxpayer;
pub(crate) mod timeline;
pub(crate) mod validated;
