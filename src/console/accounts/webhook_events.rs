//! The catalogue of webhook events: for each event its name, when it is sent, and an example.

use askama::Template;

use crate::console::accounts::navigation::base_path;
use crate::console::frame::Frame;
use crate::console::page::{Answer, show};
use crate::console::session::accounts::Reader;
use crate::http::paths::{Path, path};
use crate::http::views::webhook_event::{WebhookEventView, catalogue};

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/dashboard/{taxpayer}/webhooks/events").page(show_events)]
}

#[derive(Template)]
#[template(path = "accounts/webhook_events.html")]
struct EventsPage {
    frame: Frame,
    base: String,
    events: Vec<WebhookEventView>,
}

async fn show_events(Reader(session): Reader) -> Answer {
    std::future::ready(show(&EventsPage {
        frame: Frame::for_account(&session, "Webhook events").with_section("Webhooks"),
        base: base_path(&session),
        events: catalogue(),
    }))
    .await
}
