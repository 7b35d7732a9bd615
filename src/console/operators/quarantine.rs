//! The quarantine: all work that was put aside because of panics or crashes, and what an operator can do with it. The
//! contents of commands are not shown.

use actix_web::web;
use askama::Template;

use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::operators::bulk::{self, BulkBar};
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::quarantine_moves::QuarantineBulkList;
use crate::console::operators::reason::ReasonForm;
use crate::console::page::{Answer, Form, go_to};
use crate::console::session::operators::{Operator, Viewer};
use crate::domain::quarantine::{QuarantineState, QuarantinedWork, WorkKind};
use crate::http::api::ops::quarantine as api;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::state::ApiState;
use crate::store::operations::quarantine_list;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console/quarantine").page(list_quarantined_work),
        path("/console/quarantine/move/preview").page(bulk::preview::<QuarantineBulkList>),
        path("/console/quarantine/move").form(bulk::apply_previewed_act::<QuarantineBulkList>),
        path("/console/quarantine/{reference}/replay").form(replay_work),
        path("/console/quarantine/{reference}/drop").form(drop_work),
    ]
}

#[derive(Template)]
#[template(path = "operators/quarantine.html")]
struct QuarantinePage {
    frame: Frame,
    list: ListQuery,
    rows: Vec<WorkLine>,
    pages: PagePosition,
    bulk: BulkBar,
}

struct WorkLine {
    work: QuarantinedWork,
    badge: Badge,
    /// The addresses at which the work is shown, replayed and dropped. Those of a run retry and cancel it instead.
    links: WorkLinks,
}

#[derive(Default)]
struct WorkLinks {
    page: Option<String>,
    replay: Option<String>,
    drop: Option<String>,
}

/// GET /console/quarantine: lists the quarantined work that matches, newest first.
async fn list_quarantined_work(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let list = ListQuery::new(&query);
    let (found, total) =
        quarantine_list::page(&state.store, &api::read_filter(&list.0)?, list.page()).await?;
    let page = QuarantinePage {
        frame: Frame::for_operator(&session, "Quarantine"),
        pages: list.pages("/console/quarantine", total),
        rows: found.into_iter().map(WorkLine::from).collect(),
        bulk: BulkBar::new::<QuarantineBulkList>(&list),
        list,
    };
    show_list(&page.pages, &page)
}

/// POST /console/quarantine/{reference}/replay: executes a command again, at most once.
async fn replay_work(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    reference: web::Path<String>,
    form: Form<ReasonForm>,
) -> Answer {
    let by = form.0.to_operator_request(&state, &session)?;
    let replayed = api::replay_by_reference(&state, &reference, &by).await?;
    let notice = match replayed.state {
        QuarantineState::Kept => "The replay changed nothing. The command stays in the quarantine.",
        QuarantineState::Replayed | QuarantineState::Dropped => {
            "The command was replayed. Its line says how the replay ended."
        }
    };
    Ok(go_to("/console/quarantine", notice))
}

/// POST /console/quarantine/{reference}/drop: drops a command or a delivery.
async fn drop_work(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    reference: web::Path<String>,
    form: Form<ReasonForm>,
) -> Answer {
    let by = form.0.to_operator_request(&state, &session)?;
    api::drop_by_reference(&state, &reference, &by).await?;
    Ok(go_to("/console/quarantine", "It was dropped."))
}

impl From<QuarantinedWork> for WorkLine {
    fn from(work: QuarantinedWork) -> Self {
        let reference = &work.reference;
        let links = match work.kind {
            WorkKind::Command => WorkLinks {
                page: None,
                replay: Some(format!("/console/quarantine/{reference}/replay")),
                drop: Some(format!("/console/quarantine/{reference}/drop")),
            },
            WorkKind::Run => WorkLinks {
                page: Some(format!("/console/runs/{reference}")),
                replay: Some(format!("/console/runs/{reference}/retry")),
                drop: Some(format!("/console/runs/{reference}/cancel")),
            },
            WorkKind::Delivery => WorkLinks {
                page: None,
                replay: Some(format!(
                    "/console/deliveries/dead-letters/{reference}/replay"
                )),
                drop: Some(format!("/console/quarantine/{reference}/drop")),
            },
            WorkKind::Task => WorkLinks::default(),
        };
        let links = WorkLinks {
            replay: links.replay.filter(|_| work.may_replay),
            drop: links.drop.filter(|_| work.may_drop),
            ..links
        };
        Self {
            badge: work.state.into(),
            links,
            work,
        }
    }
}

impl From<QuarantineState> for Badge {
    fn from(state: QuarantineState) -> Self {
        let (class, text) = match state {
            QuarantineState::Kept => ("bad", "In quarantine"),
            QuarantineState::Replayed => ("ok", "Replayed"),
            QuarantineState::Dropped => ("idle", "Dropped"),
        };
        Self { class, text }
    }
}
