//! The dialect of SQLite.

use crate::sql::{AliasedTable, Dialect, FirstRows, Join, LockedRows};

pub(super) struct Sqlite;

const CLOCK: &str = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";

impl Dialect for Sqlite {
    fn clock(&self) -> &'static str {
        CLOCK
    }

    fn statement_clock(&self) -> &'static str {
        CLOCK
    }

    fn json_numbers(&self, parameter: &str) -> String {
        format!("(SELECT value FROM json_each({parameter}))")
    }

    fn json_text_rows(&self, parameter: &str) -> String {
        format!("SELECT value FROM json_each({parameter})")
    }

    fn json_elements(&self, parameter: &str, alias: &str) -> String {
        format!("json_each({parameter}) AS {alias}")
    }

    fn json_member(&self, column: &str, name: &str) -> String {
        format!("{column} -> '{name}'")
    }

    fn lateral_join(&self, join: Join, rows: AliasedTable, condition: &str) -> String {
        let AliasedTable { table, alias } = rows;
        let kind = match join {
            Join::Inner => "CROSS",
            Join::Left => "LEFT",
        };
        format!("{kind} JOIN {table} AS {alias} ON {condition}")
    }

    /// SQLite may choose the wrong one of several indexes with the owner; `sqlite_index` names the right one.
    fn lateral_first_rows(&self, first: FirstRows<'_>) -> String {
        let FirstRows {
            rows: AliasedTable { table, alias },
            owner_column,
            owner,
            inner,
            selection,
            sqlite_index,
        } = first;
        let index = sqlite_index
            .map(|index| format!("INDEXED BY {index} "))
            .unwrap_or_default();
        format!(
            "CROSS JOIN {table} AS {alias} ON {alias}.{owner_column} = {owner} AND {alias}.id IN \
             (SELECT {inner}.id FROM {table} AS {inner} {index}WHERE {selection})"
        )
    }

    /// SQLite has only one writer at a time, so it needs no row locks.
    fn lateral_lock(&self, rows: LockedRows, _lock: &str, condition: &str) -> String {
        format!("CROSS JOIN {} ON {condition}", rows.table)
    }

    fn share_lock(&self) -> &'static str {
        ""
    }

    fn ignores_selectivity(&self) -> bool {
        true
    }
}
