//! Sends a logged request again, in the sandbox only: with the same path and body, and a new `Idempotency-Key`. It
//! passes through the whole API, so it is checked, limited and logged like any other request.

use actix_http::Request;
use actix_service::{IntoServiceFactory, map_config};
use actix_web::dev::{AppConfig, Payload, Service, ServiceFactory};
use actix_web::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode, Uri};
use actix_web::middleware::from_fn;
use actix_web::web::Bytes;
use actix_web::{App, HttpMessage, web};
use futures_util::stream;
use timing::clock;

use crate::console::accounts::navigation::base_path;
use crate::console::accounts::requests::{find, may_send_again, request_page_path};
use crate::console::form_values::FormValues;
use crate::console::page::{Answer, Form, go_to};
use crate::console::session::accounts::{AccountSession, Owner};
use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::caller::KeyKind;
use crate::domain::access::payer::PayingAccount;
use crate::domain::kernel::audit::ActorWithName;
use crate::domain::request_log::LoggedRequest;
use crate::http;
use crate::http::extract::auth::SentFromPage;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::operations::request_log::{self, ReadingAccount, RequestFilter};

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/dashboard/{taxpayer}/requests/{request}/send").form(send_again)]
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The first page with one entry: the newest request with this id.
const NEWEST: database::page::Page = database::page::Page {
    number: 1,
    per_page: 1,
};

/// POST /dashboard/{taxpayer}/requests/{request}/send: sends a logged request again and redirects to the new request.
async fn send_again(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    let reader = ReadingAccount::Taxpayer(session.taxpayer);
    let logged = find(&state, reader, &ids.1).await?;
    if !may_send_again(&state, &logged) {
        return Err(ApiError::route_not_found());
    }
    let sender = load_sender(&state, &session).await?;
    let request_id = clock::new_id().to_string();
    let status = send_within_process(&state, &logged, sender, &request_id).await?;
    state.request_log.write_for_reader(&state.store).await;
    let filter = RequestFilter {
        request_id: Some(request_id),
        ..RequestFilter::default()
    };
    let (found, _) = request_log::page_for_reader(&state.store, reader, filter, NEWEST).await?;
    let request_page = found.first().map(request_page_path);
    let request_page = request_page.unwrap_or_else(|| format!("{}/requests", base_path(&session)));
    let notice = format!("It was sent again and answered {}.", status.as_u16());
    Ok(go_to(&request_page, &notice))
}

/// Returns the account whose request is sent again, and the signed-in person who sends it.
async fn load_sender(state: &ApiState, session: &AccountSession) -> Result<SentFromPage, ApiError> {
    let taxpayer = taxpayers::find_by_id(state.store.reader(), session.taxpayer).await?;
    let taxpayer = taxpayer.ok_or_else(ApiError::route_not_found)?;
    let person = &session.person;
    let name = person.name.as_deref().unwrap_or(&person.email);
    Ok(SentFromPage {
        account: PayingAccount {
            integrator: Some(taxpayer.integrator_id),
            owner: KeyOwner {
                kind: KeyKind::Taxpayer,
                id: session.taxpayer.0,
            },
        },
        person: ActorWithName {
            actor: session.by,
            name: Some(name.into()),
            address: None,
        },
    })
}

/// Sends the request within this process. Returns the status of the response.
async fn send_within_process(
    state: &web::Data<ApiState>,
    logged: &LoggedRequest,
    sender: SentFromPage,
    request_id: &str,
) -> Result<StatusCode, ApiError> {
    let request = build_request(logged, sender, request_id)?;
    let app = App::new()
        .app_data(state.clone())
        .wrap(from_fn(http::request_context))
        .configure(http::routes);
    let factory = map_config(app.into_factory(), |()| AppConfig::default());
    let service = factory
        .new_service(())
        .await
        .map_err(|()| ApiError::internal("the API could not be started"))?;
    let answer = service.call(request).await;
    Ok(match answer {
        Ok(answer) => answer.status(),
        Err(error) => error.as_response_error().status_code(),
    })
}

fn build_request(
    logged: &LoggedRequest,
    sender: SentFromPage,
    request_id: &str,
) -> Result<Request, ApiError> {
    let body = Bytes::from(logged.request.text.clone());
    let length = body.len();
    let payload: Payload = Payload::Stream {
        payload: Box::pin(stream::iter([Ok(body)])),
    };
    let mut request = Request::with_payload(payload);
    let head = request.head_mut();
    head.method = logged
        .method
        .parse::<Method>()
        .map_err(ApiError::internal)?;
    head.uri = logged.path.parse::<Uri>().map_err(ApiError::internal)?;
    let key = clock::new_id().to_string();
    for (name, text) in [
        (CONTENT_TYPE, "application/json"),
        (CONTENT_LENGTH, length.to_string().as_str()),
        (IDEMPOTENCY_KEY, key.as_str()),
        (REQUEST_ID, request_id),
    ] {
        let value = HeaderValue::from_str(text).map_err(ApiError::internal)?;
        head.headers.insert(name, value);
    }
    request.extensions_mut().insert(sender);
    Ok(request)
}
