//! The cookie of a session, and the other data that the pages read from a request.

use actix_web::cookie::{Cookie, SameSite};
use actix_web::http::header::REFERER;
use actix_web::{HttpMessage, HttpRequest};
use secrecy::{ExposeSecret, SecretString};

use crate::domain::access::session::SignInPlace;
use crate::http::middleware::access_log;
use crate::http::middleware::client_address::client_address;
use crate::http::respond::redirect::notice_cookie_name;
use crate::http::respond::render::ResponsePrefs;
use crate::http::state::{ApiState, SessionSettings};

/// Returns the cookie of a new session. The browser deletes it when it closes; the server may end the session earlier.
pub(crate) fn session_cookie(settings: SessionSettings, token: &SecretString) -> Cookie<'static> {
    Cookie::build(settings.cookie_name(), token.expose_secret().to_owned())
        .path("/")
        .http_only(true)
        .secure(settings.is_secure)
        .same_site(SameSite::Strict)
        .finish()
}

/// Returns a cookie that makes the browser remove the cookie of the session.
pub(crate) fn removal_cookie(settings: SessionSettings) -> Cookie<'static> {
    let mut cookie = session_cookie(settings, &SecretString::default());
    cookie.make_removal();
    cookie
}

/// Returns the token in the cookie of the request.
pub(crate) fn session_token(request: &HttpRequest) -> Option<SecretString> {
    let state = request.app_data::<actix_web::web::Data<ApiState>>()?;
    let cookie = request.cookie(state.settings.sessions.cookie_name())?;
    Some(SecretString::from(cookie.value().to_owned()))
}

/// Returns the address and the browser that a person signs in from.
pub(crate) fn sign_in_place(request: &HttpRequest) -> SignInPlace {
    SignInPlace {
        address: client_address(request),
        browser: access_log::user_agent(request.headers()),
    }
}

/// Marks a request whose notice was read. The page that shows the notice also removes its cookie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoticeRead;

/// Returns the message about the previous action, which its redirect left in a cookie, and marks it as read.
pub(crate) fn notice(request: &HttpRequest) -> Option<String> {
    let state = ApiState::from_request(request).ok()?;
    let cookie = request.cookie(notice_cookie_name(state.settings.sessions.is_secure))?;
    let text = cookie.value().to_owned();
    if text.is_empty() {
        return None;
    }
    request.extensions_mut().insert(NoticeRead);
    Some(text)
}

/// Returns the path of the sign-in page. After signing in, the person returns to this page. If a form was sent, the
/// person returns to the page with the form, and the sign-in page says that the form was not processed.
pub(crate) fn sign_in_path(request: &HttpRequest) -> String {
    let next = encoded_return_address(request);
    if request.method().is_safe() {
        format!("/sign-in?next={next}")
    } else {
        format!("/sign-in?ended=true&next={next}")
    }
}

/// Returns the path of the page that asks for password and code. Afterwards the person returns to this page or, if a
/// form was sent, to the page with the form.
pub(crate) fn confirm_path(request: &HttpRequest) -> String {
    format!("/account/confirm?next={}", encoded_return_address(request))
}

/// Returns the address of this page or, if a form was sent, of the page with the form, encoded for a query. Empty if
/// the address is not known.
fn encoded_return_address(request: &HttpRequest) -> String {
    let this_page = request
        .uri()
        .path_and_query()
        .map(|path| path.as_str().to_owned());
    let referrer = request
        .headers()
        .get(REFERER)
        .and_then(|value| value.to_str().ok());
    let form_page = referrer.and_then(|address| url::Url::parse(address).ok());
    let form_page = form_page
        .map(|address| address[url::Position::BeforePath..url::Position::AfterQuery].to_owned());
    let page = if request.method().is_safe() {
        this_page
    } else {
        form_page
    };
    url::form_urlencoded::byte_serialize(page.unwrap_or_default().as_bytes()).collect()
}

pub(crate) fn request_id(request: &HttpRequest) -> String {
    request
        .extensions()
        .get::<ResponsePrefs>()
        .map(|prefs| prefs.request_id.clone())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{COOKIE, SET_COOKIE};
    use actix_web::test::TestRequest;

    use super::*;
    use crate::http::respond::redirect::go_to;
    use crate::http::testing::start_app;

    #[actix_web::test]
    async fn a_page_shows_the_whole_notice() {
        let app = start_app().await;
        for sentence in ["Saved.", "Ada & Sons = 100% + \u{1ecc};", ""] {
            let answer = go_to("/a", sentence);
            let sent = answer.headers().get(SET_COOKIE).unwrap().to_str().unwrap();
            let pair = sent.split(';').next().unwrap().to_owned();
            let request = TestRequest::default()
                .app_data(app.state.clone())
                .insert_header((COOKIE, pair))
                .to_http_request();
            let expected = Some(sentence).filter(|text| !text.is_empty());
            assert_eq!(notice(&request).as_deref(), expected);
        }
    }
}
