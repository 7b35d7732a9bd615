//! Option lists (spec.md, "Option lists"). A client shows the label of an option and sends the value.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SelectOption {
    label: String,
    value: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvoiceCategories {
    pub(crate) invoice_categories: Vec<SelectOption>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Enums {
    pub(crate) erp_systems: Vec<SelectOption>,
    pub(crate) auth_types: Vec<SelectOption>,
    pub(crate) data_formats: Vec<SelectOption>,
}

impl SelectOption {
    pub(crate) fn new(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            value: value.into(),
        }
    }
}
