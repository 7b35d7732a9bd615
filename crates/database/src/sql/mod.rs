//! The SQL that differs between SQLite and PostgreSQL. A query takes it from its connection's dialect.

mod postgres;
mod sqlite;

use std::sync::OnceLock;

use sea_orm::sea_query::Expr;
use sea_orm::{DbBackend, EntityTrait, IdenStatic as _, Iterable as _};

/// The kind of a lateral join. `Inner` drops a row on the left that matches no row; `Left` keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    Inner,
    Left,
}

#[derive(Debug, Clone, Copy)]
pub struct AliasedTable {
    pub table: &'static str,
    pub alias: &'static str,
}

/// A lateral join with the first rows of another table, such as those of an owner that are due first. The table has a
/// column `id`.
#[derive(Debug, Clone, Copy)]
pub struct FirstRows<'a> {
    pub rows: AliasedTable,
    /// The column of the table that holds the owner of a row.
    pub owner_column: &'static str,
    /// The SQL expression for the owner of the row on the left.
    pub owner: &'a str,
    /// The alias of the table in `selection`.
    pub inner: &'static str,
    /// The SQL after `WHERE` that selects the first rows: a condition, an order and a limit.
    pub selection: &'a str,
    /// The index that SQLite must use; `None` lets SQLite choose.
    pub sqlite_index: Option<&'static str>,
}

/// The rows that a lateral join locks: their table, and the columns that the statement reads.
#[derive(Debug, Clone, Copy)]
pub struct LockedRows {
    pub table: &'static str,
    pub columns: &'static str,
}

/// Returns the columns of an entity's table that has this alias. A statement names them instead of writing `*`: with
/// `*`, PostgreSQL refuses a prepared statement as soon as the next release has added a column to the table.
pub fn columns<E: EntityTrait>(alias: &str) -> String {
    let names = E::Column::iter().map(|column| format!("{alias}.{}", column.as_str()));
    names.collect::<Vec<_>>().join(", ")
}

/// The SQL fragments of one kind of database.
pub trait Dialect: Sync {
    /// Returns the SQL for the present time in microseconds since 1970. PostgreSQL reads the clock anew for each use
    /// within a statement.
    fn clock(&self) -> &'static str;

    /// Returns the SQL for the present time in microseconds since 1970. It is constant within a statement, so that
    /// PostgreSQL can use an index.
    fn statement_clock(&self) -> &'static str;

    /// Returns a subquery for the numbers of the JSON list in a parameter. Its column is `value`.
    fn json_numbers(&self, parameter: &str) -> String;

    /// Returns a query with one column for the texts of the JSON list in a parameter.
    fn json_text_rows(&self, parameter: &str) -> String;

    /// Returns a table expression for the JSON list in a parameter, with the column `value` and this alias.
    fn json_elements(&self, parameter: &str, alias: &str) -> String;

    /// Returns the SQL for the member `name` of a JSON column, as JSON text. A number keeps all its digits.
    fn json_member(&self, column: &str, name: &str) -> String;

    /// Returns the SQL that joins each row on the left by an index lookup. An ordinary join may scan the whole table in
    /// PostgreSQL.
    fn lateral_join(&self, join: Join, rows: AliasedTable, condition: &str) -> String;

    /// Returns the SQL that joins each row on the left with the first rows of a table, as `first` describes them.
    fn lateral_first_rows(&self, first: FirstRows<'_>) -> String;

    /// Returns the SQL that joins each row on the left with the rows that meet the condition, and locks the joined rows
    /// in the order of the rows on the left.
    fn lateral_lock(&self, rows: LockedRows, lock: &str, condition: &str) -> String;

    /// Returns the clause at the end of a query that locks its rows against changes. The clause is empty on SQLite,
    /// whose write transactions run one at a time.
    fn share_lock(&self) -> &'static str;

    /// True if the database does not estimate how many rows match, so that a query has to name the index.
    fn ignores_selectivity(&self) -> bool;
}

pub fn dialect(backend: DbBackend) -> &'static dyn Dialect {
    match backend {
        DbBackend::Postgres => &postgres::Postgres,
        _ => &sqlite::Sqlite,
    }
}

/// Returns the present time of the database as an expression, in microseconds since 1970.
pub fn now(backend: DbBackend) -> Expr {
    Expr::cust(dialect(backend).clock())
}

/// An SQL text that is built at its first use and then kept, one for each kind of database.
pub struct SqlOnce {
    build: fn(&dyn Dialect) -> String,
    sqlite: OnceLock<String>,
    postgres: OnceLock<String>,
}

impl SqlOnce {
    pub const fn new(build: fn(&dyn Dialect) -> String) -> Self {
        Self {
            build,
            sqlite: OnceLock::new(),
            postgres: OnceLock::new(),
        }
    }

    pub fn get(&self, backend: DbBackend) -> &str {
        let built = match backend {
            DbBackend::Postgres => &self.postgres,
            _ => &self.sqlite,
        };
        built.get_or_init(|| (self.build)(dialect(backend)))
    }
}
