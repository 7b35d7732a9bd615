//! Looks up rows of several taxpayers in one statement. The values are passed as JSON, so that the SQL text is always
//! the same.

use database::StoreError;
use database::column::json;
use database::sql::{self, AliasedTable, Dialect, Join, SqlOnce};
use sea_orm::{ConnectionTrait, EntityTrait, FromQueryResult, Statement};
use serde::Serialize;

use crate::domain::kernel::ids::TaxpayerId;

/// A column by which rows of a taxpayer are looked up, with the type of its values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LookupColumn {
    Text(&'static str),
    Number(&'static str),
}

/// Builds the SQL text of a lookup. It has one parameter for each column: a JSON list of pairs (taxpayer id, value). A
/// row that matches several pairs is returned several times.
pub(crate) fn lookup_sql<E: EntityTrait>(
    dialect: &dyn Dialect,
    table: &'static str,
    columns: &[LookupColumn],
) -> String {
    let found = sql::columns::<E>("r");
    let finders = columns.iter().enumerate().map(|(at, column)| {
        let given = dialect.json_elements(&format!("${}", at + 1), "given");
        let name = match column {
            LookupColumn::Text(column) => format!("r.{column} = given.value ->> 1"),
            LookupColumn::Number(column) => {
                format!("r.{column} = CAST(given.value ->> 1 AS BIGINT)")
            }
        };
        let condition = format!("r.taxpayer_id = CAST(given.value ->> 0 AS BIGINT) AND {name}");
        let joined =
            dialect.lateral_join(Join::Inner, AliasedTable { table, alias: "r" }, &condition);
        format!("SELECT {found} FROM {given} {joined}")
    });
    finders.collect::<Vec<_>>().join(" UNION ALL ")
}

/// The values to look up in one column, each paired with its taxpayer's id.
#[derive(Debug, Default)]
pub(crate) struct LookupValues<N>(Vec<(i64, N)>);

impl<N: Serialize> LookupValues<N> {
    pub(crate) fn extend(&mut self, taxpayer: TaxpayerId, values: impl IntoIterator<Item = N>) {
        self.0
            .extend(values.into_iter().map(|value| (taxpayer.0, value)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn to_json(&self) -> String {
        json(&self.0)
    }
}

/// Executes a lookup. `lists` holds the JSON list of pairs for each column, in the order of the columns.
pub(crate) async fn find<M: FromQueryResult>(
    connection: &impl ConnectionTrait,
    sql: &SqlOnce,
    lists: impl IntoIterator<Item = String>,
) -> Result<Vec<M>, StoreError> {
    let backend = connection.get_database_backend();
    let values = lists.into_iter().map(sea_orm::Value::from);
    let statement = Statement::from_sql_and_values(backend, sql.get(backend), values);
    Ok(M::find_by_statement(statement).all(connection).await?)
}

#[cfg(test)]
mod tests {
    use sea_orm::DbBackend;

    use crate::store::invoices::LOOKUP as INVOICES;
    use crate::store::invoices::customers_and_items::{CUSTOMER_LOOKUP, ITEM_LOOKUP};
    use crate::store::runs::LOOKUP as RUNS;
    use crate::store::testing::{query_plan, stores};

    #[tokio::test]
    async fn every_name_is_found_by_its_index() {
        for test in stores().await {
            let backend = test.store.backend();
            for (sql, lists) in [
                (&INVOICES, 3),
                (&CUSTOMER_LOOKUP, 2),
                (&ITEM_LOOKUP, 3),
                (&RUNS, 1),
            ] {
                let values = (0..lists)
                    .map(|_| sea_orm::Value::from("[[7, \"1\"]]"))
                    .collect::<Vec<_>>();
                let steps = query_plan(&test.store, sql.get(backend), values).await;
                let is_by_both = |step: &&String| match backend {
                    DbBackend::Postgres => step.contains("Index Cond"),
                    _ => step.contains("taxpayer_id=?") && step.contains("=? AND "),
                };
                let by_index: Vec<_> = steps.iter().filter(is_by_both).collect();
                assert_eq!(by_index.len(), lists, "{steps:#?}");
            }
        }
    }
}
