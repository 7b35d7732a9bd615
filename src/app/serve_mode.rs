//! The modes of a process that serves: normal, or paused, in which it sends nothing.

/// Determines whether a process sends anything to the authority, to webhooks and to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServeMode {
    Normal,
    /// Nothing is sent: no call to the authority, and no webhook. This is meant for a copy of a database beside the
    /// live one.
    Paused,
}
