//! Checks a database before the service starts, for `einvoice doctor`. Nothing is changed, because each write is rolled
//! back.

use database::StoreError;
use migration::{Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, DbBackend, DbErr, QueryResult, Statement};

use crate::store::{Store, health_write};

/// The migrations that were applied to a database, compared with those of this program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchemaState {
    pub applied: Vec<String>,
    /// The migrations of this program that the next start will apply.
    pub missing: Vec<String>,
    /// The applied migrations that this program does not know, because they belong to a newer version.
    pub unknown: Vec<String>,
}

/// The version of the database server, and its connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseServer {
    /// Name and version, such as `SQLite 3.46.0`.
    pub version: String,
    /// `None` for SQLite, which has no server.
    pub connections: Option<ConnectionCounts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// The number of connections that the server allows, without those reserved for superusers.
    pub allowed: i64,
    /// The number of open connections of all programs to all databases of the server, including this process.
    pub open: i64,
}

impl SchemaState {
    /// True if no migration was ever applied.
    pub fn is_empty(&self) -> bool {
        self.applied.is_empty()
    }

    fn new(applied: Vec<String>, known: &[String]) -> Self {
        let without = |names: &[String], others: &[String]| {
            let absent = names.iter().filter(|name| !others.contains(name));
            absent.cloned().collect()
        };
        Self {
            missing: without(known, &applied),
            unknown: without(&applied, known),
            applied,
        }
    }
}

/// Compares the applied migrations with those of this program. Unlike the migrator, this does not create the table of
/// applied migrations if it is missing.
pub async fn load_schema_state(store: &Store) -> Result<SchemaState, StoreError> {
    let has_list = match store.backend() {
        DbBackend::Postgres => {
            "SELECT count(*) AS found WHERE to_regclass('seaql_migrations') IS NOT NULL"
        }
        _ => "SELECT count(*) AS found FROM sqlite_master WHERE name = 'seaql_migrations'",
    };
    let found: i64 = query_one(store, has_list).await?.try_get("", "found")?;
    let applied = if found == 0 {
        Vec::new()
    } else {
        let sql = "SELECT version FROM seaql_migrations ORDER BY version";
        let statement = Statement::from_string(store.backend(), sql);
        let rows = store.reader().query_all_raw(statement).await?;
        let names = rows.iter().map(|row| row.try_get("", "version"));
        names.collect::<Result<_, _>>()?
    };
    let known = Migrator::migrations();
    let known: Vec<_> = known.iter().map(|one| one.name().to_owned()).collect();
    Ok(SchemaState::new(applied, &known))
}

pub async fn load_server(store: &Store) -> Result<DatabaseServer, StoreError> {
    if store.backend() != DbBackend::Postgres {
        let row = query_one(store, "SELECT sqlite_version() AS version").await?;
        return Ok(DatabaseServer {
            version: format!("SQLite {}", row.try_get::<String>("", "version")?),
            connections: None,
        });
    }
    // A role without further rights sees the rows of other sessions, although not their queries.
    let sql = "SELECT current_setting('server_version') AS version, \
               CAST(current_setting('max_connections') AS BIGINT) \
               - CAST(current_setting('superuser_reserved_connections') AS BIGINT) AS allowed, \
               (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL) AS open";
    let row = query_one(store, sql).await?;
    Ok(DatabaseServer {
        version: format!("PostgreSQL {}", row.try_get::<String>("", "version")?),
        connections: Some(ConnectionCounts {
            allowed: row.try_get("", "allowed")?,
            open: row.try_get("", "open")?,
        }),
    })
}

/// Writes a row, or creates a table if there is no schema yet, and rolls back. Fails if the service could not write or
/// migrate.
pub async fn try_write(store: &Store, schema: &SchemaState) -> Result<(), StoreError> {
    let tx = store.begin_unshared().await?;
    if schema.is_empty() {
        tx.execute_unprepared("CREATE TABLE einvoice_doctor (id integer)")
            .await?;
    } else {
        tx.query_one(&health_write()).await?;
    }
    tx.rollback().await
}

async fn query_one(store: &Store, sql: &str) -> Result<QueryResult, StoreError> {
    let statement = Statement::from_string(store.backend(), sql);
    let row = store.reader().query_one_raw(statement).await?;
    row.ok_or_else(|| DbErr::RecordNotFound(sql.to_owned()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::stores;

    #[test]
    fn migrations_are_told_apart() {
        let names =
            |names: &[&str]| -> Vec<_> { names.iter().map(|name| (*name).to_owned()).collect() };
        let known = names(&["m1", "m2"]);
        let state = |applied: &[&str]| SchemaState::new(names(applied), &known);
        assert!(state(&[]).is_empty());
        assert_eq!(state(&[]).missing, ["m1", "m2"]);
        assert_eq!(state(&["m1"]).missing, ["m2"]);
        assert_eq!(state(&["m1", "m2", "m3"]).unknown, ["m3"]);
        assert_eq!(state(&["m1", "m2"]).missing, [""; 0]);
    }

    #[tokio::test]
    async fn a_migrated_database_is_complete_and_keeps_no_trace_of_a_look() {
        for test in stores().await {
            let store = &test.store;
            let schema = load_schema_state(store).await.unwrap();
            assert!(!schema.is_empty());
            assert_eq!((&schema.missing, &schema.unknown), (&vec![], &vec![]));
            let counter = "SELECT count(*) AS found FROM counters WHERE name = 'health'";
            try_write(store, &schema).await.unwrap();
            try_write(store, &SchemaState::default()).await.unwrap();
            try_write(store, &SchemaState::default()).await.unwrap();
            let row = query_one(store, counter).await.unwrap();
            assert_eq!(row.try_get::<i64>("", "found").unwrap(), 0);
            let server = load_server(store).await.unwrap();
            let is_server = store.backend() == DbBackend::Postgres;
            assert_eq!(server.connections.is_some(), is_server, "{server:?}");
            assert!(server.version.contains("SQL"), "{server:?}");
        }
    }
}
