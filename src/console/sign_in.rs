//! Signing in and out. Attempts to guess passwords are slowed down by account and by address. The answers do not reveal
//! whether an account exists. Accounts of several kinds may have the same email, and even the same password. A person
//! whose password opens several of them chooses one and enters the password again, so that the service keeps no
//! password in between.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;
use secrecy::SecretString;
use serde::Deserialize;

use crate::console::frame::Frame;
use crate::console::landing::{home_path, is_page_path};
use crate::console::page::{Answer, Form, PublicForm, redirect, show, show_with_status};
use crate::console::second_factor;
use crate::console::session::{self, Refusal, SignedIn};
use crate::console::session_start::{PasswordProof, start_session};
use crate::domain::access::session::{Person, SessionKind, SessionOwner};
use crate::http::limits::{Attempt, TriedPerson};
use crate::http::listener::Listener;
use crate::http::middleware::client_address::client_address;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::people::{self, SignInAccount};
use crate::store::accounts::sessions;

const WRONG_PASSWORD_TEXT: &str = "Wrong email or password.";
const CHOICE_TEXT: &str =
    "This password opens more than one account. Choose one, and enter the password again.";

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/sign-in")
            .page(sign_in_page)
            .form(sign_in)
            .allows_form_repeat(),
        path("/sign-out").form(sign_out),
    ]
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    next: String,
    email: String,
    refusal: Option<&'static str>,
    /// True if the person sent a form after the session had ended.
    has_ended: bool,
    sends_mails: bool,
    /// The accounts from which the person may choose.
    accounts: Vec<AccountOption>,
    /// True if the password opens several accounts, so that the person has to choose.
    must_choose: bool,
}

impl SignInPage {
    /// Returns the page for a person who has not chosen an account.
    fn new(state: &ApiState) -> Self {
        Self {
            frame: Frame::for_visitor("Sign in"),
            next: String::new(),
            email: String::new(),
            refusal: None,
            has_ended: false,
            sends_mails: state.settings.mails.are_sent,
            accounts: AccountOption::for_each_kind(None),
            must_choose: false,
        }
    }

    fn shows_accounts(&self) -> bool {
        self.must_choose || self.accounts.iter().any(|account| account.is_chosen)
    }
}

/// An account of an email. An email has at most one account of each kind, so the kind names the account.
struct AccountOption {
    kind: SessionKind,
    label: String,
    is_chosen: bool,
}

impl AccountOption {
    /// Returns an option for each kind of account, whether or not there is such an account.
    fn for_each_kind(chosen: Option<SessionKind>) -> Vec<Self> {
        let kinds = SessionKind::ALL.iter().copied();
        kinds
            .map(|kind| Self {
                kind,
                label: kind_label(kind).to_owned(),
                is_chosen: chosen == Some(kind),
            })
            .collect()
    }
}

impl From<&Person> for AccountOption {
    fn from(person: &Person) -> Self {
        let kind = person.owner.kind();
        let label = kind_label(kind);
        Self {
            kind,
            label: match &person.name {
                Some(name) => format!("{label}: {name}"),
                None => label.to_owned(),
            },
            is_chosen: false,
        }
    }
}

fn kind_label(kind: SessionKind) -> &'static str {
    match kind {
        SessionKind::Operator => "Operator",
        SessionKind::Contact => "Contact person of a taxpayer",
        SessionKind::Integrator => "Integrator",
    }
}

#[derive(Deserialize)]
struct SignInQuery {
    #[serde(default)]
    next: String,
    #[serde(default)]
    ended: bool,
}

#[derive(Deserialize)]
struct SignInForm {
    email: String,
    password: SecretString,
    #[serde(default)]
    next: String,
    /// The kind of the chosen account; empty if any account will do.
    #[serde(default)]
    account: String,
}

