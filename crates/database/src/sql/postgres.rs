//! The dialect of PostgreSQL.

use crate::sql::{AliasedTable, Dialect, FirstRows, Join, LockedRows};

pub(super) struct Postgres;

impl Dialect for Postgres {
    fn clock(&self) -> &'static str {
        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
    }

    fn statement_clock(&self) -> &'static str {
        "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000000 AS BIGINT)"
    }

    fn json_numbers(&self, parameter: &str) -> String {
        format!(
            "(SELECT CAST(value AS BIGINT) AS value FROM json_array_elements_text(CAST({parameter} AS JSON)) AS list(value))"
        )
    }

    fn json_text_rows(&self, parameter: &str) -> String {
        format!("SELECT json_array_elements_text(CAST({parameter} AS JSON))")
    }

    fn json_elements(&self, parameter: &str, alias: &str) -> String {
        format!("json_array_elements(CAST({parameter} AS JSON)) AS {alias}(value)")
    }

    /// PostgreSQL reads no member of a JSON text that has the escape of NUL anywhere, so this escape becomes that of
    /// U+FFFD. The text stays JSON even if the backslash is itself escaped.
    fn json_member(&self, column: &str, name: &str) -> String {
        format!("CAST(CAST(replace({column}, '\\u0000', '\\ufffd') AS json) -> '{name}' AS TEXT)")
    }

    /// `OFFSET 0` stops the planner from merging the subquery into the outer query.
    fn lateral_join(&self, join: Join, rows: AliasedTable, condition: &str) -> String {
        let AliasedTable { table, alias } = rows;
        let (kind, on) = match join {
            Join::Inner => ("CROSS", ""),
            Join::Left => ("LEFT", "ON TRUE"),
        };
        format!(
            "{kind} JOIN LATERAL (SELECT * FROM {table} AS {alias} WHERE {condition} OFFSET 0) AS {alias} {on}"
        )
    }

    fn lateral_first_rows(&self, first: FirstRows<'_>) -> String {
        let FirstRows {
            rows: AliasedTable { table, alias },
            inner,
            selection,
            ..
        } = first;
        format!(
            "CROSS JOIN LATERAL (SELECT * FROM {table} AS {inner} WHERE {selection}) AS {alias}"
        )
    }

    fn lateral_lock(&self, rows: LockedRows, lock: &str, condition: &str) -> String {
        let LockedRows { table, columns } = rows;
        format!(
            "CROSS JOIN LATERAL (SELECT {columns} FROM {table} WHERE {condition} {lock}) AS {table}"
        )
    }

    fn share_lock(&self) -> &'static str {
        "FOR SHARE"
    }

    fn ignores_selectivity(&self) -> bool {
        false
    }
}
