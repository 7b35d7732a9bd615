//! Deletes the deliveries of removed endpoints. Nobody can see them any more. Because there may be very many, they are
//! deleted in small steps: first attempts, then deliveries, then replays.

use database::{StoreError, Transaction};
use sea_orm::{ConnectionTrait, Statement};

use crate::domain::kernel::ids::EndpointKey;
use crate::store::Store;

const ADD: &str = "INSERT INTO removed_endpoints (endpoint_key) VALUES ($1) ON CONFLICT (endpoint_key) DO NOTHING";

const FIRST: &str = "SELECT endpoint_key FROM removed_endpoints ORDER BY endpoint_key LIMIT 1";

/// Tables, each with the statement that deletes up to `$2` of its rows of the endpoint `$1`. They are emptied in this
/// order, so that no attempt is left without its delivery.
const DELETE_SOME: [(&str, &str); 3] = [
    (
        "attempts",
        "DELETE FROM attempts WHERE taxpayer_id = $1 AND (delivery_id, attempt) IN \
         (SELECT delivery_id, attempt FROM attempts WHERE taxpayer_id = $1 ORDER BY delivery_id, attempt LIMIT $2)",
    ),
    (
        "deliveries",
        "DELETE FROM deliveries WHERE taxpayer_id = $1 AND id IN \
         (SELECT id FROM deliveries WHERE taxpayer_id = $1 ORDER BY id LIMIT $2)",
    ),
    (
        "replays",
        "DELETE FROM replays WHERE taxpayer_id = $1 AND id IN \
         (SELECT id FROM replays WHERE taxpayer_id = $1 ORDER BY id LIMIT $2)",
    ),
];

const FORGET: &str = "DELETE FROM removed_endpoints WHERE endpoint_key = $1";

/// Records that the deliveries of this endpoint are to be deleted.
pub(super) async fn add(tx: &Transaction, endpoint: EndpointKey) -> Result<(), StoreError> {
    let backend = tx.get_database_backend();
    let add = Statement::from_sql_and_values(backend, ADD, [endpoint.0.into()]);
    tx.execute_raw(add).await?;
    Ok(())
}

/// Deletes up to `limit` rows of one removed endpoint. Returns true if more rows of removed endpoints may be left.
pub async fn sweep(store: &Store, limit: u64) -> Result<bool, StoreError> {
    let backend = store.backend();
    let first = Statement::from_string(backend, FIRST);
    let Some(first) = store.reader().query_one_raw(first).await? else {
        return Ok(false);
    };
    let endpoint: i64 = first.try_get_by_index(0)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    for (table, sql) in DELETE_SOME {
        let any = format!("SELECT 1 FROM {table} WHERE taxpayer_id = $1 LIMIT 1");
        let any = Statement::from_sql_and_values(backend, any, [endpoint.into()]);
        // The number of deleted rows does not say that none is left: another replica may be deleting the same ones.
        if store.reader().query_one_raw(any).await?.is_some() {
            let values = [endpoint.into(), limit.into()];
            execute_and_commit(store, Statement::from_sql_and_values(backend, sql, values)).await?;
            return Ok(true);
        }
    }
    execute_and_commit(
        store,
        Statement::from_sql_and_values(backend, FORGET, [endpoint.into()]),
    )
    .await?;
    Ok(true)
}

async fn execute_and_commit(store: &Store, statement: Statement) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    tx.execute_raw(statement).await?;
    tx.commit().await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::testing::{TestStore, stores};

    const GONE: EndpointKey = EndpointKey(-2);
    const KEPT: EndpointKey = EndpointKey(-3);

    /// Adds three deliveries to an endpoint, each with two attempts, and a replay.
    async fn fill(test: &TestStore, endpoint: EndpointKey) {
        let tx = test.store.begin().await.unwrap();
        for number in 1..=3 {
            let delivery = format!(
                "INSERT INTO deliveries (taxpayer_id, id, event_id, sequence, kind, order_key, state, attempts, created_at, \
                 updated_at, owner_id) VALUES ({endpoint}, 'd{number}', 'e{number}', {number}, 'invoice.created', 'k', 'dead', 2, \
                 0, 0, 7)"
            );
            tx.execute_unprepared(&delivery).await.unwrap();
            for attempt in 1..=2 {
                let attempt = format!(
                    "INSERT INTO attempts (taxpayer_id, delivery_id, attempt, at, response, duration_ms) \
                     VALUES ({endpoint}, 'd{number}', {attempt}, 0, '', 1)"
                );
                tx.execute_unprepared(&attempt).await.unwrap();
            }
        }
        let replay = format!(
            "INSERT INTO replays (taxpayer_id, id, scope, state, after, until, position, queued, created_at, updated_at, owner_id) \
             VALUES ({endpoint}, 'r', 'all', 'done', 0, 9, 9, 0, 0, 0, 7)"
        );
        tx.execute_unprepared(&replay).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn count(test: &TestStore, endpoint: EndpointKey) -> i64 {
        let counts = ["attempts", "deliveries", "replays"]
            .map(|table| format!("(SELECT COUNT(*) FROM {table} WHERE taxpayer_id = {endpoint})"));
        let sql = format!("SELECT {}", counts.join(" + "));
        let count = Statement::from_string(test.store.backend(), sql);
        let row = test.store.reader().query_one_raw(count).await.unwrap();
        row.unwrap().try_get_by_index(0).unwrap()
    }

    #[tokio::test]
    async fn rows_that_another_replica_deletes_now_are_not_taken_for_the_last_ones() {
        for test in stores().await {
            fill(&test, GONE).await;
            let tx = test.store.begin().await.unwrap();
            add(&tx, GONE).await.unwrap();
            tx.commit().await.unwrap();
            // The other replica has deleted the first attempts, and has not committed yet.
            let other = test.store.begin().await.unwrap();
            let (_, first) = DELETE_SOME[0];
            let values = [GONE.0.into(), 4_i64.into()];
            let first = Statement::from_sql_and_values(test.store.backend(), first, values);
            other.execute_raw(first).await.unwrap();
            let commit = async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                other.commit().await
            };
            let (more, committed) = tokio::join!(sweep(&test.store, 4), commit);
            committed.unwrap();
            assert!(more.unwrap());
            let deliveries = "SELECT COUNT(*) FROM deliveries WHERE taxpayer_id = -2".to_owned();
            let deliveries = Statement::from_string(test.store.backend(), deliveries);
            let row = test.store.reader().query_one_raw(deliveries).await.unwrap();
            let left: i64 = row.unwrap().try_get_by_index(0).unwrap();
            assert_eq!(left, 3, "they have attempts");
            while sweep(&test.store, 4).await.unwrap() {}
            assert_eq!(count(&test, GONE).await, 0);
        }
    }

    #[tokio::test]
    async fn the_rows_of_a_deleted_endpoint_are_deleted_in_small_steps() {
        for test in stores().await {
            fill(&test, GONE).await;
            fill(&test, KEPT).await;
            let tx = test.store.begin().await.unwrap();
            for _ in 0..2 {
                add(&tx, GONE).await.unwrap();
            }
            tx.commit().await.unwrap();
            let mut left = vec![count(&test, GONE).await];
            while sweep(&test.store, 4).await.unwrap() {
                left.push(count(&test, GONE).await);
            }
            assert_eq!(
                left,
                [10, 6, 4, 1, 0, 0],
                "the last step forgets the endpoint"
            );
            assert_eq!(count(&test, KEPT).await, 10);
            assert!(!sweep(&test.store, 4).await.unwrap());
        }
    }
}
