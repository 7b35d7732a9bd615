//! Floor 1: outgoing webhooks.
