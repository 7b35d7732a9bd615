//! How long the phases of an attempt at a delivery took, in milliseconds; and the public key of an endpoint whose
//! deliveries are signed with a key pair.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer_null, text_null};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for phase in ["dns_ms", "connect_ms", "wait_ms", "read_ms"] {
            let table = Table::alter().table("attempts").add_column(big_integer_null(phase)).take();
            manager.alter_table(table).await?;
        }
        let table = Table::alter().table("webhooks").add_column(text_null("public_key")).take();
        manager.alter_table(table).await
    }
}
