//! A table a file: its row, and how the row becomes a domain value. A row that makes no sense is an error
//! with table and id, never a default.

pub mod api_key;
pub mod attempt;
pub mod audit;
pub mod batch;
pub(crate) mod column;
pub mod contact;
pub mod counter;
pub mod customer;
pub mod delivery;
pub mod event;
pub mod idempotency_key;
pub mod integration;
pub mod integrator;
pub mod invoice;
pub mod item;
pub mod lane;
pub mod operator;
pub mod outage;
pub mod outage_notice;
pub mod payment_entry;
pub mod pull_cursor;
pub mod reconciliation;
pub mod reconciliation_finding;
pub mod reference_list;
pub mod replay;
pub mod run;
pub mod step;
pub mod supplier_document;
pub mod supplier_invoice;
pub mod taxpayer;
pub mod webhook;
