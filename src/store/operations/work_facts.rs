//! Loads the facts about the work of all taxpayers that the conditions of incidents check. Each query reads a small
//! index, since it runs every few seconds.

use std::collections::{HashMap, HashSet};

use database::StoreError;
use database::column::RowRef;
use database::sql::dialect;
use jiff::{SignedDuration, Timestamp};
use sea_orm::{
    ConnectionTrait, EntityTrait, QueryFilter, QueryResult, QuerySelect, Statement, Value,
};
use url::Url;

use crate::domain::events::endpoint_health::{EndpointHealth, FailureStreak};
use crate::domain::incident::{
    CountAndOldest, PAUSED_NAMED_MAX, ParkedEndpoints, RefusalReason, TaxpayerRefusals, WorkFacts,
    reason_pattern,
};
use crate::domain::kernel::crash::CRASHES_MAX;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::lanes::LaneKind;
use crate::store::runs::QUARANTINED_CONDITION;
use crate::store::webhooks::endpoint_list::has_health;
use crate::store::webhooks::webhook_row;

/// Refusals that are older than this are left out of the facts.
const REFUSED_WITHIN: SignedDuration = SignedDuration::from_hours(1);
/// Only runs that were created within this time are searched for refusals. It is longer than `REFUSED_WITHIN`, because
/// a run may have waited for days, for example in an outage.
const REFUSABLE_FOR: SignedDuration = SignedDuration::from_hours(72);
/// The maximum number of groups of refusals, by taxpayer and wording, that are read.
const REFUSALS_MAX: u64 = 2_000;
/// Only runs that were created within this time show that a comparison with the authority's ledger is needed.
const COMPARED_WITHIN: SignedDuration = SignedDuration::from_hours(24);
/// Deliveries that became dead letters longer ago than this are left out of the facts.
const DEAD_WITHIN: SignedDuration = SignedDuration::from_hours(24);
/// Only deliveries that were created within this time are searched for dead letters and attempts. It is long: the
/// attempts of the default schedule take more than three days, and the endpoint may have been parked or disabled
/// meanwhile.
pub(in crate::store) const ATTEMPTED_FOR: SignedDuration = SignedDuration::from_hours(14 * 24);
/// The maximum number of taxpayers with refusals that are read. It is large, because the authority may change its rules
/// and refuse documents of very many taxpayers, and all of them are to be counted.
const TAXPAYERS_MAX: u64 = 2_000;
/// The maximum number of parked endpoints that are read. It is large, because a fault of our network may park all
/// endpoints, and all of them are to be counted.
const ENDPOINTS_MAX: u64 = 10_000;
/// The condition that a run sends a document: it does not only relay a payment.
const DOCUMENT_RUN_CONDITION: &str = "operation <> 'update-payment-status'";
/// The kinds of lanes whose due work a replica must take at once.
const URGENT_KINDS: [LaneKind; 2] = [LaneKind::Run, LaneKind::Endpoint];

/// The place that an error about a corrupt value names, because the rows of these queries sum up many stored rows.
const AT: RowRef<&str> = RowRef {
    table: "work",
    id: "counted",
};

/// Loads the facts from the tables of runs, lanes, endpoints and deliveries.
pub async fn load_facts(store: &Store, now: Timestamp) -> Result<WorkFacts, StoreError> {
    Ok(WorkFacts {
        paused: count_paused_runs(store).await?,
        paused_names: load_paused_names(store).await?,
        untaken: count_untaken_lanes(store).await?,
        taxpayer_refusals: taxpayer_refusals(store, now).await?,
        refusal_reasons: refusal_reasons(store, now).await?,
        oldest_recent_run_at: oldest_recent_run(store, now).await?,
        endpoints: parked_endpoints(store, now).await?,
        dead_letters: count_dead_letters(store, now).await?,
        ..WorkFacts::default()
    })
}

/// Reads the columns `count` and `since` of a row.
pub(super) fn to_count_and_oldest(row: &QueryResult) -> Result<CountAndOldest, StoreError> {
    let since: Option<i64> = row.try_get("", "since")?;
    let count: i64 = row.try_get("", "count")?;
    Ok(CountAndOldest {
        count: u64::try_from(count).unwrap_or(0),
        since: since.map(|micros| AT.moment(micros)).transpose()?,
    })
}

