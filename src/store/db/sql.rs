//! The SQL that differs between SQLite and PostgreSQL. Queries take these fragments from the dialect of their
//! connection, so no query file decides by backend. Statements that both databases read alike stay beside their queries.

mod postgres;
mod sqlite;

use std::sync::OnceLock;

use sea_orm::DbBackend;
use sea_orm::sea_query::Expr;

/// The kind of a lateral join: `Left` keeps rows on the left without a match, `Inner` drops them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    Inner,
    Left,
}

/// A table and its alias in a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aliased {
    pub(crate) table: &'static str,
    pub(crate) alias: &'static str,
}

/// The first rows of a table that belong to a row on their left: the rows of one taxpayer, ordered and limited.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstRows<'a> {
    pub(crate) rows: Aliased,
    /// The expression for the taxpayer on the left.
    pub(crate) taxpayer: &'a str,
    /// The alias of the table within `selection`.
    pub(crate) inner: &'static str,
    /// The condition, order and limit of the rows, after `WHERE`.
    pub(crate) selection: &'a str,
    /// The index that SQLite uses; `None` leaves the choice to it.
    pub(crate) sqlite_index: Option<&'static str>,
}

/// The fragments of one database.
pub(crate) trait Dialect: Sync {
    /// The present time in microseconds since 1970.
    fn clock(&self) -> &'static str;

    /// The present time, like `clock`. On PostgreSQL it is constant during a statement, so an index can serve a
    /// comparison with it.
    fn statement_clock(&self) -> &'static str;

    /// The numbers of a JSON list, as a subquery with the column `value`.
    fn json_numbers(&self, parameter: &str) -> String;

    /// The texts of a JSON list, as a query with one column.
    fn json_texts(&self, parameter: &str) -> String;

    /// The elements of a JSON list, as a table with the column `value`.
    fn json_elements(&self, parameter: &str, alias: &str) -> String;

    /// A member of a JSON column as JSON text. Numbers keep their digits.
    fn json_member(&self, column: &str, name: &str) -> String;

    /// Joins the rows of a table that match each row on the left, with an index lookup for each. PostgreSQL on its own
    /// expects any list to be long, scans the whole table while that is small, and keeps this plan while the table grows.
    fn lateral_join(&self, join: Join, rows: Aliased, condition: &str) -> String;

    /// Joins the first rows that belong to each row on the left.
    fn lateral_first_rows(&self, first: FirstRows<'_>) -> String;

    /// Joins and locks the lanes that match each row on the left, in the order of these rows.
    fn lateral_lock(&self, lock: &str, condition: &str) -> String;

    /// True if the planner ignores how many rows a filter matches, so that a query has to choose its index.
    fn ignores_selectivity(&self) -> bool;
}

/// The dialect of a connection.
pub(crate) fn dialect(backend: DbBackend) -> &'static dyn Dialect {
    match backend {
        DbBackend::Postgres => &postgres::Postgres,
        _ => &sqlite::Sqlite,
    }
}

/// The database's clock as an expression, in microseconds since 1970.
pub(crate) fn now(backend: DbBackend) -> Expr {
    Expr::cust(dialect(backend).clock())
}

/// A statement that is built once for each backend.
pub(crate) struct SqlOnce {
    build: fn(&dyn Dialect) -> String,
    sqlite: OnceLock<String>,
    postgres: OnceLock<String>,
}

impl SqlOnce {
    pub(crate) const fn new(build: fn(&dyn Dialect) -> String) -> Self {
        Self { build, sqlite: OnceLock::new(), postgres: OnceLock::new() }
    }

    pub(crate) fn get(&self, backend: DbBackend) -> &str {
        let built = match backend {
            DbBackend::Postgres => &self.postgres,
            _ => &self.sqlite,
        };
        built.get_or_init(|| (self.build)(dialect(backend)))
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait, Statement};

    use super::*;
    use crate::store::lanes::{self, LaneKind};
    use crate::store::testing::{query_plan, stores};

    #[tokio::test]
    async fn a_lateral_join_uses_the_index_for_each_row_of_a_list() {
        for test in stores().await {
            let backend = test.store.backend();
            let keys: Vec<_> = (0..1_000).map(|number| number.to_string()).collect();
            let tx = test.store.begin().await.unwrap();
            lanes::make_due(&tx, LaneKind::Endpoint, &keys).await.unwrap();
            tx.commit().await.unwrap();
            let condition = "l.kind = 'endpoint' AND l.key = CAST(given.value AS TEXT)";
            let by_key = match backend {
                DbBackend::Postgres => "using lanes_pkey",
                _ => "(kind=? AND key=?)",
            };
            for (join, found) in [(Join::Inner, 2), (Join::Left, 3)] {
                let dialect = dialect(backend);
                let joined = dialect.lateral_join(join, Aliased { table: "lanes", alias: "l" }, condition);
                let sql = format!("SELECT l.epoch FROM {} AS given {joined}", dialect.json_numbers("$1"));
                let given = || ["[7, 999, 1000]".into()];
                let steps = query_plan(&test.store, &sql, given()).await;
                assert!(steps.iter().any(|step| step.contains(by_key)), "{steps:#?}");
                let statement = Statement::from_sql_and_values(backend, sql, given());
                assert_eq!(test.store.reader().query_all_raw(statement).await.unwrap().len(), found);
            }
        }
    }
}
