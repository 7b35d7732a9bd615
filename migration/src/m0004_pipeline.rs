//! Pipeline runs and the log of their steps.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, integer, string, string_null, text, text_null,
};

use crate::create;
use crate::index;
use crate::table;
use crate::unique;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(
            manager,
            [runs(), steps()],
            [
                unique("pipeline_runs", &["taxpayer_id", "operation", "irn_key"]),
                index("pipeline_steps", &["taxpayer_id", "run_id", "started_at"]),
            ],
        )
        .await
    }
}

fn runs() -> TableCreateStatement {
    table(
        "pipeline_runs",
        &["taxpayer_id", "id"],
        [
            big_integer("taxpayer_id"),
            string("id"),
            string("operation"),
            text("irn"),
            text("irn_key"),
            string("state"),
            text("document"),
            string("digest"),
            text("done"),
            string_null("intent"),
            integer("attempt"),
            big_integer_null("failing_since"),
            big_integer_null("next_attempt_at"),
            text_null("wait_reason"),
            text_null("last_error"),
            string_null("resolved_by"),
            text_null("qr_code"),
            big_integer("created_at"),
            big_integer("updated_at"),
        ],
    )
}

/// A row is written when a call begins and completed when its outcome is known.
fn steps() -> TableCreateStatement {
    table(
        "pipeline_steps",
        &["taxpayer_id", "id"],
        [
            big_integer("taxpayer_id"),
            string("id"),
            string("run_id"),
            string("step"),
            integer("attempt"),
            string_null("outcome"),
            big_integer("started_at"),
            big_integer_null("duration_ms"),
            text_null("error"),
        ],
    )
}
