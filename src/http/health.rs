//! Whether the process is ready: the database answers and no actor has given up. An authority that is
//! dead is shown and changes nothing, since invoices are taken in all the same. Looks are kept for a moment,
//! so that probes cost next to nothing.

use std::fmt::Display;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::http::state::State;

const DATABASE_LOOK_LASTS: Duration = Duration::from_secs(3);
const AUTHORITY_LOOK_LASTS: Duration = Duration::from_secs(5);
/// What a probe waits for the database: longer than a turn at it may take.
const DATABASE_WAIT: Duration = Duration::from_secs(6);
/// What a probe waits for the authority.
const AUTHORITY_WAIT: Duration = Duration::from_secs(1);

/// What was seen last.
#[derive(Debug, Default)]
pub struct Health {
    database: Mutex<Option<Look>>,
    authority: Mutex<Option<Look>>,
}

#[derive(Debug, Clone)]
struct Look {
    at: Instant,
    fault: Option<String>,
}

/// The answer of a probe.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    status: &'static str,
    checks: Checks,
}

#[derive(Debug, Serialize)]
struct Checks {
    database: Check,
    actors: Check,
    authority: Check,
}

#[derive(Debug, Serialize)]
struct Check {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Check {
    fn of(fault: Option<String>, otherwise: &'static str) -> Self {
        Self { status: if fault.is_none() { "ok" } else { otherwise }, reason: fault }
    }
}

impl Report {
    pub(crate) async fn of(state: &State) -> Self {
        let database = kept(&state.health.database, DATABASE_LOOK_LASTS, database(state)).await;
        let authority = kept(&state.health.authority, AUTHORITY_LOOK_LASTS, authority(state)).await;
        Self::new(database, state.tree.readiness().err(), authority)
    }

    fn new(database: Option<String>, actors: Option<String>, authority: Option<String>) -> Self {
        let is_down = database.is_some() || actors.is_some();
        let status = match (is_down, authority.is_some()) {
            (true, _) => "down",
            (false, true) => "degraded",
            (false, false) => "ok",
        };
        let checks = Checks {
            database: Check::of(database, "down"),
            actors: Check::of(actors, "down"),
            authority: Check::of(authority, "degraded"),
        };
        Self { status, checks }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.status != "down"
    }
}

/// The last look, or a new one; of several probes at once one looks and the others wait for it.
async fn kept(
    last: &Mutex<Option<Look>>,
    lasts: Duration,
    look: impl Future<Output = Option<String>>,
) -> Option<String> {
    let mut last = last.lock().await;
    if let Some(look) = last.as_ref().filter(|look| look.at.elapsed() < lasts) {
        return look.fault.clone();
    }
    let fault = look.await;
    *last = Some(Look { at: Instant::now(), fault: fault.clone() });
    fault
}

/// The reason is for the log: who asks need not be an operator.
async fn database(state: &State) -> Option<String> {
    let error = within(DATABASE_WAIT, state.store.check()).await.err()?;
    tracing::warn!(error, "the database does not answer");
    Some("the database does not answer".to_owned())
}

async fn within<E: Display>(wait: Duration, look: impl Future<Output = Result<(), E>>) -> Result<(), String> {
    let seen = timeout(wait, look).await.map_err(|_| format!("nothing came within {wait:?}"))?;
    seen.map_err(|error| error.to_string())
}

async fn authority(state: &State) -> Option<String> {
    let is_alive = timeout(AUTHORITY_WAIT, state.authority.alive()).await.unwrap_or(false);
    (!is_alive).then(|| "the authority does not answer".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault() -> String {
        "broken".to_owned()
    }

    #[test]
    fn a_dead_authority_degrades_and_a_dead_database_is_down() {
        let status = |database, actors, authority| Report::new(database, actors, authority).status;
        assert_eq!(status(None, None, None), "ok");
        assert_eq!(status(None, None, Some(fault())), "degraded");
        assert_eq!(status(Some(fault()), None, None), "down");
        assert_eq!(status(None, Some(fault()), Some(fault())), "down");
        assert!(Report::new(None, None, Some(fault())).is_ready());
    }

    #[actix_web::test]
    async fn a_look_ends_though_what_it_looks_at_says_nothing() {
        let silent = within(Duration::from_millis(1), std::future::pending::<Result<(), String>>()).await;
        assert_eq!(silent.unwrap_err(), "nothing came within 1ms");
        assert_eq!(within(DATABASE_WAIT, async { Err(fault()) }).await, Err(fault()));
        assert_eq!(within(DATABASE_WAIT, async { Ok::<_, String>(()) }).await, Ok(()));
    }

    #[actix_web::test]
    async fn a_look_is_kept_for_a_moment() {
        let last = Mutex::default();
        assert_eq!(kept(&last, Duration::from_mins(1), async { Some(fault()) }).await, Some(fault()));
        assert_eq!(kept(&last, Duration::from_mins(1), async { None }).await, Some(fault()));
        assert_eq!(kept(&last, Duration::ZERO, async { None }).await, None);
    }
}
