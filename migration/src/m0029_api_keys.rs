//! API keys have a scope and may have an end; when one was last used is written now and then.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer_null, string};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let columns = [
            string("scope").default("full").take(),
            big_integer_null("expires_at"),
            big_integer_null("last_used_at"),
        ];
        // SQLite takes one column in a statement.
        for column in columns {
            let added = Table::alter().table("api_keys").add_column(column).take();
            manager.alter_table(added).await?;
        }
        Ok(())
    }
}
