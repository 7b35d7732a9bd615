//! What operators do: a log that nothing changes afterwards, and the indexes of the runs they list.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, string, string_null, text_null};
use sea_orm_migration::sea_orm::{ConnectionTrait, DbBackend};

use crate::create;
use crate::index;
use crate::table;
use crate::unique;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

pub(crate) const KEPT_ON_SQLITE: &str = "
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;";

const KEPT_ON_POSTGRES: &str = "
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the audit is append-only'; END $$;
CREATE TRIGGER audit_is_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, [audit()], indexes()).await?;
        let kept = match manager.get_database_backend() {
            DbBackend::Postgres => KEPT_ON_POSTGRES,
            _ => KEPT_ON_SQLITE,
        };
        manager.get_connection().execute_unprepared(kept).await.map(drop)
    }
}

/// Who did what to which thing, when and why. The subject is a run or a delivery.
fn audit() -> TableCreateStatement {
    table(
        "audit",
        &["id"],
        [
            string("id"),
            big_integer("at"),
            big_integer("operator_id"),
            string("action"),
            big_integer_null("taxpayer_id"),
            string("subject"),
            string_null("from_state"),
            string_null("to_state"),
            text_null("reason"),
        ],
    )
}

/// The ids are drawn in the order of time: each index ends with the order of its list.
fn indexes() -> [IndexCreateStatement; 6] {
    [
        unique("pipeline_runs", &["id"]),
        index("pipeline_runs", &["state", "id"]),
        index("pipeline_runs", &["operation", "id"]),
        index("audit", &["taxpayer_id", "id"]),
        index("audit", &["subject", "id"]),
        index("audit", &["operator_id", "id"]),
    ]
}