async fn query_count_and_oldest(
    store: &Store,
    sql: String,
    values: Vec<Value>,
) -> Result<CountAndOldest, StoreError> {
    let statement = Statement::from_sql_and_values(store.backend(), sql, values);
    let row = store.reader().query_one_raw(statement).await?;
    row.as_ref()
        .map_or_else(|| Ok(CountAndOldest::default()), to_count_and_oldest)
}

/// Counts the paused runs that are not in quarantine. `since` is the time when the first of them was paused.
async fn count_paused_runs(store: &Store) -> Result<CountAndOldest, StoreError> {
    let sql = format!(
        "SELECT COUNT(*) AS count, MIN(updated_at) AS since FROM pipeline_runs \
         WHERE state = 'paused' AND NOT ({QUARANTINED_CONDITION})"
    );
    query_count_and_oldest(store, sql, Vec::new()).await
}

/// Loads the names of the `PAUSED_NAMED_MAX` taxpayers that have been paused for longest.
async fn load_paused_names(store: &Store) -> Result<Vec<(TaxpayerId, String)>, StoreError> {
    let sql = format!(
        "SELECT t.id AS id, t.name AS name FROM taxpayer_pauses AS p INNER JOIN taxpayers AS t ON t.id = p.taxpayer_id \
         ORDER BY p.since, p.taxpayer_id LIMIT {PAUSED_NAMED_MAX}"
    );
    let statement = Statement::from_string(store.backend(), sql);
    let rows = store.reader().query_all_raw(statement).await?;
    rows.iter()
        .map(|row| Ok((TaxpayerId(row.try_get("", "id")?), row.try_get("", "name")?)))
        .collect()
}

/// Counts the due lanes that nobody holds, by kind, without the runs of paused taxpayers: nobody may take those.
/// `since` is the time when the first of them became due.
async fn count_untaken_lanes(
    store: &Store,
) -> Result<Vec<(&'static str, CountAndOldest)>, StoreError> {
    let now = dialect(store.backend()).clock();
    let mut untaken = Vec::new();
    for kind in URGENT_KINDS {
        let may_be_taken = match kind {
            LaneKind::Run => " AND taxpayer_id NOT IN (SELECT taxpayer_id FROM taxpayer_pauses)",
            _ => "",
        };
        let sql = format!(
            "SELECT COUNT(*) AS count, MIN(next_due_at) AS since FROM lanes WHERE kind = $1 AND next_due_at <= {now} \
             AND (lease_until IS NULL OR lease_until < {now}) AND crashes < {CRASHES_MAX}{may_be_taken}"
        );
        let values = vec![kind.as_str().into()];
        untaken.push((
            kind.as_str(),
            query_count_and_oldest(store, sql, values).await?,
        ));
    }
    Ok(untaken)
}

/// Returns up to `TAXPAYERS_MAX` taxpayers whose documents the authority refused within `REFUSED_WITHIN` before `now`.
/// The taxpayer with the most refusals is first, and only it has a reason: that of its last refusal.
async fn taxpayer_refusals(
    store: &Store,
    now: Timestamp,
) -> Result<Vec<TaxpayerRefusals>, StoreError> {
    let sql = format!(
        "SELECT taxpayer_id, COUNT(*) AS refusals, MAX(updated_at) AS last FROM pipeline_runs \
         WHERE state = 'refused' AND {DOCUMENT_RUN_CONDITION} AND id >= $1 AND updated_at >= $2 \
         GROUP BY taxpayer_id ORDER BY refusals DESC, taxpayer_id LIMIT {TAXPAYERS_MAX}"
    );
    let values = lowest_id_and_earliest_end(now, REFUSABLE_FOR, REFUSED_WITHIN);
    let statement = Statement::from_sql_and_values(store.backend(), sql, values);
    let mut refusals_by_taxpayer = Vec::new();
    for row in store.reader().query_all_raw(statement).await? {
        let refusals: i64 = row.try_get("", "refusals")?;
        refusals_by_taxpayer.push(TaxpayerRefusals {
            taxpayer: TaxpayerId(row.try_get("", "taxpayer_id")?),
            refusals: u64::try_from(refusals).unwrap_or(0),
            last: AT.moment(row.try_get("", "last")?)?,
            reason: String::new(),
        });
    }
    if let Some(worst) = refusals_by_taxpayer.first_mut() {
        worst.reason = last_refusal(store, worst.taxpayer).await?;
    }
    Ok(refusals_by_taxpayer)
}

