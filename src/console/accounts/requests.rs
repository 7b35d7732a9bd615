//! The request log: the requests made with the keys of an account, the failures in groups, and the page of one request
//! with its body and response. An integrator has such pages for its own requests and those of its taxpayers.

use actix_web::web;
use askama::Template;
use url::form_urlencoded::Serializer;

use crate::console::accounts::navigation::base_path;
use crate::console::badges::{Badge, badge};
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::kept_filters::{KeptFilters, ListFormFields};
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::page::{Answer, show};
use crate::console::session::accounts::{AccountSession, Owner, SignedInIntegrator};
use crate::domain::request_log::{
    BodyExtent, ErrorGroup, LoggedBody, LoggedRequest, PATH_CHARS_MAX,
};
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::request_log::read_filter;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::operations::request_log::{self, ReadingAccount, RequestFilter};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/requests").page(list_requests),
        path("/dashboard/{taxpayer}/requests/{request}").page(show_request),
        path("/dashboard/taxpayers/requests").page(list_integrator_requests),
        path("/dashboard/taxpayers/requests/{request}").page(show_integrator_request),
    ]
}

const TITLE: &str = "Requests";
const PER_PAGE: u64 = 25;
const FORM: ListFormFields = ListFormFields {
    fields: &["status", "path", "error_code", "request_id", "since"],
    chips: &[
        ("route", "Route"),
        ("method", "Method"),
        ("invoice", "Invoice"),
        ("taxpayer_id", "Taxpayer"),
    ],
};
/// The value of `tab` that shows the failures in groups.
const ERRORS_TAB: &str = "errors";

#[derive(Template)]
#[template(path = "accounts/requests.html")]
struct RequestsPage {
    frame: Frame,
    /// The address of the list.
    list_path: String,
    /// True for the page of an integrator, which names the account of each request.
    is_for_integrator: bool,
    shows_error_groups: bool,
    is_filtered: bool,
    filter: FormState,
    kept: KeptFilters,
    rows: Vec<RequestLine>,
    groups: Vec<GroupLine>,
    pages: PagePosition,
}

struct RequestLine {
    logged: LoggedRequest,
    status: Badge,
    /// The address of the request's page.
    address: String,
}

struct GroupLine {
    group: ErrorGroup,
    /// The address of the list of the failures in this group.
    address: String,
}

#[derive(Template)]
#[template(path = "accounts/request.html")]
struct RequestPage {
    frame: Frame,
    list_address: String,
    line: RequestLine,
    /// The address of the invoice, or of the list of invoices filtered by its IRN; empty if the request names no
    /// invoice.
    invoice_address: String,
    request: BodyText,
    response: BodyText,
    may_send_again: bool,
}

/// A body as the page shows it. `note` says if it is cut or missing.
struct BodyText {
    note: &'static str,
    text: String,
}

/// GET /dashboard/{taxpayer}/requests: lists the requests about an account.
async fn list_requests(state: web::Data<ApiState>, Owner(session): Owner, query: Query) -> Answer {
    let reader = ReadingAccount::Taxpayer(session.taxpayer);
    let frame = Frame::for_account(&session, TITLE);
    let list_path = format!("{}/requests", base_path(&session));
    render_list(&state, reader, frame, list_path, &query).await
}

/// GET /dashboard/taxpayers/requests: lists the requests that an integrator may read.
async fn list_integrator_requests(
    state: web::Data<ApiState>,
    integrator: SignedInIntegrator,
    query: Query,
) -> Answer {
    let reader = ReadingAccount::Integrator(integrator.id);
    let frame = Frame::for_person(&integrator.person, &integrator.csrf, TITLE);
    let list_path = "/dashboard/taxpayers/requests".to_owned();
    render_list(&state, reader, frame, list_path, &query).await
}

async fn render_list(
    state: &ApiState,
    reader: ReadingAccount,
    frame: Frame,
    list_path: String,
    query: &Query,
) -> Answer {
    let shows_error_groups = query.text("tab") == Some(ERRORS_TAB);
    state.request_log.write_for_reader(&state.store).await;
    let page = query.page(PER_PAGE);
    let values = FormValues::from(query);
    let mut groups = Vec::new();
    let mut found = (Vec::new(), 0);
    let mut filter = FormState::new(values.clone());
    if shows_error_groups {
        groups = request_log::error_groups_for_reader(&state.store, reader).await?;
    } else {
        match read_filter(query) {
            Ok(request_filter) => {
                let request_filter = with_link_filters(request_filter, query);
                found = request_log::page_for_reader(&state.store, reader, request_filter, page)
                    .await?;
            }
            Err(faults) => filter = FormState::with_faults(values.clone(), faults),
        }
    }
    let kept = KeptFilters::new(&list_path, query, &FORM);
    let has_field = FORM.fields.iter().any(|name| !values.text(name).is_empty());
    let page = RequestsPage {
        frame,
        is_for_integrator: matches!(reader, ReadingAccount::Integrator(_)),
        shows_error_groups,
        is_filtered: has_field || !kept.chips.is_empty(),
        filter,
        kept,
        rows: found.0.into_iter().map(RequestLine::from).collect(),
        groups: groups
            .into_iter()
            .map(|group| GroupLine::new(&list_path, group))
            .collect(),
        pages: PagePosition::new(page, found.1, &list_path, query),
        list_path,
    };
    show_list(&page.pages, &page)
}

