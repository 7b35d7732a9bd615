//! Which deliveries are first in line: of one order key only the earliest that waits can be next. Marked, it is found
//! however many wait behind it. Each mark is written to all indexes: one that served the timeline alone is gone, which
//! finds deliveries by their events.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::boolean;
use sea_orm_migration::sea_orm::ConnectionTrait;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

const STATEMENTS: [&str; 4] = [
    "UPDATE deliveries SET is_first = TRUE WHERE state = 'pending' AND sequence = (SELECT earlier.sequence \
        FROM deliveries AS earlier WHERE earlier.taxpayer_id = deliveries.taxpayer_id \
        AND earlier.state = 'pending' AND earlier.order_key = deliveries.order_key \
        ORDER BY earlier.sequence LIMIT 1)",
    "CREATE INDEX deliveries_first ON deliveries (taxpayer_id, next_attempt_at, sequence) WHERE is_first",
    "DROP INDEX deliveries_due",
    "DROP INDEX deliveries_by_taxpayer_id_order_key",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let is_first = boolean("is_first").default(false).take();
        manager.alter_table(Table::alter().table("deliveries").add_column(is_first).take()).await?;
        for statement in STATEMENTS {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }
}