/// Returns the reasons for which the authority refused documents within `REFUSED_WITHIN` before `now`. The reason that
/// concerns the most taxpayers is first.
async fn refusal_reasons(store: &Store, now: Timestamp) -> Result<Vec<RefusalReason>, StoreError> {
    let sql = format!(
        "SELECT taxpayer_id, COALESCE(last_error, '') AS reason, COUNT(*) AS documents, MIN(updated_at) AS first, \
         MAX(updated_at) AS last FROM pipeline_runs \
         WHERE state = 'refused' AND {DOCUMENT_RUN_CONDITION} AND id >= $1 AND updated_at >= $2 \
         GROUP BY taxpayer_id, last_error LIMIT {REFUSALS_MAX}"
    );
    let values = lowest_id_and_earliest_end(now, REFUSABLE_FOR, REFUSED_WITHIN);
    let statement = Statement::from_sql_and_values(store.backend(), sql, values);
    let mut reasons: HashMap<String, (RefusalReason, HashSet<i64>)> = HashMap::new();
    for row in store.reader().query_all_raw(statement).await? {
        let (sentence, documents): (String, i64) =
            (row.try_get("", "reason")?, row.try_get("", "documents")?);
        let since = AT.moment(row.try_get("", "first")?)?;
        let last = AT.moment(row.try_get("", "last")?)?;
        let pattern = reason_pattern(&sentence);
        let (reason, taxpayers) = reasons.entry(pattern.clone()).or_insert_with(|| {
            let new = RefusalReason {
                reason: pattern,
                taxpayers: 0,
                documents: 0,
                since,
                last,
            };
            (new, HashSet::new())
        });
        taxpayers.insert(row.try_get("", "taxpayer_id")?);
        reason.documents += u64::try_from(documents).unwrap_or(0);
        reason.since = reason.since.min(since);
        reason.last = reason.last.max(last);
    }
    let reasons = reasons
        .into_values()
        .map(|(reason, taxpayers)| RefusalReason {
            taxpayers: u64::try_from(taxpayers.len()).unwrap_or(u64::MAX),
            ..reason
        });
    let mut reasons: Vec<_> = reasons.collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.taxpayers));
    Ok(reasons)
}

/// Returns when the oldest of the runs was created that are no older than `COMPARED_WITHIN`; `None` if there are none.
async fn oldest_recent_run(store: &Store, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    let sql = "SELECT created_at FROM pipeline_runs WHERE id >= $1 ORDER BY id LIMIT 1";
    let values = [first_id_after(now, COMPARED_WITHIN).into()];
    let statement = Statement::from_sql_and_values(store.backend(), sql, values);
    let row = store.reader().query_one_raw(statement).await?;
    row.map(|row| AT.moment(row.try_get("", "created_at")?))
        .transpose()
}

/// The query for the last refusal of a document of the taxpayer `$1`. With `state = 'refused'`, PostgreSQL would expect
/// few rows, and read and sort all stored refused runs instead of using the index that has them in this order.
const LAST_REFUSAL: &str = "SELECT last_error FROM pipeline_runs WHERE taxpayer_id = $1 \
     AND state IN ('waiting', 'paused', 'refused') AND state NOT IN ('waiting', 'paused') \
     AND operation <> 'update-payment-status' ORDER BY updated_at DESC LIMIT 1";

/// Returns the authority's sentence in the last refusal of a document of the taxpayer.
async fn last_refusal(store: &Store, taxpayer: TaxpayerId) -> Result<String, StoreError> {
    let values = [taxpayer.0.into()];
    let statement = Statement::from_sql_and_values(store.backend(), LAST_REFUSAL, values);
    let row = store.reader().query_one_raw(statement).await?;
    let reason = row
        .map(|row| row.try_get::<Option<String>>("", "last_error"))
        .transpose()?;
    Ok(reason.flatten().unwrap_or_default())
}

