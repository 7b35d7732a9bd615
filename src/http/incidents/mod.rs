//! The incidents that this process sees now. They are found once a second from what the process knows, so that pages,
//! answers and metrics show them even when the database is silent.
//!
//! | Concept | File |
//! |---|---|
//! | the situation, from the parts of the process | `facts` |
//! | the growth of counters | `samples` |
//! | what the process remembers, and the last report | `log` |
//! | work that a timer repeats | `schedules` |

mod facts;
pub(crate) mod log;
mod samples;
pub(crate) mod schedules;

use std::sync::Arc;
use std::time::Duration;

use actix_web::web;
use tokio::time::{sleep, timeout};

use crate::domain::incident::{Incident, with_told_incidents};
use crate::http::health::HealthReport;
use crate::http::incidents::log::IncidentReport;
use crate::http::state::ApiState;

/// The kind of incident that the refused key of another replica may cause, too.
const REFUSED_KEY: &str = "authority-refuses-key";
/// The kinds of incidents that say why the authority cannot be used.
const AUTHORITY_FAILURES: [&str; 4] = [
    REFUSED_KEY,
    "authority-tls",
    "authority-out",
    "authority-slow",
];
/// The interval at which incidents are looked for.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// The longest wait for fresh counts of the database. After that the last counts are used.
const COUNTS_WAIT_MAX: Duration = Duration::from_millis(500);

/// Watches for incidents until the process stops.
pub async fn watch_incidents(state: web::Data<ApiState>) {
    let count = async {
        loop {
            state
                .database_counts
                .current_counts(&state.store, state.now())
                .await;
            sleep(WATCH_INTERVAL).await;
        }
    };
    let probe = async {
        loop {
            readiness(&state).await;
            sleep(WATCH_INTERVAL).await;
        }
    };
    let find = async {
        loop {
            facts::take_sample(&state);
            find_incidents(&state);
            sleep(WATCH_INTERVAL).await;
        }
    };
    tokio::select! {
        () = count => {}
        () = probe => {}
        () = find => {}
        () = state.stopping.wait_for_stop() => {}
    }
}

/// Returns the readiness of this process. Current incidents give the reason why the authority cannot be used. Checks
/// nothing if the process will stop.
pub(crate) async fn readiness(state: &ApiState) -> HealthReport {
    if state.stopping.is_announced() {
        return HealthReport::for_stopping_process();
    }
    let report = find_incidents(state);
    // The key of another replica says nothing about this one.
    let has_own_key = state.incidents.refused_key().is_none();
    let mut kinds = report.incidents.iter().map(|incident| incident.kind);
    let authority = kinds.find(|kind| {
        AUTHORITY_FAILURES.contains(&kind.name) && !(has_own_key && kind.name == REFUSED_KEY)
    });
    state
        .health
        .make_report(
            &state.store,
            &state.tree,
            &state.authority,
            authority.map(|kind| kind.title),
        )
        .await
}

/// Returns the current incidents. Reads the counts of the database first, if it answers within `COUNTS_WAIT_MAX`.
pub(crate) async fn current_report(state: &ApiState) -> Arc<IncidentReport> {
    let counts = state
        .database_counts
        .current_counts(&state.store, state.now());
    drop(timeout(COUNTS_WAIT_MAX, Box::pin(counts)).await);
    find_incidents(state)
}

/// Returns the incidents that operators see: those of this process, and those that the other replicas report about
/// themselves. Alerts are made from the incidents of each process itself.
pub(crate) fn incidents_for_operators(state: &ApiState, own: &IncidentReport) -> Vec<Incident> {
    with_told_incidents(
        &own.incidents,
        &state.replicas.last_list(),
        &state.replicas.identity().id,
    )
}

fn find_incidents(state: &ApiState) -> Arc<IncidentReport> {
    let counts = state.database_counts.last_counts();
    let counted_at = counts.map(|counts| counts.counted_at);
    state
        .incidents
        .record_situation(&facts::gather_situation(state), counted_at)
}
