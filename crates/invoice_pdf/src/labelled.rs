//! A printed text with its label.

use serde::Serialize;

use crate::text::{Room, printable_text};

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Labelled {
    pub label: String,
    pub text: String,
}

impl Labelled {
    /// Returns a text with its label; `None` if the text has no visible character.
    pub fn new(label: &str, text: &str, room: Room) -> Option<Self> {
        let text = printable_text(text, room);
        (!text.is_empty()).then(|| Self {
            label: printable_text(label, room),
            text,
        })
    }
}
