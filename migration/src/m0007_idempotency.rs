//! Keys of requests that were carried out, and the answers they were given.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, string, string_null, text_null};

use crate::create;
use crate::index;
use crate::table;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, [idempotency_keys()], [index("idempotency_keys", &["expires_at"])]).await
    }
}

/// `id` stands for caller and key, and its uniqueness decides races; a sealed answer is JSON.
fn idempotency_keys() -> TableCreateStatement {
    table(
        "idempotency_keys",
        &["id"],
        [
            string("id"),
            string("fingerprint"),
            string_null("command_id"),
            text_null("answer"),
            big_integer("expires_at"),
        ],
    )
}
