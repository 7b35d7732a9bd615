//! Outages of the authority and the notifications about them. A writer of an outage locks the lane of outages. Each
//! notification to be sent has a lane of its own. It is recorded as sent in the transaction that appends its event, so
//! no taxpayer is notified twice.

use std::collections::{HashMap, HashSet};

use database::column::RowRef;
use database::page::{self, Page};
use database::sql::dialect;
use database::{StoreError, Transaction};
use sea_orm::sea_query::{NullOrdering, OnConflict};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, Order, QueryFilter,
    QueryOrder, QuerySelect, Statement, Value,
};

use crate::domain::kernel::ids::{OutageId, TaxpayerId};
use crate::domain::outage::{Outage, OutageEdge};
use crate::store::Store;
use crate::store::lanes::{LaneKind, Lease};
use crate::store::operations::outage_notice_row;
use crate::store::operations::outage_row::{Column, Entity, Model};

/// The start or the end of one outage. Taxpayers are notified of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutageEvent {
    pub outage: OutageId,
    pub edge: OutageEdge,
}

/// A notification that is to be sent to one taxpayer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedNotice {
    pub taxpayer: TaxpayerId,
    pub event: OutageEvent,
}

/// The number of notified taxpayers for each start and each end of an outage.
pub type NotifiedCounts = HashMap<OutageEvent, u64>;

/// Loads the open outage. If no outage is open, loads the outage that ended last.
pub async fn load_open_or_last(
    connection: &impl ConnectionTrait,
) -> Result<Option<Outage>, StoreError> {
    let found =
        Entity::find().order_by_with_nulls(Column::EndedAt, Order::Desc, NullOrdering::First);
    found
        .one(connection)
        .await?
        .map(Outage::try_from)
        .transpose()
}

pub async fn find_by_id(
    connection: &impl ConnectionTrait,
    id: OutageId,
) -> Result<Option<Outage>, StoreError> {
    Entity::find_by_id(id.to_string())
        .one(connection)
        .await?
        .map(Outage::try_from)
        .transpose()
}

