//! Tables of invoices, read as an import reads them.
//!
//! | Concept | File |
//! |---|---|
//! | the account, the catalog and the columns of the tests | `table_import` |
//! | cells that disagree with the invoice, or cannot be read | `stated_values` |
//! | exports that are imported again | `round_trip` |

mod round_trip;
mod stated_values;
mod table_import;
