//! Webhook endpoints of all taxpayers by their health, for operators.

use std::collections::HashMap;

use database::StoreError;
use database::column::RowRef;
use database::page::{self, Page};
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::domain::events::delivery::{DeliveryState, Endpoint};
use crate::domain::events::endpoint_health::{EndpointHealth, FailureStreak};
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::webhooks::webhook_row::{Column, Entity, Model};
use crate::store::webhooks::{delivery_row, failure_streak};

/// The LIKE pattern for the JSON of a failure streak in which the endpoint was never parked (reduced to probes).
const NEVER_PARKED_PATTERN: &str = "%\"parked_until\":null%";

/// An endpoint with its health and the numbers of its pending deliveries and dead letters.
#[derive(Debug, Clone)]
pub struct ListedEndpoint {
    pub endpoint: Endpoint,
    pub health: EndpointHealth,
    pub streak: Option<FailureStreak>,
    pub pending: i64,
    pub dead: i64,
}

/// The filter of the operators' list of endpoints. A field that is `None` does not filter.
#[derive(Debug, Clone, Copy, Default)]
pub struct EndpointFilter {
    pub health: Option<EndpointHealth>,
    pub taxpayer_id: Option<TaxpayerId>,
}

/// Returns the condition that an endpoint has this health. The condition must agree with `EndpointHealth::new`.
pub(in crate::store) fn has_health(health: EndpointHealth) -> Condition {
    let active = Condition::all().add(Column::IsActive.eq(true));
    match health {
        EndpointHealth::Disabled => Condition::all().add(Column::IsActive.eq(false)),
        EndpointHealth::Working => active.add(Column::FailureStreak.is_null()),
        EndpointHealth::Failing => active.add(Column::FailureStreak.like(NEVER_PARKED_PATTERN)),
        EndpointHealth::Parked => active
            .add(Column::FailureStreak.is_not_null())
            .add(Column::FailureStreak.not_like(NEVER_PARKED_PATTERN)),
    }
}

/// Counts the endpoints of all taxpayers by their health, in one pass over the endpoints.
pub async fn count_by_health(store: &Store) -> Result<Vec<(EndpointHealth, i64)>, StoreError> {
    let mut counts = Query::select();
    for health in EndpointHealth::ALL {
        let one = Expr::case(has_health(*health), 1_i64).finally(0_i64);
        counts.expr_as(
            Expr::expr(Expr::expr(one).sum()).cast_as("BIGINT"),
            health.as_str(),
        );
    }
    let counts = counts.from(Entity).to_owned();
    let Some(row) = store.reader().query_one(&counts).await? else {
        return Ok(Vec::new());
    };
    EndpointHealth::ALL
        .iter()
        .map(|health| {
            Ok((
                *health,
                row.try_get::<Option<i64>>("", health.as_str())?
                    .unwrap_or_default(),
            ))
        })
        .collect()
}

/// Loads one page of the matching endpoints of all taxpayers, ordered by taxpayer id, and the number of all matches.
pub async fn page(
    store: &Store,
    filter: EndpointFilter,
    page: Page,
) -> Result<(Vec<ListedEndpoint>, u64), StoreError> {
    let wanted = Condition::all()
        .add_option(filter.health.map(has_health))
        .add_option(
            filter
                .taxpayer_id
                .map(|taxpayer| Column::TaxpayerId.eq(taxpayer.0)),
        );
    let found = Entity::find()
        .filter(wanted)
        .order_by_asc(Column::TaxpayerId);
    let (rows, total) = page::load_rows(store, found, page).await?;
    let undelivered = count_undelivered(store, &rows).await?;
    let count = |taxpayer, state| {
        undelivered
            .get(&(taxpayer, state))
            .copied()
            .unwrap_or_default()
    };
    let listed = rows.into_iter().map(|row| {
        let streak = failure_streak(&row)?;
        let endpoint = Endpoint::try_from(row)?;
        let taxpayer = endpoint.taxpayer_id;
        Ok(ListedEndpoint {
            health: EndpointHealth::new(endpoint.is_active, streak.as_ref()),
            pending: count(taxpayer, DeliveryState::Pending),
            dead: count(taxpayer, DeliveryState::Dead),
            endpoint,
            streak,
        })
    });
    Ok((listed.collect::<Result<_, StoreError>>()?, total))
}