/// Writes the current state of an outage, new or existing.
pub async fn save(tx: &Transaction, outage: &Outage) -> Result<(), StoreError> {
    let changing = [Column::Open, Column::Affected, Column::EndedAt];
    Entity::insert(Model::from(outage).into_active_model())
        .on_conflict(
            OnConflict::column(Column::Id)
                .update_columns(changing)
                .to_owned(),
        )
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Queues a notification for each taxpayer that has an endpoint with this event enabled: one lane for each taxpayer,
/// due now. The deadline of these lanes is one more than that of all earlier ones. So the notifications of a taxpayer
/// are sent in the order of the events, even if the clock was set back. The caller must have locked the lane of
/// outages.
pub async fn queue_notices(tx: &Transaction, event: OutageEvent) -> Result<(), StoreError> {
    let backend = tx.get_database_backend();
    let now = dialect(backend).clock();
    let sql = format!(
        "INSERT INTO lanes (kind, key, epoch, version, taxpayer_id, deadline, next_due_at) \
         SELECT $1, CAST($2 AS TEXT) || '/' || CAST(owner AS TEXT), 0, 0, owner, \
         (SELECT COALESCE(MAX(deadline), 0) + 1 FROM lanes WHERE kind = $1), {now} \
         FROM (SELECT DISTINCT COALESCE(owner_id, taxpayer_id) AS owner FROM webhooks \
         WHERE enabled_events LIKE $3) AS named"
    );
    // The column holds a JSON list of names. The quotes are part of the search text, so that a name does not match a
    // longer name that contains it.
    let named = format!("%\"{}\"%", event.edge.event_kind());
    let values: [Value; 3] = [
        LaneKind::Outage.as_str().into(),
        format!("{}/{}", event.outage, event.edge).into(),
        named.into(),
    ];
    tx.execute_raw(Statement::from_sql_and_values(backend, sql, values))
        .await?;
    Ok(())
}

/// Returns the queued notifications of the taxpayer to whose lane this lease belongs: the notification of this lane and
/// all earlier ones, earliest first.
pub async fn queued_notices_up_to(
    store: &Store,
    lease: &Lease,
) -> Result<Vec<QueuedNotice>, StoreError> {
    let sql = "SELECT queued.key, queued.taxpayer_id FROM lanes JOIN lanes AS queued ON queued.kind = lanes.kind \
        AND queued.taxpayer_id = lanes.taxpayer_id AND queued.deadline <= lanes.deadline \
        WHERE lanes.kind = $1 AND lanes.key = $2 AND queued.next_due_at IS NOT NULL ORDER BY queued.deadline";
    let kind = lease.kind.as_str();
    let values: [Value; 2] = [kind.into(), lease.key.as_str().into()];
    let rows = store
        .reader()
        .query_all_raw(Statement::from_sql_and_values(store.backend(), sql, values))
        .await?;
    rows.iter()
        .map(|row| {
            let key: String = row.try_get("", "key")?;
            let taxpayer = TaxpayerId(row.try_get("", "taxpayer_id")?);
            let event = key.rsplit_once('/').map_or("", |(event, _)| event);
            Ok(QueuedNotice {
                taxpayer,
                event: parse_queued_event(event)?,
            })
        })
        .collect()
}

/// Returns the starts and ends of outages of which some taxpayers have not been notified yet.
pub async fn queued_events(store: &Store) -> Result<HashSet<OutageEvent>, StoreError> {
    let sql = "SELECT DISTINCT REPLACE(key, '/' || CAST(taxpayer_id AS TEXT), '') AS event FROM lanes \
        WHERE kind = $1 AND next_due_at IS NOT NULL";
    let values: [Value; 1] = [LaneKind::Outage.as_str().into()];
    let rows = store
        .reader()
        .query_all_raw(Statement::from_sql_and_values(store.backend(), sql, values))
        .await?;
    rows.iter()
        .map(|row| parse_queued_event(&row.try_get::<String>("", "event")?))
        .collect()
}

/// Parses the event of a queued notification. The key of its lane is `<outage id>/<started or ended>/<taxpayer id>`,
/// and `event` is the key without the last slash and the taxpayer id.
fn parse_queued_event(event: &str) -> Result<OutageEvent, StoreError> {
    let (outage, edge) = event.split_once('/').unwrap_or((event, ""));
    let at = RowRef {
        table: "lanes",
        id: event,
    };
    Ok(OutageEvent {
        outage: at.parse(outage)?,
        edge: at.parse(edge)?,
    })
}

/// Returns the starts and ends that the taxpayer was notified of, for the outages of `events`.
pub async fn find_notified_events(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    events: &[OutageEvent],
) -> Result<Vec<OutageEvent>, StoreError> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let ids = events.iter().map(|event| event.outage.to_string());
    let rows = outage_notice_row::Entity::find()
        .filter(outage_notice_row::Column::TaxpayerId.eq(taxpayer.0))
        .filter(outage_notice_row::Column::OutageId.is_in(ids))
        .all(connection)
        .await?;
    rows.into_iter()
        .map(|row| parse_event(&row.outage_id, &row.edge))
        .collect()
}

