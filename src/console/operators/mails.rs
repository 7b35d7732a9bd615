//! The mails to people: whether they were sent and, if not, why. Their contents are shown only in development.

use actix_web::web;
use askama::Template;

use crate::console::badges::{Badge, badge};
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::operators::list_query::ListQuery;
use crate::console::page::Answer;
use crate::console::session::operators::Viewer;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::state::ApiState;
use crate::store::operations::mails::{self, Mail, MailState};

pub(super) fn paths() -> Vec<Path> {
    vec![path("/console/mails").page(list_mails)]
}

#[derive(Template)]
#[template(path = "operators/mails.html")]
struct MailsPage {
    frame: Frame,
    is_readable: bool,
    rows: Vec<MailLine>,
    pages: PagePosition,
}

struct MailLine {
    mail: Mail,
    badge: Badge,
}

/// GET /console/mails: lists the mails of the last days, newest first.
async fn list_mails(state: web::Data<ApiState>, Viewer(session): Viewer, query: Query) -> Answer {
    let list = ListQuery::new(&query);
    let (found, total) = mails::page(&state.store, list.page()).await?;
    let lines = found.into_iter().map(|mail| MailLine {
        badge: match mail.state {
            MailState::Waiting => badge("wait", "Waiting"),
            MailState::Sent => badge("ok", "Sent"),
            MailState::Failed => badge("bad", "Failed"),
        },
        mail,
    });
    let page = MailsPage {
        frame: Frame::for_operator(&session, "Mails"),
        is_readable: state.settings.mails.are_readable,
        rows: lines.collect(),
        pages: list.pages("/console/mails", total),
    };
    show_list(&page.pages, &page)
}
