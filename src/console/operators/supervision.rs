//! The tree of supervised actors of this process, live: what fails and what restarts.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use futures_util::future::LocalBoxFuture;
use supervision::{ActorGroup, ActorView, NodeState, TreeSnapshot};

use crate::console::badges::Badge;
use crate::console::frame::Frame;
use crate::console::live::LiveParts;
use crate::console::page::{Answer, show};
use crate::console::session::operators::Viewer;
use crate::http::endpoint::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// The largest number of actors that the page lists for each group. The counts include all actors.
const NODES_MAX: usize = 20;

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/console/supervision").page(show_supervision),
        path("/console/live/supervision").page(live_supervision),
    ]
}

#[derive(Template)]
#[template(path = "operators/supervision.html")]
struct SupervisionPage {
    frame: Frame,
    live: String,
}

#[derive(Template)]
#[template(path = "operators/supervision_live.html")]
struct SupervisionPart {
    tree: TreeSnapshot,
    /// The actors that failed, restarted or are slow, gravest first.
    troubled: Vec<ActorLine>,
    groups: Vec<GroupLine>,
}

struct ActorLine {
    kind: &'static str,
    badge: Badge,
    actor: ActorView,
}

struct GroupLine {
    kind: &'static str,
    shard: usize,
    total: usize,
    states: Vec<StateCount>,
    actors: Vec<ActorLine>,
}

struct StateCount {
    badge: Badge,
    count: usize,
}

/// GET /console/supervision: shows the tree of actors.
async fn show_supervision(state: web::Data<ApiState>, Viewer(session): Viewer) -> Answer {
    let frame = Frame::for_operator(&session, "Supervision");
    std::future::ready(render(&state).and_then(|live| show(&SupervisionPage { frame, live }))).await
}

/// GET /console/live/supervision: streams the tree of actors.
async fn live_supervision(
    state: web::Data<ApiState>,
    request: HttpRequest,
    _: Viewer,
    parts: web::Data<LiveParts>,
) -> HttpResponse {
    let render = |state: web::Data<ApiState>| -> LocalBoxFuture<'static, _> {
        Box::pin(async move { render(&state) })
    };
    std::future::ready(parts.stream("supervision", &request, &state, render)).await
}

fn render(state: &ApiState) -> Result<String, ApiError> {
    let tree = state.tree.snapshot(NODES_MAX);
    let mut troubled: Vec<_> = tree.groups.iter().flat_map(troubled_actors).collect();
    troubled.sort_by_key(|line| std::cmp::Reverse(line.actor.state));
    let groups = tree.groups.iter().map(GroupLine::from).collect();
    SupervisionPart {
        tree,
        troubled,
        groups,
    }
    .render()
    .map_err(ApiError::internal)
}

fn troubled_actors(group: &ActorGroup) -> impl Iterator<Item = ActorLine> {
    group
        .nodes
        .iter()
        .filter(|actor| actor.state >= NodeState::Busy || actor.last_panic.is_some())
        .map(|actor| ActorLine::new(group, actor))
}

impl ActorLine {
    fn new(group: &ActorGroup, actor: &ActorView) -> Self {
        Self {
            kind: group.kind.name(),
            badge: actor.state.into(),
            actor: actor.clone(),
        }
    }
}

impl From<&ActorGroup> for GroupLine {
    fn from(group: &ActorGroup) -> Self {
        let count = |state: (&NodeState, &usize)| StateCount {
            badge: (*state.0).into(),
            count: *state.1,
        };
        Self {
            kind: group.kind.name(),
            shard: group.shard,
            total: group.states.values().sum(),
            states: group.states.iter().map(count).collect(),
            actors: group
                .nodes
                .iter()
                .map(|actor| ActorLine::new(group, actor))
                .collect(),
        }
    }
}