/// Records that a taxpayer was notified. Each notification has the sequence of its event in the taxpayer's log.
pub async fn record_notified_events(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    notified: &[(OutageEvent, i64)],
) -> Result<(), StoreError> {
    if notified.is_empty() {
        return Ok(());
    }
    let rows = notified.iter().map(|(event, sequence)| {
        let row = outage_notice_row::Model {
            taxpayer_id: taxpayer.0,
            outage_id: event.outage.to_string(),
            edge: event.edge.to_string(),
            sequence: *sequence,
        };
        row.into_active_model()
    });
    outage_notice_row::Entity::insert_many(rows)
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Loads one page of outages, newest first, and the number of all outages.
pub async fn page(store: &Store, page: Page) -> Result<(Vec<Outage>, u64), StoreError> {
    page::load(store, Entity::find().order_by_desc(Column::Id), page).await
}

/// Counts the notified taxpayers for the start and the end of each of these outages.
pub async fn count_notified_taxpayers(
    store: &Store,
    outages: &[Outage],
) -> Result<NotifiedCounts, StoreError> {
    let ids = outages.iter().map(|outage| outage.id.to_string());
    let rows: Vec<(String, String, i64)> = outage_notice_row::Entity::find()
        .select_only()
        .column(outage_notice_row::Column::OutageId)
        .column(outage_notice_row::Column::Edge)
        .column_as(outage_notice_row::Column::TaxpayerId.count(), "taxpayers")
        .filter(Condition::all().add(outage_notice_row::Column::OutageId.is_in(ids)))
        .group_by(outage_notice_row::Column::OutageId)
        .group_by(outage_notice_row::Column::Edge)
        .into_tuple()
        .all(store.reader())
        .await?;
    rows.into_iter()
        .map(|(outage, edge, count)| {
            Ok((
                parse_event(&outage, &edge)?,
                u64::try_from(count).unwrap_or(0),
            ))
        })
        .collect()
}

fn parse_event(outage: &str, edge: &str) -> Result<OutageEvent, StoreError> {
    let at = RowRef {
        table: "outage_notices",
        id: outage,
    };
    Ok(OutageEvent {
        outage: at.parse(outage)?,
        edge: at.parse(edge)?,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use timing::clock;

    use super::*;
    use crate::domain::events::endpoint::Endpoint;
    use crate::domain::events::event::EventKind;
    use crate::domain::outage::AffectedOperation;
    use crate::store::testing::{TestStore, claim_due, stores};
    use crate::store::webhooks;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn outage(start: i64, end: Option<i64>) -> Outage {
        Outage {
            id: clock::new_id(),
            affected: vec![
                AffectedOperation {
                    operation: "sign".into(),
                    failed_at: at(start),
                    answered_at: end.map(at),
                },
                AffectedOperation {
                    operation: "confirm".into(),
                    failed_at: at(start + 1),
                    answered_at: None,
                },
            ],
            started_at: at(start),
            ended_at: end.map(at),
        }
    }

    async fn write(test: &TestStore, outage: &Outage) -> Result<(), StoreError> {
        let tx = test.store.begin().await.unwrap();
        save(&tx, outage).await?;
        tx.commit().await
    }

    async fn subscribe(test: &TestStore, id: i64, events: &[&str], is_active: bool) {
        let url = "https://hooks.example.com".into();
        let endpoint = Endpoint {
            enabled_events: events.iter().map(|name| (*name).to_owned()).collect(),
            is_active,
            ..Endpoint::new(id, TaxpayerId(id), url, at(0))
        };
        let tx = test.store.begin().await.unwrap();
        webhooks::save(&test.store, &tx, &endpoint, "whsec_")
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    async fn record(test: &TestStore, id: i64, event: OutageEvent) -> Result<(), StoreError> {
        let tx = test.store.begin().await.unwrap();
        record_notified_events(&tx, TaxpayerId(id), &[(event, 3)]).await?;
        tx.commit().await
    }

    #[tokio::test]
    async fn an_outage_is_read_as_it_was_written_and_the_open_one_is_the_last() {
        for test in stores().await {
            assert_eq!(load_open_or_last(test.store.reader()).await.unwrap(), None);
            let open = outage(50, None);
            let early = outage(0, Some(9));
            let late = outage(60, Some(70));
            for one in [&late, &open, &early] {
                write(&test, one).await.unwrap();
                assert_eq!(
                    find_by_id(test.store.reader(), one.id)
                        .await
                        .unwrap()
                        .as_ref(),
                    Some(one)
                );
            }
            assert_eq!(
                load_open_or_last(test.store.reader()).await.unwrap(),
                Some(open.clone())
            );
            let over = Outage {
                ended_at: Some(at(65)),
                ..open
            };
            write(&test, &over).await.unwrap();
            assert_eq!(
                load_open_or_last(test.store.reader()).await.unwrap(),
                Some(late.clone()),
                "the one that ended last"
            );
            let (found, total) = page(
                &test.store,
                Page {
                    number: 1,
                    per_page: 2,
                },
            )
            .await
            .unwrap();
            assert_eq!((found.len(), total), (2, 3));
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn one_outage_is_open_at_a_time() {
        for test in stores().await {
            write(&test, &outage(0, None)).await.unwrap();
            let second = write(&test, &outage(1, None)).await;
            assert!(
                matches!(second, Err(StoreError::Duplicate(_))),
                "{second:?}"
            );
            write(&test, &outage(1, Some(2))).await.unwrap();
            test.store.close().await;
        }
    }

    async fn queue(test: &TestStore, event: OutageEvent) {
        let tx = test.store.begin().await.unwrap();
        queue_notices(&tx, event).await.unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn a_notice_is_queued_for_each_taxpayer_that_subscribed() {
        for test in stores().await {
            let [start, end] =
                [OutageEdge::Started, OutageEdge::Ended].map(|edge| edge.event_kind().as_str());
            subscribe(&test, 1, &[start, end], true).await;
            subscribe(
                &test,
                2,
                &[
                    end,
                    "authority.outage-startedx",
                    "x authority.outage-started",
                ],
                true,
            )
            .await;
            subscribe(
                &test,
                3,
                &[EventKind::InvoiceCreated.as_str(), start],
                false,
            )
            .await;
            subscribe(&test, 4, &[], true).await;
            subscribe(&test, 5, &[start], true).await;
            let started = OutageEvent {
                outage: clock::new_id(),
                edge: OutageEdge::Started,
            };
            assert_eq!(queued_events(&test.store).await.unwrap(), HashSet::new());
            queue(&test, started).await;
            assert_eq!(queued_events(&test.store).await.unwrap(), [started].into());
            let leases = claim_due(&test.store, LaneKind::Outage, "me", Duration::ZERO, 9)
                .await
                .unwrap();
            let mut keys: Vec<_> = leases.iter().map(|lease| lease.key.as_str()).collect();
            keys.sort_unstable();
            let expected = [1, 3, 5].map(|id| format!("{}/started/{id}", started.outage));
            assert_eq!(keys, expected, "active or not");
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn the_notices_of_a_taxpayer_are_in_the_order_of_the_events() {
        for test in stores().await {
            let [start, end] =
                [OutageEdge::Started, OutageEdge::Ended].map(|edge| edge.event_kind().as_str());
            subscribe(&test, 1, &[start, end], true).await;
            let [first, second] = [clock::new_id(), clock::new_id()];
            let events = [
                (first, OutageEdge::Started),
                (first, OutageEdge::Ended),
                (second, OutageEdge::Started),
            ]
            .map(|(outage, edge)| OutageEvent { outage, edge });
            for event in events {
                queue(&test, event).await;
                // Simulates that the clock was an hour ahead until now.
                let tx = test.store.begin().await.unwrap();
                let later = "UPDATE lanes SET deadline = deadline + 3600000000, next_due_at = next_due_at + 3600000000";
                tx.execute_unprepared(later).await.unwrap();
                tx.commit().await.unwrap();
            }
            assert_eq!(queued_events(&test.store).await.unwrap(), events.into());
            for (count, event) in (1..).zip(events) {
                let key = format!("{}/{}/1", event.outage, event.edge);
                let lease = Lease {
                    kind: LaneKind::Outage,
                    key,
                    epoch: 0,
                };
                let found = queued_notices_up_to(&test.store, &lease).await.unwrap();
                assert_eq!(
                    found.iter().map(|one| one.event).collect::<Vec<_>>(),
                    events[..count]
                );
            }
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn a_notice_is_recorded_once() {
        for test in stores().await {
            let started = OutageEvent {
                outage: clock::new_id(),
                edge: OutageEdge::Started,
            };
            let ended = OutageEvent {
                edge: OutageEdge::Ended,
                ..started
            };
            record(&test, 3, started).await.unwrap();
            let again = record(&test, 3, started).await;
            assert!(matches!(again, Err(StoreError::Duplicate(_))), "{again:?}");
            let received =
                find_notified_events(test.store.reader(), TaxpayerId(3), &[started, ended])
                    .await
                    .unwrap();
            assert_eq!(received, [started]);
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn notified_taxpayers_are_counted_by_outage_and_edge() {
        for test in stores().await {
            let one = outage(0, Some(1));
            let other = outage(2, Some(3));
            let started = OutageEvent {
                outage: one.id,
                edge: OutageEdge::Started,
            };
            let ended = OutageEvent {
                outage: one.id,
                edge: OutageEdge::Ended,
            };
            for id in 1..=3 {
                record(&test, id, started).await.unwrap();
            }
            record(&test, 1, ended).await.unwrap();
            record(
                &test,
                1,
                OutageEvent {
                    outage: other.id,
                    ..started
                },
            )
            .await
            .unwrap();
            let counts = count_notified_taxpayers(&test.store, std::slice::from_ref(&one))
                .await
                .unwrap();
            assert_eq!(counts, [(started, 3), (ended, 1)].into());
            test.store.close().await;
        }
    }
}
