//! The choice of mails. People who are signed in have a page for it. A link in each mail leads to a page on which a
//! person ends or snoozes one topic without signing in.

use actix_web::{HttpRequest, web};
use askama::Template;
use jiff::{SignedDuration, Timestamp};

use crate::console::filters;
use crate::console::form_values::FormValues;
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show};
use crate::console::session::{self, SignedIn};
use crate::domain::access::session::SessionOwner;
use crate::domain::notice::{NoticeScope, NoticeTopic};
use crate::http::extract::form;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::operations::mail_choices::{self, MailChoice};

const PATH: &str = "/account/mails";
const DAY: SignedDuration = SignedDuration::from_hours(24);
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The options of the form, each with its label.
const CHOICES: [(&str, &str); 4] = [
    ("on", "Tell me"),
    ("day", "Not for a day"),
    ("week", "Not for a week"),
    ("off", "Never"),
];

pub(super) fn paths() -> Vec<Path> {
    vec![
        path(PATH)
            .page(show_mail_choices)
            .form(save_mail_choices)
            .allows_form_repeat(),
        path("/sign-in/unsubscribe/{person}/{topic}/{signature}")
            .page(show_unsubscribe)
            .form(unsubscribe)
            .allows_form_repeat(),
    ]
}

#[derive(Template)]
#[template(path = "mail_choices.html")]
struct ChoicesPage {
    frame: Frame,
    lines: Vec<ChoiceLine>,
    choices: [(&'static str, &'static str); 4],
}

struct ChoiceLine {
    topic: NoticeTopic,
    /// The current choice as an option of the form; `keep` while the topic is snoozed.
    chosen: &'static str,
    muted_until: Option<Timestamp>,
}

/// Returns the topics about which this person gets mails and may end or snooze them.
fn offered_topics(owner: SessionOwner) -> Vec<NoticeTopic> {
    let gets_mails = |topic: &NoticeTopic| match owner {
        SessionOwner::Contact { .. } => true,
        SessionOwner::Integrator(_) => matches!(topic, NoticeTopic::Webhook | NoticeTopic::Outage),
        SessionOwner::Operator(_) => false,
    };
    let all = NoticeTopic::ALL.iter().copied();
    all.filter(|topic| topic.may_be_muted())
        .filter(gets_mails)
        .collect()
}

/// GET /account/mails: shows the topics and the current choices.
async fn show_mail_choices(
    state: web::Data<ApiState>,
    request: HttpRequest,
    signed_in: SignedIn,
) -> Answer {
    let person = &signed_in.session.person;
    let scope = NoticeScope::Person(person.owner);
    let choices = mail_choices::owned_by(&state.store, scope, state.now()).await?;
    let lines = offered_topics(person.owner).into_iter().map(|topic| {
        let (chosen, muted_until) = match choices.get(&topic) {
            None | Some(MailChoice::Sent) => ("on", None),
            Some(MailChoice::Never) => ("off", None),
            Some(MailChoice::MutedUntil(until)) => ("keep", Some(*until)),
        };
        ChoiceLine {
            topic,
            chosen,
            muted_until,
        }
    });
    show(&ChoicesPage {
        lines: lines.collect(),
        choices: CHOICES,
        frame: Frame {
            notice: session::notice(&request),
            ..Frame::for_person(person, &signed_in.csrf, "Your mails")
        },
    })
}

/// Returns the choice that an option of the form stands for; `None` for the option that changes nothing.
fn read_choice(word: &str, now: Timestamp) -> Option<MailChoice> {
    let after = |wait: SignedDuration| now.saturating_add(wait).unwrap_or(Timestamp::MAX);
    match word {
        "on" => Some(MailChoice::Sent),
        "day" => Some(MailChoice::MutedUntil(after(DAY))),
        "week" => Some(MailChoice::MutedUntil(after(WEEK))),
        "off" => Some(MailChoice::Never),
        _ => None,
    }
}

/// POST /account/mails: stores the choices.
async fn save_mail_choices(
    state: web::Data<ApiState>,
    signed_in: SignedIn,
    form: Form<FormValues>,
) -> Answer {
    let owner = signed_in.session.person.owner;
    let now = state.now();
    let wanted = offered_topics(owner).into_iter().filter_map(|topic| {
        let choice = read_choice(form.0.text(topic.as_str()), now)?;
        Some((topic, choice))
    });
    let wanted: Vec<_> = wanted.collect();
    mail_choices::set_choices(&state.store, NoticeScope::Person(owner), &wanted).await?;
    Ok(go_to(PATH, "Your choice was saved."))
}

/// The page that asks whether to end or snooze a topic, or that says that this was done.
#[derive(Template)]
#[template(path = "unsubscribe.html")]
struct UnsubscribePage {
    frame: Frame,
    label: &'static str,
    is_done: bool,
}

fn render(topic: NoticeTopic, is_done: bool) -> Answer {
    show(&UnsubscribePage {
        frame: Frame::for_visitor("Mails about this"),
        label: topic.label(),
        is_done,
    })
}

type LinkParts = web::Path<(String, String, String)>;

/// GET of the link in a mail: asks for confirmation. Changes nothing, because some mail programs open each link that
/// they see.
async fn show_unsubscribe(state: web::Data<ApiState>, link: LinkParts) -> Answer {
    let (person, topic, signature) = link.into_inner();
    let links = &state.settings.mails.links;
    let verified = links.verify_link(&person, &topic, &signature);
    std::future::ready(match verified {
        Some((_, topic)) => render(topic, false),
        None => Err(ApiError::route_not_found()),
    })
    .await
}

/// POST of the link: ends or snoozes the topic. Mail programs send it directly, for their own unsubscribe button (RFC
/// 8058).
async fn unsubscribe(state: web::Data<ApiState>, request: HttpRequest, link: LinkParts) -> Answer {
    let (person, topic, signature) = link.into_inner();
    let links = &state.settings.mails.links;
    let Some((person, topic)) = links.verify_link(&person, &topic, &signature) else {
        return Err(ApiError::route_not_found());
    };
    let body = form::take_form(&request)?;
    let fields = url::form_urlencoded::parse(&body);
    let word = fields.filter(|(name, _)| name == "choice").last();
    let word = word.map_or_else(|| "off".to_owned(), |(_, word)| word.into_owned());
    let choice = read_choice(&word, state.now()).unwrap_or(MailChoice::Never);
    mail_choices::set_choices(&state.store, person, &[(topic, choice)]).await?;
    render(topic, true)
}
