//! What callers send. A form reads a body into a value of the domain or into *all* its faults; it reads
//! like the table of the specification it stands for. What is unknown or odd but accepted is a warning.
//!
//! | Concept | File |
//! |---|---|
//! | reading fields, and the kinds of values they have | `reader`, `field`, `report` |
//! | Create Invoice (Standard) | `standard_invoice`, `customer`, `line` |
//! | Update Invoice Status, Update Payment Status | `update_status`, `payment_update`, `unique_no` |
//! | Create Taxpayer, its profile, its webhook | `taxpayer`, `profile`, `webhook` |
//! | Submit, Transmit | `submission`, `transmit` |
//! | Validate, Report, Update Payment Status of the access point surface | `validation`, `vat_report`, `relayed_payment` |
//! | parts of the authority's document: whose it is, its parties, lines and taxes, what is sent of it | `own`, `heading`, `document`, `taxes`, `references`, `sent` |

pub(crate) mod customer;
pub(crate) mod document;
pub(crate) mod field;
pub(crate) mod heading;
pub(crate) mod line;
pub(crate) mod own;
pub(crate) mod payment_update;
pub(crate) mod profile;
pub(crate) mod reader;
pub(crate) mod references;
pub(crate) mod relayed_payment;
pub(crate) mod report;
pub(crate) mod sent;
pub(crate) mod standard_invoice;
pub(crate) mod submission;
pub(crate) mod taxes;
pub(crate) mod taxpayer;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod transmit;
pub(crate) mod unique_no;
pub(crate) mod update_status;
pub(crate) mod validation;
pub(crate) mod vat_report;
pub(crate) mod webhook;
