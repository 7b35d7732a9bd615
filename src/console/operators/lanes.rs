//! The lanes by kind (a lane is the database row that schedules and locks one piece of serialised work): how many are
//! due, who holds how many, and how many are held back.

use actix_web::web;
use askama::Template;

use crate::actors::pipeline::run_holds::HeldRuns;
use crate::console::frame::Frame;
use crate::console::page::{Answer, show};
use crate::console::session::operators::Viewer;
use crate::http::metrics::database_counts::gauge_value;
use crate::http::paths::{Path, path};
use crate::http::state::ApiState;
use crate::store::lanes::LaneKind;
use crate::store::lanes::views::{self, LaneCount, LaneCountByOwner};

pub(super) fn paths() -> Vec<Path> {
    vec![path("/console/lanes").page(show_lanes)]
}

#[derive(Template)]
#[template(path = "operators/lanes.html")]
struct LanesPage {
    frame: Frame,
    lanes: Vec<LaneLine>,
    owners: Vec<LeaseHolderLine>,
}

struct LeaseHolderLine {
    count: LaneCountByOwner,
    /// The name of the replica, or the owner name in its leases if the replica is no longer known.
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
    let held = state.pipeline.backlog.count_held_runs().await?;
    let is_paused = state.authority.is_paused();
    let mut lanes = counts.map(|count| LaneLine::new(count, held, is_paused));
    if let Some(end) = state.pipeline.backlog.predict_queue_end().await? {
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
            .map(|count| LeaseHolderLine {
                replica: list.name(&count.owner).to_owned(),
                count,
            })
            .collect(),
    };
    show(&page)
}

impl LaneLine {
    /// `is_paused` is true if this process was started in the mode in which it sends nothing.
    fn new(count: LaneCount, held_runs: HeldRuns, is_paused: bool) -> Self {
        let held = match count.kind {
            LaneKind::Run => held_runs,
            _ => HeldRuns::default(),
        };
        Self {
            explanation: explain_kind(count.kind),
            why: explain_lanes(&count, held, is_paused && is_sending(count.kind)),
            count,
        }
    }
}

fn explain_kind(kind: LaneKind) -> &'static str {
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

/// True if the work of this kind calls the authority or a receiver, so that a paused process does none of it.
fn is_sending(kind: LaneKind) -> bool {
    match kind {
        LaneKind::Taxpayer | LaneKind::Import | LaneKind::Correction => false,
        LaneKind::Run
        | LaneKind::Endpoint
        | LaneKind::Pull
        | LaneKind::Outage
        | LaneKind::Reconciliation
        | LaneKind::Verification
        | LaneKind::Mail => true,
    }
}

/// Explains the figures of one kind. `held` is the number of due lanes that are not taken although workers are free.
/// `is_paused` is true if this process takes none of this kind.
fn explain_lanes(count: &LaneCount, held: HeldRuns, is_paused: bool) -> String {
    let LaneCount {
        due,
        leased,
        held_back,
        ..
    } = *count;
    let free = due - leased - gauge_value(held.total());
    let free_words = if is_paused {
        "Waiting until a process is started without --paused"
    } else {
        "Waiting for a free worker"
    };
    let reasons = [
        (free_words, free),
        (
            "Waiting until operators resume their taxpayers",
            gauge_value(held.taxpayer_paused),
        ),
        (
            "Waiting until operators reset the breakers of their calls",
            gauge_value(held.calls_stopped),
        ),
        (
            "Waiting until the authority answers their calls",
            gauge_value(held.outage),
        ),
        (
            "Waiting until a fault of ours at the authority is mended",
            gauge_value(held.our_fault),
        ),
        (
            "In flight at three crashes or more, to be tried alone after a wait",
            held_back,
        ),
    ];
    let sentences: Vec<_> = reasons
        .into_iter()
        .filter(|(_, lanes)| *lanes > 0)
        .map(|(reason, lanes)| format!("{reason}: {lanes}."))
        .collect();
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
        let why = |due, leased, held_back, held| {
            let count = LaneCount {
                kind: LaneKind::Run,
                due,
                leased,
                held_back,
            };
            explain_lanes(&count, held, false)
        };
        let none_held = HeldRuns::default();
        let held = HeldRuns {
            taxpayer_paused: 4,
            calls_stopped: 5,
            outage: 6,
            our_fault: 7,
        };
        assert_eq!(why(0, 0, 0, none_held), "Nothing waits.");
        assert_eq!(why(2, 2, 0, none_held), "Nothing waits.");
        assert_eq!(
            why(24, 2, 0, held),
            "Waiting until operators resume their taxpayers: 4. \
             Waiting until operators reset the breakers of their calls: 5. \
             Waiting until the authority answers their calls: 6. \
             Waiting until a fault of ours at the authority is mended: 7."
        );
        assert_eq!(
            why(5, 2, 1, none_held),
            "Waiting for a free worker: 3. \
             In flight at three crashes or more, to be tried alone after a wait: 1."
        );
    }

    #[test]
    fn on_a_paused_process_what_is_sent_waits_for_another_process() {
        for (kind, why) in [
            (
                LaneKind::Run,
                "Waiting until a process is started without --paused: 3.",
            ),
            (
                LaneKind::Endpoint,
                "Waiting until a process is started without --paused: 3.",
            ),
            (LaneKind::Import, "Waiting for a free worker: 3."),
        ] {
            let count = LaneCount {
                kind,
                due: 3,
                leased: 0,
                held_back: 0,
            };
            let line = LaneLine::new(count, HeldRuns::default(), true);
            assert_eq!(line.why, why, "{}", kind.as_str());
        }
    }
}
