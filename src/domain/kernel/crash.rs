//! Crash accounting. One piece of work, for example with a stack overflow, can crash every process that starts it. Each
//! crash is counted for the work that was in flight, although other work may have caused it.
//!
//! | Crashes | The work |
//! |---|---|
//! | 1 | runs again at once beside other work; each piece is recorded before it begins |
//! | 2 | runs alone: one piece of a kind of work begins at a time |
//! | 3 | is quarantined: it runs again when the quarantine is lifted, once, or when an operator releases it |

/// From this number of crashes on, work runs alone.
const ALONE_FROM_CRASHES: u32 = 2;

/// Work is quarantined after this number of crashes.
pub const CRASHES_MAX: u32 = 3;

/// Work is quarantined after this number of panics. The number is lower than `CRASHES_MAX`, because a panic shows which
/// work caused it.
pub const PANICS_MAX: u32 = 2;

/// The messages that operators see for a quarantined step or delivery.
const QUARANTINED_MESSAGE: &str = "quarantined: the process ended three times while this was under way; it is tried once more, alone, \
     when a process has lived for a while, or when an operator says so";
const QUARANTINED_AGAIN_MESSAGE: &str = "quarantined: the process ended again while this was under way alone; it is tried again when an operator says so";
const CRASHED_AND_PANICKED_MESSAGE: &str = "quarantined: this panicked, and the process ended three times while it was under way; it is tried again when an \
     operator says so";
const PANICKED_MESSAGE: &str =
    "quarantined: this panicked twice; it is tried again when an operator says so";

/// The crashes and panics that were counted for one piece of work since it last made progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CrashHistory {
    /// The number of processes that crashed while the work was, or may have been, in flight.
    pub crashes: u32,
    /// The number of panics of the work. The process survives a panic.
    pub panics: u32,
    /// True if the quarantine was lifted once without an operator. It is lifted only once: if the process crashes
    /// again, the work itself probably causes the crashes.
    pub is_lifted: bool,
}

impl CrashHistory {
    #[must_use]
    pub fn after_crash(self) -> Self {
        Self {
            crashes: self.crashes + 1,
            ..self
        }
    }

    #[must_use]
    pub fn after_panic(self) -> Self {
        Self {
            panics: self.panics + 1,
            ..self
        }
    }

    /// True if the work was in flight at a crash. The id of such work is recorded before the work begins again, so that
    /// a further crash is counted for it.
    pub fn is_crash_suspect(self) -> bool {
        self.crashes > 0
    }

    /// True if the work was in flight at two crashes, so that it must not begin at the same time as other such work.
    pub fn must_run_alone(self) -> bool {
        self.crashes >= ALONE_FROM_CRASHES
    }

    /// True if the quarantine of the work was lifted without an operator and the work was not done since. Its next crash
    /// quarantines it for good, so no other work that must run alone may be under way beside it.
    pub fn is_last_try(self) -> bool {
        self.is_lifted && self.must_run_alone()
    }

    pub fn is_quarantined(self) -> bool {
        self.crashes >= CRASHES_MAX || self.panics >= PANICS_MAX
    }

    /// True if the quarantine can be lifted without an operator: only crashes caused it, and it was never lifted.
    pub fn may_lift_quarantine(self) -> bool {
        self.crashes >= CRASHES_MAX && self.panics == 0 && !self.is_lifted
    }

    /// Releases the work from quarantine. One more of what caused the quarantine puts it there again: a crash, a panic,
    /// or either of them if it had crashes and a panic. Work that was in flight at crashes then runs alone.
    #[must_use]
    pub fn release(self) -> Self {
        Self {
            crashes: self.crashes.min(CRASHES_MAX - 1),
            panics: self.panics.min(PANICS_MAX - 1),
            ..self
        }
    }

    /// Releases the work from quarantine without an operator. One more crash quarantines it until an operator releases
    /// it.
    #[must_use]
    pub fn lift_quarantine(self) -> Self {
        Self {
            is_lifted: true,
            ..self.release()
        }
    }

    /// Returns a text that says how often the work panicked and how often a process crashed during it.
    pub fn cause_in_words(self) -> String {
        match self {
            Self {
                crashes: 0, panics, ..
            } => format!("it panicked {}", times_in_words(panics)),
            Self {
                crashes, panics: 0, ..
            } => {
                format!(
                    "the process crashed {} while it was in flight",
                    times_in_words(crashes)
                )
            }
            Self {
                crashes, panics, ..
            } => format!(
                "it panicked {}, and the process crashed {} while it was in flight",
                times_in_words(panics),
                times_in_words(crashes)
            ),
        }
    }

    /// Returns the message that operators see while the work is quarantined.
    pub fn quarantine_message(self) -> &'static str {
        match self {
            Self { crashes, .. } if crashes < CRASHES_MAX => PANICKED_MESSAGE,
            Self { panics: 1.., .. } => CRASHED_AND_PANICKED_MESSAGE,
            Self {
                is_lifted: true, ..
            } => QUARANTINED_AGAIN_MESSAGE,
            _ => QUARANTINED_MESSAGE,
        }
    }
}

