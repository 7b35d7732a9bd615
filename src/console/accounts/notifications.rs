//! The mails that the people of an account get, and the address of the chat to which the same texts are posted.

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use secrecy::ExposeSecret as _;

use crate::console::accounts::navigation::base_path;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show_with_status};
use crate::console::session::accounts::{AccountSession, Owner};
use crate::domain::integration::origin::Origin;
use crate::domain::kernel::audit::{AuditAction, AuditEntry};
use crate::domain::notice::NoticeTopic;
use crate::http::forms::{reader, webhook};
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::operations::chat_hooks;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/notifications")
            .page(show_notifications)
            .form(save_chat_address)
            .allows_form_repeat(),
    ]
}

#[derive(Template)]
#[template(path = "accounts/notifications.html")]
struct NotificationsPage {
    frame: Frame,
    base: String,
    /// Scheme and host of the chat's webhook; `None` if there is none. The rest of the address is a secret and not
    /// shown.
    chat: Option<String>,
    form: FormState,
    topics: Vec<(&'static str, &'static str)>,
}

async fn show_notifications(state: web::Data<ApiState>, Owner(session): Owner) -> Answer {
    render(&state, &session, FormState::default()).await
}

async fn render(state: &ApiState, session: &AccountSession, form: FormState) -> Answer {
    let hook = chat_hooks::owned_by(&state.store, session.taxpayer).await?;
    let origin = hook.and_then(|url| Origin::from_url(url.expose_secret()));
    let topics = NoticeTopic::ALL
        .iter()
        .map(|topic| (topic.label(), describe_recipients(*topic)));
    let status = if form.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let page = NotificationsPage {
        frame: Frame::for_account(session, "Notifications"),
        base: base_path(session),
        chat: origin.map(|origin| origin.to_string()),
        form,
        topics: topics.collect(),
    };
    show_with_status(status, &page)
}

/// Says which people of an account are notified about a topic.
fn describe_recipients(topic: NoticeTopic) -> &'static str {
    match topic {
        NoticeTopic::Access => "The person alone",
        NoticeTopic::Security => "Owners of keys; of a password the person alone",
        NoticeTopic::Webhook => "Owners, and the integrator",
        NoticeTopic::Outage => "Owners and accountants, and the integrator",
        NoticeTopic::Invoices | NoticeTopic::Deadlines => "Owners and accountants",
    }
}

/// POST of the form: sets the address of the chat, or removes it.
async fn save_chat_address(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    form: Form<FormValues>,
) -> Answer {
    match set_chat_address(&state, &session, &form.0).await {
        Ok(notice) => Ok(go_to(
            &format!("{}/notifications", base_path(&session)),
            notice,
        )),
        Err(error) => {
            let refused = FormState::from_refusal(error, form.0)?;
            render(&state, &session, refused).await
        }
    }
}

/// Sets or removes the address of the chat. Returns the notice that says so.
async fn set_chat_address(
    state: &ApiState,
    session: &AccountSession,
    form: &FormValues,
) -> Result<&'static str, ApiError> {
    let url = if form.text("remove").is_empty() {
        // The mailer may only post to addresses that are allowed for everybody, not to the networks that an operator
        // opened for the taxpayer's ERP system.
        let policy = &state.webhook_urls;
        let typed = form.to_object(&["chat_url"]);
        let read = reader::read(&typed, &state.catalog.get(), |reader| {
            webhook::read_url(reader.required("chat_url"), policy)
        })?;
        Some(read.value.into())
    } else {
        None
    };
    let entry = AuditEntry::new(
        session.by,
        AuditAction::SetChat,
        &session.taxpayer,
        state.now(),
    );
    let entry = entry.for_taxpayer(session.taxpayer);
    chat_hooks::set_address(&state.store, session.taxpayer, url.as_ref(), entry).await?;
    Ok(match url {
        Some(_) => "The chat is told from now on.",
        None => "The chat is told nothing more.",
    })
}
