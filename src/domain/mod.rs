//! Floor 0, pure: no clock, no chance, no input or output. Everything that decides lives here.
//!
//! | Concept | File |
//! |---|---|
//! | time and chance as arguments | `clock` |
//! | identifiers and keys | `ids`, `irn` |
//! | exact amounts | `money`, `totals` |
//! | words with a fixed set of values, email addresses | `codes`, `email` |
//! | who is invoiced, who invoices; whether the authority knows it | `party`, `verification` |
//! | texts that mean the same, tax numbers above all | `normal_form` |
//! | an invoice, its states, its updates and its payments | `invoice`, `lifecycle`, `revision`, `payment` |
//! | what is sold | `item` |
//! | an invoice as read | `object` |
//! | invoices sent together | `batch` |
//! | the authority pipeline, by when an invoice must be through it, how its outcomes became known | `pipeline`, `deadline`, `resolved_by` |
//! | an outage of the authority | `outage` |
//! | what suppliers sent | `supplier_invoice` |
//! | how far a transmission is; our ledger beside the authority's, a day at a time | `transit`, `reconciliation`, `reconciled_day` |
//! | the event log and its signed checkpoints, its deliveries and their replay; how an endpoint fares | `event`, `checkpoint`, `delivery`, `replay`, `circuit` |
//! | work that was under way when a process ended | `crash` |
//! | how a taxpayer's ERP takes notifications, the origin that its credentials are for, and the networks it may be in | `integration`, `origin`, `network` |
//! | what operators do; security changes and who made them | `run_move`, `audit` |
//! | what happened to an invoice | `timeline` |
//! | who calls and with which keys; the key of a request that is carried out once | `caller`, `api_key`, `claim` |
//! | whether two documents say the same; whether what was signed is what was sent | `digest`, `signed_copy` |
//! | the authority's reference lists, and which code of them was meant | `catalog`, `nearest` |
//! | a day in another spelling | `written_date` |
//! | what is wrong with a request | `fault`, `refusal` |

pub mod api_key;
pub mod audit;
pub mod batch;
pub mod caller;
pub mod catalog;
pub mod checkpoint;
pub mod circuit;
pub mod claim;
pub mod clock;
pub mod codes;
pub mod crash;
pub mod deadline;
pub mod delivery;
pub mod digest;
pub mod email;
pub mod event;
pub mod fault;
pub mod ids;
pub mod integration;
pub mod invoice;
pub mod irn;
pub mod item;
pub mod lifecycle;
pub mod money;
pub mod nearest;
pub mod network;
pub mod normal_form;
pub mod object;
pub mod origin;
pub mod outage;
pub mod party;
pub mod payment;
pub mod pipeline;
pub mod reconciled_day;
pub mod reconciliation;
pub mod refusal;
pub mod replay;
pub mod resolved_by;
pub mod revision;
pub mod run_move;
pub mod signed_copy;
pub mod supplier_invoice;
pub mod timeline;
pub mod totals;
pub mod transit;
pub mod verification;
pub mod written_date;
