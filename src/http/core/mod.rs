//! `/v1/core`: option lists and the authority's reference lists.

mod enums;
mod invoice_categories;
mod resources;

pub(super) use enums::enums;
pub(super) use invoice_categories::invoice_categories;
pub(super) use resources::resources;
