//! The frame of the documentation: its navigation and its search.

use crate::console::docs::guides;
use crate::console::frame::{Frame, NavigationEntry, SearchForm};

/// The labels of the navigation's entries that are not guides.
pub(super) const OVERVIEW: &str = "Overview";
pub(super) const REFERENCE: &str = "API reference";
pub(super) const ERRORS: &str = "Error codes";

const SEARCH: SearchForm = SearchForm {
    action: "/docs/search",
    label: "Search the documentation",
    placeholder: "field, path, error code …",
};

/// Returns the frame of a page that belongs to this entry of the navigation.
pub(super) fn docs_frame(title: &str, section: &str) -> Frame {
    let entry = |label, path: &str| NavigationEntry {
        label,
        path: path.to_owned(),
    };
    let mut navigation = vec![entry(OVERVIEW, "/docs/")];
    navigation.extend(guides::all().iter().map(|guide| NavigationEntry {
        label: guide.label,
        path: guide.path(),
    }));
    navigation.push(entry(REFERENCE, "/docs/reference"));
    navigation.push(entry(ERRORS, "/docs/errors"));
    Frame {
        navigation,
        search: Some(&SEARCH),
        ..Frame::for_visitor(title).with_section(section)
    }
}
