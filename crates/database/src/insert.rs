//! Inserts many rows of one table. On PostgreSQL all rows are one statement with one array for each column. Its text
//! does not depend on the number of rows, so PostgreSQL parses and plans it once for each connection. A list of
//! `VALUES` would have another text, and so another plan, for each number of rows.

use std::sync::OnceLock;

use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, IdenStatic,
    IntoActiveModel, Iterable, Statement, Value,
};

use crate::database::Transaction;
use crate::error::StoreError;

/// The maximum number of rows in one statement. More rows could need more bound values than the database allows.
const ROWS_PER_STATEMENT: usize = 256;
/// Statements take a multiple of this number of rows, except the last. So each connection prepares only few statements.
const ROWS_PER_STATEMENT_STEP: usize = 64;

/// Splits rows or keys into slices that are small enough for one statement.
pub fn statement_portions<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let count = match rest.len() {
            0 => return None,
            few if few <= ROWS_PER_STATEMENT_STEP => few,
            many => {
                many.min(ROWS_PER_STATEMENT) / ROWS_PER_STATEMENT_STEP * ROWS_PER_STATEMENT_STEP
            }
        };
        let (portion, others) = rest.split_at(count);
        rest = others;
        Some(portion)
    })
}

/// The statement that inserts rows into the table of the entity `E`.
pub struct Insert<E: EntityTrait> {
    conflict: fn() -> String,
    parts: OnceLock<StatementParts>,
    entity: std::marker::PhantomData<fn() -> E>,
}

/// The parts of the statement's text.
struct StatementParts {
    /// `INSERT INTO`, the table and its columns.
    head: String,
    /// The `ON CONFLICT` clause.
    conflict: String,
    /// The whole statement on PostgreSQL.
    arrays: String,
}

impl<E: EntityTrait> Insert<E>
where
    E::Model: IntoActiveModel<E::ActiveModel>,
{
    /// Creates a statement that fails with `Duplicate` if a row exists already.
    pub const fn new() -> Self {
        Self::with_conflict(String::new)
    }

    /// Creates a statement with an `ON CONFLICT` clause.
    pub const fn with_conflict(conflict: fn() -> String) -> Self {
        Self {
            conflict,
            parts: OnceLock::new(),
            entity: std::marker::PhantomData,
        }
    }

    /// Inserts the rows. Returns how many rows were inserted or updated.
    pub async fn execute(
        &self,
        tx: &Transaction,
        rows: impl IntoIterator<Item = E::Model>,
    ) -> Result<u64, StoreError> {
        let rows: Vec<E::ActiveModel> = rows
            .into_iter()
            .map(IntoActiveModel::into_active_model)
            .collect();
        if rows.is_empty() {
            return Ok(0);
        }
        let parts = self
            .parts
            .get_or_init(|| StatementParts::for_entity::<E>((self.conflict)()));
        let backend = tx.get_database_backend();
        if backend == DbBackend::Postgres {
            let statement =
                Statement::from_sql_and_values(backend, &parts.arrays, column_arrays::<E>(rows));
            return Ok(tx.execute_raw(statement).await?.rows_affected());
        }
        let mut written = 0;
        let mut rows = rows.into_iter();
        for count in statement_portions(rows.as_slice())
            .map(<[_]>::len)
            .collect::<Vec<_>>()
        {
            let values: Vec<_> = rows
                .by_ref()
                .take(count)
                .flat_map(row_values::<E>)
                .collect();
            let row = format!("({})", vec!["?"; E::Column::iter().count()].join(","));
            let sql = format!(
                "{} VALUES {} {}",
                parts.head,
                vec![row; count].join(","),
                parts.conflict
            );
            let statement = Statement::from_sql_and_values(backend, sql, values);
            written += tx.execute_raw(statement).await?.rows_affected();
        }
        Ok(written)
    }
}

impl<E: EntityTrait> Default for Insert<E>
where
    E::Model: IntoActiveModel<E::ActiveModel>,
{
    fn default() -> Self {
        Self::new()
    }
}

impl StatementParts {
    fn for_entity<E: EntityTrait>(conflict: String) -> Self {
        let names: Vec<_> = E::Column::iter()
            .map(|column| column.as_str().to_owned())
            .collect();
        let head = format!(
            "INSERT INTO {} ({})",
            E::default().table_name(),
            names.join(", ")
        );
        // An array cannot hold NULL (sea-query), so a column that may be NULL has a second array of flags.
        let mut given = Vec::new();
        let mut selected = Vec::new();
        for column in E::Column::iter() {
            let name = column.as_str();
            given.push(name.to_owned());
            if column.def().is_null() {
                given.push(format!("is_null_{name}"));
                selected.push(format!(
                    "CASE WHEN is_null_{name} THEN NULL ELSE {name} END"
                ));
            } else {
                selected.push(name.to_owned());
            }
        }
        let parameters: Vec<_> = (1..=given.len())
            .map(|number| format!("${number}"))
            .collect();
        let arrays = format!(
            "{head} SELECT {} FROM UNNEST({}) AS given ({}) {conflict}",
            selected.join(", "),
            parameters.join(", "),
            given.join(", ")
        );
        Self {
            head,
            conflict,
            arrays,
        }
    }
}

/// Returns the values of a row in the order of the columns.
fn row_values<E: EntityTrait>(mut row: E::ActiveModel) -> impl Iterator<Item = Value> {
    E::Column::iter().filter_map(move |column| row.take(column).into_value())
}

/// Returns an array for each column, and after it an array of flags if the column may be NULL.
fn column_arrays<E: EntityTrait>(rows: Vec<E::ActiveModel>) -> Vec<Value> {
    let mut columns: Vec<Vec<Value>> = E::Column::iter()
        .map(|_| Vec::with_capacity(rows.len()))
        .collect();
    for row in rows {
        columns
            .iter_mut()
            .zip(row_values::<E>(row))
            .for_each(|(column, value)| column.push(value));
    }
    let mut arrays = Vec::with_capacity(columns.len());
    for (column, values) in E::Column::iter().zip(columns) {
        let Some(first) = values.first() else {
            continue;
        };
        let kind = first.array_type();
        let are_null: Option<Vec<bool>> = column.def().is_null().then(|| {
            values
                .iter()
                .map(|value| *value == value.as_null())
                .collect()
        });
        let elements = values.into_iter().map(|value| {
            if value == value.as_null() {
                value.dummy_value()
            } else {
                value
            }
        });
        arrays.push(Value::Array(kind, Some(Box::new(elements.collect()))));
        arrays.extend(are_null.map(Value::from));
    }
    arrays
}

/// Returns the `ON CONFLICT` clause that updates these columns of a row with this key, if the row exists already.
pub fn update_on_conflict<C: ColumnTrait>(key: &[C], columns: &[C]) -> String {
    let key: Vec<_> = key.iter().map(IdenStatic::as_str).collect();
    let set: Vec<_> = columns
        .iter()
        .map(|column| format!("{0} = excluded.{0}", column.as_str()))
        .collect();
    format!(
        "ON CONFLICT ({}) DO UPDATE SET {}",
        key.join(", "),
        set.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_in_statements_of_few_sizes() {
        let sizes = |count| {
            statement_portions(&vec![(); count])
                .map(<[()]>::len)
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes(0), [0; 0]);
        assert_eq!(
            (sizes(1), sizes(63), sizes(64)),
            (vec![1], vec![63], vec![64])
        );
        assert_eq!((sizes(65), sizes(130)), (vec![64, 1], vec![128, 2]));
        assert_eq!(sizes(1_001), [256, 256, 256, 192, 41]);
    }
}
