//! Converts database columns to values. The error for a corrupt row names the table and the id of the row.

use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use sea_orm::sea_query::LikeExpr;
use sea_orm::{IdenStatic, Iterable};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::StoreError;

/// The table and the id of a row, for error messages about a corrupt column.
#[derive(Clone, Copy)]
pub struct RowRef<I: Display> {
    pub table: &'static str,
    pub id: I,
}

impl<I: Display> RowRef<I> {
    pub fn corrupt(&self, reason: impl Display) -> StoreError {
        StoreError::Corrupt {
            table: self.table,
            id: self.id.to_string(),
            reason: reason.to_string(),
        }
    }

    /// Parses a text column, such as the name of an enum variant, a number or a date.
    pub fn parse<T>(&self, text: &str) -> Result<T, StoreError>
    where
        T: FromStr,
        T::Err: Display,
    {
        text.parse().map_err(|fault| self.corrupt(fault))
    }

    pub fn moment(&self, micros: i64) -> Result<Timestamp, StoreError> {
        Timestamp::from_microsecond(micros).map_err(|fault| self.corrupt(fault))
    }

    pub fn optional_moment(&self, micros: Option<i64>) -> Result<Option<Timestamp>, StoreError> {
        micros.map(|micros| self.moment(micros)).transpose()
    }

    pub fn parse_json<T: DeserializeOwned>(&self, text: &str) -> Result<T, StoreError> {
        strict_json::from_trusted(text).map_err(|fault| self.corrupt(fault))
    }

    pub fn to_count(&self, number: i32) -> Result<u32, StoreError> {
        u32::try_from(number).map_err(|fault| self.corrupt(fault))
    }
}

/// Returns the value as JSON text. Use it only for values that always serialise, such as texts, numbers and lists: the
/// text of any other value may be empty.
pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns a select list of all columns, each renamed to `table_column`, so that columns of joined tables do not clash.
pub fn select_list<C: Iterable + IdenStatic>(table: &str) -> String {
    let columns = C::iter().map(|column| {
        format!(
            "{table}.{column} AS {table}_{column}",
            column = column.as_str()
        )
    });
    columns.collect::<Vec<_>>().join(", ")
}

/// Converts a counter to the type of its column. A counter that is too large becomes the largest `i32`.
pub fn to_count_column(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Returns the text trimmed and in lower case, for comparisons that ignore case.
pub fn fold_case(text: &str) -> String {
    text.trim().to_lowercase()
}

/// The maximum length in bytes of the searched text in a pattern; the rest of the text is cut off. No searched column
/// holds a longer text, and SQLite refuses patterns of more than 50,000 bytes.
const PATTERN_BYTES_MAX: usize = 8_192;

/// Returns a LIKE pattern that matches every text that contains this text. Wildcards in the text are escaped.
pub fn contains_pattern(text: &str) -> LikeExpr {
    LikeExpr::new(contains_pattern_text(text)).escape('\\')
}

/// Returns the pattern of `contains_pattern` as text, for SQL that contains `LIKE … ESCAPE '\'` itself.
pub fn contains_pattern_text(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(PATTERN_BYTES_MAX)];
    let escaped = text
        .replace('\\', "\\\\")
        .replace('%', "\\%")
        .replace('_', "\\_");
    format!("%{escaped}%")
}