/// Adds the filters that only links on pages set: the method, the invoice by its id or IRN, and the taxpayer.
fn with_link_filters(filter: RequestFilter, query: &Query) -> RequestFilter {
    let invoice = query.trimmed_text("invoice");
    let irn = query.trimmed_text("irn");
    RequestFilter {
        method: query.trimmed_text("method"),
        invoice: invoice.map(|id| [id, irn.unwrap_or_default()]),
        taxpayer: query.taxpayer_id("taxpayer_id"),
        ..filter
    }
}

/// Returns a request of the log. Fails if the reader may not see it.
pub(super) async fn find(
    state: &ApiState,
    reader: ReadingAccount,
    id: &str,
) -> Result<LoggedRequest, ApiError> {
    let id = path_ids::parse_uuid(id).ok_or_else(ApiError::route_not_found)?;
    let found = request_log::find_for_reader(&state.store, reader, id).await?;
    found.ok_or_else(ApiError::route_not_found)
}

/// Returns the address of a request's page, under the pages of its taxpayer or, for an integrator's own request, of the
/// integrator.
pub(super) fn request_page_path(logged: &LoggedRequest) -> String {
    match logged.caller.taxpayer {
        Some(taxpayer) => format!("/dashboard/{taxpayer}/requests/{}", logged.id),
        None => format!("/dashboard/taxpayers/requests/{}", logged.id),
    }
}

/// True if the request can be sent again: it is a write, and its whole body is known.
pub(super) fn may_send_again(state: &ApiState, logged: &LoggedRequest) -> bool {
    let is_write = ["POST", "PUT", "PATCH"].contains(&logged.method.as_str());
    state.settings.is_sandbox
        && logged.caller.taxpayer.is_some()
        && is_write
        && logged.request.extent == BodyExtent::Whole
        && !logged.path.contains("(hidden)")
        && logged.path.len() < PATH_CHARS_MAX
}

/// GET /dashboard/{taxpayer}/requests/{request}: shows one request.
async fn show_request(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    ids: web::Path<(String, String)>,
) -> Answer {
    let reader = ReadingAccount::Taxpayer(session.taxpayer);
    let logged = find(&state, reader, &ids.1).await?;
    show(&RequestPage {
        frame: Frame::for_account(&session, "Request").with_section(TITLE),
        list_address: format!("{}/requests", base_path(&session)),
        invoice_address: invoice_address(&session, &logged),
        may_send_again: may_send_again(&state, &logged),
        request: BodyText::from(&logged.request),
        response: BodyText::from(&logged.response),
        line: RequestLine::from(logged),
    })
}

/// GET /dashboard/taxpayers/requests/{request}: a request that the integrator made with its own key.
async fn show_integrator_request(
    state: web::Data<ApiState>,
    integrator: SignedInIntegrator,
    id: web::Path<String>,
) -> Answer {
    let logged = find(&state, ReadingAccount::Integrator(integrator.id), &id).await?;
    show(&RequestPage {
        frame: Frame::for_person(&integrator.person, &integrator.csrf, "Request")
            .with_section(TITLE),
        list_address: "/dashboard/taxpayers/requests".to_owned(),
        invoice_address: String::new(),
        may_send_again: false,
        request: BodyText::from(&logged.request),
        response: BodyText::from(&logged.response),
        line: RequestLine::from(logged),
    })
}

/// Returns the address of the invoice. If the log knows only its IRN, returns that of the list filtered by it.
fn invoice_address(session: &AccountSession, logged: &LoggedRequest) -> String {
    let Some(invoice) = &logged.invoice else {
        return String::new();
    };
    let base = base_path(session);
    if invoice.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("{base}/invoices/{invoice}");
    }
    let query = Serializer::new(String::new())
        .append_pair("q", invoice)
        .finish();
    format!("{base}/invoices?{query}")
}

impl From<LoggedRequest> for RequestLine {
    fn from(logged: LoggedRequest) -> Self {
        let class = match logged.status {
            0..400 => "ok",
            400..500 => "warn",
            _ => "bad",
        };
        Self {
            status: badge(class, status_words(logged.status)),
            address: request_page_path(&logged),
            logged,
        }
    }
}

/// Explains a status to people who do not know the numbers.
fn status_words(status: u16) -> &'static str {
    match status {
        0..400 => "Succeeded",
        400..500 => "Rejected",
        _ => "Failed",
    }
}

impl GroupLine {
    fn new(list_path: &str, group: ErrorGroup) -> Self {
        let query = Serializer::new(String::new())
            .append_pair("error_code", &group.error_code)
            .append_pair("route", &group.route)
            .append_pair("method", &group.method)
            .finish();
        Self {
            address: format!("{list_path}?{query}"),
            group,
        }
    }
}

impl From<&LoggedBody> for BodyText {
    fn from(body: &LoggedBody) -> Self {
        let note = match body.extent {
            BodyExtent::Whole if body.bytes == 0 => "It has no body.",
            BodyExtent::Whole => "",
            BodyExtent::Redacted => "Secrets are hidden.",
            BodyExtent::Cut => "Only the first 8 KiB are kept; secrets are hidden.",
            BodyExtent::Omitted => {
                "The body is not kept: it is a file, it holds a secret, or the request is one of many of its kind."
            }
        };
        let text = strict_json::from_trusted::<serde_json::Value>(&body.text)
            .map_or_else(|_| body.text.clone(), |value| format!("{value:#}"));
        Self { note, text }
    }
}
