//! The supervised actors, live: the actors of all replicas with the most trouble, or with the highest value of a
//! measure within a window, and the number of actors of each kind in this process. The address says which view is
//! shown.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use supervision::{ActorGroup, Measure, NodeKind, Ranking, TreeSnapshot, Window, WindowFigures};
use url::form_urlencoded::byte_serialize;

use crate::actors::kinds;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::live::LiveParts;
use crate::console::operators::choices::{
    Choice, ChoiceRow, find_choice, find_window, window_words,
};
use crate::console::operators::taxpayers::name_or_number;
use crate::console::page::{Answer, show};
use crate::console::session::operators::Viewer;
use crate::domain::kernel::ids::parse_id;
use crate::domain::pipeline::parse_run_lane_key;
use crate::domain::replica::{ActorTotals, ReplicaList};
use crate::domain::taxpayer_pause::TaxpayerPause;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::replicas::actors::{self, ReplicaActor};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;

const PAGE: &str = "/console/supervision";
const LIVE_PART: &str = "/console/live/supervision";

/// The number of actors that the page lists.
const ACTORS_MAX: usize = 20;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path(PAGE).page(show_supervision),
        path(LIVE_PART).page(live_supervision),
    ]
}

#[derive(Template)]
#[template(path = "operators/supervision.html")]
struct SupervisionPage {
    frame: Frame,
    paused: Vec<PausedTaxpayerLine>,
    choices: Vec<ChoiceRow>,
    live_address: String,
    live_html: String,
}

/// A taxpayer that operators have paused.
struct PausedTaxpayerLine {
    name: String,
    pause: TaxpayerPause,
}

#[derive(Template)]
#[template(path = "operators/supervision_live.html")]
struct SupervisionPart {
    /// The replica that made the page.
    answered_by: String,
    /// The actors of this process by kind; `None` if the page shows another replica.
    process_tree: Option<ProcessTree>,
    /// The totals of all replicas; empty if this is the only one.
    replicas: Vec<ReplicaLine>,
    /// The length of the window, as the column headings show it.
    window: &'static str,
    actors: Vec<ActorLine>,
}

/// The tree of this process.
struct ProcessTree {
    tree: TreeSnapshot,
    groups: Vec<GroupLine>,
}

/// A replica and the totals of its actors, from its last report.
struct ReplicaLine {
    name: String,
    badge: Badge,
    report_age_us: u64,
    totals: ActorTotals,
}

struct ActorLine {
    badge: Badge,
    /// The address of the page about the taxpayer or run that the actor works for; `None` if it works for no single
    /// one.
    address: Option<String>,
    window_figures: WindowFigures,
    reported: ReplicaActor,
}

struct GroupLine {
    name: String,
    actors: usize,
    states: Vec<StateCount>,
    mailbox_depth: usize,
    oldest_wait_us: u64,
}

struct StateCount {
    badge: Badge,
    count: usize,
}

/// GET /console/supervision: shows the worst actors of all replicas.
async fn show_supervision(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let names = replica_names(&state);
    let view = SupervisionView::new(&query, &names);
    show(&SupervisionPage {
        frame: Frame::for_operator(&session, "Supervision"),
        paused: load_paused_taxpayers(&state).await,
        choices: view.choices(&names),
        live_address: view.address(LIVE_PART),
        live_html: render(&state, &view)?,
    })
}

/// Returns the paused taxpayers. While the database does not answer, they have no names.
async fn load_paused_taxpayers(state: &ApiState) -> Vec<PausedTaxpayerLine> {
    let pauses = state.taxpayers.paused_taxpayers().list();
    let ids: Vec<_> = pauses.iter().map(|pause| pause.taxpayer_id).collect();
    let known = taxpayers::find_by_ids(state.store.reader(), &ids).await;
    let known = known.unwrap_or_default();
    let lines = pauses.iter().map(|pause| PausedTaxpayerLine {
        name: name_or_number(&known, pause.taxpayer_id),
        pause: pause.clone(),
    });
    lines.collect()
}

