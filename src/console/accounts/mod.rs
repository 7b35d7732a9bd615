//! The pages under `/dashboard/{taxpayer}`, for the people of the taxpayer and for the integrator that acts for it.
//!
//! | Pages | File |
//! |---|---|
//! | the navigation, and the address that the pages of a taxpayer begin with | `navigation` |
//! | what is to be done, and the money and the invoices of the account | `overview`, `overview_part`, `overview_work`, `overview_money`, `outage_banner` |
//! | all taxpayers of an integrator, new ones, and the webhooks of many | `taxpayers`, `taxpayers_onboarding`, `taxpayers_webhooks` |
//! | the list of invoices, its rows, its totals, its filters, the filters that people save, and actions on many invoices | `invoices`, `invoice_rows`, `invoice_sums`, `list_filters`, `saved_views`, `invoices_bulk`, `bulk_selection`, `bulk_action` |
//! | one invoice: its page, the head of the page, its note and the invoice that it corrects, the list from which it was opened, its developer's view, its timeline | `invoice`, `invoice_head`, `document_facts`, `source_list`, `invoice_developer`, `timeline` |
//! | the progress of an invoice and its payment, each in one word; its taxes in words; why one of its runs is paused | `lifecycle`, `payment_word`, `tax_words`, `pause_cause` |
//! | why an invoice was rejected, and the correction that the service suggests | `correction` |
//! | what can be done with an invoice, what an accountant does with it, and whether it has changed meanwhile | `invoice_acts`, `invoice_actions`, `invoice_submission`, `seen_invoice` |
//! | the payments of an invoice on its page, the part of a credit note that is to be paid back, and taking a payment back | `invoice_payments`, `refund_share`, `invoice_take_back` |
//! | a new invoice, a credit note, and the change of a stored invoice | `invoice_new`, `credit_note`, `invoice_edit` |
//! | the form of these pages and of corrections: its fields, its values, the body that it becomes, and what it would change | `invoice_form`, `invoice_fields`, `invoice_values`, `invoice_body`, `field_changes` |
//! | the correction of a signed invoice, the invoice as its credit notes leave it, and the documents of the correction; the undoing of a batch | `invoice_correct`, `remaining_invoice`, `plan_table`, `batch_undo` |
//! | the import of files of invoices with its preview, the rows of its tables, and the answers that a file lacks | `import`, `import_lines`, `import_answers` |
//! | batches, and the inbox of suppliers' invoices | `batches`, `inbox` |
//! | customers, with what they owe; the change of one | `customers`, `customer_edit` |
//! | webhook endpoints, a new one, what an owner does with them, and their deliveries | `webhooks`, `webhook_new`, `webhook_actions`, `deliveries` |
//! | a link to one delivery, for support | `delivery_link` |
//! | the catalogue of events | `webhook_events` |
//! | sending many deliveries again, and the progress of this | `deliveries_bulk` |
//! | the endpoint that a page is about, its form, its health, and that of all endpoints | `webhook_target`, `webhook_form`, `webhook_health`, `webhook_summary` |
//! | business profile with the settings, API keys, ERP integration | `profile`, `settings`, `keys`, `integration` |
//! | the VAT of a period by rate, and its documents | `reports` |
//! | the people of the account, the mails that they get, and what everybody did | `contacts`, `notifications`, `activity` |
//! | the requests made with the keys, and sending one again in the sandbox | `requests`, `request_resend` |

mod activity;
mod batch_undo;
mod batches;
mod bulk_action;
mod bulk_selection;
mod contacts;
mod correction;
mod credit_note;
mod customer_edit;
mod customers;
mod deliveries;
mod deliveries_bulk;
mod delivery_link;
mod document_facts;
mod field_changes;
mod import;
mod import_answers;
mod import_lines;
mod inbox;
mod integration;
mod invoice;
mod invoice_actions;
mod invoice_acts;
mod invoice_body;
mod invoice_correct;
mod invoice_developer;
mod invoice_edit;
mod invoice_fields;
mod invoice_form;
mod invoice_head;
mod invoice_new;
mod invoice_payments;
mod invoice_rows;
mod invoice_submission;
mod invoice_sums;
mod invoice_take_back;
mod invoice_values;
mod invoices;
mod invoices_bulk;
mod keys;
mod lifecycle;
mod list_filters;
pub(super) mod navigation;
mod notifications;
mod outage_banner;
mod overview;
mod overview_money;
mod overview_part;
mod overview_work;
mod pause_cause;
mod payment_word;
mod plan_table;
mod profile;
mod refund_share;
mod remaining_invoice;
mod reports;
mod request_resend;
mod requests;
mod saved_views;
mod seen_invoice;
mod settings;
mod source_list;
mod tax_words;
mod taxpayers;
mod taxpayers_onboarding;
mod taxpayers_webhooks;
mod timeline;
mod webhook_actions;
mod webhook_events;
mod webhook_form;
mod webhook_health;
mod webhook_new;
mod webhook_summary;
mod webhook_target;
mod webhooks;

pub(super) use crate::console::accounts::deliveries::{DeliveryLine, event_text};
use crate::http::paths::Path;

pub(super) fn paths() -> Vec<Path> {
    let account_paths = [
        overview::paths(),
        profile::paths(),
        settings::paths(),
        keys::paths(),
        integration::paths(),
    ];
    let invoice_paths = [
        invoices::paths(),
        saved_views::paths(),
        invoices_bulk::paths(),
        invoice_new::paths(),
        invoice::paths(),
        invoice_actions::paths(),
        invoice_take_back::paths(),
        invoice_submission::paths(),
        invoice_edit::paths(),
        credit_note::paths(),
        invoice_correct::paths(),
        import::paths(),
        import_answers::paths(),
        batches::paths(),
        batch_undo::paths(),
        inbox::paths(),
        customers::paths(),
        customer_edit::paths(),
        reports::paths(),
    ];
    let webhook_paths = [
        webhooks::paths(),
        webhook_actions::paths(),
        webhook_new::paths(),
        webhook_events::paths(),
        deliveries_bulk::paths(),
        deliveries::paths(),
        delivery_link::paths(),
    ];
    let all = account_paths
        .into_iter()
        .chain(invoice_paths)
        .chain(webhook_paths)
        .chain([
            contacts::paths(),
            notifications::paths(),
            taxpayers::paths(),
            taxpayers_onboarding::paths(),
            taxpayers_webhooks::paths(),
            activity::paths(),
            requests::paths(),
            request_resend::paths(),
        ]);
    all.flatten().collect()
}
