//! Outages of the authority. A writer of an outage holds the outage lane. A notification is recorded in the transaction
//! of its event, so no taxpayer is notified twice.

use std::collections::HashMap;

use sea_orm::sea_query::{Expr, NullOrdering, OnConflict, Query};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, ExprTrait, IntoActiveModel, Order, QueryFilter,
    QueryOrder, QuerySelect,
};

use crate::domain::kernel::ids::{OutageId, TaxpayerId};
use crate::domain::outage::{Outage, OutageEdge};
use crate::store::db::column::{RowRef, contains};
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::db::page::{self, Page};
use crate::store::operations::outage_notice_row;
use crate::store::operations::outage_row::{Column, Entity, Model};
use crate::store::webhooks::webhook_row;

/// The start or the end of an outage. Each is a reason to notify the taxpayers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutageEvent {
    pub outage: OutageId,
    pub edge: OutageEdge,
}

/// How many taxpayers were notified, for each start and each end of an outage.
pub type NotifiedCounts = HashMap<OutageEvent, u64>;

/// Loads the open outage. If no outage is open, loads the outage that ended last.
pub async fn last(connection: &impl ConnectionTrait) -> Result<Option<Outage>, StoreError> {
    let found = Entity::find().order_by_with_nulls(Column::EndedAt, Order::Desc, NullOrdering::First);
    found.one(connection).await?.map(Outage::try_from).transpose()
}

pub async fn with_id(connection: &impl ConnectionTrait, id: OutageId) -> Result<Option<Outage>, StoreError> {
    Entity::find_by_id(id.to_string()).one(connection).await?.map(Outage::try_from).transpose()
}

/// Loads the oldest outage that has notifications to send, so that its end is sent before the next outage's start.
pub async fn to_notify(connection: &impl ConnectionTrait) -> Result<Option<Outage>, StoreError> {
    let found = Entity::find().filter(Column::Notifying.is_not_null()).order_by_asc(Column::StartedAt);
    found.one(connection).await?.map(Outage::try_from).transpose()
}

