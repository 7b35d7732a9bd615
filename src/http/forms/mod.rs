//! What callers send. A form reads a body into a value of the domain or into *all* its faults; it reads
//! like the table of the specification it stands for. What is unknown or odd but accepted is a warning.
//!
//! | Concept | File |
//! |---|---|
//! | reading fields, and the kinds of values they have | `reader`, `field`, `report` |
//! | Create Invoice (Standard) | `standard_invoice`, `customer`, `line` |
//! | Update Invoice Status, Update Payment Status | `update_status`, `payment_update`, `unique_no` |
//! | Create Taxpayer, its profile, its webhook | `taxpayer`, `profile`, `webhook` |
//! | replay and enable a webhook; why an operator does something | `replay`, `reason` |
//! | Submit, Transmit | `submission` and the parts of its document, `transmit` |

pub(crate) mod customer;
pub(crate) mod document;
pub(crate) mod field;
pub(crate) mod line;
pub(crate) mod payment_update;
pub(crate) mod profile;
pub(crate) mod reader;
pub(crate) mod reason;
pub(crate) mod references;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod standard_invoice;
pub(crate) mod submission;
pub(crate) mod taxpayer;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod transmit;
pub(crate) mod unique_no;
pub(crate) mod update_status;
pub(crate) mod webhook;