/// Returns the parked endpoints, grouped by their last failure, the largest group first.
async fn parked_endpoints(
    store: &Store,
    now: Timestamp,
) -> Result<Vec<ParkedEndpoints>, StoreError> {
    let rows: Vec<(String, Option<String>)> = webhook_row::Entity::find()
        .select_only()
        .column(webhook_row::Column::Url)
        .column(webhook_row::Column::FailureStreak)
        .filter(has_health(EndpointHealth::Parked))
        .limit(ENDPOINTS_MAX)
        .into_tuple()
        .all(store.reader())
        .await?;
    let mut groups: HashMap<String, (ParkedEndpoints, HashMap<String, u64>)> = HashMap::new();
    for (url, streak) in rows {
        let Some(streak) = streak else {
            continue;
        };
        let streak: FailureStreak = AT.parse_json(&streak)?;
        let failure = streak.last_failure.unwrap_or_else(|| "unknown".to_owned());
        let (group, hosts) = groups.entry(failure.clone()).or_insert_with(|| {
            let empty = ParkedEndpoints {
                failure,
                ..ParkedEndpoints::default()
            };
            (empty, HashMap::new())
        });
        group.endpoints += 1;
        let known = group.since.into_iter();
        group.since = known.chain([streak.since]).min();
        // A time that has passed says nothing: that endpoint has nothing to send.
        let probes = [group.next_probe_at, streak.parked_until]
            .into_iter()
            .flatten();
        group.next_probe_at = probes.filter(|at| *at > now).min();
        if let Some(status) = streak.last_status
            && let Err(place) = group.statuses.binary_search(&status)
        {
            group.statuses.insert(place, status);
        }
        if let Some(host) = Url::parse(&url)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned))
        {
            *hosts.entry(host).or_default() += 1;
        }
    }
    let mut groups: Vec<_> = groups
        .into_values()
        .map(|(group, hosts)| ParkedEndpoints {
            host: hosts.into_iter().max_by_key(|(_, endpoints)| *endpoints),
            ..group
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.endpoints));
    Ok(groups)
}

/// Counts the deliveries that became dead letters within `DEAD_WITHIN` before `now` and are not in quarantine. `since`
/// is the time when the first of them became one.
async fn count_dead_letters(store: &Store, now: Timestamp) -> Result<CountAndOldest, StoreError> {
    let sql = format!(
        "SELECT COUNT(*) AS count, MIN(updated_at) AS since FROM deliveries \
         WHERE state = 'dead' AND id >= $1 AND updated_at >= $2 AND crashes < {CRASHES_MAX}"
    );
    let values = lowest_id_and_earliest_end(now, ATTEMPTED_FOR, DEAD_WITHIN);
    query_count_and_oldest(store, sql, values.into()).await
}

/// Returns the parameters of a query for work that was created within `created` and has ended within `ended` before
/// `now`. These are the lowest id, which an index finds because ids begin with the time of creation, and the earliest
/// time of the end in microseconds.
fn lowest_id_and_earliest_end(
    now: Timestamp,
    created: SignedDuration,
    ended: SignedDuration,
) -> [Value; 2] {
    let ended_since = now.saturating_sub(ended).unwrap_or(Timestamp::UNIX_EPOCH);
    [
        first_id_after(now, created).into(),
        ended_since.as_microsecond().into(),
    ]
}

/// Returns an id that is less than all ids drawn since `ago` before `now`: ids begin with the time at which they were
/// drawn (RFC 9562, UUID version 7).
pub(in crate::store) fn first_id_after(now: Timestamp, ago: SignedDuration) -> String {
    let then = now.saturating_sub(ago).unwrap_or(Timestamp::UNIX_EPOCH);
    let millis = u64::try_from(then.as_millisecond()).unwrap_or(0) & 0xffff_ffff_ffff;
    format!(
        "{:08x}-{:04x}-7000-8000-000000000000",
        millis >> 16,
        millis & 0xffff
    )
}

#[cfg(test)]
mod tests {
    use sea_orm::DbBackend;
    use uuid::Uuid;

    use super::*;
    use crate::domain::events::delivery::{
        Delivery, DeliveryAttempt, DeliveryState, PhaseDurations,
    };
    use crate::domain::events::endpoint::Endpoint;
    use crate::domain::events::event::EventKind;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::kernel::audit::{AuditAction, AuditEntry, OperatorRequest};
    use crate::domain::kernel::crash::CrashHistory;
    use crate::domain::pipeline::{Operation, Run, RunPhase, RunRequest, RunState};
    use crate::domain::taxpayer_pause::TaxpayerPause;
    use crate::store::lanes::{self, QueuedLane};
    use crate::store::operations::taxpayer_pauses;
    use crate::store::runs;
    use crate::store::testing::{query_plan, stores};
    use crate::store::webhooks::{self, deliveries};

    const REASON: &str = "the TIN is not known";

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn minutes_ago(minutes: i64) -> Timestamp {
        now() - SignedDuration::from_mins(minutes)
    }

    /// Returns the id of work that was created so many minutes ago.
    fn id_of_minute(minutes: i64) -> Uuid {
        let id = first_id_after(now(), SignedDuration::from_mins(minutes));
        id.parse().unwrap()
    }

