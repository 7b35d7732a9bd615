//! Webhook endpoints of all taxpayers by their health, for operators.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use database::StoreError;
use database::column::{RowRef, contains_pattern, json};
use database::page::{self, Page};
use sea_orm::sea_query::{Expr, ExprTrait, Func, Query};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};
use url::Url;

use crate::domain::events::delivery::DeliveryState;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::endpoint_health::{EndpointHealth, FailureStreak};
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};
use crate::store::Store;
use crate::store::webhooks::webhook_row::{Column, Entity, Model};
use crate::store::webhooks::{delivery_row, failure_streak};

/// The LIKE pattern for the JSON of a failure streak during which the endpoint was never parked.
pub(in crate::store) const NEVER_PARKED_PATTERN: &str = "%\"parked_until\":null%";

/// The SQL expression for the taxpayer id of an endpoint.
const OWNER: &str = "COALESCE(owner_id, taxpayer_id)";

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
#[derive(Debug, Clone, Default)]
pub struct EndpointFilter {
    pub health: Option<EndpointHealth>,
    pub taxpayer_id: Option<TaxpayerId>,
    /// Only the endpoints with these keys.
    pub keys: Option<Vec<EndpointKey>>,
    /// The cause of the last failure, as `FailureStreak::last_cause` returns it.
    pub cause: Option<String>,
    /// The host of the URL.
    pub host: Option<String>,
    /// If true, only endpoints that do not work: those that are failing, parked or disabled.
    pub is_troubled: bool,
}

impl EndpointFilter {
    fn condition(&self) -> Condition {
        let keys = self.keys.as_ref();
        let keys = keys.map(|keys| Column::EndpointKey.is_in(keys.iter().map(|key| key.0)));
        Condition::all()
            .add_option(self.health.map(has_health))
            .add_option(self.taxpayer_id.map(is_owned_by))
            .add_option(keys)
            .add_option(self.cause.as_deref().map(has_failure_cause))
            .add_option(self.host.as_deref().map(is_at_host))
            .add_option(
                self.is_troubled
                    .then(|| has_health(EndpointHealth::Working).not()),
            )
    }
}

fn is_owned_by(taxpayer: TaxpayerId) -> Condition {
    Condition::any()
        .add(Column::EndpointKey.eq(taxpayer.0))
        .add(Column::OwnerId.eq(taxpayer.0))
}

/// Returns the condition that the last failure of an endpoint has this cause.
fn has_failure_cause(cause: &str) -> Condition {
    let has = |field: String| Expr::col(Column::FailureStreak).like(contains_pattern(&field));
    let unanswered = Condition::any()
        .add(has("\"last_status\":null".to_owned()))
        .add(has("\"last_status\":".to_owned()).not());
    match cause.parse::<u16>() {
        // A comma or a brace must follow the status, so that 50 does not match 503.
        Ok(status) => [",", "}"].iter().fold(Condition::any(), |any, end| {
            any.add(has(format!("\"last_status\":{status}{end}")))
        }),
        Err(_) => Condition::all()
            .add(has(format!("\"last_failure\":{}", json(&cause))))
            .add(unanswered),
    }
}

/// Returns the condition that the URL of an endpoint has this host, with any port.
fn is_at_host(host: &str) -> Condition {
    let host = host.to_lowercase();
    ["/", ":", "?", "#"].iter().fold(
        Condition::any()
            .add(Column::Url.is_in([format!("http://{host}"), format!("https://{host}")])),
        |any, end| {
            let url = Expr::expr(Func::lower(Expr::col(Column::Url)));
            any.add(url.like(contains_pattern(&format!("://{host}{end}"))))
        },
    )
}

/// The failing endpoints that have the same host and the same cause of failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingEndpointGroup {
    pub host: String,
    pub cause: String,
    pub endpoints: usize,
}

/// The maximum number of endpoints that are grouped by host and cause.
const GROUPED_MAX: u64 = 10_000;

/// Groups the failing endpoints by host and cause, the largest group first.
pub async fn group_failing_endpoints(
    store: &Store,
) -> Result<Vec<FailingEndpointGroup>, StoreError> {
    let rows = Entity::find()
        .filter(Column::FailureStreak.is_not_null())
        .limit(GROUPED_MAX)
        .all(store.reader())
        .await?;
    let mut groups: BTreeMap<(String, String), usize> = BTreeMap::new();
    for row in rows {
        let url = Url::parse(&row.url).ok();
        let host = url.as_ref().and_then(Url::host_str);
        if let (Some(host), Some(streak)) = (host, failure_streak(&row)?) {
            *groups
                .entry((host.to_owned(), streak.last_cause()))
                .or_default() += 1;
        }
    }
    let mut groups: Vec<_> = groups
        .into_iter()
        .map(|((host, cause), endpoints)| FailingEndpointGroup {
            host,
            cause,
            endpoints,
        })
        .collect();
    groups.sort_by_key(|group| Reverse(group.endpoints));
    Ok(groups)
}

/// Returns the condition that an endpoint has this health. It must agree with `EndpointHealth::new`.
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

