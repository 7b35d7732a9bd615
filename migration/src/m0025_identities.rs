//! Who a taxpayer is: the normal form of its tax number, unique from here on; a text to search it by; and whether the
//! authority confirmed it. Two taxpayers that have one normal form already are marked, and keep it.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{boolean, string, string_null, text};
use sea_orm_migration::sea_orm::{ConnectionTrait, DbBackend, Statement};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::index;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// Rows read at a time.
const PAGE: i64 = 500;

const PAGE_OF_TAXPAYERS: &str =
    "SELECT id, name, tin, email FROM taxpayers WHERE id > $1 ORDER BY id LIMIT $2";
const FILL: &str = "UPDATE taxpayers SET tin_normal = $2, search_text = $3 WHERE id = $1";

const MARK_SHARED: &str = "UPDATE taxpayers SET tin_shared = TRUE WHERE tin_normal <> '' AND tin_normal IN \
    (SELECT tin_normal FROM taxpayers GROUP BY tin_normal HAVING COUNT(*) > 1)";

/// The columns that the normal form replaces.
const DROP: [&str; 3] = [
    "DROP INDEX taxpayers_by_plain_tin",
    "DROP INDEX taxpayers_by_tin_key",
    "ALTER TABLE taxpayers DROP COLUMN tin_key",
];

/// The authority is asked about those who are here already.
const VERIFY_ALL: &str = "INSERT INTO lanes (kind, key, epoch, version, next_due_at) \
    SELECT 'verification', CAST(id AS TEXT), 0, 0, 0 FROM taxpayers WHERE TRUE ON CONFLICT (kind, key) DO NOTHING";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in columns() {
            manager.alter_table(Table::alter().table("taxpayers").add_column(column).take()).await?;
        }
        let connection = manager.get_connection();
        fill(connection, manager.get_database_backend()).await?;
        connection.execute_unprepared(MARK_SHARED).await?;
        for statement in DROP {
            connection.execute_unprepared(statement).await?;
        }
        let alone = Expr::col("tin_shared").not().and(Expr::col("tin_normal").ne(""));
        let unique = index("taxpayers", &["tin_normal"]).unique().and_where(alone).take();
        manager.create_index(unique).await?;
        let found = index("taxpayers", &["tin_normal", "id"]).take();
        manager.create_index(found).await?;
        manager.create_index(index("taxpayers", &["verification", "id"]).take()).await?;
        let mut shared = index("taxpayers", &["id"]);
        shared.name("taxpayers_sharing_tin").and_where(Expr::col("tin_shared"));
        manager.create_index(shared).await?;
        connection.execute_unprepared(VERIFY_ALL).await?;
        Ok(())
    }
}

fn columns() -> [ColumnDef; 5] {
    [
        text("tin_normal").default("").take(),
        boolean("tin_shared").default(false).take(),
        text("search_text").default("").take(),
        string("verification").default("pending").take(),
        string_null("verification_reason"),
    ]
}

async fn fill(connection: &impl ConnectionTrait, backend: DbBackend) -> Result<(), DbErr> {
    let mut last = 0_i64;
    loop {
        let page = Statement::from_sql_and_values(backend, PAGE_OF_TAXPAYERS, [last.into(), PAGE.into()]);
        let rows = connection.query_all_raw(page).await?;
        for row in &rows {
            last = row.try_get("", "id")?;
            let text = |column: &str| row.try_get::<String>("", column);
            let (name, tin, email) = (text("name")?, text("tin")?, text("email")?);
            let search_text = [&name, &tin, &email].map(|text| folded(text)).join("\n");
            let values = [last.into(), normal(&tin).into(), search_text.into()];
            connection.execute_raw(Statement::from_sql_and_values(backend, FILL, values)).await?;
        }
        if rows.is_empty() {
            return Ok(());
        }
    }
}

// The two forms as they were when this was written: a migration does not change with the service.

fn folded(text: &str) -> String {
    text.trim().nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect()
}

fn normal(tin: &str) -> String {
    let counts = |letter: &char| {
        letter.is_alphanumeric() && !is_combining_mark(*letter) && !['\u{115F}', '\u{1160}'].contains(letter)
    };
    let written: String = tin.nfkc().filter(counts).collect();
    folded(&written).chars().filter(counts).collect()
}