/// GET /console/live/supervision: streams the worst actors of all replicas.
async fn live_supervision(
    state: web::Data<ApiState>,
    request: HttpRequest,
    _: Viewer,
    query: Query,
    parts: web::Data<LiveParts>,
) -> HttpResponse {
    let view = SupervisionView::new(&query, &replica_names(&state));
    let name = view.address(LIVE_PART);
    let stream = parts.stream_to_operator(name, &request, &state, move |state| {
        let view = view.clone();
        Box::pin(async move { render(&state, &view) })
    });
    std::future::ready(stream).await
}

/// Returns the names of all known replicas. This process comes first.
fn replica_names(state: &ApiState) -> Vec<String> {
    let own = &state.replicas.identity().name;
    let list = state.replicas.last_list();
    let mut names = vec![own.clone()];
    for replica in &list.replicas {
        if !names.contains(&replica.identity.name) {
            names.push(replica.identity.name.clone());
        }
    }
    names
}

fn render(state: &ApiState, view: &SupervisionView) -> Result<String, ApiError> {
    let mut tree = state.tree.snapshot(ACTORS_MAX);
    let own_actors = std::mem::take(&mut tree.top);
    let chosen = view.replica.as_deref();
    let worst = actors::rank_actors(state, own_actors, view.ranking(), chosen, ACTORS_MAX);
    let list = state.replicas.last_list();
    let name = &state.replicas.identity().name;
    SupervisionPart::new(name, tree, worst, &list, view)
        .render()
        .map_err(ApiError::internal)
}

/// The view of the page. It is part of the address, so it can be bookmarked and shared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SupervisionView {
    /// `None` for all replicas.
    replica: Option<String>,
    /// `None` for all kinds.
    kind: Option<NodeKind>,
    measure: Measure,
    window: Window,
}

impl SupervisionView {
    /// Reads the view from an address. Missing and unknown values become the defaults.
    fn new(query: &Query, replicas: &[String]) -> Self {
        let word = |name| query.text(name).unwrap_or_default();
        let replica = word("replica");
        let (kind, measure, window) = (word("kind"), word("by"), word("minutes"));
        Self {
            replica: replicas.iter().find(|name| *name == replica).cloned(),
            kind: find_choice(kinds::ALL, |known| known.name() == kind),
            measure: find_choice(&Measure::ALL, |known| known.as_str() == measure)
                .unwrap_or_default(),
            window: find_window(window),
        }
    }

    fn address(&self, path: &str) -> String {
        let kind = self.kind.map(|kind| format!("&kind={}", kind.name()));
        let replica = self.replica.as_ref().map(|name| {
            let name: String = byte_serialize(name.as_bytes()).collect();
            format!("&replica={name}")
        });
        format!(
            "{path}?by={}&minutes={}{}{}",
            self.measure.as_str(),
            self.window.minutes(),
            kind.unwrap_or_default(),
            replica.unwrap_or_default()
        )
    }

    fn ranking(&self) -> Ranking<'static> {
        Ranking {
            kind: self.kind.map(NodeKind::name),
            by: self.measure,
            window: self.window,
        }
    }

    /// Returns the links to the other views. The choice of a replica is left out if there is only one.
    fn choices(&self, replicas: &[String]) -> Vec<ChoiceRow> {
        let choice = |text: &str, change: &dyn Fn(&mut Self)| {
            let mut view = self.clone();
            change(&mut view);
            Choice {
                text: text.to_owned(),
                address: view.address(PAGE),
                is_current: view == *self,
            }
        };
        let measures = Measure::ALL
            .map(|measure| choice(measure_words(measure), &|view| view.measure = measure));
        let windows =
            Window::ALL.map(|window| choice(window_words(window), &|view| view.window = window));
        let all_kinds = choice("all", &|view| view.kind = None);
        let each_kind = kinds::ALL
            .iter()
            .map(|kind| choice(kind.name(), &|view| view.kind = Some(*kind)));
        let mut rows = vec![
            ChoiceRow::new("Worst first by", measures.into()),
            ChoiceRow::new("In the last", windows.into()),
            ChoiceRow::new("Kind", [all_kinds].into_iter().chain(each_kind).collect()),
        ];
        if replicas.len() > 1 {
            let all = choice("all", &|view| view.replica = None);
            let each = replicas
                .iter()
                .map(|name| choice(name, &|view| view.replica = Some(name.clone())));
            rows.push(ChoiceRow::new(
                "Replica",
                [all].into_iter().chain(each).collect(),
            ));
        }
        rows
    }
}

