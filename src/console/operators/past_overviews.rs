//! The overviews of the last hour, so that an operator who comes late can look back. They are kept in the memory of
//! this process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::web;
use jiff::{SignedDuration, Timestamp};
use tokio::time::sleep;

use crate::console::operators::overview;
use crate::http::state::ApiState;

/// The interval at which an overview is stored, and the time for which it is kept: 180 overviews of some 20 kB each.
const KEEP_EVERY: Duration = Duration::from_secs(20);
const KEPT_FOR: SignedDuration = SignedDuration::from_hours(1);

/// The overviews of the last hour, the oldest first.
#[derive(Debug, Default)]
pub struct PastOverviews(Mutex<VecDeque<PastOverview>>);

#[derive(Debug, Clone)]
pub(crate) struct PastOverview {
    pub(crate) rendered_at: Timestamp,
    pub(crate) html: Arc<str>,
}

/// A past overview with the times of the overviews just before and just after it.
#[derive(Debug)]
pub(crate) struct FoundOverview {
    pub(crate) overview: PastOverview,
    pub(crate) earlier: Option<Timestamp>,
    pub(crate) later: Option<Timestamp>,
}

/// Stores the overview every 20 seconds until the process stops.
pub async fn keep_overviews(state: web::Data<ApiState>, past: web::Data<PastOverviews>) {
    loop {
        tokio::select! {
            () = sleep(KEEP_EVERY) => {}
            () = state.stopping.wait_for_stop() => return,
        }
        match overview::render(&state).await {
            Ok(html) => past.keep(state.now(), html.into()),
            Err(error) => {
                tracing::warn!(code = error.code.as_str(), "the overview could not be kept");
            }
        }
    }
}

impl PastOverviews {
    fn keep(&self, at: Timestamp, html: Arc<str>) {
        let mut overviews = self.lock();
        // Overviews with times in the future, from before the clock was set back, are dropped, too. They would stay
        // for ever.
        overviews.retain(|past| {
            past.rendered_at < at && at.duration_since(past.rendered_at) <= KEPT_FOR
        });
        overviews.push_back(PastOverview {
            rendered_at: at,
            html,
        });
    }

    /// Returns the last overview from this time or before. If there is none, returns the oldest one.
    pub(crate) fn find(&self, at: Timestamp) -> Option<FoundOverview> {
        let overviews = self.lock();
        let index = overviews
            .iter()
            .rposition(|past| past.rendered_at <= at)
            .unwrap_or_default();
        let overview = overviews.get(index)?.clone();
        Some(FoundOverview {
            overview,
            earlier: index
                .checked_sub(1)
                .and_then(|index| overviews.get(index))
                .map(|past| past.rendered_at),
            later: overviews.get(index + 1).map(|past| past.rendered_at),
        })
    }

    /// Returns the time of the first overview of each minute, newest first.
    pub(crate) fn first_time_in_each_minute(&self) -> Vec<Timestamp> {
        let overviews = self.lock();
        let mut times: Vec<_> = overviews.iter().map(|past| past.rendered_at).collect();
        times.dedup_by_key(|at| at.as_second().div_euclid(60));
        times.reverse();
        times
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<PastOverview>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_overview_of_a_time_is_the_last_one_that_was_kept_before() {
        let past = PastOverviews::default();
        assert!(past.find(at(0)).is_none());
        for second in [60, 80, 100, 120, 140] {
            past.keep(at(second), second.to_string().into());
        }
        for (time, found, earlier, later) in [
            (0, 60, None, Some(80)),
            (80, 80, Some(60), Some(100)),
            (99, 80, Some(60), Some(100)),
            (999, 140, Some(120), None),
        ] {
            let result = past.find(at(time)).unwrap();
            assert_eq!(*result.overview.html, *found.to_string(), "at {time}");
            assert_eq!(result.earlier, earlier.map(at), "at {time}");
            assert_eq!(result.later, later.map(at), "at {time}");
        }
        assert_eq!(past.first_time_in_each_minute(), [at(120), at(60)]);
    }

    #[test]
    fn an_hour_is_kept_and_nothing_from_the_future() {
        let past = PastOverviews::default();
        past.keep(at(0), "first".into());
        past.keep(at(3_600), "second".into());
        assert_eq!(past.first_time_in_each_minute().len(), 2);
        past.keep(at(3_601), "third".into());
        assert_eq!(
            past.first_time_in_each_minute(),
            [at(3_600)],
            "the first is too old"
        );
        past.keep(at(10), "after the clock was set back".into());
        assert_eq!(past.first_time_in_each_minute(), [at(10)]);
    }
}
