//! The outcomes of batches; what invoices are listed by, with an index a filter so that a page costs the same however
//! many invoices there are; and the way from an invoice to its deliveries.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, integer, string, text};
use sea_orm_migration::sea_orm::{ConnectionTrait, DbBackend};

use crate::create;
use crate::index;
use crate::table;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in ["customer_no", "search_text"] {
            let mut column = text(column);
            let column = Table::alter().table("invoices").add_column(column.default("")).take();
            manager.alter_table(column).await?;
        }
        let fill = match manager.get_database_backend() {
            DbBackend::Postgres => FILL_ON_POSTGRES,
            _ => FILL_ON_SQLITE,
        };
        manager.get_connection().execute_unprepared(fill).await?;
        create(manager, [batches()], indexes()).await
    }
}

/// A batch with what became of each of its items, as JSON.
fn batches() -> TableCreateStatement {
    table(
        "batches",
        &["taxpayer_id", "batch_no"],
        [
            big_integer("taxpayer_id"),
            string("batch_no"),
            integer("created"),
            integer("duplicates"),
            integer("failed"),
            text("items"),
            big_integer("created_at"),
        ],
    )
}

/// What a search and a wide range are found in: the list in its order, with all it may be asked for but what an
/// entry has no room for, so that no row is read that is not shown.
const LISTED: [&str; 9] = [
    "taxpayer_id",
    "created_at",
    "id",
    "status",
    "payment_status",
    "category",
    "invoice_date",
    "updated_at",
    "search_text",
];

/// Each of a filter ends with the order of the list.
fn indexes() -> [IndexCreateStatement; 10] {
    let listed_by = |column| index("invoices", &["taxpayer_id", column, "created_at", "id"]);
    let in_batch = listed_by("batch_no").and_where(Expr::col("batch_no").is_not_null()).take();
    [
        index("invoices", &["taxpayer_id", "created_at", "id"]),
        index("invoices", &LISTED).name("invoices_as_listed").take(),
        in_batch,
        listed_by("status"),
        listed_by("payment_status"),
        listed_by("category"),
        listed_by("invoice_date"),
        listed_by("customer_no"),
        listed_by("updated_at"),
        index("deliveries", &["taxpayer_id", "order_key"]),
    ]
}

/// As the service writes these columns, but for capitals beyond ASCII, which SQLite leaves as they are.
const FILL_ON_SQLITE: &str = "UPDATE invoices SET \
    customer_no = json_extract(customer, '$.external_customer_no'), \
    search_text = substr(lower(invoice_no || char(10) || irn || char(10) || \
        json_extract(customer, '$.external_customer_no') || char(10) || json_extract(customer, '$.name') || \
        char(10) || coalesce(json_extract(customer, '$.tin'), '')), 1, 500)";

const FILL_ON_POSTGRES: &str = "UPDATE invoices SET \
    customer_no = customer::json->>'external_customer_no', \
    search_text = substr(lower(invoice_no || chr(10) || irn || chr(10) || \
        (customer::json->>'external_customer_no') || chr(10) || (customer::json->>'name') || \
        chr(10) || coalesce(customer::json->>'tin', '')), 1, 500)";
