//! Counts the ends of a process for what was under way then: for the lane, and for the delivery or the run. A lane
//! that is held is found by its lease, so that one whose holder is gone is found without a look at all that are due.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{integer, text_null};
use sea_orm_migration::sea_orm::ConnectionTrait;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

const LEASED: &str = "CREATE INDEX lanes_leased ON lanes (kind, lease_until) WHERE lease_until IS NOT NULL";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["lanes", "deliveries", "pipeline_runs"] {
            let crashes = integer("crashes").default(0).take();
            manager.alter_table(Table::alter().table(table).add_column(crashes).take()).await?;
        }
        let working_on = Table::alter().table("lanes").add_column(text_null("working_on")).take();
        manager.alter_table(working_on).await?;
        manager.get_connection().execute_unprepared(LEASED).await?;
        Ok(())
    }
}
