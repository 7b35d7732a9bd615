//! The answers of handlers: a page, a redirect with a notice, and the page of a failure. Also the extractors of posted
//! forms.

use std::future::{Ready, ready};

use actix_web::body::BoxBody;
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{
    Accept, CACHE_CONTROL, CONTENT_SECURITY_POLICY, ContentType, Header as _, HeaderName,
    REFERRER_POLICY, RETRY_AFTER,
};
use actix_web::middleware::Next;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, HttpResponse, web};
use askama::Template;
use serde::de::DeserializeOwned;

use crate::console::frame::Frame;
use crate::console::session::{self, CheckedSession, NoticeRead, Refusal, accounts};
use crate::http::extract::form;
use crate::http::extract::role::NeedsRole;
use crate::http::middleware::access_log::MatchedRoute;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
pub(crate) use crate::http::respond::redirect::{add_notice, go_to, redirect};
use crate::http::respond::redirect::{remove_notice, restrict_notice_to_tls};
use crate::http::state::ApiState;

/// The result of a handler that answers with a page.
pub(crate) type Answer = Result<HttpResponse, ApiError>;

/// The content policy of a page: it may load only files of this service, runs no inline script, and cannot be framed.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// Isolates a page from pages of other sites that open it or that it opens: they share no window object.
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
/// The header, and its value, that switch off the browser features that no page uses.
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");
const PERMISSIONS: &str =
    "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()";

/// Renders a page.
pub(crate) fn show(page: &impl Template) -> Answer {
    show_with_status(StatusCode::OK, page)
}

/// Renders a page with another status than 200, such as a form with faults.
pub(crate) fn show_with_status(status: StatusCode, page: &impl Template) -> Answer {
    let text = page.render().map_err(ApiError::internal)?;
    Ok(HttpResponse::build(status)
        .content_type(ContentType::html())
        .insert_header((CONTENT_SECURITY_POLICY, CONTENT_POLICY))
        .insert_header((REFERRER_POLICY, "same-origin"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((OPENER_POLICY, "same-origin"))
        .insert_header((PERMISSIONS_POLICY, PERMISSIONS))
        .body(text))
}

/// The fields of a posted form. The form must have come from a page of the same session.
#[derive(Debug)]
pub(crate) struct Form<T>(pub(crate) T);

impl<T> NeedsRole for Form<T> {}

impl<T: DeserializeOwned + 'static> FromRequest for Form<T> {
    type Error = Refusal;
    type Future = Ready<Result<Self, Refusal>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(read_form(request).map(Self))
    }
}

/// The fields of a form that is posted before there is a session.
#[derive(Debug)]
pub(crate) struct PublicForm<T>(pub(crate) T);

impl<T> NeedsRole for PublicForm<T> {}

impl<T: DeserializeOwned + 'static> FromRequest for PublicForm<T> {
    type Error = Refusal;
    type Future = Ready<Result<Self, Refusal>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(read_public_form(request).map(Self))
    }
}

fn read_form<T: DeserializeOwned>(request: &HttpRequest) -> Result<T, Refusal> {
    let body = form::take_form(request)?;
    let fields = url::form_urlencoded::parse(&body);
    let tokens: Vec<_> = fields
        .filter(|(name, _)| name == "csrf")
        .map(|(_, value)| value)
        .collect();
    session::check_csrf(request, &tokens)?;
    Ok(parse_form(&body)?)
}

fn read_public_form<T: DeserializeOwned>(request: &HttpRequest) -> Result<T, Refusal> {
    session::check_origin(request)?;
    Ok(parse_form(&form::take_form(request)?)?)
}

fn parse_form<T: DeserializeOwned>(body: &web::Bytes) -> Result<T, ApiError> {
    let text = std::str::from_utf8(body).map_err(|error| form::malformed_error(&error))?;
    Ok(web::Query::<T>::from_query(text)
        .map_err(|error| form::malformed_error(&error))?
        .into_inner())
}

/// The page of a failure.
#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage {
    frame: Frame,
    message: String,
    faults: Vec<String>,
    /// The label of the link to the first page.
    home: &'static str,
    request_id: String,
    /// True if a form was refused before it was processed. The script of the page then keeps what was typed into it.
    is_unsent: bool,
}

/// Shows failures of pages as pages, not as JSON. Somebody who is not signed in is led to the sign-in.
pub(crate) async fn error_pages(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let response = next.call(request).await?;
    if !is_page_request(response.request()) {
        return Ok(response);
    }
    let mut response = remove_read_notice(response);
    let state = ApiState::from_request(response.request());
    if state.is_ok_and(|state| state.settings.sessions.is_secure) {
        restrict_notice_to_tls(response.response_mut());
    }
    let Some(error) = response.response().error() else {
        return Ok(response);
    };
    let request = response.request();
    let page = if let Some(error) = error.as_error::<ApiError>() {
        show_failure(error, request).await
    } else if let Some(refusal) = error.as_error::<Refusal>() {
        match refusal {
            Refusal::NotSignedIn => redirect(&session::sign_in_path(request)),
            Refusal::CodeMissing => redirect("/sign-in/code"),
            Refusal::ConfirmationMissing => redirect(&session::confirm_path(request)),
            Refusal::SecondFactorMissing => redirect("/account/second-factor"),
            Refusal::NotAllowed(sentence) => {
                show_missing_right((*sentence).to_owned(), request).await
            }
            Refusal::Failed(error) => show_failure(error, request).await,
        }
    } else {
        return Ok(response);
    };
    Ok(response.into_response(page))
}