/// Writes the current state of an outage, new or existing.
pub async fn save(tx: &Transaction, outage: &Outage) -> Result<(), StoreError> {
    let changing = [
        Column::Open,
        Column::Affected,
        Column::EndedAt,
        Column::Notifying,
        Column::LastTaxpayer,
        Column::HasMissed,
    ];
    Entity::insert(Model::from(outage).into_active_model())
        .on_conflict(OnConflict::column(Column::Id).update_columns(changing).to_owned())
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Returns up to `limit` ids above `after` of taxpayers that have enabled this notification and not received it.
pub async fn not_notified(
    store: &Store,
    event: OutageEvent,
    after: TaxpayerId,
    limit: u64,
) -> Result<Vec<TaxpayerId>, StoreError> {
    let column = |entity: &'static str| Expr::col((entity, "taxpayer_id"));
    let notified = Query::select()
        .expr(Expr::val(1))
        .from("outage_notices")
        .and_where(column("outage_notices").eq(column("webhooks")))
        .and_where(Expr::col("outage_id").eq(event.outage.to_string()))
        .and_where(Expr::col("edge").eq(event.edge.as_str()))
        .to_owned();
    // The column holds a JSON list of names. With the quotes, a name does not match a longer name that contains it.
    let named = contains(&format!("\"{}\"", event.edge.event()));
    let ids: Vec<i64> = webhook_row::Entity::find()
        .select_only()
        .column(webhook_row::Column::TaxpayerId)
        .filter(webhook_row::Column::TaxpayerId.gt(after.0))
        .filter(webhook_row::Column::EnabledEvents.like(named))
        .filter(Expr::not_exists(notified))
        .order_by_asc(webhook_row::Column::TaxpayerId)
        .limit(limit)
        .into_tuple()
        .all(store.reader())
        .await?;
    Ok(ids.into_iter().map(TaxpayerId).collect())
}

/// Returns the notifications of this list that the taxpayer has received.
pub async fn received_by(
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
    rows.into_iter().map(|row| named(&row.outage_id, &row.edge)).collect()
}

/// Records that a taxpayer was notified. Each notification comes with the sequence of its event.
pub async fn record_notified(
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
    outage_notice_row::Entity::insert_many(rows).exec_without_returning(tx).await?;
    Ok(())
}

/// Loads one page of outages, newest first, and the number of all outages.
pub async fn page(store: &Store, page: Page) -> Result<(Vec<Outage>, u64), StoreError> {
    page::load(store, Entity::find().order_by_desc(Column::Id), page).await
}

/// Counts the notified taxpayers for the start and the end of each of these outages.
pub async fn count_notified(store: &Store, outages: &[Outage]) -> Result<NotifiedCounts, StoreError> {
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
        .map(|(outage, edge, count)| Ok((named(&outage, &edge)?, u64::try_from(count).unwrap_or(0))))
        .collect()
}

fn named(outage: &str, edge: &str) -> Result<OutageEvent, StoreError> {
    let at = RowRef { table: "outage_notices", id: outage };
    Ok(OutageEvent { outage: at.parse(outage)?, edge: at.parse(edge)? })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::events::delivery::Endpoint;
    use crate::domain::events::event::EventKind;
    use crate::domain::kernel::clock;
    use crate::domain::outage::{AffectedOperation, NotificationProgress};
    use crate::store::testing::{TestStore, stores};
    use crate::store::webhooks;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn outage(start: i64, end: Option<i64>, notifying: Option<OutageEdge>) -> Outage {
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
            notifying: notifying.map(|edge| NotificationProgress {
                edge,
                last_taxpayer: TaxpayerId(7),
                has_missed: true,
            }),
        }
    }

    async fn write(test: &TestStore, outage: &Outage) -> Result<(), StoreError> {
        let tx = test.store.begin().await.unwrap();
        save(&tx, outage).await?;
        tx.commit().await
    }

    async fn subscribe(test: &TestStore, id: i64, events: &[&str], is_active: bool) {
        let endpoint = Endpoint {
            id,
            taxpayer_id: TaxpayerId(id),
            url: "https://hooks.example.com".into(),
            enabled_events: events.iter().map(|name| (*name).to_owned()).collect(),
            is_active,
            disabled_reason: None,
            disabled_after: None,
            public_key: None,
            retry_schedule: None,
            created_at: at(0),
            updated_at: at(0),
        };
        let tx = test.store.begin().await.unwrap();
        webhooks::save(&test.store, &tx, &endpoint, "whsec_").await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn record(test: &TestStore, id: i64, event: OutageEvent) -> Result<(), StoreError> {
        let tx = test.store.begin().await.unwrap();
        record_notified(&tx, TaxpayerId(id), &[(event, 3)]).await?;
        tx.commit().await
    }

    #[tokio::test]
    async fn an_outage_is_read_as_it_was_written_and_the_open_one_is_the_last() {
        for test in stores().await {
            assert_eq!(last(test.store.reader()).await.unwrap(), None);
            let open = outage(50, None, Some(OutageEdge::Started));
            let (early, late) = (outage(0, Some(9), None), outage(60, Some(70), Some(OutageEdge::Ended)));
            for one in [&late, &open, &early] {
                write(&test, one).await.unwrap();
                assert_eq!(with_id(test.store.reader(), one.id).await.unwrap().as_ref(), Some(one));
            }
            assert_eq!(last(test.store.reader()).await.unwrap(), Some(open.clone()));
            assert_eq!(
                to_notify(test.store.reader()).await.unwrap(),
                Some(open.clone()),
                "the older one first"
            );
            let over = Outage { ended_at: Some(at(65)), notifying: None, ..open };
            write(&test, &over).await.unwrap();
            assert_eq!(
                last(test.store.reader()).await.unwrap(),
                Some(late.clone()),
                "the one that ended last"
            );
            assert_eq!(to_notify(test.store.reader()).await.unwrap(), Some(late.clone()));
            let (found, total) = page(&test.store, Page { number: 1, per_page: 2 }).await.unwrap();
            assert_eq!((found.len(), total), (2, 3));
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn one_outage_is_open_at_a_time() {
        for test in stores().await {
            write(&test, &outage(0, None, None)).await.unwrap();
            let second = write(&test, &outage(1, None, None)).await;
            assert!(matches!(second, Err(StoreError::Duplicate(_))), "{second:?}");
            write(&test, &outage(1, Some(2), None)).await.unwrap();
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn taxpayers_that_subscribed_are_notified_once() {
        for test in stores().await {
            let [start, end] = [OutageEdge::Started, OutageEdge::Ended].map(|edge| edge.event().as_str());
            subscribe(&test, 1, &[start, end], true).await;
            subscribe(&test, 2, &[end, "authority.outage-startedx", "x authority.outage-started"], true)
                .await;
            subscribe(&test, 3, &[EventKind::InvoiceCreated.as_str(), start], false).await;
            subscribe(&test, 4, &[], true).await;
            subscribe(&test, 5, &[start], true).await;
            let (outage, other) = (clock::new_id(), clock::new_id());
            let started = OutageEvent { outage, edge: OutageEdge::Started };
            let ended = OutageEvent { outage, edge: OutageEdge::Ended };
            let next = async |edge, after, limit| {
                let ids = not_notified(&test.store, OutageEvent { outage, edge }, TaxpayerId(after), limit)
                    .await
                    .unwrap();
                ids.into_iter().map(|id| id.0).collect::<Vec<_>>()
            };
            assert_eq!(next(OutageEdge::Started, 0, 9).await, [1, 3, 5], "active or not");
            assert_eq!(next(OutageEdge::Started, 1, 1).await, [3]);
            assert_eq!(next(OutageEdge::Ended, 0, 9).await, [1, 2]);
            record(&test, 3, started).await.unwrap();
            record(&test, 1, ended).await.unwrap();
            record(&test, 5, OutageEvent { outage: other, ..started }).await.unwrap();
            assert_eq!(next(OutageEdge::Started, 0, 9).await, [1, 5]);
            let again = record(&test, 3, started).await;
            assert!(matches!(again, Err(StoreError::Duplicate(_))), "{again:?}");
            let received = received_by(test.store.reader(), TaxpayerId(3), &[started, ended]).await.unwrap();
            assert_eq!(received, [started]);
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn notified_taxpayers_are_counted_by_outage_and_edge() {
        for test in stores().await {
            let (one, other) = (outage(0, Some(1), None), outage(2, Some(3), None));
            let started = OutageEvent { outage: one.id, edge: OutageEdge::Started };
            let ended = OutageEvent { outage: one.id, edge: OutageEdge::Ended };
            for id in 1..=3 {
                record(&test, id, started).await.unwrap();
            }
            record(&test, 1, ended).await.unwrap();
            record(&test, 1, OutageEvent { outage: other.id, ..started }).await.unwrap();
            let counts = count_notified(&test.store, std::slice::from_ref(&one)).await.unwrap();
            assert_eq!(counts, [(started, 3), (ended, 1)].into());
            test.store.close().await;
        }
    }
}
