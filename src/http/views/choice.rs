//! Option lists (spec.md, "Option lists"). A client shows the label of an option and sends the value.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Choice {
    label: String,
    value: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvoiceCategories {
    pub(crate) invoice_categories: Vec<Choice>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Enums {
    pub(crate) erp_systems: Vec<Choice>,
    pub(crate) auth_types: Vec<Choice>,
    pub(crate) data_formats: Vec<Choice>,
}

impl Choice {
    pub(crate) fn new(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self { label: label.into(), value: value.into() }
    }
}
