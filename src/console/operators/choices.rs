//! Rows of links to other views of the same page. A view is part of the address, so it can be bookmarked and shared.

use supervision::Window;

/// A row of links to other views, one of which is the current one.
pub(super) struct ChoiceRow {
    pub(super) label: &'static str,
    pub(super) choices: Vec<Choice>,
}

impl ChoiceRow {
    pub(super) fn new(label: &'static str, choices: Vec<Choice>) -> Self {
        Self { label, choices }
    }
}

pub(super) struct Choice {
    pub(super) text: String,
    pub(super) address: String,
    pub(super) is_current: bool,
}

pub(super) fn find_choice<T: Copy>(all: &[T], is_meant: impl Fn(&T) -> bool) -> Option<T> {
    all.iter().copied().find(is_meant)
}

/// Returns the window with this number of minutes; the default window if there is none.
pub(super) fn find_window(minutes: &str) -> Window {
    find_choice(&Window::ALL, |known| known.minutes().to_string() == minutes).unwrap_or_default()
}

pub(super) fn window_words(window: Window) -> &'static str {
    match window {
        Window::Minute => "1 min",
        Window::FiveMinutes => "5 min",
        Window::Hour => "60 min",
    }
}
