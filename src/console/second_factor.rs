//! The second factor of people: the page that asks for its code after the password, and the pages on which a person
//! sets it up or switches it off. Attempts to guess codes are slowed down like attempts to guess passwords. After too
//! many wrong codes in a day, only a recovery code is accepted. A new secret is shown only to a person who entered
//! password and code a short time ago (`confirm`).

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;
use rand::RngExt;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use timing::clock;

use crate::console::frame::Frame;
use crate::console::landing::{home_path, is_page_path};
use crate::console::page::{Answer, Form, add_notice, redirect, show, show_with_status};
use crate::console::session::{self, Confirmed, PersonAwaitingCode, SignedIn};
use crate::console::session_start::{
    PasswordProof, add_session_cookie, new_token, open_session, start_session,
};
use crate::domain::access::second_factor::{RecoveryCode, TotpSecret};
use crate::domain::access::session::SessionOwner;
use crate::domain::invoice::qr_picture::QrPicture;
use crate::domain::kernel::audit::AuditAction;
use crate::http::limits::{Attempt, CountedAttempt, TriedPerson};
use crate::http::middleware::client_address::client_address;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::second_factors::{self, CodeConfirmation, FactorRemoval};
use crate::store::accounts::sessions;

const WRONG_CODE_TEXT: &str =
    "This code is not right, or it was used before. Wait for the next code of the app.";
/// The message for people who try to reset their own second factor. If this were allowed, a stolen session could
/// remove it.
pub(super) const OWN_RESET_REFUSAL: &str = "Nobody can reset their own second factor. Use a recovery code, or ask somebody else to reset it.";
const PATH: &str = "/account/second-factor";

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/sign-in/code")
            .page(code_page)
            .form(enter_code)
            .allows_form_repeat(),
        path(PATH).page(show_second_factor).form(begin_setup),
        path("/account/second-factor/confirm").form(confirm_setup),
        path("/account/second-factor/off").form(switch_off),
    ]
}

/// Leads a person whose password was right to the page that asks for the code.
pub(super) async fn ask_for_code(
    state: &ApiState,
    request: &HttpRequest,
    proof: &PasswordProof,
    next: &str,
) -> Answer {
    let token = new_token();
    let place = session::sign_in_place(request);
    let replaces = session::session_token(request);
    let new = proof.new_session(&token, &place, replaces.as_ref());
    if sessions::open_awaiting_code(&state.store, new, state.now())
        .await?
        .is_none()
    {
        return Ok(redirect("/sign-in"));
    }
    let next: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
    add_session_cookie(
        state,
        redirect(&format!("/sign-in/code?next={next}")),
        &token,
    )
}

#[derive(Template)]
#[template(path = "code.html")]
struct CodePage {
    frame: Frame,
    next: String,
    refusal: Option<&'static str>,
}

