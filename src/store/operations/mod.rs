//! Data of the deployment as a whole.

pub mod activity;
pub mod audit;
pub mod audit_row;
pub mod breaker_orders;
pub mod ledger_days;
pub mod outage_notice_row;
pub mod outage_row;
pub mod outages;
pub mod owned_list;
pub mod pull_cursors;
pub mod quarantine;
pub mod quarantine_list;
pub mod quarantine_row;
pub mod reconciliation_finding_row;
pub mod reconciliation_row;
pub mod reconciliations;
pub mod reference_lists;
pub mod replicas;
pub mod search;
pub mod supplier_document_row;
pub mod supplier_invoice_row;
pub mod supplier_invoices;
pub mod taxpayer_pauses;
pub mod work_facts;
