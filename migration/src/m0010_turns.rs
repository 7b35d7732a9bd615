//! Whose a lane is, by when its work must be done and what it waits at: runs are taken in turns between
//! taxpayers, each taxpayer's most urgent first.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, string_null};
use sea_orm_migration::sea_orm::{ConnectionTrait, DbBackend};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// Only lanes that have something to do: most are of runs that have ended.
const IN_TURN: &str = "CREATE INDEX lanes_in_turn ON lanes \
    (kind, taxpayer_id, deadline, next_due_at, lease_until, gate) WHERE next_due_at IS NOT NULL";

/// Three days in microseconds: the longest that the law gives, for the runs that are there already.
const FOR_OLD_RUNS: &str = "UPDATE pipeline_runs SET deadline_at = created_at + 259200000000";
const FOR_THEIR_LANES: &str = "UPDATE lanes SET deadline = COALESCE((SELECT deadline_at FROM pipeline_runs AS run \
    WHERE lanes.key = run.taxpayer_id || '/' || run.id), 0) WHERE kind = 'run' AND next_due_at IS NOT NULL";

/// The key of a run's lane begins with its taxpayer.
const OWNERS_ON_SQLITE: &str = "UPDATE lanes SET taxpayer_id = CAST(substr(key, 1, instr(key, '/') - 1) AS INTEGER) \
    WHERE kind = 'run' AND instr(key, '/') > 0";
const OWNERS_ON_POSTGRES: &str = "UPDATE lanes SET taxpayer_id = CAST(split_part(key, '/', 1) AS BIGINT) \
    WHERE kind = 'run' AND key LIKE '%/%'";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        add(manager, "pipeline_runs", big_integer("deadline_at").default(0).take()).await?;
        for column in [
            big_integer("taxpayer_id").default(0).take(),
            big_integer("deadline").default(0).take(),
            string_null("gate"),
        ] {
            add(manager, "lanes", column).await?;
        }
        let owners = match manager.get_database_backend() {
            DbBackend::Postgres => OWNERS_ON_POSTGRES,
            _ => OWNERS_ON_SQLITE,
        };
        for statement in [FOR_OLD_RUNS, FOR_THEIR_LANES, owners, IN_TURN] {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

async fn add(manager: &SchemaManager<'_>, table: &'static str, column: ColumnDef) -> Result<(), DbErr> {
    manager.alter_table(Table::alter().table(table).add_column(column).take()).await
}