/// Counts the pending deliveries and the dead letters of the owners of these endpoints.
async fn count_undelivered(
    store: &Store,
    rows: &[Model],
) -> Result<HashMap<(TaxpayerId, DeliveryState), i64>, StoreError> {
    use delivery_row::Column as Delivery;
    let states = [DeliveryState::Pending, DeliveryState::Dead].map(DeliveryState::as_str);
    let counts = Query::select()
        .columns([Delivery::TaxpayerId, Delivery::State])
        .expr_as(Expr::col(Delivery::Id).count(), "deliveries")
        .from(delivery_row::Entity)
        .and_where(Expr::col(Delivery::TaxpayerId).is_in(rows.iter().map(|row| row.taxpayer_id)))
        .and_where(Expr::col(Delivery::State).is_in(states))
        .group_by_columns([Delivery::TaxpayerId, Delivery::State])
        .to_owned();
    let rows = store.reader().query_all(&counts).await?;
    rows.iter()
        .map(|row| {
            let taxpayer: i64 = row.try_get("", "taxpayer_id")?;
            let state: String = row.try_get("", "state")?;
            let state = RowRef {
                table: "deliveries",
                id: taxpayer,
            }
            .parse(&state)?;
            Ok((
                (TaxpayerId(taxpayer), state),
                row.try_get("", "deliveries")?,
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::store::testing::stores;
    use crate::store::webhooks;

    fn endpoint(taxpayer: i64, is_active: bool) -> Endpoint {
        Endpoint {
            id: taxpayer,
            taxpayer_id: TaxpayerId(taxpayer),
            url: "https://hooks.example.com/".to_owned(),
            enabled_events: Vec::new(),
            is_active,
            disabled_reason: None,
            disabled_after: None,
            public_key: None,
            retry_schedule: None,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn streak(parked_until: Option<Timestamp>) -> FailureStreak {
        let at = Timestamp::UNIX_EPOCH;
        let last_failure = Some("timed_out".to_owned());
        FailureStreak {
            since: at,
            last: at,
            failures: 1,
            probes: 0,
            parked_until,
            last_failure,
        }
    }

    #[tokio::test]
    async fn endpoints_are_counted_and_listed_by_their_health() {
        let parked = streak(Some(Timestamp::UNIX_EPOCH));
        for test in stores().await {
            let store = &test.store;
            assert_eq!(
                count_by_health(store)
                    .await
                    .unwrap()
                    .iter()
                    .map(|(_, count)| count)
                    .sum::<i64>(),
                0
            );
            let tx = store.begin().await.unwrap();
            let failing = [
                None,
                None,
                Some(streak(None)),
                Some(parked.clone()),
                Some(parked.clone()),
            ];
            for (taxpayer, streak) in (1..).zip(&failing) {
                let endpoint = endpoint(taxpayer, taxpayer != 5);
                webhooks::save(store, &tx, &endpoint, "whsec_x")
                    .await
                    .unwrap();
                webhooks::set_failure_streak(&tx, &endpoint, streak.as_ref())
                    .await
                    .unwrap();
            }
            tx.commit().await.unwrap();
            let counts = count_by_health(store).await.unwrap();
            let expected = [2, 1, 1, 1];
            assert_eq!(
                counts.iter().map(|(_, count)| *count).collect::<Vec<_>>(),
                expected
            );
            for (health, count) in counts {
                let first = Page {
                    number: 1,
                    per_page: 10,
                };
                let filter = EndpointFilter {
                    health: Some(health),
                    ..EndpointFilter::default()
                };
                let (listed, total) = page(store, filter, first).await.unwrap();
                assert_eq!(
                    (i64::try_from(total).unwrap(), listed[0].health),
                    (count, health)
                );
                assert_eq!((listed[0].pending, listed[0].dead), (0, 0));
            }
            let all = page(
                store,
                EndpointFilter::default(),
                Page {
                    number: 2,
                    per_page: 2,
                },
            )
            .await
            .unwrap();
            let taxpayers: Vec<_> = all
                .0
                .iter()
                .map(|listed| listed.endpoint.taxpayer_id.0)
                .collect();
            assert_eq!((taxpayers, all.1), (vec![3, 4], 5));
        }
    }
}
