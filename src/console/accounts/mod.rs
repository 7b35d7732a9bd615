//! The pages under `/dashboard/{taxpayer}`, for the people of the taxpayer and for the integrator that acts for it.
//!
//! | Pages | File |
//! |---|---|
//! | what is to be done, and how the account fares | `overview` |
//! | all taxpayers of an integrator | `taxpayers` |
//! | invoices: the list, one invoice with its timeline, the correction of a refused one | `invoices`, `invoice`, `timeline`, `correction` |
//! | what an accountant does with an invoice | `invoice_actions` |
//! | files of invoices, and what an import of them would do | `import` |
//! | batches, and the inbox of suppliers' invoices | `batches`, `inbox` |
//! | the webhook, what its owner does with it, and its deliveries | `webhooks`, `webhook_actions`, `deliveries` |
//! | business profile with the settings, API keys, ERP integration | `profile`, `settings`, `keys`, `integration` |
//! | the people of the account, and what everybody did | `contacts`, `activity` |

mod activity;
mod batches;
mod contacts;
mod correction;
mod deliveries;
mod import;
mod inbox;
mod integration;
mod invoice;
mod invoice_actions;
mod invoices;
mod keys;
mod overview;
mod profile;
mod settings;
mod taxpayers;
mod timeline;
mod webhook_actions;
mod webhooks;

use crate::console::frame::NavigationEntry;
use crate::console::session::accounts::AccountSession;
use crate::domain::access::session::SessionOwner;
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::endpoint::Path;

/// The pages in the navigation, in this order: each with its label, and its path below `/dashboard/{taxpayer}`. The
/// label is also the title of the page.
const PAGES: &[(&str, &str)] = &[
    ("Overview", ""),
    ("Invoices", "/invoices"),
    ("Import", "/import"),
    ("Batches", "/batches"),
    ("Inbox", "/inbox"),
    ("Webhooks", "/webhooks"),
    ("Deliveries", "/webhooks/deliveries"),
    ("Profile", "/profile"),
    ("API keys", "/keys"),
    ("Integration", "/integration"),
    ("People", "/contacts"),
    ("Activity", "/activity"),
];

pub(super) fn endpoints() -> Vec<Path> {
    let of_account = [
        overview::endpoints(),
        profile::endpoints(),
        settings::endpoints(),
        keys::endpoints(),
        integration::endpoints(),
    ];
    let of_invoices = [
        invoices::endpoints(),
        invoice::endpoints(),
        invoice_actions::endpoints(),
        import::endpoints(),
        batches::endpoints(),
        inbox::endpoints(),
    ];
    let of_webhook = [
        webhooks::endpoints(),
        webhook_actions::endpoints(),
        deliveries::endpoints(),
    ];
    let all = of_account
        .into_iter()
        .chain(of_invoices)
        .chain(of_webhook)
        .chain([
            contacts::endpoints(),
            taxpayers::endpoints(),
            activity::endpoints(),
        ]);
    all.flatten().collect()
}

pub(super) fn navigation(taxpayer: TaxpayerId, person: SessionOwner) -> Vec<NavigationEntry> {
    let all = matches!(person, SessionOwner::Integrator(_)).then(|| NavigationEntry {
        label: "All taxpayers",
        path: "/dashboard/taxpayers".to_owned(),
    });
    let own = PAGES.iter().map(|(label, path)| NavigationEntry {
        label,
        path: format!("/dashboard/{taxpayer}{path}"),
    });
    all.into_iter().chain(own).collect()
}

/// Returns the path that the pages of the session's taxpayer begin with.
fn base(session: &AccountSession) -> String {
    format!("/dashboard/{}", session.taxpayer)
}
