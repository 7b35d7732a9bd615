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

use crate::domain::events::endpoint_health::EndpointHealth;
use crate::domain::incident::{
    CountAndOldest, ParkedEndpoints, RefusalReason, RefusedTaxpayer, WorkFacts, reason_pattern,
};
use crate::domain::kernel::crash::CRASHES_MAX;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::lanes::LaneKind;
use crate::store::runs::QUARANTINED_CONDITION;
use crate::store::webhooks::endpoint_list::has_health;
use crate::store::webhooks::failure_streak;
use crate::store::webhooks::webhook_row;

/// Refusals within this time count.
const REFUSED_WITHIN: SignedDuration = SignedDuration::from_hours(1);
/// The maximum number of groups of refusals, by taxpayer and wording, that are read.
const REFUSALS_MAX: u64 = 2_000;
/// Runs within this time count for the comparison with the authority's ledger.
const COMPARED_WITHIN: SignedDuration = SignedDuration::from_hours(24);
/// Dead letters within this time count.
const DEAD_WITHIN: SignedDuration = SignedDuration::from_hours(24);
/// The maximum number of taxpayers that are named.
const TAXPAYERS_MAX: u64 = 20;
/// The maximum number of parked endpoints that are read.
const ENDPOINTS_MAX: u64 = 1_000;
/// The kinds of lanes whose due work a replica must take at once.
const URGENT_KINDS: [LaneKind; 2] = [LaneKind::Run, LaneKind::Endpoint];

const AT: RowRef<&str> = RowRef {
    table: "work",
    id: "counted",
};

/// Loads the facts from the tables of runs, lanes, endpoints and deliveries.
pub async fn load_facts(store: &Store, now: Timestamp) -> Result<WorkFacts, StoreError> {
    Ok(WorkFacts {
        paused: count_paused_runs(store).await?,
        untaken: count_untaken_lanes(store).await?,
        refused: refused_taxpayers(store, now).await?,
        refusal_reasons: refusal_reasons(store, now).await?,
        oldest_recent_run_at: oldest_recent_run(store, now).await?,
        endpoints: parked_endpoints(store).await?,
        dead_letters: count_dead_letters(store, now).await?,
        ..WorkFacts::default()
    })
}

/// Reads the columns `count` and `since` of a row.
pub(super) fn group_from_row(row: &QueryResult) -> Result<CountAndOldest, StoreError> {
    let since: Option<i64> = row.try_get("", "since")?;
    let count: i64 = row.try_get("", "count")?;
    Ok(CountAndOldest {
        count: u64::try_from(count).unwrap_or(0),
        since: since.map(|micros| AT.moment(micros)).transpose()?,
    })
}

async fn query_group(
    store: &Store,
    sql: String,
    values: Vec<Value>,
) -> Result<CountAndOldest, StoreError> {
    let statement = Statement::from_sql_and_values(store.backend(), sql, values);
    let row = store.reader().query_one_raw(statement).await?;
    row.as_ref()
        .map_or_else(|| Ok(CountAndOldest::default()), group_from_row)
}

/// Counts the paused runs that are not in quarantine. `since` is the time when the first of them was paused.
async fn count_paused_runs(store: &Store) -> Result<CountAndOldest, StoreError> {
    let sql = format!(
        "SELECT COUNT(*) AS count, MIN(updated_at) AS since FROM pipeline_runs \
         WHERE state = 'paused' AND NOT ({QUARANTINED_CONDITION})"
    );
    query_group(store, sql, Vec::new()).await
}

/// Counts the due lanes that nobody holds, by kind. `since` is the time when the first of them became due.
async fn count_untaken_lanes(
    store: &Store,
) -> Result<Vec<(&'static str, CountAndOldest)>, StoreError> {
    let now = dialect(store.backend()).clock();
    let mut untaken = Vec::new();
    for kind in URGENT_KINDS {
        let sql = format!(
            "SELECT COUNT(*) AS count, MIN(next_due_at) AS since FROM lanes WHERE kind = $1 AND next_due_at <= {now} \
             AND (lease_until IS NULL OR lease_until < {now}) AND crashes < {CRASHES_MAX}"
        );
        let values = vec![kind.as_str().into()];
        untaken.push((kind.as_str(), query_group(store, sql, values).await?));
    }
    Ok(untaken)
}

