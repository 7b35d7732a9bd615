//! The pipeline: one supervised actor per running run drives an invoice through the authority.
//!
//! | Concept | File |
//! |---|---|
//! | who starts and awaits runs | `door` |

pub mod door;
