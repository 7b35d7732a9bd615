//! Which lanes are due, in an index of those alone that will be. A whole one serves to find a lane by its name as well,
//! through all of its kind, and `PostgreSQL` takes it to be as good as the key while its statistics know few lanes.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::ConnectionTrait;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

const STATEMENTS: [&str; 2] = [
    "DROP INDEX lanes_by_kind_next_due_at",
    "CREATE INDEX lanes_due ON lanes (kind, next_due_at) WHERE next_due_at IS NOT NULL",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for statement in STATEMENTS {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }
}
