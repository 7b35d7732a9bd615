//! The heartbeats of the replicas, with their figures. All times are those of the database's clock.

use std::collections::HashMap;

use database::StoreError;
use database::column::{RowRef, json};
use database::sql::dialect;
use jiff::Timestamp;
use sea_orm::entity::prelude::*;
use sea_orm::{QueryOrder, Statement};

use crate::domain::kernel::audit::AuditEntry;
use crate::domain::replica::{
    MISSING_AFTER, REMEMBERED_FOR, Replica, ReplicaFigures, ReplicaIdentity,
};
use crate::store::Store;
use crate::store::lanes::{LaneKind, views};
use crate::store::operations::audit;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "replicas")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub name: String,
    pub seen_at: i64,
    pub figures: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Stores a heartbeat. Returns the time of the database.
pub async fn record_heartbeat(
    store: &Store,
    identity: &ReplicaIdentity,
    figures: &ReplicaFigures,
) -> Result<Timestamp, StoreError> {
    let clock = dialect(store.backend()).clock();
    let sql = format!(
        "INSERT INTO replicas (id, name, seen_at, figures) VALUES ($1, $2, {clock}, $3) \
         ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, figures = excluded.figures \
         RETURNING seen_at"
    );
    let values = [
        identity.id.as_str().into(),
        identity.name.as_str().into(),
        json(figures).into(),
    ];
    let statement = Statement::from_sql_and_values(store.backend(), sql, values);
    let row = store.execute_and_commit(statement).await?;
    let seen_at = row.ok_or(StoreError::Stale)?.try_get("", "seen_at")?;
    RowRef {
        table: "replicas",
        id: &identity.id,
    }
    .moment(seen_at)
}

/// Removes the rows of earlier processes with the same name, and of replicas without a heartbeat for `REMEMBERED_FOR`.
/// Returns the time of the last heartbeat of the earlier process, if that process did not stop in an orderly way.
pub async fn remove_predecessors(
    store: &Store,
    identity: &ReplicaIdentity,
) -> Result<Option<Timestamp>, StoreError> {
    let tx = store.begin().await?;
    let earlier = Entity::find()
        .filter(Column::Name.eq(&identity.name))
        .filter(Column::Id.ne(&identity.id))
        .order_by_desc(Column::SeenAt)
        .one(&tx)
        .await?;
    Entity::delete_many()
        .filter(Column::Name.eq(&identity.name))
        .filter(Column::Id.ne(&identity.id))
        .exec(&tx)
        .await?;
    tx.commit().await?;
    forget_long_missing(store).await?;
    earlier.map(|row| seen_at(&row)).transpose()
}

async fn forget_long_missing(store: &Store) -> Result<(), StoreError> {
    let last = store.database_now().await? - REMEMBERED_FOR;
    let tx = store.begin().await?;
    Entity::delete_many()
        .filter(Column::SeenAt.lt(last.as_microsecond()))
        .exec(&tx)
        .await?;
    tx.commit().await
}

/// Removes this process from the replicas, because it stops in an orderly way.
pub async fn forget_stopped(store: &Store, id: &str) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    Entity::delete_by_id(id).exec(&tx).await?;
    tx.commit().await
}

/// Removes a replica, because an operator says that it will not come back. Returns false if it was already removed.
pub async fn forget_missing(
    store: &Store,
    id: &str,
    entry: AuditEntry,
) -> Result<bool, StoreError> {
    let tx = store.begin().await?;
    let deleted = Entity::delete_by_id(id).exec(&tx).await?;
    if deleted.rows_affected == 0 {
        return Ok(false);
    }
    audit::append(&tx, &[entry]).await?;
    tx.commit().await.map(|()| true)
}

