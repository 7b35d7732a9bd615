//! An endpoint may have a retry schedule of its own: a JSON list of delays in seconds; null is the deployment's.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::text_null;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let own = Table::alter().table("webhooks").add_column(text_null("retry_schedule")).take();
        manager.alter_table(own).await
    }
}
