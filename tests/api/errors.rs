//! Failures: the envelope, and what every answer carries.