/// Loads the replicas with a heartbeat within `REMEMBERED_FOR` before `now`, ordered by name.
pub async fn list(store: &Store, now: Timestamp) -> Result<Vec<Replica>, StoreError> {
    let rows = Entity::find()
        .filter(Column::SeenAt.gte((now - REMEMBERED_FOR).as_microsecond()))
        .order_by_asc(Column::Name)
        .order_by_asc(Column::Id)
        .all(store.reader())
        .await?;
    let mut leases: HashMap<String, u64> = HashMap::new();
    for count in views::counts_by_owner(store).await? {
        let held = u64::try_from(count.held).unwrap_or(0);
        *leases.entry(count.owner).or_default() += held;
    }
    let replicas = rows.into_iter().map(|row| {
        let at = RowRef {
            table: "replicas",
            id: &row.id,
        };
        Ok(Replica {
            seen_at: at.moment(row.seen_at)?,
            leases: leases.get(&row.id).copied().unwrap_or(0),
            // A replica of another version may report figures that this version cannot read. It is listed even so.
            figures: strict_json::from_trusted(&row.figures).unwrap_or_default(),
            identity: ReplicaIdentity {
                name: row.name,
                id: row.id,
            },
        })
    });
    replicas.collect()
}

/// The replica that holds a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHolder {
    pub name: String,
    pub seen_at: Timestamp,
    /// True if the replica is missing, because its last heartbeat is too old.
    pub is_silent: bool,
}

/// Finds a replica by the id under which it holds leases.
pub async fn find(store: &Store, id: &str) -> Result<Option<LeaseHolder>, StoreError> {
    let Some(row) = Entity::find_by_id(id).one(store.reader()).await? else {
        return Ok(None);
    };
    let seen_at = seen_at(&row)?;
    let now = store.database_now().await?;
    Ok(Some(LeaseHolder {
        is_silent: now.duration_since(seen_at) > MISSING_AFTER,
        name: row.name,
        seen_at,
    }))
}

/// Returns the end of the last lease that a missing replica holds on a lane of this kind; `None` if it holds none. No other
/// replica takes such a lane before its lease ends.
pub async fn last_lease_of_missing(
    store: &Store,
    kind: LaneKind,
) -> Result<Option<Timestamp>, StoreError> {
    let clock = dialect(store.backend()).clock();
    let sql = format!(
        "SELECT max(lanes.lease_until) AS lease_end FROM lanes JOIN replicas ON replicas.id = lanes.owner \
         WHERE lanes.kind = $1 AND lanes.lease_until >= {clock} AND replicas.seen_at < {clock} - $2"
    );
    let missing_after = i64::try_from(MISSING_AFTER.as_micros()).unwrap_or(i64::MAX);
    let values = [kind.as_str().into(), missing_after.into()];
    let statement = Statement::from_sql_and_values(store.backend(), sql, values);
    let row = store.reader().query_one_raw(statement).await?;
    let lease_end: Option<i64> = row.ok_or(StoreError::Stale)?.try_get("", "lease_end")?;
    let at = RowRef {
        table: "lanes",
        id: kind.as_str(),
    };
    lease_end.map(|micros| at.moment(micros)).transpose()
}

