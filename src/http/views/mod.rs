//! The bodies of responses. The Invoice object is not here: it belongs to the domain, because events contain it too.
//!
//! | Concept | File |
//! |---|---|
//! | an invoice with its lines and its ledger | `invoice` |
//! | an invoice as it was after an event | `invoice_version` |
//! | a page of a list | `paginator` |
//! | the outcome of a batch; the outcome of an imported file, and the import profile | `batch`, `import` |
//! | a correction, and the undoing of a batch | `correction` |
//! | the credit notes and the corrections of an invoice, and what they leave to pay | `credits` |
//! | the summary of a month, a quarter or a year | `period_summary` |
//! | the history of an invoice | `timeline` |
//! | a taxpayer, as created and as read | `taxpayer` |
//! | the use and the pause of a taxpayer, for operators | `taxpayer_usage` |
//! | the integration record, and the ERP notification settings | `integration`, `erp_settings` |
//! | the supplier inbox | `inbox` |
//! | a pipeline run, for its taxpayer and for operators | `run`, `operated_run` |
//! | a reason for which the authority refused the document of a run | `explanation` |
//! | the position of a run in the queue | `queue` |
//! | what operators look at first, in numbers; the result of a bulk move | `overview`, `moved_runs` |
//! | a webhook endpoint, for its taxpayer and for operators | `webhook_endpoint`, `listed_endpoint` |
//! | the response of Validate | `validated` |
//! | deliveries and their replay | `delivery`, `replay` |
//! | why a delivery failed for good, and advice for its owner | `guidance` |
//! | an endpoint's answer to a test, and its grade | `endpoint_answer`, `grade` |
//! | the authority's record of an invoice; its breakers and outages | `confirmation`, `breaker`, `outage` |
//! | reconciliations, the audit log | `reconciliation`, `audit` |
//! | incidents, replicas and work in quarantine, for operators | `incident`, `replica`, `quarantined_work` |
//! | the activity of an account; who acted | `activity`, `actor` |
//! | the event feed; the catalogue of events, and its examples | `feed`, `webhook_event`, `event_example` |
//! | a request in the request log | `request_log` |
//! | option lists | `choice` |
//! | secrets that are shown once; a one-time link for a password | `secret`, `invitation` |
//! | integrators and operators with their keys; contact persons with their roles | `account`, `contact_access` |

pub(crate) mod account;
pub(crate) mod activity;
pub(crate) mod actor;
pub(crate) mod audit;
pub(crate) mod batch;
pub(crate) mod breaker;
pub(crate) mod choice;
pub(crate) mod confirmation;
pub(crate) mod contact_access;
pub(crate) mod correction;
pub(crate) mod credits;
pub(crate) mod delivery;
pub(crate) mod endpoint_answer;
pub(crate) mod erp_settings;
pub(crate) mod event_example;
pub(crate) mod explanation;
pub(crate) mod feed;
pub(crate) mod grade;
pub(crate) mod guidance;
pub(crate) mod import;
pub(crate) mod inbox;
pub(crate) mod incident;
pub(crate) mod integration;
pub(crate) mod invitation;
pub(crate) mod invoice;
pub(crate) mod invoice_version;
pub(crate) mod listed_endpoint;
pub(crate) mod moved_runs;
pub(crate) mod operated_run;
pub(crate) mod outage;
pub(crate) mod overview;
pub(crate) mod paginator;
pub(crate) mod period_summary;
pub(crate) mod quarantined_work;
pub(crate) mod queue;
pub(crate) mod reconciliation;
pub(crate) mod replay;
pub(crate) mod replica;
pub(crate) mod request_log;
pub(crate) mod run;
pub(crate) mod secret;
pub(crate) mod taxpayer;
pub(crate) mod taxpayer_usage;
pub(crate) mod timeline;
pub(crate) mod validated;
pub(crate) mod webhook_endpoint;
pub(crate) mod webhook_event;
