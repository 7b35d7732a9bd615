//! What suppliers sent: the inbox, the documents as they were at receipt, and how far the authority's list of
//! invoices in transit was read.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, string, text, text_null};

use crate::create;
use crate::index;
use crate::table;

/// Finds a taxpayer by its tax number without the separators it may be written with; a query uses the index
/// only where it says the same.
const PLAIN_TIN_INDEX: &str = "CREATE INDEX taxpayers_by_plain_tin ON taxpayers \
    (REPLACE(REPLACE(REPLACE(REPLACE(tin_key, '-', ''), ' ', ''), '.', ''), '/', ''))";

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, [supplier_invoices(), supplier_documents(), pull_cursors()], indexes()).await?;
        manager.get_connection().execute_unprepared(PLAIN_TIN_INDEX).await?;
        Ok(())
    }
}

fn supplier_invoices() -> TableCreateStatement {
    table(
        "supplier_invoices",
        &["taxpayer_id", "irn_key"],
        [
            big_integer("taxpayer_id"),
            text("irn_key"),
            text("irn"),
            text_null("supplier_name"),
            text_null("supplier_tin"),
            big_integer("received_at"),
            big_integer_null("acknowledged_at"),
        ],
    )
}

/// Apart from the inbox, so that a page of it reads no documents.
fn supplier_documents() -> TableCreateStatement {
    table(
        "supplier_documents",
        &["taxpayer_id", "irn_key"],
        [big_integer("taxpayer_id"), text("irn_key"), text("document")],
    )
}

fn pull_cursors() -> TableCreateStatement {
    table(
        "pull_cursors",
        &["name"],
        [string("name"), big_integer_null("pulled_at"), big_integer_null("swept_at")],
    )
}

fn indexes() -> [IndexCreateStatement; 2] {
    [index("supplier_invoices", &["irn_key"]), index("supplier_invoices", &["taxpayer_id", "received_at"])]
}
