//! Crash accounting. Supervision cannot stop a defect such as a stack overflow or exhausted memory: one piece of
//! work can crash every process that starts it. Each crash is counted for the work that was in flight. Work with
//! one crash is isolated from other work. Work with two crashes is quarantined: it runs again only when an
//! operator releases it.

/// Work is quarantined after this number of crashes.
pub const CRASHES_MAX: u32 = 2;

/// The message that operators see for a quarantined step or delivery.
pub const QUARANTINED: &str = "quarantined: the process ended twice while this was under way; it is tried again when an operator says so";

/// True if work has crashed so often that it runs again only when an operator releases it.
pub fn is_quarantined(crashes: u32) -> bool {
    crashes >= CRASHES_MAX
}

/// Returns the crash count of work that an operator has released. The count is one below `CRASHES_MAX` at most, so one
/// more crash quarantines the work again.
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
