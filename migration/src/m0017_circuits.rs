//! How an endpoint fares, and what is looked up of the deliveries that wait: those that are due, and whether an
//! earlier one of the same order key waits before them. Only a few deliveries of all wait, so the indexes hold
//! those alone.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::text_null;
use sea_orm_migration::sea_orm::ConnectionTrait;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

const INDEXES: [&str; 4] = [
    "CREATE INDEX deliveries_due ON deliveries (taxpayer_id, next_attempt_at, sequence) WHERE state = 'pending'",
    "CREATE INDEX deliveries_in_line ON deliveries (taxpayer_id, order_key, sequence) WHERE state = 'pending'",
    "CREATE INDEX deliveries_dead ON deliveries (id) WHERE state = 'dead'",
    "DROP INDEX deliveries_by_state_id",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let failing = text_null("failing");
        manager.alter_table(Table::alter().table("webhooks").add_column(failing).take()).await?;
        for statement in INDEXES {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }
}
