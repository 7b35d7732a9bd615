//! Outages of the authority, and which taxpayer was told of which.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, boolean, string, string_null, text};

use crate::create;
use crate::index;
use crate::table;
use crate::unique;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, [outages(), outage_notices()], indexes()).await
    }
}

/// `open` says what is out and is null once that is over, so that its unique index lets one be open at a time.
/// `telling` is what the taxpayers are being told, `reached` the last one that had its turn.
fn outages() -> TableCreateStatement {
    table(
        "outages",
        &["id"],
        [
            string("id"),
            string_null("open"),
            text("affected"),
            big_integer("started_at"),
            big_integer_null("ended_at"),
            string_null("telling"),
            big_integer("reached"),
            boolean("has_missed"),
        ],
    )
}

/// One row a taxpayer, outage and edge: what was told is not told again. The sequence is that of the event.
fn outage_notices() -> TableCreateStatement {
    table(
        "outage_notices",
        &["taxpayer_id", "outage_id", "edge"],
        [big_integer("taxpayer_id"), string("outage_id"), string("edge"), big_integer("sequence")],
    )
}

fn indexes() -> [IndexCreateStatement; 4] {
    [
        unique("outages", &["open"]),
        index("outages", &["ended_at"]),
        index("outages", &["telling", "started_at"]),
        index("outage_notices", &["outage_id", "edge"]),
    ]
}