    fn refused_run(number: i64, created: i64, refused: i64) -> Run {
        let irn = Irn::parse(&format!("INV{number:03}-94AD90FB-20261121")).unwrap();
        let request = RunRequest::sample(irn.as_str(), Operation::Submit);
        let taxpayer = TaxpayerId(7);
        let opened_at = minutes_ago(created);
        let run = Run::new(id_of_minute(created), taxpayer, request, opened_at);
        Run {
            phase: RunPhase::sample(RunState::Refused),
            last_error: Some(REASON.to_owned()),
            updated_at: minutes_ago(refused),
            ..run
        }
    }

    /// Returns a relayed payment that was refused just now. It counts nowhere.
    fn refused_payment() -> Run {
        let request = RunRequest::sample("INV900-94AD90FB-20261121", Operation::Payment);
        let run = Run::new(id_of_minute(30), TaxpayerId(7), request, minutes_ago(30));
        Run {
            phase: RunPhase::sample(RunState::Refused),
            last_error: Some("the invoice was rejected".to_owned()),
            updated_at: now(),
            ..run
        }
    }

    #[tokio::test]
    async fn refusals_within_an_hour_count_however_long_their_runs_have_waited() {
        // The minutes since the run was created, and since it was refused.
        let runs = [(50, 10), (200, 59), (2_000, 1), (201, 61), (9_000, 5)];
        let runs: Vec<_> = (1..)
            .zip(runs)
            .map(|(number, (created, refused))| refused_run(number, created, refused))
            .chain([refused_payment()])
            .collect();
        for test in stores().await {
            let tx = test.store.begin().await.unwrap();
            runs::save(&tx, &runs.iter().collect::<Vec<_>>())
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let facts = load_facts(&test.store, now()).await.unwrap();
            let refused = TaxpayerRefusals {
                taxpayer: TaxpayerId(7),
                refusals: 3,
                last: minutes_ago(1),
                reason: REASON.to_owned(),
            };
            assert_eq!(facts.taxpayer_refusals, [refused]);
            let reason = RefusalReason {
                reason: REASON.to_owned(),
                taxpayers: 1,
                documents: 3,
                since: minutes_ago(59),
                last: minutes_ago(1),
            };
            assert_eq!(facts.refusal_reasons, [reason]);
        }
    }

    #[tokio::test]
    async fn all_taxpayers_with_refusals_are_counted() {
        let runs: Vec<_> = (1..=101)
            .map(|number| Run {
                taxpayer_id: TaxpayerId(number),
                ..refused_run(number, 100 + number, 10)
            })
            .collect();
        for test in stores().await {
            let tx = test.store.begin().await.unwrap();
            runs::save(&tx, &runs.iter().collect::<Vec<_>>())
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let facts = load_facts(&test.store, now()).await.unwrap();
            assert_eq!(facts.taxpayer_refusals.len(), runs.len());
            let told = facts
                .taxpayer_refusals
                .iter()
                .filter(|one| !one.reason.is_empty());
            assert_eq!(told.count(), 1, "the first one only");
        }
    }

    #[tokio::test]
    async fn the_last_refusal_is_found_without_a_look_at_other_taxpayers() {
        for test in stores().await {
            let plan = query_plan(&test.store, LAST_REFUSAL, [7_i64.into()]).await;
            let plan = plan.join("\n");
            // PostgreSQL goes by its statistics, but it cannot go by this state alone.
            if test.store.backend() == DbBackend::Postgres {
                assert!(!plan.contains("(state)::text = 'refused'"), "{plan}");
            } else {
                let index = "pipeline_runs_stopped (taxpayer_id=?)";
                assert!(plan.contains(index), "{plan}");
            }
        }
    }

    #[tokio::test]
    async fn all_endpoints_that_a_fault_of_our_network_parks_are_counted() {
        let streak = FailureStreak {
            since: now(),
            last: now(),
            failures: 5,
            probes: 1,
            parked_until: Some(now()),
            last_failure: Some("connect".to_owned()),
            last_status: None,
        };
        // The probe of the last endpoint is still to come, and it has had an answer.
        let later = now() + SignedDuration::from_secs(60);
        let answering = FailureStreak {
            parked_until: Some(later),
            last_status: Some(503),
            ..streak.clone()
        };
        for test in stores().await {
            let tx = test.store.begin().await.unwrap();
            for taxpayer in 1..=1_001 {
                let streak = if taxpayer == 1_001 {
                    &answering
                } else {
                    &streak
                };
                let url = "https://hooks.example.com/".to_owned();
                let endpoint = Endpoint {
                    is_active: true,
                    ..Endpoint::new(taxpayer, TaxpayerId(taxpayer), url, now())
                };
                webhooks::save(&test.store, &tx, &endpoint, "whsec_x")
                    .await
                    .unwrap();
                webhooks::set_failure_streak(&tx, &endpoint, Some(streak))
                    .await
                    .unwrap();
            }
            tx.commit().await.unwrap();
            let facts = load_facts(&test.store, now()).await.unwrap();
            let parked = ParkedEndpoints {
                failure: "connect".to_owned(),
                statuses: vec![503],
                next_probe_at: Some(later),
                endpoints: 1_001,
                since: Some(now()),
                host: Some(("hooks.example.com".to_owned(), 1_001)),
            };
            assert_eq!(facts.endpoints, [parked]);
        }
    }

