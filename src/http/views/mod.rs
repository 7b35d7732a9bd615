//! What callers are shown. The Invoice object itself is of the domain, since events carry it too.
//!
//! | Concept | File |
//! |---|---|
//! | an invoice with its lines and its ledger | `invoice` |
//! | a page of a list | `paginator` |
//! | what became of a batch | `batch` |
//! | what happened to an invoice | `timeline` |
//! | a taxpayer, as created and as read | `taxpayer` |
//! | the integration record, and how the ERP takes notifications | `integration`, `erp_settings` |
//! | the supplier inbox | `inbox` |
//! | a pipeline run, for its taxpayer and for operators, and its place in the queue | `run`, `operated_run`, `queue` |
//! | deliveries and their replay | `delivery`, `replay` |
//! | what an endpoint answered to a test, and its grade | `endpoint_answer`, `grade` |
//! | the authority's breakers and outages, what operators did | `breaker`, `outage`, `audit` |
//! | the event feed | `feed` |
//! | option lists | `choice` |
//! | what is shown once | `secret` |
//! | integrators and operators with their keys | `account` |

pub(crate) mod account;
pub(crate) mod audit;
pub(crate) mod batch;
pub(crate) mod breaker;
pub(crate) mod choice;
pub(crate) mod delivery;
pub(crate) mod endpoint_answer;
pub(crate) mod erp_settings;
pub(crate) mod feed;
pub(crate) mod grade;
pub(crate) mod inbox;
pub(crate) mod integration;
pub(crate) mod invoice;
pub(crate) mod operated_run;
pub(crate) mod outage;
pub(crate) mod paginator;
pub(crate) mod reconciliation;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod secret;
pub(crate) mod taxpayer;
pub(crate) mod timeline;
pub(crate) mod validated;