fn seen_at(row: &Model) -> Result<Timestamp, StoreError> {
    RowRef {
        table: "replicas",
        id: &row.id,
    }
    .moment(row.seen_at)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::testing::{claim_due, stores};

    fn identity(id: &str, name: &str) -> ReplicaIdentity {
        ReplicaIdentity {
            id: id.into(),
            name: name.into(),
        }
    }

    fn figures(version: &str) -> ReplicaFigures {
        ReplicaFigures {
            version: version.into(),
            ..ReplicaFigures::default()
        }
    }

    async fn names(store: &Store) -> Vec<(String, String)> {
        let now = store.database_now().await.unwrap();
        let listed = list(store, now).await.unwrap();
        listed
            .into_iter()
            .map(|replica| (replica.identity.name, replica.figures.version))
            .collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = expected
            .iter()
            .map(|(name, version)| ((*name).into(), (*version).into()));
        owned.collect()
    }

    #[tokio::test]
    async fn each_sign_replaces_the_last_one_and_a_start_takes_the_place_of_the_process_before() {
        for test in stores().await {
            let store = &test.store;
            let [first, second, other] = [
                identity("1", "a:1"),
                identity("2", "a:1"),
                identity("3", "b:1"),
            ];
            assert_eq!(remove_predecessors(store, &first).await.unwrap(), None);
            let begun = record_heartbeat(store, &first, &figures("1"))
                .await
                .unwrap();
            let last = record_heartbeat(store, &first, &figures("2"))
                .await
                .unwrap();
            assert!(begun <= last, "{begun} {last}");
            record_heartbeat(store, &other, &figures("1"))
                .await
                .unwrap();
            assert_eq!(names(store).await, pairs(&[("a:1", "2"), ("b:1", "1")]));

            assert_eq!(
                remove_predecessors(store, &second).await.unwrap(),
                Some(last),
                "it did not stop in order"
            );
            assert_eq!(names(store).await, pairs(&[("b:1", "1")]));
            record_heartbeat(store, &second, &figures("3"))
                .await
                .unwrap();
            let found = find(store, "2").await.unwrap().unwrap();
            assert_eq!((found.name.as_str(), found.is_silent), ("a:1", false));
            assert_eq!(find(store, "1").await.unwrap(), None);
            forget_stopped(store, "2").await.unwrap();
            assert_eq!(
                remove_predecessors(store, &first).await.unwrap(),
                None,
                "the second stopped in order"
            );
        }
    }

    #[tokio::test]
    async fn the_leases_of_a_missing_replica_are_known_until_they_end() {
        for test in stores().await {
            let store = &test.store;
            let tx = store.begin().await.unwrap();
            let keys = ["7".to_owned(), "8".to_owned()];
            let all = crate::store::lanes::LanesToWake::All;
            crate::store::lanes::wake(&tx, LaneKind::Run, &keys, all)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let lease = Duration::from_mins(1);
            claim_due(store, LaneKind::Run, "1", lease, 1)
                .await
                .unwrap();
            let now = record_heartbeat(store, &identity("1", "a:1"), &figures("1"))
                .await
                .unwrap();
            let found = async |kind| last_lease_of_missing(store, kind).await.unwrap();
            assert_eq!(found(LaneKind::Run).await, None, "it lives");
            let tx = store.begin().await.unwrap();
            let long_ago = (now - MISSING_AFTER - MISSING_AFTER).as_microsecond();
            let silence = format!("UPDATE replicas SET seen_at = {long_ago}");
            tx.execute_unprepared(&silence).await.unwrap();
            tx.commit().await.unwrap();
            let end = found(LaneKind::Run).await.unwrap();
            assert!(end > now, "{end} {now}");
            assert_eq!(found(LaneKind::Endpoint).await, None);
            let tx = store.begin().await.unwrap();
            let over = format!("UPDATE lanes SET lease_until = {long_ago}");
            tx.execute_unprepared(&over).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(found(LaneKind::Run).await, None);
        }
    }

    #[tokio::test]
    async fn a_replica_is_listed_with_its_leases_until_it_is_missing_for_long() {
        for test in stores().await {
            let store = &test.store;
            let tx = store.begin().await.unwrap();
            let keys = ["7".to_owned(), "8".to_owned()];
            crate::store::lanes::wake(
                &tx,
                LaneKind::Endpoint,
                &keys,
                crate::store::lanes::LanesToWake::All,
            )
            .await
            .unwrap();
            tx.commit().await.unwrap();
            claim_due(store, LaneKind::Endpoint, "1", Duration::from_mins(1), 9)
                .await
                .unwrap();
            let seen_at = record_heartbeat(store, &identity("1", "a:1"), &figures("1"))
                .await
                .unwrap();
            let listed = list(store, seen_at).await.unwrap();
            assert_eq!(listed[0].leases, 2);
            assert_eq!(listed[0].seen_at, seen_at);
            let later = seen_at + REMEMBERED_FOR + Duration::from_secs(1);
            assert_eq!(list(store, later).await.unwrap(), []);
        }
    }
}
