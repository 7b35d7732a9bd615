//! The snapshot of the authority's reference lists.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, string, text};

use crate::create;
use crate::table;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, [reference_lists()], []).await
    }
}

fn reference_lists() -> TableCreateStatement {
    table("reference_lists", &["list"], [string("list"), text("items"), big_integer("fetched_at")])
}
