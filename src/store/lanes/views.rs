//! The state of lanes for pages and metrics: the holder of a lane, and the numbers of lanes that wait. An owner is the
//! id of a process; each start of a process has a new id.

use std::collections::HashMap;

use database::column::RowRef;
use database::{StoreError, sql};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};
use sea_orm::{ConnectionTrait, Value};

use crate::domain::kernel::crash::CRASHES_MAX;
use crate::store::Store;
use crate::store::lanes::LaneKind;
use crate::store::lanes::fair_queue::{free_lane_condition, statement_with_parameters};

/// The state of one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneState {
    /// The number of times that the lane was locked with `lock`.
    pub version: i64,
    /// The process that holds the lane; `None` if nobody holds it.
    pub holder: Option<LaneHolder>,
}

/// The process that holds a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneHolder {
    pub owner: String,
    pub lease_until: Timestamp,
}

/// Returns the keys of a taxpayer's lanes of this kind that have work, now or at a later time.
pub async fn keys_with_work(
    reader: &impl ConnectionTrait,
    kind: LaneKind,
    taxpayer: i64,
) -> Result<Vec<String>, StoreError> {
    let statement = Query::select()
        .column("key")
        .from("lanes")
        .and_where(Expr::col("kind").eq(kind.as_str()))
        .and_where(Expr::col("taxpayer_id").eq(taxpayer))
        .and_where(Expr::col("next_due_at").is_not_null())
        .to_owned();
    let rows = reader.query_all(&statement).await?;
    rows.iter().map(|row| Ok(row.try_get("", "key")?)).collect()
}

/// Returns the state of a lane, if the lane exists.
pub async fn lane_state(
    reader: &impl ConnectionTrait,
    kind: LaneKind,
    key: &str,
) -> Result<Option<LaneState>, StoreError> {
    let is_held = Expr::col("lease_until").gte(sql::now(reader.get_database_backend()));
    let statement = Query::select()
        .columns(["version", "lease_until"])
        .expr_as(Expr::case(is_held, Expr::col("owner")), "owner")
        .from("lanes")
        .and_where(Expr::col("kind").eq(kind.as_str()))
        .and_where(Expr::col("key").eq(key))
        .to_owned();
    let Some(row) = reader.query_one(&statement).await? else {
        return Ok(None);
    };
    let owner: Option<String> = row.try_get("", "owner")?;
    let lease_until: Option<i64> = row.try_get("", "lease_until")?;
    let at = RowRef {
        table: "lanes",
        id: key,
    };
    let holder = owner.zip(lease_until).map(|(owner, micros)| {
        Ok::<_, StoreError>(LaneHolder {
            owner,
            lease_until: at.moment(micros)?,
        })
    });
    Ok(Some(LaneState {
        version: row.try_get("", "version")?,
        holder: holder.transpose()?,
    }))
}

/// The number of a taxpayer's lanes that are due, have no lease, and need the same step next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueLaneGroup {
    pub taxpayer: i64,
    pub next_step: Option<String>,
    pub due: u64,
}

/// Returns the number of due lanes of each taxpayer.
pub fn sum_by_taxpayer(groups: &[DueLaneGroup]) -> HashMap<i64, u64> {
    let mut sums = HashMap::new();
    for group in groups {
        *sums.entry(group.taxpayer).or_default() += group.due;
    }
    sums
}

/// Counts the due lanes without a lease, by taxpayer and next step.
pub async fn due_groups(store: &Store, kind: LaneKind) -> Result<Vec<DueLaneGroup>, StoreError> {
    let due = free_lane_condition(store.backend(), &[]);
    let sql = format!(
        "SELECT lanes.taxpayer_id AS id, lanes.next_step AS step, COUNT(*) AS due FROM lanes \
         WHERE lanes.kind = $1 AND {due} GROUP BY lanes.taxpayer_id, lanes.next_step"
    );
    let rows = store
        .reader()
        .query_all_raw(statement_with_parameters(
            store,
            sql,
            [kind.as_str().into()],
        ))
        .await?;
    rows.iter()
        .map(|row| {
            Ok(DueLaneGroup {
                taxpayer: row.try_get("", "id")?,
                next_step: row.try_get("", "step")?,
                due: to_unsigned(row.try_get("", "due")?),
            })
        })
        .collect()
}

