//! The table of the items of taxpayers' catalogs.

use database::StoreError;
use database::column::RowRef;
use jiff::Timestamp;
use sea_orm::entity::prelude::*;

use crate::domain::invoice::item::Item;
use crate::domain::kernel::ids::{ItemId, TaxpayerId};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "items")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub item_no: Option<String>,
    pub name: String,
    pub item_type: String,
    pub tax_category: String,
    pub product_category: Option<String>,
    pub service_category: Option<String>,
    pub created_at: i64,
    pub updated_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Item {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "items",
            id: row.id,
        };
        Ok(Self {
            id: ItemId(row.id),
            item_type: at.parse(&row.item_type)?,
            item_no: row.item_no,
            name: row.name,
            tax_category: row.tax_category,
            product_category: row.product_category,
            service_category: row.service_category,
        })
    }
}

impl Model {
    pub fn from_item(taxpayer: TaxpayerId, item: &Item, now: Timestamp) -> Self {
        Self {
            taxpayer_id: taxpayer.0,
            id: item.id.0,
            item_no: item.item_no.clone(),
            name: item.name.clone(),
            item_type: item.item_type.to_string(),
            tax_category: item.tax_category.clone(),
            product_category: item.product_category.clone(),
            service_category: item.service_category.clone(),
            created_at: now.as_microsecond(),
            updated_at: now.as_microsecond(),
        }
    }
}
