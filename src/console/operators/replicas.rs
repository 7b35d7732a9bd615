//! The replicas, live: which process is ready, degraded, stopping or missing, and its load. An operator can remove a
//! missing replica from the list.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use jiff::Timestamp;

use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::live::LiveParts;
use crate::console::operators::overview::per_second;
use crate::console::operators::reason::ReasonForm;
use crate::console::page::{Answer, Form, go_to, show};
use crate::console::session::operators::{Operator, Viewer};
use crate::domain::breaker::BreakerCondition;
use crate::domain::kernel::audit::{AuditAction, AuditEntry};
use crate::domain::replica::{Replica, ReplicaList, ReplicaState};
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::operations::replicas;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console/replicas").page(show_replicas),
        path("/console/live/replicas").page(live_replicas),
        path("/console/replicas/{id}/forget").form(forget_replica),
    ]
}

#[derive(Template)]
#[template(path = "operators/replicas.html")]
struct ReplicasPage {
    frame: Frame,
    live_html: String,
    /// The replicas that an operator may forget.
    missing: Vec<Replica>,
}

#[derive(Template)]
#[template(path = "operators/replicas_live.html")]
struct ReplicasPart {
    answered_by: String,
    read_at: Option<Timestamp>,
    lines: Vec<ReplicaLine>,
}

struct ReplicaLine {
    replica: Replica,
    badge: Badge,
    /// The reason why the replica is degraded or not ready, or an explanation of the states stopping and missing. Empty
    /// for a replica that is ready.
    note: String,
    /// The microseconds since the replica's last sign of life, and since its start.
    silent_us: u64,
    running_us: u64,
    memory: String,
    clock: String,
    requests_per_s: String,
    open_breakers: usize,
}

impl From<ReplicaState> for Badge {
    fn from(state: ReplicaState) -> Self {
        let (class, text) = match state {
            ReplicaState::Ready => ("ok", "Ready"),
            ReplicaState::Degraded => ("warn", "Degraded"),
            ReplicaState::NotReady => ("bad", "Not ready"),
            ReplicaState::Stopping => ("idle", "Stopping"),
            ReplicaState::Missing => ("bad", "Missing"),
        };
        Self { class, text }
    }
}

/// GET /console/replicas: shows all replicas.
async fn show_replicas(state: web::Data<ApiState>, Viewer(session): Viewer) -> Answer {
    let list = state.replicas.last_list();
    let page = render(&state).and_then(|live_html| {
        show(&ReplicasPage {
            frame: Frame::for_operator(&session, "Replicas"),
            live_html,
            missing: list.missing_replicas().cloned().collect(),
        })
    });
    std::future::ready(page).await
}

/// GET /console/live/replicas: streams the table of replicas.
async fn live_replicas(
    state: web::Data<ApiState>,
    request: HttpRequest,
    _: Viewer,
    parts: web::Data<LiveParts>,
) -> HttpResponse {
    let stream = parts.stream_to_operator("replicas".to_owned(), &request, &state, |state| {
        Box::pin(async move { render(&state) })
    });
    std::future::ready(stream).await
}

/// POST /console/replicas/{id}/forget: removes a missing replica from the list.
async fn forget_replica(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    id: web::Path<String>,
    form: Form<ReasonForm>,
) -> Answer {
    let request = form.0.to_operator_request(&state, &session)?;
    let list = state.replicas.last_list();
    let missing = list
        .missing_replicas()
        .find(|replica| replica.identity.id == *id);
    let Some(missing) = missing else {
        return Ok(go_to(
            "/console/replicas",
            "This replica is not missing any more.",
        ));
    };
    let name = &missing.identity.name;
    let entry =
        AuditEntry::for_operator_request(&request, AuditAction::ForgetReplica, name, state.now());
    let notice = if replicas::forget_missing(&state.store, &id, entry).await? {
        "The replica is forgotten. If it gives a sign again, it is back in the list."
    } else {
        "The replica was already forgotten."
    };
    Ok(go_to("/console/replicas", notice))
}

fn render(state: &ApiState) -> Result<String, ApiError> {
    let list = state.replicas.last_list();
    let part = ReplicasPart {
        answered_by: state.replicas.identity().name.clone(),
        read_at: list.read_at,
        lines: list
            .replicas
            .iter()
            .map(|replica| ReplicaLine::new(&list, replica))
            .collect(),
    };
    part.render().map_err(ApiError::internal)
}

impl ReplicaLine {
    fn new(list: &ReplicaList, replica: &Replica) -> Self {
        let figures = &replica.figures;
        let state = list.state(replica);
        let breakers = figures.breakers.iter();
        Self {
            badge: state.into(),
            silent_us: list.micros_until_last_read(replica.seen_at),
            running_us: list.micros_until_last_read(figures.started_at),
            note: match state {
                ReplicaState::Missing => {
                    "It did not stop in order. Others take over its work when its leases end."
                        .to_owned()
                }
                ReplicaState::Stopping => "It finishes its work and takes no more.".to_owned(),
                ReplicaState::NotReady => figures.not_ready.clone().unwrap_or_default(),
                ReplicaState::Degraded => figures.degraded.clone().unwrap_or_default(),
                ReplicaState::Ready => String::new(),
            },
            memory: figures
                .resident_bytes
                .map_or_else(String::new, |bytes| format!("{} MiB", bytes >> 20)),
            clock: clock_words(figures.clock_ahead_ms),
            requests_per_s: per_second(figures.requests),
            open_breakers: breakers
                .filter(|breaker| breaker.state != BreakerCondition::Closed)
                .count(),
            replica: replica.clone(),
        }
    }
}

/// Says how far a clock is ahead of the clock of the database, or behind it.
fn clock_words(ahead_ms: i64) -> String {
    match ahead_ms {
        0 => "agrees".to_owned(),
        1.. => format!("{ahead_ms} ms ahead"),
        _ => format!("{} ms behind", ahead_ms.unsigned_abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::replica::{ReplicaFigures, ReplicaIdentity};

    #[test]
    fn the_line_of_a_replica_shows_its_own_report_about_its_readiness() {
        let reason = |text: &str| Some(text.to_owned());
        let cases = [
            (None, None, "Ready", ""),
            (None, reason("a wrong key"), "Degraded", "a wrong key"),
            (reason("no database"), None, "Not ready", "no database"),
            (
                reason("no database"),
                reason("a wrong key"),
                "Not ready",
                "no database",
            ),
        ];
        for (not_ready, degraded, badge, note) in cases {
            let replica = Replica {
                identity: ReplicaIdentity {
                    id: "1".into(),
                    name: "a:1".into(),
                },
                seen_at: Timestamp::UNIX_EPOCH,
                leases: 0,
                figures: ReplicaFigures {
                    not_ready,
                    degraded,
                    ..ReplicaFigures::default()
                },
            };
            let line = ReplicaLine::new(&ReplicaList::default(), &replica);
            assert_eq!((line.badge.text, line.note.as_str()), (badge, note));
        }
    }

    #[test]
    fn a_clock_is_ahead_or_behind_or_agrees() {
        let words = [0, 1_500, -20].map(clock_words);
        assert_eq!(words, ["agrees", "1500 ms ahead", "20 ms behind"]);
    }
}
