//! Finds rows that match any of several identifiers. Each identifier has its own query, which uses its own
//! index, and `UNION ALL` combines the queries into one statement. For a single `OR` over many values SQLite
//! may scan all rows of the owner.

use sea_orm::sea_query::{SelectStatement, UnionType};
use sea_orm::{ConnectionTrait, EntityTrait, FromQueryResult, QueryTrait, Select};

use crate::store::db::error::StoreError;

/// Returns the rows that the queries find. A row that several queries find is returned several times.
pub(crate) async fn union_all<E: EntityTrait>(
    connection: &impl ConnectionTrait,
    finders: impl IntoIterator<Item = Select<E>>,
) -> Result<Vec<E::Model>, StoreError> {
    match union(finders) {
        Some(query) => {
            let statement = connection.get_database_backend().build(&query);
            Ok(E::Model::find_by_statement(statement).all(connection).await?)
        }
        None => Ok(Vec::new()),
    }
}

fn union<E: EntityTrait>(finders: impl IntoIterator<Item = Select<E>>) -> Option<SelectStatement> {
    let mut queries = finders.into_iter().map(QueryTrait::into_query);
    let mut query = queries.next()?;
    for other in queries {
        query.union(UnionType::All, other);
    }
    Some(query)
}

#[cfg(test)]
mod tests {
    use sea_orm::{ColumnTrait, DbBackend, QueryFilter, Statement};

    use super::*;
    use crate::store::invoices::customer_row;
    use crate::store::invoices::invoice_row;
    use crate::store::testing::stores;

    /// Returns SQLite's query plan, one text for each step.
    async fn plan<E: EntityTrait>(connection: &impl ConnectionTrait, finders: Vec<Select<E>>) -> Vec<String> {
        let mut statement = DbBackend::Sqlite.build(&union(finders).unwrap());
        statement.sql = format!("EXPLAIN QUERY PLAN {}", statement.sql);
        let statement: Statement = statement;
        let steps = connection.query_all_raw(statement).await.unwrap();
        steps.iter().map(|step| step.try_get::<String>("", "detail").unwrap()).collect()
    }

    #[tokio::test]
    async fn each_part_of_a_union_is_looked_up_by_index() {
        let store = stores().await.into_iter().next().unwrap();
        let reader = store.store.reader();
        let names: Vec<_> = (0..50).map(|n| format!("N{n}")).collect();
        let invoices = [invoice_row::Column::InvoiceNo, invoice_row::Column::IrnKey].map(|column| {
            invoice_row::Entity::find()
                .filter(invoice_row::Column::TaxpayerId.eq(7))
                .filter(column.is_in(&names))
        });
        let customers = [customer_row::Column::No, customer_row::Column::Tin].map(|column| {
            customer_row::Entity::find()
                .filter(customer_row::Column::TaxpayerId.eq(7))
                .filter(column.is_in(&names))
        });
        let plans = [plan(reader, invoices.into()).await, plan(reader, customers.into()).await].concat();
        let searches: Vec<_> = plans.iter().filter(|step| step.starts_with("SEARCH")).collect();
        assert_eq!(searches.len(), 4, "{plans:?}");
        assert!(searches.iter().all(|step| step.contains("(taxpayer_id=? AND ")), "{searches:?}");
    }
}
