//! A deadline in words: the time that is left until it, or that has passed since it.

use jiff::Timestamp;

/// A deadline as pages show it. `class` is the class of its badge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadlineWords {
    pub(crate) class: &'static str,
    pub(crate) text: String,
    pub(crate) deadline: Timestamp,
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// A deadline is shown as near when at most this many seconds are left.
pub(crate) const NEAR_S: i64 = DAY;

impl DeadlineWords {
    pub(crate) fn new(deadline: Timestamp, now: Timestamp) -> Self {
        let seconds_left = deadline.duration_since(now).as_secs();
        let (class, text) = match seconds_left {
            ..0 => ("bad", format!("missed by {}", span_words(-seconds_left))),
            0..NEAR_S => ("warn", format!("in {}", span_words(seconds_left))),
            _ => ("idle", format!("in {}", span_words(seconds_left))),
        };
        Self {
            class,
            text,
            deadline,
        }
    }
}

/// Returns a span of time in its largest fitting unit, rounded down, such as `3 days`.
fn span_words(seconds: i64) -> String {
    match seconds {
        ..MINUTE => "less than a minute".to_owned(),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY => format!("{} h", seconds / HOUR),
        _ => match seconds / DAY {
            1 => "1 day".to_owned(),
            days => format!("{days} days"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_ahead_or_missed() {
        let now = Timestamp::from_second(10_000_000).unwrap();
        let class_and_text = |seconds: i64| {
            let deadline = Timestamp::from_second(10_000_000 + seconds).unwrap();
            let words = DeadlineWords::new(deadline, now);
            format!("{} {}", words.class, words.text)
        };
        for (seconds, words) in [
            (2 * DAY, "idle in 2 days"),
            (DAY + 5, "idle in 1 day"),
            (3 * HOUR, "warn in 3 h"),
            (20 * MINUTE, "warn in 20 min"),
            (5, "warn in less than a minute"),
            (-3 * HOUR, "bad missed by 3 h"),
            (-34 * DAY, "bad missed by 34 days"),
        ] {
            assert_eq!(class_and_text(seconds), words);
        }
    }
}
