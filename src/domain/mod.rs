//! Floor 0, pure: no clock, no chance, no input or output.

pub mod clock;
