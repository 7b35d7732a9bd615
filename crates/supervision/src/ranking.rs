//! The order in which operators see actors, the worst first: by the trouble that they are in, or by one measure within
//! a window.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use jiff::Timestamp;

use super::node_state::NodeState;
use super::snapshot_format::{ActorFigures, WindowFigures};

/// The figure that orders actors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Measure {
    /// The state, then the age of the batch in progress, the longest wait, the depth of the queue, and the panics of
    /// the last hour.
    #[default]
    Trouble,
    Wait,
    Depth,
    HandleTime,
    Restarts,
}

impl Measure {
    pub const ALL: [Self; 5] = [
        Self::Trouble,
        Self::Wait,
        Self::Depth,
        Self::HandleTime,
        Self::Restarts,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trouble => "trouble",
            Self::Wait => "wait",
            Self::Depth => "depth",
            Self::HandleTime => "handle-time",
            Self::Restarts => "restarts",
        }
    }
}

/// The period up to the present in which a measure counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Window {
    Minute,
    #[default]
    FiveMinutes,
    Hour,
}

impl Window {
    pub const ALL: [Self; 3] = [Self::Minute, Self::FiveMinutes, Self::Hour];

    pub fn minutes(self) -> u32 {
        match self {
            Self::Minute => 1,
            Self::FiveMinutes => 5,
            Self::Hour => 60,
        }
    }
}

/// A choice of actors and their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ranking<'a> {
    /// `None` for all kinds.
    pub kind: Option<&'a str>,
    pub by: Measure,
    pub window: Window,
}

/// The trouble that an actor is in. A greater value is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ActorTrouble {
    pub(crate) state: NodeState,
    /// The age of the batch in progress.
    pub(crate) age_us: u64,
    pub(crate) wait_us: u64,
    pub(crate) depth: usize,
    /// The panics of the last hour.
    pub(crate) panics: u64,
}

impl ActorTrouble {
    /// Returns true if the actor is healthy, has no batch in progress and no waiting command, and did not panic in
    /// the last hour.
    pub(crate) fn is_none(self) -> bool {
        self.state <= NodeState::Running
            && (self.age_us, self.wait_us, self.depth, self.panics) == (0, 0, 0, 0)
    }
}

impl ActorFigures {
    pub fn within(&self, window: Window) -> &WindowFigures {
        match window {
            Window::Minute => &self.last_minute,
            Window::FiveMinutes => &self.last_5_minutes,
            Window::Hour => &self.last_hour,
        }
    }

    pub(crate) fn trouble(&self) -> ActorTrouble {
        ActorTrouble {
            state: self.state,
            age_us: self.batch.as_ref().map_or(0, |batch| batch.age_us),
            wait_us: self.oldest_wait_us,
            depth: self.mailbox_depth,
            panics: self.last_hour.panics,
        }
    }
}

impl AsRef<Self> for ActorFigures {
    fn as_ref(&self) -> &Self {
        self
    }
}

type RankingKey = ((u64, u64), ActorTrouble, Reverse<Option<Timestamp>>);

impl Ranking<'_> {
    /// Returns the first `max` of these actors, the worst first. Leaves out actors of other kinds, and those with the
    /// measure 0.
    pub fn top<A: AsRef<ActorFigures>>(self, mut actors: Vec<A>, max: usize) -> Vec<A> {
        actors.retain(|actor| self.includes(actor.as_ref()));
        actors.sort_by_key(|actor| Reverse(self.ranking_key(actor.as_ref())));
        actors.truncate(max);
        actors
    }

    fn includes(self, actor: &ActorFigures) -> bool {
        let is_kind = self.kind.is_none_or(|kind| kind == actor.kind);
        is_kind
            && match self.by {
                Measure::Trouble => !actor.trouble().is_none(),
                _ => self.measure(actor) > (0, 0),
            }
    }

    fn measure(self, actor: &ActorFigures) -> (u64, u64) {
        let figures = actor.within(self.window);
        match self.by {
            Measure::Trouble => (0, 0),
            Measure::Wait => (figures.wait_max_us, 0),
            Measure::Depth => (figures.depth_max, 0),
            Measure::HandleTime => (figures.handle_max_us, 0),
            Measure::Restarts => (figures.restarts, figures.panics),
        }
    }

    fn ranking_key(self, actor: &ActorFigures) -> RankingKey {
        let older_first = Reverse(actor.started_at);
        (self.measure(actor), actor.trouble(), older_first)
    }
}