/// Counts the taxpayer's due lanes without a lease that are more urgent than the lane with this deadline and key. If
/// two lanes have the same deadline, the one with the lesser key is more urgent.
pub async fn count_more_urgent_lanes(
    store: &Store,
    kind: LaneKind,
    taxpayer: i64,
    deadline: i64,
    key: &str,
) -> Result<u64, StoreError> {
    let due = free_lane_condition(store.backend(), &[]);
    let sql = format!(
        "SELECT COUNT(*) AS due FROM lanes WHERE lanes.kind = $1 AND lanes.taxpayer_id = $2 \
         AND (lanes.deadline < $3 OR (lanes.deadline = $3 AND lanes.key < $4)) AND {due}"
    );
    let values: [Value; 4] = [
        kind.as_str().into(),
        taxpayer.into(),
        deadline.into(),
        key.into(),
    ];
    let row = store
        .reader()
        .query_one_raw(statement_with_parameters(store, sql, values))
        .await?;
    Ok(row
        .map(|row| row.try_get("", "due"))
        .transpose()?
        .map_or(0, to_unsigned))
}

fn to_unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The numbers of lanes of one kind that are due, leased and held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneCount {
    pub kind: LaneKind,
    pub due: i64,
    pub leased: i64,
    /// The number of lanes in quarantine, because their holders crashed too often.
    pub held_back: i64,
}

/// Counts the lanes of each kind that are due, leased and held back. The query reads only lanes with a due time. Most
/// lanes have none, because they belong to idle taxpayers or ended runs.
pub async fn counts_by_kind(store: &Store) -> Result<[LaneCount; LaneKind::ALL.len()], StoreError> {
    let now = sql::now(store.backend());
    let held = Expr::col("lease_until")
        .is_not_null()
        .and(Expr::col("lease_until").gte(now.clone()));
    let due = Expr::col("next_due_at").lte(now);
    let held_back = Expr::col("crashes").gte(i64::from(CRASHES_MAX));
    let statement = Query::select()
        .column("kind")
        .expr_as(count_where(due), "due")
        .expr_as(count_where(held), "leased")
        .expr_as(count_where(held_back), "held_back")
        .from("lanes")
        .and_where(Expr::col("next_due_at").is_not_null())
        .group_by_col("kind")
        .to_owned();
    let mut counts = LaneKind::ALL.map(|kind| LaneCount {
        kind,
        due: 0,
        leased: 0,
        held_back: 0,
    });
    for row in store.reader().query_all(&statement).await? {
        let kind: String = row.try_get("", "kind")?;
        for count in counts
            .iter_mut()
            .filter(|count| count.kind.as_str() == kind)
        {
            (count.due, count.leased) = (row.try_get("", "due")?, row.try_get("", "leased")?);
            count.held_back = row.try_get("", "held_back")?;
        }
    }
    Ok(counts)
}

/// The numbers of lanes of one kind that one process has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneCountByOwner {
    pub kind: LaneKind,
    pub owner: String,
    /// The lanes whose lease has not ended.
    pub held: i64,
    /// The lanes whose lease has ended, because the process crashed or lost its connection to the database.
    pub expired: i64,
}

/// Counts the leased lanes by kind and owner, ordered by kind and owner.
pub async fn counts_by_owner(store: &Store) -> Result<Vec<LaneCountByOwner>, StoreError> {
    let mut counts = Vec::new();
    for row in store
        .reader()
        .query_all(&counts_by_owner_statement(sql::now(store.backend())))
        .await?
    {
        let kind: String = row.try_get("", "kind")?;
        let Some(kind) = LaneKind::ALL
            .into_iter()
            .find(|known| known.as_str() == kind)
        else {
            continue;
        };
        let owner = row.try_get("", "owner")?;
        let held = row.try_get("", "held")?;
        let expired = row.try_get("", "expired")?;
        counts.push(LaneCountByOwner {
            kind,
            owner,
            held,
            expired,
        });
    }
    Ok(counts)
}

