//! Crash accounting. One piece of work, for example with a stack overflow, can crash every process that starts it. Each
//! crash is counted for the work that was in flight. After one crash the work is isolated from other work. After two it
//! is quarantined until an operator releases it.

/// Work is quarantined after this number of crashes.
pub const CRASHES_MAX: u32 = 2;

/// The message that operators see for a quarantined step or delivery.
pub const QUARANTINED: &str = "quarantined: the process ended twice while this was under way; it is tried again when an operator says so";

/// True if work has crashed so often that it runs again only when an operator releases it.
pub fn is_quarantined(crashes: u32) -> bool {
    crashes >= CRASHES_MAX
}

/// Returns the crash count of released work: one more crash quarantines work that was quarantined before.
pub fn released(crashes: u32) -> u32 {
    crashes.min(CRASHES_MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_end_quarantines_and_after_a_release_the_next_does() {
        assert_eq!([0, 1, 2, 3].map(is_quarantined), [false, false, true, true]);
        assert_eq!([0, 1, 2, 9].map(released), [0, 1, 1, 1]);
        assert!(is_quarantined(released(2) + 1));
    }
}
