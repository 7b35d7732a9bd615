//! `/v1/system-integrators`.