fn times_in_words(count: u32) -> String {
    if count == 1 {
        "once".to_owned()
    } else {
        format!("{count} times")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(crashes: u32, panics: u32) -> CrashHistory {
        CrashHistory {
            crashes,
            panics,
            is_lifted: false,
        }
    }

    #[test]
    fn each_crash_makes_the_work_more_suspect() {
        let table = [
            // crashes, panics: is suspect, goes alone, is quarantined, may be lifted
            (0, 0, [false, false, false, false]),
            (1, 0, [true, false, false, false]),
            (2, 0, [true, true, false, false]),
            (3, 0, [true, true, true, true]),
            (4, 0, [true, true, true, true]),
            (0, 1, [false, false, false, false]),
            (0, 2, [false, false, true, false]),
            (2, 1, [true, true, false, false]),
            (3, 1, [true, true, true, false]),
        ];
        for (crashes, panics, expected) in table {
            let history = after(crashes, panics);
            let found = [
                history.is_crash_suspect(),
                history.must_run_alone(),
                history.is_quarantined(),
                history.may_lift_quarantine(),
            ];
            assert_eq!(found, expected, "{history:?}");
        }
    }

    #[test]
    fn released_work_runs_alone_and_its_next_crash_quarantines_it_again() {
        for released in [
            after(3, 0).release(),
            after(9, 0).release(),
            after(3, 0).lift_quarantine(),
        ] {
            assert!(
                released.must_run_alone() && !released.is_quarantined(),
                "{released:?}"
            );
            assert!(released.after_crash().is_quarantined(), "{released:?}");
        }
        let panicked = after(0, 2).release();
        assert!(!panicked.is_quarantined() && panicked.after_panic().is_quarantined());
        assert!(
            after(3, 0).release().after_crash().may_lift_quarantine(),
            "only an operator has released it"
        );
    }

    #[test]
    fn a_quarantine_is_lifted_once() {
        let again = after(3, 0).lift_quarantine().after_crash();
        assert!(again.is_quarantined() && !again.may_lift_quarantine());
        assert!(
            !again.release().after_crash().may_lift_quarantine(),
            "a release by an operator does not change that"
        );
        assert_eq!(
            [after(3, 0), again, after(3, 1), after(1, 2)].map(CrashHistory::quarantine_message),
            [
                QUARANTINED_MESSAGE,
                QUARANTINED_AGAIN_MESSAGE,
                CRASHED_AND_PANICKED_MESSAGE,
                PANICKED_MESSAGE
            ]
        );
    }

    #[test]
    fn a_history_of_crashes_decides_what_becomes_of_the_work() {
        type Event = fn(CrashHistory) -> CrashHistory;
        const CRASH: Event = CrashHistory::after_crash;
        const PANIC: Event = CrashHistory::after_panic;
        const LIFT: Event = CrashHistory::lift_quarantine;
        const RELEASE: Event = CrashHistory::release;
        let crashed = [CRASH, CRASH, CRASH];
        let isolated = "in its turn";
        // Each case: the events after three crashes, and the state or message that follows.
        let cases: [(&[Event], &str); 12] = [
            (&[], QUARANTINED_MESSAGE),
            (&[LIFT], "last try"),
            (&[LIFT, CRASH], QUARANTINED_AGAIN_MESSAGE),
            (&[LIFT, PANIC], "last try"),
            (&[LIFT, PANIC, CRASH], CRASHED_AND_PANICKED_MESSAGE),
            (&[LIFT, PANIC, PANIC], PANICKED_MESSAGE),
            (&[RELEASE], isolated),
            (&[RELEASE, CRASH], QUARANTINED_MESSAGE),
            (&[RELEASE, PANIC], isolated),
            (&[RELEASE, CRASH, LIFT], "last try"),
            (&[LIFT, CRASH, RELEASE], "last try"),
            (&[LIFT, CRASH, RELEASE, CRASH], QUARANTINED_AGAIN_MESSAGE),
        ];
        for (events, expected) in cases {
            let all = crashed.iter().chain(events);
            let history = all.fold(CrashHistory::default(), |history, event| event(history));
            let found = if history.is_quarantined() {
                history.quarantine_message()
            } else if history.is_last_try() {
                "last try"
            } else if history.must_run_alone() {
                isolated
            } else {
                "beside others"
            };
            assert_eq!(found, expected, "{history:?}");
            assert_eq!(
                history.may_lift_quarantine(),
                found == QUARANTINED_MESSAGE,
                "{history:?}"
            );
        }
    }

    #[test]
    fn the_cause_says_what_was_counted() {
        let said = [(3, 0), (1, 0), (0, 2), (3, 1)]
            .map(|(crashes, panics)| after(crashes, panics).cause_in_words());
        assert_eq!(
            said,
            [
                "the process crashed 3 times while it was in flight",
                "the process crashed once while it was in flight",
                "it panicked 2 times",
                "it panicked once, and the process crashed 3 times while it was in flight",
            ]
        );
    }
}
