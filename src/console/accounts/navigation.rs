//! The navigation of the pages under `/dashboard`, and the path that the pages of a taxpayer begin with.

use crate::console::frame::NavigationEntry;
use crate::console::session::accounts::AccountSession;
use crate::domain::access::session::{ContactRole, SessionOwner};

/// The page for which a person needs the right to create invoices.
const IMPORT: &str = "/import";
/// The pages in the navigation that everybody of the account may see, in their order: each with its label, and its path
/// below `/dashboard/{taxpayer}`. The label is also the title of the page.
const PAGES: [(&str, &str); 10] = [
    ("Overview", ""),
    ("Invoices", "/invoices"),
    ("Import", IMPORT),
    ("Batches", "/batches"),
    ("Inbox", "/inbox"),
    ("Customers", "/customers"),
    ("Reports", "/reports"),
    ("Webhooks", "/webhooks"),
    ("Deliveries", "/webhooks/deliveries"),
    ("Profile", "/profile"),
];
/// The pages that only owners may see. They come after the others.
const OWNER_PAGES: [(&str, &str); 6] = [
    ("API keys", "/keys"),
    ("Requests", "/requests"),
    ("Integration", "/integration"),
    ("People", "/contacts"),
    ("Notifications", "/notifications"),
    ("Activity", "/activity"),
];

/// Returns the pages that the person may open.
pub(crate) fn navigation(session: &AccountSession) -> Vec<NavigationEntry> {
    let is_integrator = matches!(session.person.owner, SessionOwner::Integrator(_));
    let all_taxpayers = is_integrator.then(|| NavigationEntry {
        label: "All taxpayers",
        path: "/dashboard/taxpayers".to_owned(),
    });
    let is_owner = session.role >= ContactRole::Owner;
    let owner_pages = OWNER_PAGES.iter().filter(|_| is_owner);
    let may_act = session.role >= ContactRole::Accountant;
    let pages = PAGES.iter();
    let account_pages = pages
        .filter(|(_, path)| may_act || *path != IMPORT)
        .chain(owner_pages);
    let account_pages = account_pages.map(|(label, path)| NavigationEntry {
        label,
        path: format!("{}{path}", base_path(session)),
    });
    all_taxpayers.into_iter().chain(account_pages).collect()
}

/// Returns the pages of an integrator about all its taxpayers.
pub(crate) fn integrator_navigation() -> Vec<NavigationEntry> {
    let pages = [
        ("All taxpayers", ""),
        ("Add taxpayers", "/new"),
        ("Requests", "/requests"),
        ("Activity", "/activity"),
    ];
    let entries = pages.map(|(label, path)| NavigationEntry {
        label,
        path: format!("/dashboard/taxpayers{path}"),
    });
    entries.into()
}

/// Returns the path that the pages of the session's taxpayer begin with.
pub(super) fn base_path(session: &AccountSession) -> String {
    format!("/dashboard/{}", session.taxpayer)
}
