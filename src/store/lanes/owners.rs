//! The processes that hold lanes. An owner is the name of a process; each start of a process has a name of its own.

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};

use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::db::sql;
use crate::store::lanes::LaneKind;

/// How many lanes of a kind one process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerCount {
    pub kind: LaneKind,
    pub owner: String,
    /// The lanes whose lease has not ended.
    pub held: i64,
    /// The lanes whose lease has ended, because the process crashed or lost the database.
    pub expired: i64,
}

/// Counts the leased lanes by kind and owner, ordered by kind and owner.
pub async fn counts(store: &Store) -> Result<Vec<OwnerCount>, StoreError> {
    let mut counts = Vec::new();
    for row in store.reader().query_all(&statement(sql::now(store.backend()))).await? {
        let kind: String = row.try_get("", "kind")?;
        let Some(kind) = LaneKind::ALL.into_iter().find(|known| known.as_str() == kind) else { continue };
        let owner = row.try_get("", "owner")?;
        let held = row.try_get("", "held")?;
        let expired = row.try_get("", "expired")?;
        counts.push(OwnerCount { kind, owner, held, expired });
    }
    Ok(counts)
}

/// Names each kind, because the index of leased lanes begins with it.
fn statement(now: Expr) -> SelectStatement {
    let number = |condition: Expr| {
        let one = Expr::case(condition, 1_i64).finally(0_i64);
        Expr::expr(Expr::expr(one).sum()).cast_as("BIGINT")
    };
    let is_held = Expr::col("lease_until").gte(now);
    Query::select()
        .columns(["kind", "owner"])
        .expr_as(number(is_held.clone()), "held")
        .expr_as(number(is_held.not()), "expired")
        .from("lanes")
        .and_where(Expr::col("kind").is_in(LaneKind::ALL.map(LaneKind::as_str)))
        .and_where(Expr::col("lease_until").is_not_null())
        .and_where(Expr::col("owner").is_not_null())
        .group_by_columns(["kind", "owner"])
        .order_by("kind", sea_orm::Order::Asc)
        .order_by("owner", sea_orm::Order::Asc)
        .to_owned()
}

/// Returns the process that holds a lane now.
pub async fn owner_of(store: &Store, kind: LaneKind, key: &str) -> Result<Option<String>, StoreError> {
    let statement = Query::select()
        .column("owner")
        .from("lanes")
        .and_where(Expr::col("kind").eq(kind.as_str()))
        .and_where(Expr::col("key").eq(key))
        .and_where(Expr::col("lease_until").gte(sql::now(store.backend())))
        .to_owned();
    let row = store.reader().query_one(&statement).await?;
    Ok(row.map(|row| row.try_get("", "owner")).transpose()?.flatten())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::lanes::{self, Wake};
    use crate::store::testing::{claim_due, query_plan, stores};

    const LEASE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn leased_lanes_are_counted_by_their_owners() {
        for test in stores().await {
            let store = &test.store;
            let tx = store.begin().await.unwrap();
            for (kind, count) in [(LaneKind::Run, 3), (LaneKind::Endpoint, 1)] {
                let keys: Vec<_> = (0..count).map(|number| number.to_string()).collect();
                lanes::wake(&tx, kind, &keys, Wake::All).await.unwrap();
            }
            tx.commit().await.unwrap();
            claim_due(store, LaneKind::Run, "one", LEASE, 2).await.unwrap();
            claim_due(store, LaneKind::Endpoint, "one", Duration::from_millis(1), 9).await.unwrap();
            let third = claim_due(store, LaneKind::Run, "two", LEASE, 9).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
            let found = counts(store).await.unwrap();
            let count =
                |kind, owner: &str, held, expired| OwnerCount { kind, owner: owner.into(), held, expired };
            let expected = [
                count(LaneKind::Endpoint, "one", 0, 1),
                count(LaneKind::Run, "one", 2, 0),
                count(LaneKind::Run, "two", 1, 0),
            ];
            assert_eq!(found, expected);
            let owner = async |kind, key: &str| owner_of(store, kind, key).await.unwrap();
            assert_eq!(owner(LaneKind::Run, &third[0].key).await.as_deref(), Some("two"));
            assert_eq!(owner(LaneKind::Endpoint, "0").await, None, "its lease has ended");
            assert_eq!(owner(LaneKind::Run, "unknown").await, None);
        }
    }

    #[tokio::test]
    async fn owners_are_counted_by_the_index_of_leased_lanes() {
        for test in stores().await {
            let backend = test.store.backend();
            let sea_orm::Statement { sql, values, .. } = backend.build(&statement(sql::now(backend)));
            let values = values.map(|values| values.0).unwrap_or_default();
            let steps = query_plan(&test.store, &sql, values).await;
            assert!(steps.iter().any(|step| step.contains("lanes_leased")), "{steps:#?}");
        }
    }
}
