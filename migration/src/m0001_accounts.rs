//! Integrators, taxpayers, their contacts and keys, operators. A `_key` column is what must be unique: the text without its case.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, boolean, string, string_null, text, text_null};

use crate::create;
use crate::index;
use crate::table;
use crate::unique;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(
            manager,
            [counters(), integrators(), operators(), api_keys(), taxpayers(), contacts()],
            indexes(),
        )
        .await
    }
}

/// Where the next portal id of each kind comes from.
fn counters() -> TableCreateStatement {
    table("counters", &["name"], [string("name"), big_integer("next")])
}

fn integrators() -> TableCreateStatement {
    table(
        "integrators",
        &["id"],
        [big_integer("id"), text("name"), string("email"), string("email_key"), big_integer("created_at")],
    )
}

fn operators() -> TableCreateStatement {
    table(
        "operators",
        &["id"],
        [
            big_integer("id"),
            string("email"),
            string("email_key"),
            text("password_hash"),
            big_integer("created_at"),
        ],
    )
}

/// Keys by the SHA-256 of their text; the text itself is nowhere.
fn api_keys() -> TableCreateStatement {
    table(
        "api_keys",
        &["hash"],
        [string("hash"), string("kind"), big_integer("owner_id"), big_integer("created_at")],
    )
}

fn taxpayers() -> TableCreateStatement {
    table(
        "taxpayers",
        &["id"],
        [
            big_integer("id"),
            big_integer("integrator_id"),
            text("name"),
            string("email"),
            string("email_key"),
            string("tin"),
            string("tin_key"),
            string_null("phone"),
            text_null("nature_of_business"),
            string("service_id"),
            string("service_id_key"),
            string("business_id"),
            string("business_id_key"),
            text("address"),
            string_null("city"),
            string_null("state"),
            string_null("country"),
            string("subscription"),
            big_integer("created_at"),
            big_integer("updated_at"),
        ],
    )
}

fn contacts() -> TableCreateStatement {
    table(
        "contacts",
        &["taxpayer_id", "id"],
        [
            big_integer("taxpayer_id"),
            big_integer("id"),
            text("first_name"),
            text("last_name"),
            string("email"),
            string("email_key"),
            string_null("phone"),
            text("password_hash"),
            boolean("must_change_password"),
            big_integer("created_at"),
            big_integer("updated_at"),
        ],
    )
}

fn indexes() -> [IndexCreateStatement; 9] {
    [
        unique("integrators", &["email_key"]),
        unique("operators", &["email_key"]),
        index("api_keys", &["kind", "owner_id"]),
        unique("taxpayers", &["email_key"]),
        unique("taxpayers", &["tin_key"]),
        unique("taxpayers", &["service_id_key"]),
        unique("taxpayers", &["business_id_key"]),
        index("taxpayers", &["integrator_id", "id"]),
        unique("contacts", &["email_key"]),
    ]
}