/// Removes the notice from the browser if this page shows it.
fn remove_read_notice(mut response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let was_read = response.request().extensions().contains::<NoticeRead>();
    if was_read && response.response().error().is_none() && !response.status().is_redirection() {
        remove_notice(response.response_mut());
    }
    response
}

/// True for the request of a page. The matched route decides this, because the path itself may be encoded.
fn is_page_request(request: &HttpRequest) -> bool {
    match request.extensions().get::<MatchedRoute>() {
        Some(matched) => is_page_path(matched.0),
        None => is_page_path(request.path()) || is_browser_outside_api(request),
    }
}

fn is_page_path(path: &str) -> bool {
    let prefixes = [
        "/console",
        "/dashboard",
        "/docs",
        "/sign-",
        "/account/",
        "/verify/",
        "/shared/",
    ];
    prefixes.iter().any(|prefix| path.starts_with(prefix))
}

/// True if a browser requests an address outside of the API, which a person typed or followed a link to.
fn is_browser_outside_api(request: &HttpRequest) -> bool {
    let prefixes = ["/v1", "/ops"];
    let is_api_path = prefixes.iter().any(|prefix| {
        let rest = request.path().strip_prefix(prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    let Ok(accepted) = Accept::parse(request) else {
        return false;
    };
    let accepts = |kind: &str| {
        accepted
            .iter()
            .any(|range| range.item.essence_str() == kind)
    };
    !is_api_path && accepts("text/html") && !accepts("application/json")
}

/// Returns the explanation for an operator if a page cannot be shown because the database does not answer.
fn database_message(error: &ApiError, request: &HttpRequest) -> Option<String> {
    let state = request.app_data::<web::Data<ApiState>>()?;
    let is_about_database = error.code == ErrorCode::Overloaded
        && request.path().starts_with("/console")
        && state.health.database_fault().is_some();
    is_about_database.then(|| silence_explanation(request).to_owned())
}

/// Returns the explanation for an operator whose request needs the database while it does not answer.
fn silence_explanation(request: &HttpRequest) -> &'static str {
    if request.extensions().contains::<CheckedSession>() {
        DATABASE_SILENT
    } else {
        SESSION_UNKNOWN
    }
}

/// The explanation on an operator's page that needs the database while it does not answer.
const DATABASE_SILENT: &str = "The database does not answer, so this page cannot be shown. The overview, Supervision and \
     Breakers show what this process knows, and the overview says since when.";

/// The explanation if the session cannot be checked either, so that no page can be shown.
const SESSION_UNKNOWN: &str = "Your session cannot be checked while the database does not answer. A replica on which you \
     were active within ten minutes still shows what it knows, and so does /metrics of each replica (einvoice_incident).";

/// Returns the page that says that the person has no right, or that a form does not come from a page of the session.
async fn show_missing_right(message: String, request: &HttpRequest) -> HttpResponse {
    let status = StatusCode::FORBIDDEN;
    let page = FailurePage {
        frame: failure_frame(status, request).await,
        message,
        faults: Vec::new(),
        home: home_label(request.path()),
        request_id: session::request_id(request),
        is_unsent: is_form_request(request),
    };
    render_failure(status, &page)
}

/// Returns the label of the link to the first page: the console for its own pages, the dashboard for all others.
fn home_label(path: &str) -> &'static str {
    if path.starts_with("/console") {
        "Back to the console"
    } else {
        "Back to the dashboard"
    }
}

/// True for the request of a form.
fn is_form_request(request: &HttpRequest) -> bool {
    !request.method().is_safe()
}

/// True for the status of a refusal because of too many requests or a pause. A form that was refused in this way was
/// not processed.
fn is_temporary_refusal(status: StatusCode) -> bool {
    [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ]
    .contains(&status)
}

async fn show_failure(error: &ApiError, request: &HttpRequest) -> HttpResponse {
    if let Some(cause) = &error.cause
        && error.status.is_server_error()
    {
        tracing::error!(code = error.code.as_str(), cause = %cause, "a page could not be shown");
    }
    let faults = error.faults.iter().map(ToString::to_string).collect();
    let message = database_message(error, request).unwrap_or_else(|| error.message.to_string());
    let page = FailurePage {
        frame: failure_frame(error.status, request).await,
        message,
        faults,
        home: home_label(request.path()),
        request_id: session::request_id(request),
        is_unsent: is_form_request(request) && is_temporary_refusal(error.status),
    };
    let mut page = render_failure(error.status, &page);
    if let Some(wait) = error.retry_after {
        page.headers_mut()
            .insert(RETRY_AFTER, wait.as_secs().max(1).into());
    }
    page
}

fn render_failure(status: StatusCode, page: &FailurePage) -> HttpResponse {
    show_with_status(status, page).unwrap_or_else(|_| HttpResponse::InternalServerError().finish())
}

/// Returns the frame of the account for a person who may see it, so that the navigation stays. After a server error,
/// does not query the database again.
async fn failure_frame(status: StatusCode, request: &HttpRequest) -> Frame {
    let title = status_title(status);
    if status.is_server_error() {
        return Frame::for_visitor(title);
    }
    match accounts::find_visible_account(request).await {
        Some(session) => Frame::for_account(&session, title),
        None => Frame::for_visitor(title),
    }
}

fn status_title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "There is no such page",
        StatusCode::FORBIDDEN => "You may not do this",
        StatusCode::TOO_MANY_REQUESTS => "Too many attempts",
        StatusCode::SERVICE_UNAVAILABLE => "This cannot be done now",
        status if status.is_client_error() => "This could not be done",
        _ => "Something went wrong",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use actix_web::HttpMessage as _;
    use actix_web::http::header::ACCEPT;
    use actix_web::test::TestRequest;

    use super::{
        CheckedSession, DATABASE_SILENT, MatchedRoute, SESSION_UNKNOWN, home_label,
        is_page_request, silence_explanation,
    };

    const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

    #[test]
    fn a_person_at_an_unknown_address_is_told_apart_from_a_program() {
        for (path, accept, is_page) in [
            ("/nowhere", BROWSER, true),
            ("/", BROWSER, true),
            ("/v10", BROWSER, true),
            ("/dashboard/nowhere", "*/*", true),
            ("/nowhere", "*/*", false),
            ("/nowhere", "", false),
            ("/nowhere", "application/json", false),
            ("/nowhere", "text/html, application/json", false),
            ("/v1", BROWSER, false),
            ("/v1/nowhere", BROWSER, false),
            ("/ops/nowhere", BROWSER, false),
        ] {
            let request = TestRequest::with_uri(path).insert_header((ACCEPT, accept));
            let request = request.to_http_request();
            assert_eq!(is_page_request(&request), is_page, "{path} for {accept}");
            // For a known path the matched route decides, not the client.
            request.extensions_mut().insert(MatchedRoute("/metrics"));
            assert!(!is_page_request(&request), "{path} for {accept}");
        }
    }

    #[test]
    fn an_operator_whose_session_cannot_be_checked_is_sent_to_no_page() {
        let request = TestRequest::with_uri("/console").to_http_request();
        assert_eq!(silence_explanation(&request), SESSION_UNKNOWN);
        request.extensions_mut().insert(CheckedSession);
        assert_eq!(silence_explanation(&request), DATABASE_SILENT);
    }

    #[test]
    fn a_failure_leads_operators_to_the_console_and_others_to_their_dashboard() {
        for (path, label) in [
            ("/console/runs/7", "Back to the console"),
            ("/dashboard/7/invoices", "Back to the dashboard"),
            ("/sign-in", "Back to the dashboard"),
        ] {
            assert_eq!(home_label(path), label, "{path}");
        }
    }

    fn templates(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        entries
            .flat_map(|path| {
                if path.is_dir() {
                    templates(&path)
                } else {
                    vec![path]
                }
            })
            .collect()
    }

    /// The names, addresses and remarks that people type may run from right to left.
    #[test]
    fn each_field_for_words_takes_the_direction_of_its_words() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console/templates");
        let words = [
            "type=\"search\"",
            "type=\"{{ kind }}\"",
            "name=\"name\" ",
            "name=\"remark\"",
            "name=\"reason\"",
        ];
        let mut fields = 0;
        for path in templates(&directory) {
            let text = fs::read_to_string(&path).unwrap();
            for field in text.split('<').filter(|part| {
                let is_input = part.starts_with("input ") && !part.contains("type=\"hidden\"");
                part.starts_with("textarea ")
                    || is_input && words.iter().any(|word| part.contains(word))
            }) {
                assert!(
                    field.contains("dir=\"auto\""),
                    "{}: {field}",
                    path.display()
                );
                fields += 1;
            }
        }
        assert!(fields > 25, "{fields}");
    }

    /// Only forms that are sent before there is a session have no tokens, and may be repeated.
    #[test]
    fn each_form_that_writes_carries_its_tokens() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console/templates");
        let mut forms = 0;
        for path in templates(&directory) {
            let text = fs::read_to_string(&path).unwrap();
            for form in text
                .split("<form")
                .skip(1)
                .filter(|form| form.contains(r#"method="post""#))
            {
                let form = form.split("</form>").next().unwrap();
                let has_tokens = form.contains(r#"{% include "parts/csrf.html" %}"#);
                let is_public = [
                    "sign_in.html",
                    "choose_password.html",
                    "unsubscribe.html",
                    "forgotten.html",
                ]
                .iter()
                .any(|name| path.ends_with(name));
                assert!(has_tokens || is_public, "{}: {form}", path.display());
                forms += 1;
            }
        }
        assert!(forms > 30, "{forms}");
    }
}
