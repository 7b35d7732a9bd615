//! The SQL that differs between SQLite and PostgreSQL. A query takes it from its connection's dialect.

mod postgres;
mod sqlite;

use std::sync::OnceLock;

use sea_orm::DbBackend;
use sea_orm::sea_query::Expr;

/// The kind of a lateral join. `Inner` drops a row on the left that matches no row; `Left` keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    Inner,
    Left,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Aliased {
    pub(crate) table: &'static str,
    pub(crate) alias: &'static str,
}

/// A lateral join with the first rows of another table, such as a taxpayer's deliveries that are due first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstRows<'a> {
    pub(crate) rows: Aliased,
    /// The SQL expression for the taxpayer id of the row on the left.
    pub(crate) taxpayer: &'a str,
    /// The alias of the table in `selection`.
    pub(crate) inner: &'static str,
    /// The SQL after `WHERE` that selects the first rows: a condition, an order and a limit.
    pub(crate) selection: &'a str,
    /// The index that SQLite must use; `None` lets SQLite choose.
    pub(crate) sqlite_index: Option<&'static str>,
}

/// The SQL fragments of one kind of database.
pub(crate) trait Dialect: Sync {
    /// Returns the SQL for the present time in microseconds since 1970. PostgreSQL reads the clock anew for each use
    /// within a statement.
    fn clock(&self) -> &'static str;

    /// Returns the SQL for the present time in microseconds since 1970. It is constant within a statement, so that
    /// PostgreSQL can use an index.
    fn statement_clock(&self) -> &'static str;

    /// Returns a subquery for the numbers of the JSON list in a parameter. Its column is `value`.
    fn json_numbers(&self, parameter: &str) -> String;

    /// Returns a query with one column for the texts of the JSON list in a parameter.
    fn json_texts(&self, parameter: &str) -> String;

    /// Returns a table expression for the JSON list in a parameter, with the column `value` and this alias.
    fn json_elements(&self, parameter: &str, alias: &str) -> String;

    /// Returns the SQL for the member `name` of a JSON column, as JSON text. A number keeps all its digits.
    fn json_member(&self, column: &str, name: &str) -> String;

    /// Returns the SQL that joins each row on the left by an index lookup. An ordinary join may scan the whole table in
    /// PostgreSQL.
    fn lateral_join(&self, join: Join, rows: Aliased, condition: &str) -> String;

    /// Returns the SQL that joins each row on the left with the first rows of a table, as `first` describes them.
    fn lateral_first_rows(&self, first: FirstRows<'_>) -> String;

    /// Returns the SQL that joins each row on the left with its lane, and locks the lanes in the order of the rows.
    fn lateral_lock(&self, lock: &str, condition: &str) -> String;

    /// Returns the clause at the end of a query that locks its rows against changes. The clause is empty on SQLite,
    /// whose write transactions run one at a time.
    fn share_lock(&self) -> &'static str;

    /// True if the database does not estimate how many rows match, so that a query has to name the index.
    fn ignores_selectivity(&self) -> bool;
}

pub(crate) fn dialect(backend: DbBackend) -> &'static dyn Dialect {
    match backend {
        DbBackend::Postgres => &postgres::Postgres,
        _ => &sqlite::Sqlite,
    }
}

/// Returns the present time of the database as an expression, in microseconds since 1970.
pub(crate) fn now(backend: DbBackend) -> Expr {
    Expr::cust(dialect(backend).clock())
}

/// An SQL text that is built at its first use and then kept, one for each kind of database.
pub(crate) struct SqlOnce {
    build: fn(&dyn Dialect) -> String,
    sqlite: OnceLock<String>,
    postgres: OnceLock<String>,
}

impl SqlOnce {
    pub(crate) const fn new(build: fn(&dyn Dialect) -> String) -> Self {
        Self {
            build,
            sqlite: OnceLock::new(),
            postgres: OnceLock::new(),
        }
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
    use crate::store::lanes::{self, LaneKind, Wake};
    use crate::store::testing::{query_plan, stores};

    #[tokio::test]
    async fn a_lateral_join_uses_the_index_for_each_row_of_a_list() {
        for test in stores().await {
            let backend = test.store.backend();
            let keys: Vec<_> = (0..1_000).map(|number| number.to_string()).collect();
            let tx = test.store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, Wake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let condition = "l.kind = 'endpoint' AND l.key = CAST(given.value AS TEXT)";
            let by_key = match backend {
                DbBackend::Postgres => "using lanes_pkey",
                _ => "(kind=? AND key=?)",
            };
            for (join, found) in [(Join::Inner, 2), (Join::Left, 3)] {
                let dialect = dialect(backend);
                let joined = dialect.lateral_join(
                    join,
                    Aliased {
                        table: "lanes",
                        alias: "l",
                    },
                    condition,
                );
                let sql = format!(
                    "SELECT l.epoch FROM {} AS given {joined}",
                    dialect.json_numbers("$1")
                );
                let given = || ["[7, 999, 1000]".into()];
                let steps = query_plan(&test.store, &sql, given()).await;
                assert!(steps.iter().any(|step| step.contains(by_key)), "{steps:#?}");
                let statement = Statement::from_sql_and_values(backend, sql, given());
                assert_eq!(
                    test.store
                        .reader()
                        .query_all_raw(statement)
                        .await
                        .unwrap()
                        .len(),
                    found
                );
            }
        }
    }
}
