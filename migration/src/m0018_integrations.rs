//! How a taxpayer's ERP takes notifications: a row of its own, so that it can be set before a webhook is. What is
//! secret stands in one sealed column; the rest is read without opening it.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, string, string_null, text, text_null};

use crate::create;
use crate::table;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, [integrations()], []).await
    }
}

/// `version` counts how often it was set: what was made of older settings is known by it.
fn integrations() -> TableCreateStatement {
    table(
        "integrations",
        &["taxpayer_id"],
        [
            big_integer("taxpayer_id"),
            string_null("erp_system"),
            string("auth_type"),
            string("data_format"),
            text("format"),
            text_null("settings"),
            big_integer("version"),
            big_integer("created_at"),
            big_integer("updated_at"),
        ],
    )
}
