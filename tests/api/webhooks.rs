//! Deliveries of notifications.