fn measure_words(measure: Measure) -> &'static str {
    match measure {
        Measure::Trouble => "trouble now",
        Measure::Wait => "wait",
        Measure::Depth => "queue",
        Measure::HandleTime => "handle time",
        Measure::Restarts => "restarts",
    }
}

impl SupervisionPart {
    fn new(
        answered_by: &str,
        tree: TreeSnapshot,
        worst: Vec<ReplicaActor>,
        list: &ReplicaList,
        view: &SupervisionView,
    ) -> Self {
        let shows_own_process = view.replica.as_ref().is_none_or(|name| name == answered_by);
        let lines = worst.into_iter();
        Self {
            answered_by: answered_by.to_owned(),
            process_tree: shows_own_process.then(|| ProcessTree::new(tree)),
            replicas: replica_lines(list),
            window: window_words(view.window),
            actors: lines
                .map(|actor| ActorLine::new(actor, view.window))
                .collect(),
        }
    }
}

fn replica_lines(list: &ReplicaList) -> Vec<ReplicaLine> {
    if list.replicas.len() < 2 {
        return Vec::new();
    }
    let lines = list.replicas.iter().map(|replica| ReplicaLine {
        name: replica.identity.name.clone(),
        badge: list.state(replica).into(),
        report_age_us: list.micros_until_last_read(replica.seen_at),
        totals: replica.figures.actors,
    });
    lines.collect()
}

impl ProcessTree {
    fn new(tree: TreeSnapshot) -> Self {
        let mut group_counts = BTreeMap::<&str, usize>::new();
        for group in &tree.groups {
            *group_counts.entry(&group.kind).or_default() += 1;
        }
        let groups = tree.groups.iter();
        Self {
            groups: groups
                .map(|group| GroupLine::new(group, group_counts[group.kind.as_str()] > 1))
                .collect(),
            tree,
        }
    }
}

impl ActorLine {
    fn new(reported: ReplicaActor, window: Window) -> Self {
        let actor = &reported.actor;
        Self {
            badge: actor.state.into(),
            address: subject_path(&actor.kind, &actor.name),
            window_figures: *actor.within(window),
            reported,
        }
    }
}

/// Returns the address of the page about the taxpayer or run that an actor works for; `None` if it works for no single
/// one.
fn subject_path(kind: &str, name: &str) -> Option<String> {
    if [kinds::TAXPAYER, kinds::WEBHOOK]
        .map(NodeKind::name)
        .contains(&kind)
    {
        parse_id(name).map(|id| format!("/console/taxpayers/{id}"))
    } else if kind == kinds::PIPELINE.name() {
        parse_run_lane_key(name).map(|(_, run)| format!("/console/runs/{run}"))
    } else {
        None
    }
}

