//! The pages under `/console`: operators see every actor and everything that waits, and move it.

mod overview;

use crate::console::frame::NavigationEntry;
use crate::http::endpoint::Path;

/// The pages of the navigation, in its order.
const PAGES: &[(&str, &str)] = &[("Overview", "/console")];

pub(super) fn endpoints() -> Vec<Path> {
    [overview::endpoints()].into_iter().flatten().collect()
}

pub(super) fn navigation() -> Vec<NavigationEntry> {
    PAGES.iter().map(|(label, path)| NavigationEntry { label, path: (*path).to_owned() }).collect()
}
