//! Webhook endpoints, the deliveries due to them and the log of their attempts.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, boolean, integer, integer_null, string, string_null, text, text_null,
};

use crate::create;
use crate::index;
use crate::table;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(
            manager,
            [webhooks(), deliveries(), attempts()],
            [index("deliveries", &["taxpayer_id", "state", "sequence"])],
        )
        .await
    }
}

/// One endpoint a taxpayer. Secrets are sealed with the deployment's encryption key; the previous ones are JSON,
/// each with the moment until which it signs along.
fn webhooks() -> TableCreateStatement {
    table(
        "webhooks",
        &["taxpayer_id"],
        [
            big_integer("taxpayer_id"),
            big_integer("id"),
            text("url"),
            text("enabled_events"),
            boolean("is_active"),
            text_null("disabled_reason"),
            text("secret"),
            text("previous_secrets"),
            big_integer("created_at"),
            big_integer("updated_at"),
        ],
    )
}

fn deliveries() -> TableCreateStatement {
    table(
        "deliveries",
        &["taxpayer_id", "id"],
        [
            big_integer("taxpayer_id"),
            string("id"),
            string("event_id"),
            big_integer("sequence"),
            string("kind"),
            text("order_key"),
            string("state"),
            integer("attempts"),
            big_integer_null("next_attempt_at"),
            big_integer("created_at"),
            big_integer("updated_at"),
        ],
    )
}

fn attempts() -> TableCreateStatement {
    table(
        "attempts",
        &["taxpayer_id", "delivery_id", "attempt"],
        [
            big_integer("taxpayer_id"),
            string("delivery_id"),
            integer("attempt"),
            big_integer("at"),
            integer_null("status"),
            string_null("failure"),
            big_integer("duration_ms"),
            text("response"),
        ],
    )
}
