//! A taxpayer's books: customers, invoices, the payment ledger and the event log.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, boolean, string, string_null, text, text_null,
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
        create(manager, [customers(), invoices(), payment_entries(), events()], indexes()).await
    }
}

fn customers() -> TableCreateStatement {
    table(
        "customers",
        &["taxpayer_id", "id"],
        [
            big_integer("taxpayer_id"),
            big_integer("id"),
            text("no"),
            string_null("tin"),
            string("category"),
            text("details"),
            big_integer("created_at"),
        ],
    )
}

fn invoices() -> TableCreateStatement {
    table(
        "invoices",
        &["taxpayer_id", "id"],
        vec![
            big_integer("taxpayer_id"),
            big_integer("id"),
            text("irn"),
            text("irn_key"),
            text("invoice_no"),
            string("category"),
            text("invoice_type"),
            string("invoice_date"),
            string_null("due_date"),
            string("currency"),
            text("customer"),
            text("lines"),
            string("status"),
            string("payment_status"),
            string("payable"),
            string("paid"),
            string("authority_status"),
            text("qr_code"),
            boolean("signed"),
            string_null("batch_no"),
            text("extras"),
            string("content_digest"),
            big_integer("created_at"),
            big_integer("updated_at"),
            big_integer_null("edited_at"),
        ],
    )
}

/// One entry a payment update; its sequence is that of the event it caused.
fn payment_entries() -> TableCreateStatement {
    table(
        "payment_entries",
        &["taxpayer_id", "sequence"],
        [
            big_integer("taxpayer_id"),
            big_integer("sequence"),
            big_integer("invoice_id"),
            string("status"),
            string("amount"),
            text_null("reference"),
            text_null("remark"),
            big_integer("at"),
        ],
    )
}

fn events() -> TableCreateStatement {
    table(
        "events",
        &["taxpayer_id", "sequence"],
        [
            big_integer("taxpayer_id"),
            big_integer("sequence"),
            string("id"),
            string("kind"),
            big_integer("at"),
            text_null("irn"),
            text("data"),
            string("hash"),
            string("command_id"),
        ],
    )
}

fn indexes() -> [IndexCreateStatement; 7] {
    [
        unique("customers", &["taxpayer_id", "no"]),
        index("customers", &["taxpayer_id", "tin"]),
        unique("invoices", &["taxpayer_id", "invoice_no"]),
        unique("invoices", &["taxpayer_id", "irn_key"]),
        index("payment_entries", &["taxpayer_id", "invoice_id"]),
        index("events", &["taxpayer_id", "irn"]),
        index("events", &["taxpayer_id", "command_id"]),
    ]
}
