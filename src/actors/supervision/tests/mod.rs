//! The kit as a whole, with actors that panic, nap and leave.
