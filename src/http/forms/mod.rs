//! The request bodies and queries of callers. A form reads a body into a domain value or returns *all* faults of the
//! body. Each form follows its table in the specification. Unknown fields and unusual but accepted values lead to
//! warnings. Checks that need stored data are not here; the taxpayer actor makes them.
//!
//! | Concept | File |
//! |---|---|
//! | reading fields, and their value types | `reader`, `field`, `code_field`, `list_field`, `map_field`, `bounds`, `text_checks` |
//! | the query string of lists and feeds; a position in a body | `query`, `json_path` |
//! | the schema of a form, recorded from the form itself | `form_schema` |
//! | Create Invoice (Full) | `full_invoice`, `full_customer`, `full_line`, `full_sums` |
//! | amounts that a caller leaves to this service | `calculated` |
//! | Update Invoice | `update_invoice` |
//! | Create Invoice (Standard), Create Invoices (Bulk) | `standard_invoice`, `customer`, `line`, `batch` |
//! | the documents of imported files; the import profile with values for missing fields | `import`, `import_profile` |
//! | List Invoices; the period of a report | `invoice_filters`, `report_period` |
//! | Update Invoice Status, Update Payment Status | `update_status`, `payment_update`, `unique_no` |
//! | the request to take a payment back | `take_back` |
//! | Create Taxpayer, its profile and settings, its webhook | `taxpayer`, `profile`, `account_settings`, `webhook` |
//! | a webhook endpoint other than the default endpoint | `webhook_endpoint` |
//! | the IRN of a supplier invoice; a notice of the authority | `supplier_irn`, `notice` |
//! | the terms of a new API key | `key_terms` |
//! | the activity of an account; its request log | `activity`, `request_log` |
//! | replay and enable a webhook; an operator's reason | `replay`, `reason` |
//! | the new role of an operator or a contact person | `roles` |
//! | the settings for notifying a taxpayer's ERP | `integration`, `integration_fields` |
//! | the day to compare with the authority's ledger | `reconciliation` |
//! | the dead letters to replay; the deliveries to send again | `dead_letters`, `delivery_selection` |
//! | the time for which a link to a delivery is valid | `delivery_link` |
//! | the filter of runs, of a list and of a bulk move | `run_filter` |
//! | a panic requested in development | `panic_request` |
//! | Submit, Transmit | `submission`, `transmit` |
//! | Validate, Report, Update Payment Status of `/v1/app` | `validation`, `vat_report`, `relayed_payment` |
//! | parts of the authority's document: owner, header | `ownership`, `document_header` |
//! | parts of the authority's document: parties, lines, taxes, references | `document`, `taxes`, `references` |
//! | the document as it is sent or stored | `normalized` |

pub(crate) mod account_settings;
pub(crate) mod activity;
pub(crate) mod batch;
pub(crate) mod bounds;
pub(crate) mod calculated;
mod code_field;
pub(crate) mod customer;
pub(crate) mod dead_letters;
pub(crate) mod delivery_link;
pub(crate) mod delivery_selection;
pub(crate) mod document;
pub(crate) mod document_header;
pub(crate) mod field;
pub(crate) mod form_schema;
pub(crate) mod full_customer;
pub(crate) mod full_invoice;
pub(crate) mod full_line;
pub(crate) mod full_sums;
pub(crate) mod import;
#[cfg(test)]
mod import_corpus;
pub(crate) mod import_profile;
#[cfg(test)]
mod import_tables;
pub(crate) mod integration;
pub(crate) mod integration_fields;
pub(crate) mod invoice_filters;
pub(crate) mod json_path;
pub(crate) mod key_terms;
pub(crate) mod line;
mod list_field;
mod map_field;
pub(crate) mod normalized;
pub(crate) mod notice;
pub(crate) mod ownership;
pub(crate) mod panic_request;
pub(crate) mod payment_update;
pub(crate) mod profile;
pub(crate) mod query;
pub(crate) mod reader;
pub(crate) mod reason;
pub(crate) mod reconciliation;
pub(crate) mod references;
pub(crate) mod relayed_payment;
pub(crate) mod replay;
pub(crate) mod report_period;
pub(crate) mod request_log;
pub(crate) mod roles;
pub(crate) mod run_filter;
pub(crate) mod standard_invoice;
pub(crate) mod submission;
pub(crate) mod supplier_irn;
pub(crate) mod take_back;
pub(crate) mod taxes;
pub(crate) mod taxpayer;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text_checks;
pub(crate) mod transmit;
pub(crate) mod unique_no;
pub(crate) mod update_invoice;
pub(crate) mod update_status;
pub(crate) mod validation;
pub(crate) mod vat_report;
pub(crate) mod webhook;
pub(crate) mod webhook_endpoint;
