//! The results of an endpoint's delivery attempts in the last 24 hours, by hour.

use database::StoreError;
use jiff::{SignedDuration, Timestamp};
use sea_orm::{ConnectionTrait, Statement, Value};

use crate::domain::kernel::ids::EndpointKey;
use crate::store::Store;
use crate::store::operations::work_facts::{ATTEMPTED_FOR, first_id_after};

/// The number of attempts within one hour, by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HourStats {
    pub delivered: u64,
    pub failed: u64,
    /// The average duration of an attempt in milliseconds; 0 if there was none.
    pub average_ms: u64,
}

const HOURS: usize = 24;
const DAY: SignedDuration = SignedDuration::from_hours(24);
const HOUR_MICROS: i64 = 3_600_000_000;
/// The maximum number of attempts that are read, those on the newest deliveries first, because a page waits for the
/// result.
pub const ATTEMPTS_COUNTED_MAX: i64 = 20_000;

/// The attempts of the last 24 hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayStats {
    /// The oldest hour is first.
    pub hours: Vec<HourStats>,
    /// True if the maximum number of attempts was read, so that further attempts may be missing from the counts.
    pub is_partial: bool,
}

/// Counts the attempts of the last 24 hours by hour. Their deliveries may be days old. They are found by their ids,
/// which begin with the time of creation, so attempts on deliveries older than `ATTEMPTED_FOR` do not count.
pub async fn count_last_day_by_hour(
    store: &Store,
    endpoint: EndpointKey,
    now: Timestamp,
) -> Result<DayStats, StoreError> {
    count_by_hour(store, endpoint, now, ATTEMPTS_COUNTED_MAX).await
}

async fn count_by_hour(
    store: &Store,
    endpoint: EndpointKey,
    now: Timestamp,
    counted_max: i64,
) -> Result<DayStats, StoreError> {
    let since = now.saturating_sub(DAY).unwrap_or(Timestamp::UNIX_EPOCH);
    // An attempt may have been made after `now` was read, or by a replica whose clock is ahead. Such an attempt counts
    // for the last hour. Attempts from before the 24 hours form one more row, hour -1, because they count towards the
    // maximum number that is read.
    let hour_sql = format!("(at - $2) / {HOUR_MICROS}");
    let sql = format!(
        "SELECT CASE WHEN at < $2 THEN -1 WHEN {hour_sql} < {HOURS} THEN {hour_sql} ELSE {HOURS} - 1 END AS hour, \
         COUNT(*) AS attempts, COUNT(failure) AS failed, \
         CAST(SUM(duration_ms) AS BIGINT) AS spent_ms FROM (SELECT at, failure, duration_ms FROM attempts \
         WHERE taxpayer_id = $1 AND delivery_id >= $3 ORDER BY delivery_id DESC LIMIT {counted_max}) AS newest \
         GROUP BY 1"
    );
    let values: [Value; 3] = [
        endpoint.0.into(),
        since.as_microsecond().into(),
        first_id_after(now, ATTEMPTED_FOR).into(),
    ];
    let statement = Statement::from_sql_and_values(store.backend(), sql, values);
    let mut hours = vec![HourStats::default(); HOURS];
    let mut read = 0;
    for row in store.reader().query_all_raw(statement).await? {
        let count = |name| Ok::<_, StoreError>(row.try_get::<i64>("", name)?.unsigned_abs());
        let hour: i64 = row.try_get("", "hour")?;
        let (attempts, failed) = (count("attempts")?, count("failed")?);
        read += attempts;
        if let Ok(index) = usize::try_from(hour) {
            hours[index.min(HOURS - 1)] = HourStats {
                delivered: attempts - failed,
                failed,
                average_ms: count("spent_ms")? / attempts.max(1),
            };
        }
    }
    Ok(DayStats {
        hours,
        is_partial: read >= counted_max.unsigned_abs(),
    })
}

#[cfg(test)]
mod tests {
    use timing::clock::{self, Clock as _, SystemClock};

    use super::*;
    use crate::domain::events::delivery::{
        Delivery, DeliveryAttempt, DeliveryState, PhaseDurations,
    };
    use crate::domain::events::event::EventKind;
    use crate::domain::kernel::crash::CrashHistory;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::store::testing::stores;
    use crate::store::webhooks::deliveries;

    #[tokio::test]
    async fn the_attempts_of_the_last_day_are_counted_by_hour_for_one_endpoint() {
        for test in stores().await {
            // The ids of the deliveries begin with the present time.
            let now = SystemClock.now();
            let endpoint = EndpointKey::for_added_endpoint(3);
            let outcome = |sequence: i64, endpoint, hours_ago, failure: Option<&str>| {
                let delivery = Delivery {
                    id: clock::new_id(),
                    taxpayer_id: TaxpayerId(7),
                    endpoint,
                    event_id: clock::new_id(),
                    sequence,
                    order_key: sequence.to_string(),
                    state: DeliveryState::Delivered,
                    attempts: 1,
                    attempts_before: 0,
                    next_attempt_at: None,
                    crash_history: CrashHistory::default(),
                };
                let attempt = DeliveryAttempt {
                    at: now - SignedDuration::from_hours(hours_ago) + SignedDuration::from_secs(9),
                    status: None,
                    failure: failure.map(str::to_owned),
                    duration_ms: 10 * sequence,
                    phases: PhaseDurations::default(),
                    response: String::new(),
                    headers: None,
                };
                (delivery, EventKind::InvoiceCreated, attempt)
            };
            // The delivery was created three days before its attempt.
            let mut late = outcome(7, endpoint, 1, None);
            let created = first_id_after(now, SignedDuration::from_hours(72));
            late.0.id = created.parse().unwrap();
            let outcomes = [
                late,
                outcome(1, endpoint, 1, None),
                outcome(2, endpoint, 1, Some("timed_out")),
                outcome(3, endpoint, 24, None),
                outcome(4, endpoint, 30, None),
                outcome(5, TaxpayerId(7).into(), 1, None),
                // Made after `now` was read.
                outcome(6, endpoint, 0, None),
            ];
            let tx = test.store.begin().await.unwrap();
            deliveries::record_attempts(&tx, &outcomes, now)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let day = count_last_day_by_hour(&test.store, endpoint, now)
                .await
                .unwrap();
            assert!(!day.is_partial);
            let hours = day.hours;
            let expected = |delivered, failed, average_ms| HourStats {
                delivered,
                failed,
                average_ms,
            };
            assert_eq!(
                (hours.len(), hours[23], hours[0]),
                (24, expected(3, 1, 40), expected(1, 0, 30))
            );
            let others = hours[1..23]
                .iter()
                .all(|hour| *hour == HourStats::default());
            assert!(others, "{hours:?}");
            // Six attempts on deliveries to the endpoint, one of them from before the day.
            for (counted_max, is_partial) in [(7, false), (6, true), (2, true)] {
                let day = count_by_hour(&test.store, endpoint, now, counted_max).await;
                assert_eq!(day.unwrap().is_partial, is_partial, "{counted_max}");
            }
        }
    }
}
