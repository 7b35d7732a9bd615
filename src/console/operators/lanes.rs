//! The lanes by kind (a lane is the database row that schedules and locks one piece of serialised work): how many are
//! due, who holds how many, and how many are held back.

use actix_web::web;
use askama::Template;

use crate::console::frame::Frame;
use crate::console::page::{Answer, show};
use crate::console::session::operators::Viewer;
use crate::http::endpoint::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::lanes::LaneKind;
use crate::store::lanes::views::{self, LaneCount, OwnerCount};

pub(super) fn endpoints() -> Vec<Path> {
    vec![path("/console/lanes").page(show_lanes)]
}

#[derive(Template)]
#[template(path = "operators/lanes.html")]
struct LanesPage {
    frame: Frame,
    lanes: Vec<LaneLine>,
    owners: Vec<OwnerLine>,
}

struct OwnerLine {
    count: OwnerCount,
    /// The name of the replica, or the name in its leases if it is not known any more.
    replica: String,
}

struct LaneLine {
    count: LaneCount,
    explanation: &'static str,
    /// The reason why lanes of this kind wait.
    why: String,
}

/// GET /console/lanes: shows the lanes of the database, which all replicas share.
async fn show_lanes(state: web::Data<ApiState>, Viewer(session): Viewer) -> Answer {
    let counts = views::counts_by_kind(&state.store).await?;
    let owners = views::counts_by_owner(&state.store).await?;
    let list = state.replicas.last_list();
    let paused_runs = count_paused_runs(&state).await?;
    let mut lanes = counts.map(|count| LaneLine::new(count, paused_runs));
    if let Some(end) = state.pipeline.backlog.clear_at().await? {
        let runs = lanes
            .iter_mut()
            .find(|line| line.count.kind == LaneKind::Run);
        if let Some(line) = runs {
            line.why = format!("{} {}", line.why, end.explain("The last run"));
        }
    }
    let page = LanesPage {
        frame: Frame::for_operator(&session, "Lanes"),
        lanes: lanes.into(),
        owners: owners
            .into_iter()
            .map(|count| OwnerLine {
                replica: list.name(&count.owner).to_owned(),
                count,
            })
            .collect(),
    };
    show(&page)
}

/// Counts the due runs of the taxpayers that operators have paused.
async fn count_paused_runs(state: &ApiState) -> Result<u64, ApiError> {
    let paused = state.taxpayers.paused_taxpayers().list();
    if paused.is_empty() {
        return Ok(0);
    }
    let due = views::due_by_taxpayer(&state.store, LaneKind::Run).await?;
    let of_paused = paused
        .iter()
        .filter_map(|pause| due.get(&pause.taxpayer_id.0));
    Ok(of_paused.sum())
}

impl LaneLine {
    fn new(count: LaneCount, paused_runs: u64) -> Self {
        let paused = match count.kind {
            LaneKind::Run => i64::try_from(paused_runs).unwrap_or(i64::MAX),
            _ => 0,
        };
        Self {
            explanation: explanation(count.kind),
            why: explain_lanes(&count, paused),
            count,
        }
    }
}

fn explanation(kind: LaneKind) -> &'static str {
    match kind {
        LaneKind::Taxpayer => "The writer of a taxpayer's data.",
        LaneKind::Run => "A run at the authority.",
        LaneKind::Endpoint => "The deliveries to a webhook endpoint.",
        LaneKind::Pull => "The reading of the authority's list of invoices in transit.",
        LaneKind::Outage => "The notice of an outage to a taxpayer.",
        LaneKind::Reconciliation => {
            "The comparison of a taxpayer's days with the authority's ledger."
        }
        LaneKind::Verification => "The check of a taxpayer's number with the authority.",
        LaneKind::Import => "The import of a large file of a taxpayer.",
        LaneKind::Correction => "The correction of a signed invoice.",
        LaneKind::Mail => "The writing and sending of mails.",
    }
}

/// `paused` of the due lanes belong to paused taxpayers.
fn explain_lanes(count: &LaneCount, paused: i64) -> String {
    let LaneCount {
        due,
        leased,
        held_back,
        ..
    } = *count;
    let mut sentences = Vec::new();
    if due > leased + paused {
        sentences.push(format!(
            "Waiting for a free worker: {}.",
            due - leased - paused
        ));
    }
    if paused > 0 {
        sentences.push(format!(
            "Waiting until operators resume their taxpayers: {paused}."
        ));
    }
    if held_back > 0 {
        sentences.push(format!(
            "In flight at three crashes or more, to be tried alone after a wait: {held_back}."
        ));
    }
    if sentences.is_empty() {
        return "Nothing waits.".to_owned();
    }
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_lanes_says_why_it_waits() {
        let why = |due, leased, held_back, paused| {
            let count = LaneCount {
                kind: LaneKind::Run,
                due,
                leased,
                held_back,
            };
            explain_lanes(&count, paused)
        };
        assert_eq!(why(0, 0, 0, 0), "Nothing waits.");
        assert_eq!(why(2, 2, 0, 0), "Nothing waits.");
        assert_eq!(
            why(6, 2, 0, 4),
            "Waiting until operators resume their taxpayers: 4."
        );
        assert_eq!(
            why(5, 2, 1, 0),
            "Waiting for a free worker: 3. \
             In flight at three crashes or more, to be tried alone after a wait: 1."
        );
    }
}