/// Returns the taxpayers whose documents were refused, most refusals first, `TAXPAYERS_MAX` at most.
async fn refused_taxpayers(
    store: &Store,
    now: Timestamp,
) -> Result<Vec<RefusedTaxpayer>, StoreError> {
    let sql = format!(
        "SELECT taxpayer_id, COUNT(*) AS refusals, MAX(updated_at) AS last FROM pipeline_runs \
         WHERE state = 'refused' AND id >= $1 GROUP BY taxpayer_id ORDER BY refusals DESC, taxpayer_id LIMIT {TAXPAYERS_MAX}"
    );
    let values = [first_id_after(now, REFUSED_WITHIN).into()];
    let statement = Statement::from_sql_and_values(store.backend(), sql, values);
    let mut refused = Vec::new();
    for row in store.reader().query_all_raw(statement).await? {
        let refusals: i64 = row.try_get("", "refusals")?;
        refused.push(RefusedTaxpayer {
            taxpayer: TaxpayerId(row.try_get("", "taxpayer_id")?),
            refusals: u64::try_from(refusals).unwrap_or(0),
            last: AT.moment(row.try_get("", "last")?)?,
            reason: String::new(),
        });
    }
    if let Some(worst) = refused.first_mut() {
        worst.reason = last_refusal(store, worst.taxpayer).await?;
    }
    Ok(refused)
}

/// Returns the reasons for which documents were refused, those of most taxpayers first.
async fn refusal_reasons(store: &Store, now: Timestamp) -> Result<Vec<RefusalReason>, StoreError> {
    let sql = format!(
        "SELECT taxpayer_id, COALESCE(last_error, '') AS reason, COUNT(*) AS documents, MIN(updated_at) AS first, \
         MAX(updated_at) AS last FROM pipeline_runs WHERE state = 'refused' AND id >= $1 \
         GROUP BY taxpayer_id, last_error LIMIT {REFUSALS_MAX}"
    );
    let values = [first_id_after(now, REFUSED_WITHIN).into()];
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

/// Returns the time at which the oldest run within `COMPARED_WITHIN` was created.
async fn oldest_recent_run(store: &Store, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    let sql = "SELECT created_at FROM pipeline_runs WHERE id >= $1 ORDER BY id LIMIT 1";
    let values = [first_id_after(now, COMPARED_WITHIN).into()];
    let statement = Statement::from_sql_and_values(store.backend(), sql, values);
    let row = store.reader().query_one_raw(statement).await?;
    row.map(|row| AT.moment(row.try_get("", "created_at")?))
        .transpose()
}

/// Returns the authority's sentence in the last refusal of a document of the taxpayer.
async fn last_refusal(store: &Store, taxpayer: TaxpayerId) -> Result<String, StoreError> {
    let sql = "SELECT last_error FROM pipeline_runs WHERE taxpayer_id = $1 AND state IN ('waiting', 'paused', 'refused') \
               AND state = 'refused' ORDER BY updated_at DESC LIMIT 1";
    let statement = Statement::from_sql_and_values(store.backend(), sql, [taxpayer.0.into()]);
    let row = store.reader().query_one_raw(statement).await?;
    let reason = row
        .map(|row| row.try_get::<Option<String>>("", "last_error"))
        .transpose()?;
    Ok(reason.flatten().unwrap_or_default())
}

/// Returns the parked endpoints, grouped by their last failure, the largest group first.
async fn parked_endpoints(store: &Store) -> Result<Vec<ParkedEndpoints>, StoreError> {
    let rows = webhook_row::Entity::find()
        .filter(has_health(EndpointHealth::Parked))
        .limit(ENDPOINTS_MAX)
        .all(store.reader())
        .await?;
    let mut groups: HashMap<String, (ParkedEndpoints, HashMap<String, u64>)> = HashMap::new();
    for row in rows {
        let Some(streak) = failure_streak(&row)? else {
            continue;
        };
        let failure = streak.last_failure.unwrap_or_else(|| "unknown".to_owned());
        let (group, hosts) = groups.entry(failure.clone()).or_insert_with(|| {
            let empty = ParkedEndpoints {
                failure,
                endpoints: 0,
                since: None,
                host: None,
            };
            (empty, HashMap::new())
        });
        group.endpoints += 1;
        let known = group.since.into_iter();
        group.since = known.chain([streak.since]).min();
        if let Some(host) = Url::parse(&row.url)
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

/// Counts the deliveries within `DEAD_WITHIN` that are dead letters and not in quarantine.
async fn count_dead_letters(store: &Store, now: Timestamp) -> Result<CountAndOldest, StoreError> {
    let sql = format!(
        "SELECT COUNT(*) AS count, MIN(updated_at) AS since FROM deliveries \
         WHERE state = 'dead' AND id >= $1 AND crashes < {CRASHES_MAX}"
    );
    query_group(store, sql, vec![first_id_after(now, DEAD_WITHIN).into()]).await
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