fn count_where(condition: Expr) -> Expr {
    let one = Expr::case(condition, 1_i64).finally(0_i64);
    Expr::expr(Expr::expr(one).sum()).cast_as("BIGINT")
}

/// Builds the query of `counts_by_owner`. It lists all kinds, because the index of leased lanes begins with the kind.
fn counts_by_owner_statement(now: Expr) -> SelectStatement {
    let is_held = Expr::col("lease_until").gte(now);
    Query::select()
        .columns(["kind", "owner"])
        .expr_as(count_where(is_held.clone()), "held")
        .expr_as(count_where(is_held.not()), "expired")
        .from("lanes")
        .and_where(Expr::col("kind").is_in(LaneKind::ALL.map(LaneKind::as_str)))
        .and_where(Expr::col("lease_until").is_not_null())
        .and_where(Expr::col("owner").is_not_null())
        .group_by_columns(["kind", "owner"])
        .order_by("kind", sea_orm::Order::Asc)
        .order_by("owner", sea_orm::Order::Asc)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::lanes::{self, LanesToWake};
    use crate::store::testing::{claim_due, query_plan, stores};

    const LEASE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn leased_lanes_are_counted_by_their_owners() {
        for test in stores().await {
            let store = &test.store;
            let tx = store.begin().await.unwrap();
            for (kind, count) in [(LaneKind::Run, 3), (LaneKind::Endpoint, 1)] {
                let keys: Vec<_> = (0..count).map(|number| number.to_string()).collect();
                lanes::wake(&tx, kind, &keys, LanesToWake::All)
                    .await
                    .unwrap();
            }
            tx.commit().await.unwrap();
            claim_due(store, LaneKind::Run, "one", LEASE, 2)
                .await
                .unwrap();
            claim_due(
                store,
                LaneKind::Endpoint,
                "one",
                Duration::from_millis(1),
                9,
            )
            .await
            .unwrap();
            let third = claim_due(store, LaneKind::Run, "two", LEASE, 9)
                .await
                .unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
            let found = counts_by_owner(store).await.unwrap();
            let count = |kind, owner: &str, held, expired| LaneCountByOwner {
                kind,
                owner: owner.into(),
                held,
                expired,
            };
            let expected = [
                count(LaneKind::Endpoint, "one", 0, 1),
                count(LaneKind::Run, "one", 2, 0),
                count(LaneKind::Run, "two", 1, 0),
            ];
            assert_eq!(found, expected);
            let state =
                async |kind, key: &str| lane_state(store.reader(), kind, key).await.unwrap();
            let held = state(LaneKind::Run, &third[0].key).await.unwrap();
            let holder = held.holder.unwrap();
            assert_eq!(holder.owner, "two");
            assert!(holder.lease_until > store.database_now().await.unwrap());
            let ended = LaneState {
                version: 0,
                holder: None,
            };
            assert_eq!(
                state(LaneKind::Endpoint, "0").await,
                Some(ended),
                "its lease has ended"
            );
            assert_eq!(state(LaneKind::Run, "unknown").await, None);
        }
    }

    #[tokio::test]
    async fn owners_are_counted_by_the_index_of_leased_lanes() {
        for test in stores().await {
            let backend = test.store.backend();
            let sea_orm::Statement { sql, values, .. } =
                backend.build(&counts_by_owner_statement(sql::now(backend)));
            let values = values.map(|values| values.0).unwrap_or_default();
            let steps = query_plan(&test.store, &sql, values).await;
            assert!(
                steps.iter().any(|step| step.contains("lanes_leased")),
                "{steps:#?}"
            );
        }
    }
}
