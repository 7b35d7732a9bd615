//! A printed text with its label.

use serde::Serialize;

use crate::text::{TextSpace, printable_text};

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct LabelledText {
    pub label: String,
    pub text: String,
}

impl LabelledText {
    /// Returns a text with its label; `None` if the text has no visible character.
    pub fn new(label: &str, text: &str, space: TextSpace) -> Option<Self> {
        let text = printable_text(text, space);
        (!text.is_empty()).then(|| Self {
            label: printable_text(label, space),
            text,
        })
    }
}
