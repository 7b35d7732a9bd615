//! The audit names its actor: an operator, an integrator or the command line. Entries of before are operators'.
//! Credentials of ERP systems name the networks that they may be sent to.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, string, string_null, text_null};
use sea_orm_migration::sea_orm::{ConnectionTrait, DbBackend};

use crate::index;
use crate::m0014_operators::KEPT_ON_SQLITE;
use crate::table;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

const ON_POSTGRES: &str = "
ALTER TABLE audit ADD COLUMN actor varchar NOT NULL DEFAULT 'operator';
ALTER TABLE audit ALTER COLUMN operator_id DROP NOT NULL;
ALTER TABLE audit ADD COLUMN integrator_id bigint;";

/// SQLite cannot make a column nullable: the rows move into a new table. Dropping the old one drops its indexes and
/// triggers.
const ON_SQLITE: &str = "
INSERT INTO audit_with_actors
    SELECT id, at, 'operator', operator_id, NULL, action, taxpayer_id, subject, from_state, to_state, reason
    FROM audit;
DROP TABLE audit;
ALTER TABLE audit_with_actors RENAME TO audit;";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        if manager.get_database_backend() == DbBackend::Postgres {
            connection.execute_unprepared(ON_POSTGRES).await?;
        } else {
            manager.create_table(audit()).await?;
            connection.execute_unprepared(ON_SQLITE).await?;
            connection.execute_unprepared(KEPT_ON_SQLITE).await?;
            for column in ["taxpayer_id", "subject", "operator_id"] {
                manager.create_index(index("audit", &[column, "id"])).await?;
            }
        }
        manager.create_index(index("audit", &["integrator_id", "id"])).await?;
        let networks = Table::alter().table("integrations").add_column(text_null("allowed_networks")).take();
        manager.alter_table(networks).await
    }
}

/// The columns in the order of `ON_SQLITE`. `integrator_id` is who may read the entry.
fn audit() -> TableCreateStatement {
    table(
        "audit_with_actors",
        &["id"],
        [
            string("id"),
            big_integer("at"),
            string("actor"),
            big_integer_null("operator_id"),
            big_integer_null("integrator_id"),
            string("action"),
            big_integer_null("taxpayer_id"),
            string("subject"),
            string_null("from_state"),
            string_null("to_state"),
            text_null("reason"),
        ],
    )
}
