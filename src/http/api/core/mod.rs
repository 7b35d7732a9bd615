//! `/v1/core`: option lists and the authority's reference lists.

mod enums;
mod invoice_categories;
mod resources;

pub(crate) use enums::enums;
pub(crate) use invoice_categories::invoice_categories;
pub(crate) use resources::resources;