/// Returns up to `max` of these actors: first those that lead any ranking, then those that are second in any, and so
/// on. So whichever ranking a reader chooses later, its worst actors are among them.
pub fn choose_worst(actors: &[ActorFigures], max: usize) -> Vec<&ActorFigures> {
    let mut ranked = Vec::new();
    for by in Measure::ALL {
        for window in Window::ALL {
            let ranking = Ranking {
                kind: None,
                by,
                window,
            };
            let mut indexes: Vec<usize> = (0..actors.len())
                .filter(|index| ranking.includes(&actors[*index]))
                .collect();
            indexes.sort_by_key(|index| Reverse(ranking.ranking_key(&actors[*index])));
            ranked.extend(indexes.into_iter().take(max).enumerate());
        }
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    let mut is_chosen = vec![false; actors.len()];
    ranked.retain(|(_, index)| !std::mem::replace(&mut is_chosen[*index], true));
    let chosen = ranked.into_iter().take(max);
    chosen.map(|(_, index)| &actors[index]).collect()
}

/// Returns the actors that are among the first `max` of their kind by any ranking, in no particular order.
pub(crate) fn leading_actors(actors: Vec<ActorFigures>, max: usize) -> Vec<ActorFigures> {
    if max == 0 {
        return Vec::new();
    }
    let names = actors.iter().map(|actor| actor.kind.as_str());
    let kinds: BTreeSet<&str> = names.collect();
    let mut is_leader = vec![false; actors.len()];
    for kind in kinds {
        for by in Measure::ALL {
            for window in Window::ALL {
                let kind = Some(kind);
                let ranking = Ranking { kind, by, window };
                let mut ranked: Vec<usize> = (0..actors.len())
                    .filter(|index| ranking.includes(&actors[*index]))
                    .collect();
                if ranked.len() > max {
                    ranked.select_nth_unstable_by_key(max, |index| {
                        Reverse(ranking.ranking_key(&actors[*index]))
                    });
                }
                for index in ranked.into_iter().take(max) {
                    is_leader[index] = true;
                }
            }
        }
    }
    let flagged = actors.into_iter().zip(is_leader);
    flagged
        .filter_map(|(actor, is_leader)| is_leader.then_some(actor))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::snapshot_format::BatchFigures;
    use super::*;

    fn actor(name: &str, change: impl FnOnce(&mut ActorFigures)) -> ActorFigures {
        let mut figures = ActorFigures {
            kind: "account".to_owned(),
            name: name.to_owned(),
            state: NodeState::Running,
            ..ActorFigures::default()
        };
        change(&mut figures);
        figures
    }

    fn names(actors: &[ActorFigures]) -> Vec<&str> {
        actors.iter().map(|actor| actor.name.as_str()).collect()
    }

    fn in_hand(age_us: u64) -> BatchFigures {
        BatchFigures {
            age_us,
            ..BatchFigures::default()
        }
    }

    #[test]
    fn trouble_is_the_state_then_the_batch_in_hand_the_wait_the_depth_and_the_panics() {
        let actors = vec![
            actor("idle", |_| {}),
            actor("restarted", |actor| actor.last_hour.panics = 2),
            actor("deep", |actor| actor.mailbox_depth = 9),
            actor("waits", |actor| actor.oldest_wait_us = 5),
            actor("works", |actor| actor.batch = Some(in_hand(3))),
            actor("works longer", |actor| actor.batch = Some(in_hand(4))),
            actor("stuck", |actor| actor.state = NodeState::Stuck),
            actor("failed", |actor| actor.state = NodeState::Failed),
            actor("restarted once", |actor| actor.last_hour.panics = 1),
        ];
        let top = Ranking::default().top(actors.clone(), 20);
        let expected = [
            "failed",
            "stuck",
            "works longer",
            "works",
            "waits",
            "deep",
            "restarted",
            "restarted once",
        ];
        assert_eq!(names(&top), expected);
        let first = Ranking::default().top(actors, 2);
        assert_eq!(names(&first), expected[..2]);
    }

    #[test]
    fn equal_actors_stand_in_the_order_of_their_start_whatever_they_are_called() {
        let started = |name: &str, second: i64| {
            actor(name, |actor| {
                actor.mailbox_depth = 1;
                actor.started_at = Timestamp::from_second(second).ok();
            })
        };
        let actors = vec![started("b", 7), started("a", 8), started("c", 6)];
        assert_eq!(names(&Ranking::default().top(actors, 9)), ["c", "b", "a"]);
    }

    #[test]
    fn each_measure_has_its_window_and_leaves_out_actors_without_it() {
        let actors = vec![
            actor("slow once", |actor| {
                actor.last_hour.handle_max_us = 900;
            }),
            actor("slow now", |actor| {
                actor.last_minute.handle_max_us = 300;
                actor.last_hour.handle_max_us = 300;
            }),
            actor("waits", |actor| actor.last_minute.wait_max_us = 7),
            actor("deep", |actor| actor.last_minute.depth_max = 7),
            actor("panics", |actor| actor.last_minute.panics = 3),
            actor("restarts", |actor| {
                actor.last_minute.panics = 1;
                actor.last_minute.restarts = 1;
            }),
            ActorFigures {
                kind: "clerk".to_owned(),
                ..actor("clerk", |actor| actor.last_minute.wait_max_us = 9)
            },
        ];
        let top = |by, window, kind| {
            let ranking = Ranking { kind, by, window };
            names(&ranking.top(actors.clone(), 20)).join(", ")
        };
        let minute = |by| top(by, Window::Minute, Some("account"));
        assert_eq!(minute(Measure::Wait), "waits");
        assert_eq!(minute(Measure::Depth), "deep");
        assert_eq!(minute(Measure::HandleTime), "slow now");
        assert_eq!(minute(Measure::Restarts), "restarts, panics");
        let hour = top(Measure::HandleTime, Window::Hour, None);
        assert_eq!(hour, "slow once, slow now");
        assert_eq!(top(Measure::Wait, Window::Minute, None), "clerk, waits");
    }

    #[test]
    fn the_first_by_each_ranking_are_chosen_before_the_second_by_any() {
        let mut actors = vec![
            actor("idle", |_| {}),
            actor("panicked", |actor| actor.last_hour.panics = 1),
            actor("was slow", |actor| actor.last_hour.handle_max_us = 7),
        ];
        for depth in 1..9 {
            actors.push(actor(&format!("deep {depth}"), |actor| {
                actor.mailbox_depth = depth;
                actor.last_minute.depth_max = 1;
            }));
        }
        let chosen = |max| {
            let chosen = choose_worst(&actors, max);
            let names: Vec<_> = chosen.iter().map(|actor| actor.name.as_str()).collect();
            names.join(", ")
        };
        for (max, expected) in [
            (0, ""),
            (1, "deep 8"),
            (3, "deep 8, was slow, panicked"),
            (5, "deep 8, was slow, panicked, deep 7, deep 6"),
        ] {
            assert_eq!(chosen(max), expected, "{max}");
        }
        assert!(!chosen(99).contains("idle"));
    }

    #[test]
    fn the_leaders_of_each_kind_answer_every_ranking() {
        let mut actors = Vec::new();
        for number in 0..100_u64 {
            let name = number.to_string();
            actors.push(actor(&name, |actor| {
                actor.last_minute.wait_max_us = number;
                actor.last_hour.depth_max = 100 - number;
                actor.mailbox_depth = usize::try_from(number * 37 % 100).unwrap();
            }));
        }
        let chosen = leading_actors(actors.clone(), 3);
        assert!(chosen.len() <= 9, "{}", chosen.len());
        for by in Measure::ALL {
            for window in Window::ALL {
                let kind = Some("account");
                let ranking = Ranking { kind, by, window };
                let of_all = ranking.top(actors.clone(), 3);
                assert_eq!(ranking.top(chosen.clone(), 3), of_all, "{ranking:?}");
            }
        }
        assert_eq!(leading_actors(actors, 0), []);
    }
}
