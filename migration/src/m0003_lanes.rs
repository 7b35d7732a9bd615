//! Lanes: one row per serialised thing. It is directory, lease, schedule and fence in one.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, string, string_null};

use crate::create;
use crate::index;
use crate::table;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, [lanes()], [index("lanes", &["kind", "next_due_at"])]).await
    }
}

fn lanes() -> TableCreateStatement {
    table(
        "lanes",
        &["kind", "key"],
        [
            string("kind"),
            string("key"),
            big_integer("epoch"),
            string_null("owner"),
            big_integer_null("lease_until"),
            big_integer_null("next_due_at"),
            big_integer("version"),
        ],
    )
}
