//! `/health`, `/metrics` and `/ops`.
