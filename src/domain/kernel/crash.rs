//! Crash accounting. A defect can make one piece of work crash every process that starts it, beyond the reach
//! of supervision: a stack overflow, or exhausted memory. Each crash is counted for the work in flight. Work
//! with one crash is isolated from other work. Work with two is quarantined: it runs again only when an
//! operator releases it.

/// The number of crashes that quarantines work.
pub const CRASHES_MAX: u32 = 2;

/// The reason for not trying a quarantined step or delivery again; shown to operators.
pub const QUARANTINED: &str = "quarantined: the process ended twice while this was under way; it is tried again when an operator says so";

/// True if work crashed so often that it no longer runs by itself.
pub fn is_quarantined(crashes: u32) -> bool {
    crashes >= CRASHES_MAX
}

/// The crashes that still count after an operator releases the work: one more quarantines it again.
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