/// Loads one page of the matching endpoints of all taxpayers, ordered by taxpayer id, and the number of all matches. A
/// taxpayer's default endpoint comes before its added ones.
pub async fn page(
    store: &Store,
    filter: &EndpointFilter,
    page: Page,
) -> Result<(Vec<ListedEndpoint>, u64), StoreError> {
    let found = Entity::find()
        .filter(filter.condition())
        .order_by_asc(Expr::cust(OWNER))
        .order_by_desc(Column::EndpointKey);
    let (rows, total) = page::load_rows(store, found, page).await?;
    let undelivered = count_undelivered(store, &rows).await?;
    let count =
        |key: EndpointKey, state| undelivered.get(&(key, state)).copied().unwrap_or_default();
    let listed = rows.into_iter().map(|row| {
        let streak = failure_streak(&row)?;
        let endpoint = Endpoint::try_from(row)?;
        Ok(ListedEndpoint {
            health: EndpointHealth::new(endpoint.is_active, streak.as_ref()),
            pending: count(endpoint.key, DeliveryState::Pending),
            dead: count(endpoint.key, DeliveryState::Dead),
            endpoint,
            streak,
        })
    });
    Ok((listed.collect::<Result<_, StoreError>>()?, total))
}

/// Loads the owners and URLs of up to `limit` enabled endpoints.
pub async fn load_enabled_urls(
    store: &Store,
    limit: u64,
) -> Result<Vec<(TaxpayerId, String)>, StoreError> {
    let rows: Vec<(i64, String)> = Entity::find()
        .select_only()
        .expr_as(Expr::cust(OWNER), "owner")
        .column(Column::Url)
        .filter(Column::IsActive.eq(true))
        .order_by_asc(Expr::cust(OWNER))
        .limit(limit)
        .into_tuple()
        .all(store.reader())
        .await?;
    Ok(rows
        .into_iter()
        .map(|(taxpayer, url)| (TaxpayerId(taxpayer), url))
        .collect())
}

/// Counts the pending deliveries and the dead letters of these endpoints.
async fn count_undelivered(
    store: &Store,
    rows: &[Model],
) -> Result<HashMap<(EndpointKey, DeliveryState), i64>, StoreError> {
    use delivery_row::Column as Delivery;
    let states = [DeliveryState::Pending, DeliveryState::Dead].map(DeliveryState::as_str);
    let counts = Query::select()
        .columns([Delivery::EndpointKey, Delivery::State])
        // `COUNT(*)` can be answered from the index. To count a column that the index does not contain, the database
        // would read each delivery.
        .expr_as(Expr::cust("COUNT(*)"), "deliveries")
        .from(delivery_row::Entity)
        .and_where(Expr::col(Delivery::EndpointKey).is_in(rows.iter().map(|row| row.endpoint_key)))
        .and_where(Expr::col(Delivery::State).is_in(states))
        .group_by_columns([Delivery::EndpointKey, Delivery::State])
        .to_owned();
    let rows = store.reader().query_all(&counts).await?;
    rows.iter()
        .map(|row| {
            let key: i64 = row.try_get("", "taxpayer_id")?;
            let state: String = row.try_get("", "state")?;
            let state = RowRef {
                table: "deliveries",
                id: key,
            }
            .parse(&state)?;
            Ok(((EndpointKey(key), state), row.try_get("", "deliveries")?))
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
        let url = "https://hooks.example.com/".to_owned();
        Endpoint {
            is_active,
            ..Endpoint::new(taxpayer, TaxpayerId(taxpayer), url, Timestamp::UNIX_EPOCH)
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
            last_status: None,
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
                let (listed, total) = page(store, &filter, first).await.unwrap();
                assert_eq!(
                    (i64::try_from(total).unwrap(), listed[0].health),
                    (count, health)
                );
                assert_eq!((listed[0].pending, listed[0].dead), (0, 0));
            }
            let all = page(
                store,
                &EndpointFilter::default(),
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

    #[tokio::test]
    async fn failing_endpoints_are_grouped_and_found_by_host_and_cause() {
        let failed = |failure: &str, status| FailureStreak {
            last_failure: Some(failure.to_owned()),
            last_status: status,
            ..streak(None)
        };
        let all = [
            ("https://one.example/hook", failed("connect", None)),
            ("https://one.example:8443", failed("connect", None)),
            ("https://one.example/", failed("rejected", Some(500))),
            ("https://one.example.org/", failed("connect", None)),
        ];
        for test in stores().await {
            let store = &test.store;
            let tx = store.begin().await.unwrap();
            for (taxpayer, (url, streak)) in (1..).zip(&all) {
                let endpoint = Endpoint {
                    url: (*url).to_owned(),
                    ..endpoint(taxpayer, true)
                };
                webhooks::save(store, &tx, &endpoint, "whsec_x")
                    .await
                    .unwrap();
                webhooks::set_failure_streak(&tx, &endpoint, Some(streak))
                    .await
                    .unwrap();
            }
            webhooks::save(store, &tx, &endpoint(5, true), "whsec_x")
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let groups = group_failing_endpoints(store).await.unwrap();
            let largest = FailingEndpointGroup {
                host: "one.example".to_owned(),
                cause: "connect".to_owned(),
                endpoints: 2,
            };
            assert_eq!((&groups[0], groups.len()), (&largest, 3));
            let count = async |cause: Option<&str>, host: Option<&str>| {
                let filter = EndpointFilter {
                    cause: cause.map(str::to_owned),
                    host: host.map(str::to_owned),
                    ..EndpointFilter::default()
                };
                let first = Page {
                    number: 1,
                    per_page: 10,
                };
                page(store, &filter, first).await.unwrap().1
            };
            assert_eq!(count(Some("connect"), None).await, 3);
            assert_eq!(count(Some("connect"), Some("One.example")).await, 2);
            assert_eq!(count(Some("500"), Some("one.example")).await, 1);
            assert_eq!(count(Some("rejected"), None).await, 0, "it was answered");
            let troubled = EndpointFilter {
                is_troubled: true,
                ..EndpointFilter::default()
            };
            let first = Page {
                number: 1,
                per_page: 10,
            };
            assert_eq!(page(store, &troubled, first).await.unwrap().1, 4);
        }
    }
}
