//! Replays of a webhook's log, what a delivery had behind it before it was replayed, and the indexes of the
//! deliveries that integrators and operators read.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, integer, string};

use crate::create;
use crate::index;
use crate::table;
use crate::unique;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let before =
            Table::alter().table("deliveries").add_column(integer("attempts_before").default(0)).take();
        manager.alter_table(before).await?;
        let disabled = Table::alter().table("webhooks").add_column(big_integer_null("disabled_after")).take();
        manager.alter_table(disabled).await?;
        create(manager, [replays()], indexes()).await
    }
}

/// One replay: the events after one number up to another, how far it has come, and how many it has queued.
fn replays() -> TableCreateStatement {
    table(
        "replays",
        &["taxpayer_id", "id"],
        [
            big_integer("taxpayer_id"),
            string("id"),
            string("scope"),
            string("state"),
            big_integer("after"),
            big_integer("until"),
            big_integer("reached"),
            big_integer("queued"),
            big_integer("created_at"),
            big_integer("updated_at"),
        ],
    )
}

/// An event has one delivery, whatever happens to it; the others end with the order of a list.
fn indexes() -> [IndexCreateStatement; 5] {
    [
        unique("deliveries", &["taxpayer_id", "sequence"]),
        index("deliveries", &["taxpayer_id", "kind", "sequence"]),
        index("deliveries", &["state", "id"]),
        index("events", &["taxpayer_id", "at"]),
        index("replays", &["taxpayer_id", "state"]),
    ]
}