impl GroupLine {
    /// `is_shard` is true if the actors of this kind are spread over several threads. Each thread then has a group.
    fn new(group: &ActorGroup, is_shard: bool) -> Self {
        let states = group.states.iter().map(|(state, count)| StateCount {
            badge: (*state).into(),
            count: *count,
        });
        let kind = &group.kind;
        Self {
            name: if is_shard {
                format!("{kind} shard {}", group.shard)
            } else {
                kind.clone()
            },
            actors: group.states.values().sum(),
            states: states.collect(),
            mailbox_depth: group.mailbox_depth,
            oldest_wait_us: group.oldest_wait_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use supervision::{ActorFigures, BatchFigures, NodeState, PanicRecord};

    use super::*;
    use crate::domain::replica::{Replica, ReplicaFigures, ReplicaIdentity};

    fn names() -> Vec<String> {
        ["a:1", "b & c"].map(str::to_owned).into()
    }

    fn view(address: &str) -> SupervisionView {
        SupervisionView::new(&Query::from_text(address), &names())
    }

    /// Returns two replicas, of which the second gave its last sign 40 seconds ago.
    fn replicas() -> ReplicaList {
        let at = |second| Timestamp::from_second(second).unwrap();
        let replica = |name: &str, seen_at| Replica {
            identity: ReplicaIdentity {
                id: name.to_owned(),
                name: name.to_owned(),
            },
            seen_at: at(seen_at),
            leases: 0,
            figures: ReplicaFigures {
                actors: ActorTotals {
                    queued: 4_321,
                    ..ActorTotals::default()
                },
                ..ReplicaFigures::default()
            },
        };
        ReplicaList {
            read_at: Some(at(100)),
            watched_since: Some(at(0)),
            replicas: vec![replica("a:1", 100), replica("b & c", 60)],
        }
    }

    fn reported_by(replica: &str, told_us_ago: u64, actor: ActorFigures) -> ReplicaActor {
        ReplicaActor {
            replica: replica.to_owned(),
            told_at: None,
            told_us_ago,
            actor,
        }
    }

    fn render_part(worst: Vec<ReplicaActor>, list: &ReplicaList, view: &SupervisionView) -> String {
        let shard = |kind: &str, shard| ActorGroup {
            kind: kind.to_owned(),
            shard,
            states: BTreeMap::from([(NodeState::Running, 4)]),
            ..ActorGroup::default()
        };
        let tree = TreeSnapshot {
            ready: true,
            groups: vec![
                shard("taxpayer", 0),
                shard("taxpayer", 1),
                shard("janitor", 0),
            ],
            ..TreeSnapshot::default()
        };
        let part = SupervisionPart::new("a:1", tree, worst, list, view);
        part.render().unwrap()
    }

    fn actor(kind: &str, name: &str) -> ActorFigures {
        ActorFigures {
            kind: kind.to_owned(),
            name: name.to_owned(),
            state: NodeState::Busy,
            ..ActorFigures::default()
        }
    }

    #[test]
    fn a_view_is_kept_by_its_address_and_unknown_words_are_the_default() {
        let chosen = view("by=handle-time&minutes=60&kind=webhook");
        assert_eq!(
            (chosen.kind, chosen.measure, chosen.window),
            (Some(kinds::WEBHOOK), Measure::HandleTime, Window::Hour)
        );
        let address = chosen.address(PAGE);
        assert_eq!(
            address,
            "/console/supervision?by=handle-time&minutes=60&kind=webhook"
        );
        assert_eq!(view(address.split_once('?').unwrap().1), chosen);
        let unknown = view("by=colour&minutes=7&kind=%3Cb%3E&replica=d");
        assert_eq!(unknown, SupervisionView::default());
        let replica_view = view("replica=b+%26+c");
        assert_eq!(replica_view.replica.as_deref(), Some("b & c"));
        let address = replica_view.address(PAGE);
        assert_eq!(view(address.split_once('?').unwrap().1), replica_view);
    }

    #[test]
    fn each_link_changes_one_choice_and_one_link_of_each_row_is_current() {
        let chosen = view("by=wait&minutes=1&kind=pipeline");
        let rows = chosen.choices(&names());
        assert_eq!(rows.len(), 4);
        assert_eq!(chosen.choices(&names()[..1]).len(), 3);
        for row in &rows {
            let current: Vec<_> = row.choices.iter().filter(|one| one.is_current).collect();
            assert_eq!(current.len(), 1, "{}", row.label);
            assert_eq!(current[0].address, chosen.address(PAGE));
        }
        let all: Vec<_> = rows.into_iter().flat_map(|row| row.choices).collect();
        let address = |text: &str| &all.iter().find(|one| one.text == text).unwrap().address;
        let path = "/console/supervision";
        assert_eq!(
            address("queue"),
            &format!("{path}?by=depth&minutes=1&kind=pipeline")
        );
        assert_eq!(
            address("60 min"),
            &format!("{path}?by=wait&minutes=60&kind=pipeline")
        );
        assert_eq!(address("all"), &format!("{path}?by=wait&minutes=1"));
        assert_eq!(
            address("b & c"),
            &format!("{path}?by=wait&minutes=1&kind=pipeline&replica=b+%26+c")
        );
        assert_eq!(
            address("taxpayer"),
            &format!("{path}?by=wait&minutes=1&kind=taxpayer")
        );
    }

    #[test]
    fn an_actor_leads_to_its_taxpayer_or_its_run_and_a_shared_one_nowhere() {
        let run = "0192f0c4-0000-7000-8000-000000000001";
        let lane = format!("7/{run}");
        let run_path = format!("/console/runs/{run}");
        for (kind, name, expected) in [
            ("taxpayer", "7", Some("/console/taxpayers/7")),
            ("webhook", "7", Some("/console/taxpayers/7")),
            ("webhook", "due-deliveries", None),
            ("pipeline", &lane, Some(&run_path)),
            ("pipeline", "run-dispatcher", None),
            ("janitor", "7", None),
        ] {
            assert_eq!(
                subject_path(kind, name).as_deref(),
                expected,
                "{kind} {name}"
            );
        }
    }

    #[test]
    fn the_page_says_what_is_in_hand_what_waits_and_why_an_actor_restarted() {
        let at = Timestamp::from_second(1_000).unwrap();
        let troubled = ActorFigures {
            batch: Some(BatchFigures {
                command: "create".to_owned(),
                commands: 12,
                since: at,
                age_us: 2_500_000,
            }),
            mailbox_depth: 20,
            oldest_wait_us: 2_400_000,
            ..actor("taxpayer", "7")
        };
        let restarting = ActorFigures {
            state: NodeState::Restarting,
            restarts: 2,
            restarts_at: Some(at),
            panics: ["second <b>", "first"]
                .map(|cause| PanicRecord {
                    at,
                    cause: cause.to_owned(),
                })
                .into(),
            ..actor("taxpayer", "8")
        };
        let worst = vec![
            reported_by("a:1", 0, restarting),
            reported_by("b & c", 800_000, troubled),
        ];
        let part = render_part(worst, &replicas(), &SupervisionView::default());
        for text in [
            r#"<a href="/console/taxpayers/7">taxpayer 7</a>"#,
            "<code>create</code> for 2.5 s, one of 12 commands",
            "2.4 s",
            "1970-01-01 00:16:40",
            "second &#60;b&#62;",
            "first",
            "taxpayer shard 1",
            "janitor",
            "b &#38; c, 800 ms ago",
            "Missing",
            "4321",
            "All actors of a:1",
        ] {
            assert!(part.contains(text), "{text} is missing in {part}");
        }
        assert!(!part.contains("janitor shard"), "{part}");
    }

    #[test]
    fn a_page_about_another_replica_or_about_the_only_one_says_nothing_of_others() {
        let other = view("replica=b+%26+c");
        let part = render_part(Vec::new(), &replicas(), &other);
        assert!(part.contains("No actor is in trouble"), "{part}");
        assert!(!part.contains("All actors of"), "{part}");
        let alone = render_part(
            vec![reported_by("a:1", 0, actor("taxpayer", "7"))],
            &ReplicaList::default(),
            &SupervisionView::default(),
        );
        assert!(!alone.contains("Replica</th>"), "{alone}");
    }
}
