//! The pages under `/dashboard/{taxpayer}`: a taxpayer's people, and the integrator that acts for it, see every invoice.

use crate::console::frame::NavigationEntry;
use crate::domain::access::session::SessionOwner;
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::endpoint::Path;

/// The pages of the navigation, in its order: label, and path below the one of the taxpayer.
const PAGES: &[(&str, &str)] = &[("Overview", "")];

pub(super) fn endpoints() -> Vec<Path> {
    Vec::new()
}

pub(super) fn navigation(taxpayer: TaxpayerId, person: SessionOwner) -> Vec<NavigationEntry> {
    let all = matches!(person, SessionOwner::Integrator(_))
        .then(|| NavigationEntry { label: "All taxpayers", path: "/dashboard/taxpayers".to_owned() });
    let own = PAGES
        .iter()
        .map(|(label, path)| NavigationEntry { label, path: format!("/dashboard/{taxpayer}{path}") });
    all.into_iter().chain(own).collect()
}
