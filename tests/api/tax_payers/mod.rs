//! `/v1/tax-payers`.

mod create_invoice;
