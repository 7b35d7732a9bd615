//! What came of comparing a taxpayer's day with the authority's, and the index that finds the runs of a day.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, boolean, integer, string, text, text_null};

use crate::create;
use crate::index;
use crate::table;
use crate::unique;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, [reconciliations(), findings()], indexes()).await
    }
}

/// `is_latest`: no later one of the same day is done, so that what it lists is what is listed now.
fn reconciliations() -> TableCreateStatement {
    table(
        "reconciliations",
        &["taxpayer_id", "id"],
        [
            big_integer("taxpayer_id"),
            string("id"),
            string("day"),
            string("asked_by"),
            string("state"),
            integer("attempts"),
            integer("compared"),
            integer("agreed"),
            integer("under_way"),
            integer("mended"),
            integer("listed"),
            text_null("error"),
            boolean("is_latest"),
            big_integer("created_at"),
            big_integer_null("started_at"),
            big_integer_null("ended_at"),
        ],
    )
}

fn findings() -> TableCreateStatement {
    table(
        "reconciliation_findings",
        &["taxpayer_id", "reconciliation_id", "number"],
        [
            big_integer("taxpayer_id"),
            string("reconciliation_id"),
            integer("number"),
            string("kind"),
            text("irn"),
            text_null("ours"),
            text_null("theirs"),
            string("action"),
            text("detail"),
        ],
    )
}

fn indexes() -> [IndexCreateStatement; 5] {
    [
        unique("reconciliations", &["id"]),
        index("reconciliations", &["taxpayer_id", "day", "id"]),
        index("reconciliations", &["state", "ended_at"]),
        index("reconciliations", &["is_latest", "listed"]),
        index("pipeline_runs", &["taxpayer_id", "updated_at"]),
    ]
}
