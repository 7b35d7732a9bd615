//! The supervised actors of this process, live: the first of them by trouble or by a measure within a window, which the
//! address says, and how many there are of each kind.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use futures_util::future::LocalBoxFuture;
use supervision::{
    ActorFigures, ActorGroup, Measure, NodeKind, Ranking, TreeSnapshot, Window, WindowFigures,
};

use crate::actors::kinds;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::live::LiveParts;
use crate::console::page::{Answer, show};
use crate::console::session::operators::Viewer;
use crate::domain::kernel::ids::parse_number;
use crate::domain::pipeline::parse_run_lane;
use crate::http::endpoint::{Path, path};
use crate::http::forms::query::Query;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

const PAGE: &str = "/console/supervision";
const LIVE_PART: &str = "/console/live/supervision";

/// The number of actors that the page lists.
const ACTORS_MAX: usize = 20;

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path(PAGE).page(show_supervision),
        path(LIVE_PART).page(live_supervision),
    ]
}

#[derive(Template)]
#[template(path = "operators/supervision.html")]
struct SupervisionPage {
    frame: Frame,
    choices: Vec<ChoiceRow>,
    live_address: String,
    live: String,
}

/// A row of links to other views, one of which is the current one.
struct ChoiceRow {
    label: &'static str,
    choices: Vec<Choice>,
}

struct Choice {
    text: String,
    address: String,
    is_current: bool,
}

#[derive(Template)]
#[template(path = "operators/supervision_live.html")]
struct SupervisionPart {
    tree: TreeSnapshot,
    /// The length of the window, as the heads of columns say it.
    window: &'static str,
    actors: Vec<ActorLine>,
    groups: Vec<GroupLine>,
}

struct ActorLine {
    badge: Badge,
    /// The page about whom or what the actor works for.
    address: Option<String>,
    within: WindowFigures,
    actor: ActorFigures,
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

/// GET /console/supervision: shows the actors of this process.
async fn show_supervision(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let view = View::new(&query);
    let answer = render(&state, view).and_then(|live| {
        show(&SupervisionPage {
            frame: Frame::for_operator(&session, "Supervision"),
            choices: view.choices(),
            live_address: view.address(LIVE_PART),
            live,
        })
    });
    std::future::ready(answer).await
}

/// GET /console/live/supervision: streams the actors of this process.
async fn live_supervision(
    state: web::Data<ApiState>,
    request: HttpRequest,
    _: Viewer,
    query: Query,
    parts: web::Data<LiveParts>,
) -> HttpResponse {
    let view = View::new(&query);
    let render = move |state: web::Data<ApiState>| -> LocalBoxFuture<'static, _> {
        Box::pin(async move { render(&state, view) })
    };
    let name = view.address(LIVE_PART);
    std::future::ready(parts.stream(name, &request, &state, render)).await
}

fn render(state: &ApiState, view: View) -> Result<String, ApiError> {
    SupervisionPart::new(state.tree.snapshot(ACTORS_MAX), view)
        .render()
        .map_err(ApiError::internal)
}

/// What the page shows. It stands in the address, so that it can be kept and passed on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct View {
    /// `None` for all kinds.
    kind: Option<NodeKind>,
    by: Measure,
    window: Window,
}

impl View {
    /// Reads the view from an address. What it does not say, or says in words that nobody knows, is the default.
    fn new(query: &Query) -> Self {
        let word = |name| query.text(name).unwrap_or_default();
        let (kind, by, window) = (word("kind"), word("by"), word("minutes"));
        Self {
            kind: find(kinds::ALL, |known| known.name() == kind),
            by: find(&Measure::ALL, |known| known.as_str() == by).unwrap_or_default(),
            window: find(&Window::ALL, |known| known.minutes().to_string() == window)
                .unwrap_or_default(),
        }
    }

    fn address(self, path: &str) -> String {
        let kind = self
            .kind
            .map(|kind| format!("&kind={}", kind.name()))
            .unwrap_or_default();
        format!(
            "{path}?by={}&minutes={}{kind}",
            self.by.as_str(),
            self.window.minutes()
        )
    }

    fn ranking(self) -> Ranking<'static> {
        Ranking {
            kind: self.kind.map(NodeKind::name),
            by: self.by,
            window: self.window,
        }
    }

    fn choices(self) -> Vec<ChoiceRow> {
        let choice = |text: &str, view: Self| Choice {
            text: text.to_owned(),
            address: view.address(PAGE),
            is_current: view == self,
        };
        let measures = Measure::ALL.map(|by| choice(measure_words(by), Self { by, ..self }));
        let windows =
            Window::ALL.map(|window| choice(window_words(window), Self { window, ..self }));
        let all_kinds = choice("all", Self { kind: None, ..self });
        let each_kind = kinds::ALL.iter().map(|kind| {
            let kind = *kind;
            let view = Self {
                kind: Some(kind),
                ..self
            };
            choice(kind.name(), view)
        });
        let row = |label, choices| ChoiceRow { label, choices };
        vec![
            row("Worst first by", measures.into()),
            row("In the last", windows.into()),
            row("Kind", [all_kinds].into_iter().chain(each_kind).collect()),
        ]
    }
}

