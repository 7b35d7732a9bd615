//! The pages under `/dashboard/{taxpayer}`, for the people of the taxpayer and for the integrator that acts for it.
//!
//! | Pages | File |
//! |---|---|
//! | what is to be done, and how the account fares | `overview`, `overview_part`, `overview_work`, `overview_money`, `outage_banner` |
//! | all taxpayers of an integrator, new ones, and the webhooks of many | `taxpayers`, `taxpayers_onboarding`, `taxpayers_webhooks` |
//! | the list of invoices, its filters that people keep, and acts on many of them | `invoices`, `saved_views`, `invoices_bulk`, `bulk_selection` |
//! | one invoice: its page, the head of it, its developer's view, its timeline | `invoice`, `invoice_head`, `invoice_developer`, `timeline` |
//! | how far an invoice has come, in one word | `lifecycle` |
//! | why an invoice was rejected, and the correction that the service suggests | `correction` |
//! | what can be done with an invoice, and what an accountant does with it | `invoice_acts`, `invoice_actions`, `invoice_submission` |
//! | the change of a stored invoice, and its fields | `invoice_edit`, `invoice_fields` |
//! | the correction of a signed invoice; the undoing of a batch | `invoice_correct`, `batch_undo` |
//! | files of invoices, and what an import of them would do | `import` |
//! | batches, and the inbox of suppliers' invoices | `batches`, `inbox` |
//! | customers, with what they owe | `customers` |
//! | webhook endpoints, a new one, what an owner does with them, and their deliveries | `webhooks`, `webhook_new`, `webhook_actions`, `deliveries` |
//! | a link to one delivery, for support | `delivery_link` |
//! | the catalogue of events | `webhook_events` |
//! | sending many deliveries again, and how far that is | `deliveries_bulk` |
//! | the endpoint that a page is about, its form, its health | `webhook_target`, `webhook_form`, `webhook_health` |
//! | business profile with the settings, API keys, ERP integration | `profile`, `settings`, `keys`, `integration` |
//! | the VAT of a month | `reports` |
//! | the people of the account, what they are told, and what everybody did | `contacts`, `notifications`, `activity` |
//! | the requests made with the keys, and sending one again in the sandbox | `requests`, `request_resend` |

mod activity;
mod batch_undo;
mod batches;
mod bulk_selection;
mod contacts;
mod correction;
mod customers;
mod deliveries;
mod deliveries_bulk;
mod delivery_link;
mod import;
mod inbox;
mod integration;
mod invoice;
mod invoice_actions;
mod invoice_acts;
mod invoice_correct;
mod invoice_developer;
mod invoice_edit;
mod invoice_fields;
mod invoice_head;
mod invoice_submission;
mod invoices;
mod invoices_bulk;
mod keys;
mod lifecycle;
mod notifications;
mod outage_banner;
mod overview;
mod overview_money;
mod overview_part;
mod overview_work;
mod profile;
mod reports;
mod request_resend;
mod requests;
mod saved_views;
mod settings;
mod taxpayers;
mod taxpayers_onboarding;
mod taxpayers_webhooks;
mod timeline;
mod webhook_actions;
mod webhook_events;
mod webhook_form;
mod webhook_health;
mod webhook_new;
mod webhook_target;
mod webhooks;

pub(super) use crate::console::accounts::deliveries::{DeliveryLine, event_text};
use crate::console::frame::NavigationEntry;
use crate::console::session::accounts::AccountSession;
use crate::domain::access::session::{ContactRole, SessionOwner};
use crate::http::endpoint::Path;

/// The pages in the navigation that everybody of the account may see, in this order: each with its label, and its path
/// below `/dashboard/{taxpayer}`. The label is also the title of the page.
const PAGES: [(&str, &str); 10] = [
    ("Overview", ""),
    ("Invoices", "/invoices"),
    ("Import", "/import"),
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
        saved_views::endpoints(),
        invoices_bulk::endpoints(),
        invoice::endpoints(),
        invoice_actions::endpoints(),
        invoice_submission::endpoints(),
        invoice_edit::endpoints(),
        invoice_correct::endpoints(),
        import::endpoints(),
        batches::endpoints(),
        batch_undo::endpoints(),
        inbox::endpoints(),
        customers::endpoints(),
        reports::endpoints(),
    ];
    let of_webhook = [
        webhooks::endpoints(),
        webhook_actions::endpoints(),
        webhook_new::endpoints(),
        webhook_events::endpoints(),
        deliveries_bulk::endpoints(),
        deliveries::endpoints(),
        delivery_link::endpoints(),
    ];
    let all = of_account
        .into_iter()
        .chain(of_invoices)
        .chain(of_webhook)
        .chain([
            contacts::endpoints(),
            notifications::endpoints(),
            taxpayers::endpoints(),
            taxpayers_onboarding::endpoints(),
            taxpayers_webhooks::endpoints(),
            activity::endpoints(),
            requests::endpoints(),
            request_resend::endpoints(),
        ]);
    all.flatten().collect()
}

/// Returns the pages that the person may open.
pub(super) fn navigation(session: &AccountSession) -> Vec<NavigationEntry> {
    let is_integrator = matches!(session.person.owner, SessionOwner::Integrator(_));
    let all = is_integrator.then(|| NavigationEntry {
        label: "All taxpayers",
        path: "/dashboard/taxpayers".to_owned(),
    });
    let is_owner = session.role >= ContactRole::Owner;
    let of_owner = OWNER_PAGES.iter().filter(|_| is_owner);
    let own = PAGES.iter().chain(of_owner);
    let own = own.map(|(label, path)| NavigationEntry {
        label,
        path: format!("{}{path}", base(session)),
    });
    all.into_iter().chain(own).collect()
}

/// Returns the pages of an integrator about all its taxpayers.
pub(super) fn integrator_navigation() -> Vec<NavigationEntry> {
    let pages = [
        ("All taxpayers", ""),
        ("Add taxpayers", "/new"),
        ("Activity", "/activity"),
    ];
    let entries = pages.map(|(label, path)| NavigationEntry {
        label,
        path: format!("/dashboard/taxpayers{path}"),
    });
    entries.into()
}

/// Returns the path that the pages of the session's taxpayer begin with.
fn base(session: &AccountSession) -> String {
    format!("/dashboard/{}", session.taxpayer)
}