/// GET /sign-in: shows the form. Redirects a person who is signed in already, such as in another tab, to the page that
/// led here, or else to the first page.
async fn sign_in_page(
    state: web::Data<ApiState>,
    request: HttpRequest,
    signed_in: Result<SignedIn, Refusal>,
    query: web::Query<SignInQuery>,
) -> Answer {
    let SignInQuery { next, ended } = query.into_inner();
    if let Ok(SignedIn { session, .. }) = signed_in {
        return Ok(redirect(&path_after_sign_in(next, session.person.owner)));
    }
    std::future::ready(show(&SignInPage {
        frame: Frame {
            notice: session::notice(&request),
            ..Frame::for_visitor("Sign in")
        },
        next,
        has_ended: ended,
        ..SignInPage::new(&state)
    }))
    .await
}

/// Returns the path of the page that led to the sign-in or, if there is none, of the person's first page.
fn path_after_sign_in(next: String, owner: SessionOwner) -> String {
    if is_page_path(&next) {
        next
    } else {
        home_path(owner)
    }
}

/// POST /sign-in: opens a session, always a new one.
async fn sign_in(
    state: web::Data<ApiState>,
    request: HttpRequest,
    form: PublicForm<SignInForm>,
) -> Answer {
    let SignInForm {
        email,
        password,
        next,
        account,
    } = form.0;
    let chosen = SessionKind::parse(&account);
    let typed = TypedAccount {
        email: &email,
        chosen,
    };
    let mut opened = find_accounts(&state, &request, &typed, password).await?;
    if opened.len() > 1 {
        return show(&SignInPage {
            next,
            email,
            refusal: Some(CHOICE_TEXT),
            accounts: opened
                .iter()
                .map(|account| AccountOption::from(&account.person))
                .collect(),
            must_choose: true,
            ..SignInPage::new(&state)
        });
    }
    let Some(account) = opened.pop() else {
        let page = SignInPage {
            next,
            email,
            refusal: Some(WRONG_PASSWORD_TEXT),
            accounts: AccountOption::for_each_kind(chosen),
            ..SignInPage::new(&state)
        };
        return show_with_status(StatusCode::UNAUTHORIZED, &page);
    };
    let person = account.person;
    let proof = PasswordProof {
        owner: person.owner,
        password_hash: account.password_hash,
        has_code: false,
    };
    let path = path_after_sign_in(next, person.owner);
    if person.has_second_factor {
        return second_factor::ask_for_code(&state, &request, &proof, &path).await;
    }
    start_session(&state, &request, &proof, &path).await
}

/// The account that a person typed: an email and, if the person chose one, the kind of the account.
struct TypedAccount<'a> {
    email: &'a str,
    chosen: Option<SessionKind>,
}

/// The accounts that one password is compared with at the same time, and the attempts that the limits count for it.
#[derive(Default)]
struct PasswordTrial {
    accounts: Vec<SignInAccount>,
    attempts: Vec<Attempt>,
}

/// Returns the enabled accounts that the email and the password open. First tries the accounts whose person has
/// signed in before in this browser; these attempts count against the limit of the browser. If none of them opens,
/// tries the others, against the limit for unknown browsers. It does this even if there are no other accounts, so that
/// neither the response time nor a limit reveals how many accounts the email has.
async fn find_accounts(
    state: &web::Data<ApiState>,
    request: &HttpRequest,
    typed: &TypedAccount<'_>,
    password: SecretString,
) -> Result<Vec<SignInAccount>, ApiError> {
    let listener = Listener::from_request(request);
    let mut found = people::find_accounts_by_email(&state.store, typed.email).await?;
    found.retain(|account| listener.serves_person(account.person.owner));
    if let Some(kind) = typed.chosen {
        found.retain(|account| account.person.owner.kind() == kind);
    }
    let owners = found.iter().map(|account| account.person.owner).collect();
    let attempt = |device| Attempt {
        person: TriedPerson::for_password(typed.email),
        device,
        address: client_address(request),
    };
    let mut known_browser = PasswordTrial::default();
    let mut unknown_browser = PasswordTrial::default();
    unknown_browser.attempts.push(attempt(None));
    for account in found {
        let device = session::known_device(request, state, account.person.owner);
        if device.is_some() {
            known_browser.attempts.push(attempt(device));
            known_browser.accounts.push(account);
        } else {
            unknown_browser.accounts.push(account);
        }
    }
    let mut opened = Vec::new();
    if !known_browser.accounts.is_empty() {
        opened = try_password(state, known_browser, password.clone()).await?;
    }
    if opened.is_empty() {
        opened = try_password(state, unknown_browser, password).await?;
    }
    if opened.is_empty() {
        record_refused_passwords(state, request, owners);
    }
    Ok(opened)
}

