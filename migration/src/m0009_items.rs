//! The items of a taxpayer's catalog. A number names one item; many may have none.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, string, string_null, text, text_null};

use crate::create;
use crate::index;
use crate::table;
use crate::unique;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let indexes =
            [unique("items", &["taxpayer_id", "item_no"]), index("items", &["taxpayer_id", "name"])];
        create(manager, [items()], indexes).await
    }
}

fn items() -> TableCreateStatement {
    table(
        "items",
        &["taxpayer_id", "id"],
        [
            big_integer("taxpayer_id"),
            big_integer("id"),
            text_null("item_no"),
            text("name"),
            string("item_type"),
            text("tax_category"),
            string_null("product_category"),
            string_null("service_category"),
            big_integer("created_at"),
            big_integer("updated_at"),
        ],
    )
}
