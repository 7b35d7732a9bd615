//! The table of the customers of taxpayers. `details` is JSON; `search_text` serves only the list of customers.

use database::StoreError;
use database::column::{RowRef, json};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;

use crate::domain::kernel::ids::{CustomerId, TaxpayerId};
use crate::domain::party::{Customer, CustomerDetails, normal_form};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "customers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub no: String,
    pub tin: Option<String>,
    pub category: String,
    pub details: String,
    pub created_at: i64,
    pub search_text: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Customer {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "customers",
            id: row.id,
        };
        Ok(Self {
            id: CustomerId(row.id),
            category: at.parse(&row.category)?,
            details: at.parse_json(&row.details)?,
        })
    }
}

impl Model {
    pub fn from_customer(taxpayer: TaxpayerId, customer: &Customer, now: Timestamp) -> Self {
        Self {
            taxpayer_id: taxpayer.0,
            id: customer.id.0,
            no: customer.details.no.clone(),
            tin: customer.details.tin.clone(),
            category: customer.category.to_string(),
            details: json(&customer.details),
            created_at: now.as_microsecond(),
            search_text: search_text(&customer.details),
        }
    }
}

/// The maximum length of a search text in characters. PostgreSQL's index takes no row of more than 2,700 bytes, and a
/// character may have four.
const SEARCH_TEXT_CHARS_MAX: usize = 300;

/// Returns name, number and tax number, one on each line, folded by `normal_form::fold_for_search`. In rows that former
/// versions wrote, the text is only in lower case.
fn search_text(details: &CustomerDetails) -> String {
    let tin = details.tin.as_deref().unwrap_or_default();
    let text = [&details.name, details.no.as_str(), tin].map(normal_form::fold_for_search);
    text.join("\n")
        .chars()
        .take(SEARCH_TEXT_CHARS_MAX)
        .collect()
}