/// Returns the enabled accounts of a trial that the password opens. Computes one password hash for all accounts with
/// the same email.
async fn try_password(
    state: &ApiState,
    trial: PasswordTrial,
    password: SecretString,
) -> Result<Vec<SignInAccount>, ApiError> {
    let now = state.now();
    let mut counted = Vec::new();
    for attempt in trial.attempts {
        counted.push(state.sign_ins.begin_attempt(attempt, now).await?);
    }
    let accounts = trial.accounts;
    let hashes = accounts
        .iter()
        .map(|account| account.password_hash.clone())
        .collect();
    let matching = state.passwords.find_matches(password, hashes).await?;
    let opens_all = matching.len() == accounts.len();
    let accounts = accounts.into_iter().enumerate();
    let opened: Vec<_> = accounts
        .filter(|(position, account)| matching.contains(position) && !account.is_disabled)
        .map(|(_, account)| account)
        .collect();
    // If the password does not open one of the accounts, the attempt stays counted. Otherwise the holder of one
    // account could try any number of passwords of another account with the same email, by first making each of them
    // the password of their own account.
    if opens_all && !opened.is_empty() {
        for attempt in counted {
            state.sign_ins.uncount_success(attempt, now);
        }
    }
    Ok(opened)
}

/// Returns true if this is the password of this person. Other accounts with the same email do not count.
pub(super) async fn is_password_right(
    state: &web::Data<ApiState>,
    request: &HttpRequest,
    person: &Person,
    password: SecretString,
) -> Result<bool, ApiError> {
    let attempt = Attempt {
        person: TriedPerson::for_password(&person.email),
        device: session::known_device(request, state, person.owner),
        address: client_address(request),
    };
    let attempt = state.sign_ins.begin_attempt(attempt, state.now()).await?;
    let hash = people::password_hash(&state.store, person.owner).await?;
    let matching = state
        .passwords
        .find_matches(password, hash.into_iter().collect())
        .await?;
    let is_right = !matching.is_empty();
    if is_right {
        state.sign_ins.uncount_success(attempt, state.now());
    } else {
        record_refused_passwords(state, request, vec![person.owner]);
    }
    Ok(is_right)
}

/// Records refused passwords in the background. If the answer waited for the commit, its delay would reveal that the
/// account exists.
fn record_refused_passwords(
    state: &web::Data<ApiState>,
    request: &HttpRequest,
    owners: Vec<SessionOwner>,
) {
    let state = state.clone();
    let address = client_address(request);
    state.traffic.count_failed_authentication();
    actix_web::rt::spawn(async move {
        for owner in owners {
            let recorded =
                sessions::record_refused_sign_in(&state.store, owner, address, state.now()).await;
            if let Err(error) = recorded {
                tracing::warn!(%error, "failed to record a refused sign-in");
            }
        }
    });
}

#[derive(Deserialize)]
struct NoFields {}

/// POST /sign-out: ends the session.
async fn sign_out(
    state: web::Data<ApiState>,
    request: HttpRequest,
    signed_in: SignedIn,
    _: Form<NoFields>,
) -> Answer {
    if let Some(token) = session::session_token(&request) {
        sessions::close(
            &state.store,
            &token,
            signed_in.session.person.owner,
            state.now(),
        )
        .await?;
    }
    let mut answer = redirect("/sign-in");
    answer
        .add_cookie(&session::removal_cookie(state.settings.sessions))
        .map_err(ApiError::internal)?;
    Ok(answer)
}