    #[tokio::test]
    async fn due_runs_of_a_paused_taxpayer_do_not_count_as_untaken() {
        for test in stores().await {
            let store = &test.store;
            let tx = store.begin().await.unwrap();
            for kind in URGENT_KINDS {
                let due = [7, 7, 8].into_iter().zip(1..);
                let due = due.map(|(taxpayer_id, number): (i64, i64)| QueuedLane {
                    key: number.to_string(),
                    taxpayer_id,
                    deadline: 0,
                    next_step: None,
                });
                let due: Vec<_> = due.collect();
                lanes::enqueue(&tx, kind, &due).await.unwrap();
            }
            tx.commit().await.unwrap();
            let by = OperatorRequest {
                operator_id: 1,
                reason: None,
            };
            let taxpayer_id = TaxpayerId(7);
            let pause = TaxpayerPause {
                taxpayer_id,
                since: now(),
                reason: None,
            };
            let counts = async || {
                let untaken = load_facts(store, now()).await.unwrap().untaken;
                let counts = untaken.iter().map(|(kind, group)| (*kind, group.count));
                counts.collect::<Vec<_>>()
            };
            assert_eq!(counts().await, [("run", 3), ("endpoint", 3)]);
            let action = AuditAction::PauseTaxpayer;
            let entry = AuditEntry::for_operator_request(&by, action, &taxpayer_id, now());
            taxpayer_pauses::pause(store, pause, entry).await.unwrap();
            assert_eq!(counts().await, [("run", 1), ("endpoint", 3)]);
            let action = AuditAction::ResumeTaxpayer;
            let entry = AuditEntry::for_operator_request(&by, action, &taxpayer_id, now());
            taxpayer_pauses::resume(store, taxpayer_id, entry)
                .await
                .unwrap();
            assert_eq!(counts().await, [("run", 3), ("endpoint", 3)]);
        }
    }

    fn dead_letter(sequence: i64, created: i64) -> (Delivery, EventKind, DeliveryAttempt) {
        let delivery = Delivery {
            id: id_of_minute(created),
            taxpayer_id: TaxpayerId(7),
            endpoint: TaxpayerId(7).into(),
            event_id: id_of_minute(created),
            sequence,
            order_key: sequence.to_string(),
            state: DeliveryState::Dead,
            attempts: 10,
            attempts_before: 0,
            next_attempt_at: None,
            crash_history: CrashHistory::default(),
        };
        let attempt = DeliveryAttempt {
            at: now(),
            status: Some(500),
            failure: Some("status".to_owned()),
            duration_ms: 1,
            phases: PhaseDurations::default(),
            response: String::new(),
            headers: None,
        };
        (delivery, EventKind::InvoiceCreated, attempt)
    }

    #[tokio::test]
    async fn dead_letters_within_a_day_count_however_long_their_attempts_took() {
        let day = 24 * 60;
        // The minutes since the delivery was created, and since it became a dead letter.
        let letters = [
            (60, 30),
            (76 * 60, 5),
            (13 * day, day - 1),
            (77 * 60, day + 1),
        ];
        for test in stores().await {
            for (sequence, (created, ended)) in (1..).zip(letters) {
                let outcome = dead_letter(sequence, created);
                let tx = test.store.begin().await.unwrap();
                deliveries::record_attempts(&tx, &[outcome], minutes_ago(ended))
                    .await
                    .unwrap();
                tx.commit().await.unwrap();
            }
            let facts = load_facts(&test.store, now()).await.unwrap();
            let expected = CountAndOldest {
                count: 3,
                since: Some(minutes_ago(day - 1)),
            };
            assert_eq!(facts.dead_letters, expected);
        }
    }
}