#[derive(Deserialize)]
struct CodeQuery {
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
struct CodeForm {
    code: SecretString,
    #[serde(default)]
    next: String,
}

/// GET /sign-in/code: asks for the code.
async fn code_page(waiting: PersonAwaitingCode, query: web::Query<CodeQuery>) -> Answer {
    let next = query.into_inner().next;
    std::future::ready(show(&CodePage {
        frame: code_frame(&waiting),
        next,
        refusal: None,
    }))
    .await
}

/// Returns a frame without a person, so that it links to no other page.
fn code_frame(waiting: &PersonAwaitingCode) -> Frame {
    Frame {
        csrf: waiting.csrf.clone(),
        ..Frame::for_visitor("Enter your code")
    }
}

/// POST /sign-in/code: opens the session of a person whose code is right.
async fn enter_code(
    state: web::Data<ApiState>,
    request: HttpRequest,
    waiting: PersonAwaitingCode,
    form: Form<CodeForm>,
) -> Answer {
    let CodeForm { code, next } = form.0;
    let owner = waiting.person.owner;
    let Some(proof) = PasswordProof::from_open_session(&state, &request, owner).await? else {
        return Ok(redirect("/sign-in"));
    };
    if !accept_code(&state, &request, owner, &code).await? {
        let page = CodePage {
            frame: code_frame(&waiting),
            next,
            refusal: Some(WRONG_CODE_TEXT),
        };
        return show_with_status(StatusCode::UNAUTHORIZED, &page);
    }
    let path = if is_page_path(&next) {
        next
    } else {
        home_path(owner)
    };
    start_session(&state, &request, &proof, &path).await
}

/// Returns true if the code is right: the app's current code, or an unused recovery code. Marks a right code as used.
pub(super) async fn accept_code(
    state: &ApiState,
    request: &HttpRequest,
    owner: SessionOwner,
    code: &SecretString,
) -> Result<bool, ApiError> {
    let store = &state.store;
    let now = state.now();
    let code = code.expose_secret();
    let attempt = begin_code_attempt(state, request, owner).await?;
    let confirmed_factor = second_factors::find(store, owner, now)
        .await?
        .filter(|factor| factor.is_confirmed);
    let step = confirmed_factor
        .as_ref()
        .and_then(|factor| factor.secret.matching_time_step(code, now));
    let is_right = match (step, RecoveryCode::parse(code)) {
        (Some(step), _) => second_factors::use_time_step(store, owner, step, now).await?,
        (None, Some(code)) if confirmed_factor.is_some() => {
            second_factors::use_recovery_code(store, owner, &code, now).await?
        }
        _ => false,
    };
    if is_right {
        state.sign_ins.uncount_success(attempt, now);
    } else {
        second_factors::record_wrong_code(store, owner, now).await?;
    }
    Ok(is_right)
}

async fn begin_code_attempt(
    state: &ApiState,
    request: &HttpRequest,
    owner: SessionOwner,
) -> Result<CountedAttempt, ApiError> {
    let attempt = Attempt {
        person: TriedPerson::Code(owner),
        device: session::known_device(request, state, owner),
        address: client_address(request),
    };
    state.sign_ins.begin_attempt(attempt, state.now()).await
}

#[derive(Template)]
#[template(path = "second_factor.html")]
struct SecondFactorPage {
    frame: Frame,
    is_on: bool,
    is_required: bool,
    refusal: Option<&'static str>,
}

#[derive(Deserialize)]
struct NoFields {}

/// GET /account/second-factor: shows whether the person has a second factor.
async fn show_second_factor(state: web::Data<ApiState>, signed_in: SignedIn) -> Answer {
    std::future::ready(render_second_factor_page(&state, &signed_in, None)).await
}

fn render_second_factor_page(
    state: &ApiState,
    signed_in: &SignedIn,
    refusal: Option<&'static str>,
) -> Answer {
    let person = &signed_in.session.person;
    let page = SecondFactorPage {
        frame: Frame::for_person(person, &signed_in.csrf, "Second factor"),
        is_on: person.has_second_factor,
        is_required: session::needs_second_factor(state, person.owner),
        refusal,
    };
    let status = if refusal.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    show_with_status(status, &page)
}

#[derive(Template)]
#[template(path = "second_factor_secret.html")]
struct SecretPage {
    frame: Frame,
    qr: Option<QrPicture>,
    secret: String,
    refusal: Option<&'static str>,
}

/// POST /account/second-factor: creates a secret and shows it, on this page only. The second factor is in force only
/// after the person has confirmed the secret with a code.
async fn begin_setup(
    state: web::Data<ApiState>,
    Confirmed(signed_in): Confirmed<SignedIn>,
    _: Form<NoFields>,
) -> Answer {
    let person = &signed_in.session.person;
    let secret = TotpSecret::new(clock::system_rng().random());
    if second_factors::begin_setup(&state.store, person.owner, &secret)
        .await?
        .is_none()
    {
        return Ok(redirect(PATH));
    }
    show(&SecretPage {
        frame: Frame::for_person(person, &signed_in.csrf, "Set up your second factor"),
        qr: QrPicture::from_text(&secret.otpauth_url(&person.email)),
        secret: secret.text(),
        refusal: None,
    })
}

#[derive(Template)]
#[template(path = "recovery_codes.html")]
struct RecoveryCodesPage {
    frame: Frame,
    codes: Vec<RecoveryCode>,
    home: String,
}

/// POST /account/second-factor/confirm: puts the second factor in force and opens a new session. Shows the recovery
/// codes, which no other page does.
async fn confirm_setup(
    state: web::Data<ApiState>,
    request: HttpRequest,
    Confirmed(signed_in): Confirmed<SignedIn>,
    form: Form<CodeForm>,
) -> Answer {
    let person = &signed_in.session.person;
    let owner = person.owner;
    let now = state.now();
    let Some(proof) = PasswordProof::from_open_session(&state, &request, owner).await? else {
        return Ok(redirect("/sign-in"));
    };
    let attempt = begin_code_attempt(&state, &request, owner).await?;
    let unconfirmed_factor = second_factors::find(&state.store, owner, now)
        .await?
        .filter(|factor| !factor.is_confirmed);
    let Some(unconfirmed_factor) = unconfirmed_factor else {
        return Ok(redirect(PATH));
    };
    let Some(step) = unconfirmed_factor
        .secret
        .matching_time_step(form.0.code.expose_secret(), now)
    else {
        let frame = Frame::for_person(person, &signed_in.csrf, "Set up your second factor");
        let page = SecretPage {
            frame,
            qr: None,
            secret: String::new(),
            refusal: Some(WRONG_CODE_TEXT),
        };
        return show_with_status(StatusCode::UNPROCESSABLE_ENTITY, &page);
    };
    state.sign_ins.uncount_success(attempt, now);
    let codes = RecoveryCode::draw_codes(|| clock::system_rng().random());
    let confirmation = CodeConfirmation {
        owner,
        secret: &unconfirmed_factor.secret,
        step,
        now,
    };
    if second_factors::confirm_setup(&state.store, confirmation, &codes)
        .await?
        .is_none()
    {
        return Ok(redirect(PATH));
    }
    let token = new_token();
    let opened = open_session(&state, &request, &proof, &token).await?;
    let frame = Frame::for_person(person, &session::csrf_token(&token), "Your recovery codes");
    let answer = show(&RecoveryCodesPage {
        frame,
        codes,
        home: home_path(owner),
    })?;
    // The recovery codes are valid now and no other page shows them. So they are shown even if the person has to sign
    // in again.
    if opened.is_some() {
        add_session_cookie(&state, answer, &token)
    } else {
        Ok(answer)
    }
}

/// POST /account/second-factor/off: removes the second factor of a person who does not have to have one. Requires a
/// valid code, in addition to the confirmation.
async fn switch_off(
    state: web::Data<ApiState>,
    request: HttpRequest,
    Confirmed(signed_in): Confirmed<SignedIn>,
    form: Form<CodeForm>,
) -> Answer {
    let owner = signed_in.session.person.owner;
    if session::needs_second_factor(&state, owner) {
        let refusal = "Operators and integrators of this service need a second factor.";
        return render_second_factor_page(&state, &signed_in, Some(refusal));
    }
    let Some(proof) = PasswordProof::from_open_session(&state, &request, owner).await? else {
        return Ok(redirect("/sign-in"));
    };
    if !accept_code(&state, &request, owner, &form.0.code).await? {
        return render_second_factor_page(&state, &signed_in, Some(WRONG_CODE_TEXT));
    }
    let removal = FactorRemoval {
        owner,
        by: owner.actor(),
        action: AuditAction::DisableSecondFactor,
        reason: None,
        now: state.now(),
    };
    second_factors::remove(&state.store, removal).await?;
    let mut answer = start_session(&state, &request, &proof, PATH).await?;
    let notice = "Your second factor is off. You are signed out everywhere else.";
    add_notice(&mut answer, notice);
    Ok(answer)
}
