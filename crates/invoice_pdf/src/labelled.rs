//! A text of the page with its label.

use serde::Serialize;

use crate::text::{Room, set_text};

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Labelled {
    pub label: String,
    pub text: String,
}

impl Labelled {
    /// Returns a text with its label; `None` if nothing of the text can be seen.
    pub fn new(label: &str, text: &str, room: Room) -> Option<Self> {
        let text = set_text(text, room);
        (!text.is_empty()).then(|| Self {
            label: set_text(label, room),
            text,
        })
    }
}
