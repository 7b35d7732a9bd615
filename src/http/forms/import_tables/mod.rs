//! Tests of the import of tables of invoices.
//!
//! | Concept | File |
//! |---|---|
//! | imports a table, with the columns and the catalog of the tests | `table_import` |
//! | cells that disagree with the invoice, or that cannot be read | `stated_values` |
//! | exports that are imported again | `round_trip` |

mod round_trip;
mod stated_values;
mod table_import;