fn find<T: Copy>(all: &[T], is_meant: impl Fn(&T) -> bool) -> Option<T> {
    all.iter().copied().find(is_meant)
}

fn measure_words(by: Measure) -> &'static str {
    match by {
        Measure::Trouble => "trouble now",
        Measure::Wait => "wait",
        Measure::Depth => "queue",
        Measure::HandleTime => "handle time",
        Measure::Restarts => "restarts",
    }
}

fn window_words(window: Window) -> &'static str {
    match window {
        Window::Minute => "1 min",
        Window::FiveMinutes => "5 min",
        Window::Hour => "60 min",
    }
}

impl SupervisionPart {
    fn new(mut tree: TreeSnapshot, view: View) -> Self {
        let top = view
            .ranking()
            .top(std::mem::take(&mut tree.top), ACTORS_MAX);
        let mut groups_of_kind = BTreeMap::<&str, usize>::new();
        for group in &tree.groups {
            *groups_of_kind.entry(&group.kind).or_default() += 1;
        }
        let groups = tree.groups.iter();
        Self {
            window: window_words(view.window),
            actors: top
                .into_iter()
                .map(|actor| ActorLine::new(actor, view.window))
                .collect(),
            groups: groups
                .map(|group| GroupLine::new(group, groups_of_kind[group.kind.as_str()] > 1))
                .collect(),
            tree,
        }
    }
}

impl ActorLine {
    fn new(actor: ActorFigures, window: Window) -> Self {
        Self {
            badge: actor.state.into(),
            address: subject_path(&actor.kind, &actor.name),
            within: *actor.within(window),
            actor,
        }
    }
}

/// Returns the page about the taxpayer or the run that an actor works for; `None` if it works for all.
fn subject_path(kind: &str, name: &str) -> Option<String> {
    if [kinds::TAXPAYER, kinds::WEBHOOK]
        .map(NodeKind::name)
        .contains(&kind)
    {
        parse_number(name).map(|id| format!("/console/taxpayers/{id}"))
    } else if kind == kinds::PIPELINE.name() {
        parse_run_lane(name).map(|(_, run)| format!("/console/runs/{run}"))
    } else {
        None
    }
}

impl GroupLine {
    /// `is_shard` if the actors of this kind are spread over several threads, each of which has a group.
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
    use supervision::{BatchFigures, NodeState, PanicRecord};

    use super::*;

    fn view(address: &str) -> View {
        View::new(&Query::from_text(address))
    }

    fn render_part(top: Vec<ActorFigures>, view: View) -> String {
        let shard = |kind: &str, shard| ActorGroup {
            kind: kind.to_owned(),
            shard,
            states: BTreeMap::from([(NodeState::Running, 4)]),
            ..ActorGroup::default()
        };
        let tree = TreeSnapshot {
            ready: true,
            top,
            groups: vec![
                shard("taxpayer", 0),
                shard("taxpayer", 1),
                shard("janitor", 0),
            ],
            ..TreeSnapshot::default()
        };
        SupervisionPart::new(tree, view).render().unwrap()
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
            (chosen.kind, chosen.by, chosen.window),
            (Some(kinds::WEBHOOK), Measure::HandleTime, Window::Hour)
        );
        let address = chosen.address(PAGE);
        assert_eq!(
            address,
            "/console/supervision?by=handle-time&minutes=60&kind=webhook"
        );
        assert_eq!(view(address.split_once('?').unwrap().1), chosen);
        assert_eq!(view("by=colour&minutes=7&kind=%3Cb%3E"), View::default());
    }

    #[test]
    fn each_link_changes_one_choice_and_one_link_of_each_row_is_current() {
        let chosen = view("by=wait&minutes=1&kind=pipeline");
        for row in chosen.choices() {
            let current: Vec<_> = row.choices.iter().filter(|one| one.is_current).collect();
            assert_eq!(current.len(), 1, "{}", row.label);
            assert_eq!(current[0].address, chosen.address(PAGE));
        }
        let all: Vec<_> = chosen
            .choices()
            .into_iter()
            .flat_map(|row| row.choices)
            .collect();
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
        let part = render_part(vec![troubled, restarting], View::default());
        for text in [
            r#"<a href="/console/taxpayers/7">taxpayer 7</a>"#,
            "<code>create</code> for 2.5 s, one of 12 commands",
            "2.4 s",
            "1970-01-01 00:16:40",
            "second &#60;b&#62;",
            "first",
            "taxpayer shard 1",
            "janitor",
        ] {
            assert!(part.contains(text), "{text} is missing in {part}");
        }
        assert!(!part.contains("janitor shard"), "{part}");
        let (first, second) = (part.find("taxpayer 8"), part.find("taxpayer 7"));
        assert!(first < second, "the restarting one is in more trouble");
        let none = render_part(Vec::new(), View::default());
        assert!(none.contains("No actor is in trouble"), "{none}");
    }
}
