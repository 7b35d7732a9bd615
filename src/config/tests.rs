//! Tests of the settings as a whole.
