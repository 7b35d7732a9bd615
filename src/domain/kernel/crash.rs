//! The end of a process with work under way. A defect may make one piece of work end every process that takes it up,
//! past all supervision: the stack overflows, the memory is used up. So each end is counted for what was under way;
//! what was counted once is taken up apart from everything else, and what was counted twice is quarantined: it is not
//! taken up again unless an operator says so.

/// The ends of a process after which work is quarantined.
pub const CRASHES_MAX: u32 = 2;

/// Why a quarantined step or delivery is not tried again: shown to operators.
pub const QUARANTINED: &str = "quarantined: the process ended twice while this was under way; it is tried again when an operator says so";

/// Whether work was under way so often at the end of a process that it is not taken up again by itself.
pub fn is_quarantined(crashes: u32) -> bool {
    crashes >= CRASHES_MAX
}

/// What stays counted of work that an operator releases: one more end quarantines it again.
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
