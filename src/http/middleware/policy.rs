//! Applies the policy of a path. Before the body is read: looks up the key, counts the request for the rate limit,
//! checks the rights of the key, and limits concurrent calls. Then reads the body or the form, and looks the key up
//! again, because it may have ended while the body came in. Executes a write with an `Idempotency-Key` only once.

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{CACHE_CONTROL, HeaderMap, HeaderValue, LOCATION};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpRequest, HttpResponse, web};
use database::run_with_page_pool;

use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::payer::PayingAccount;
use crate::http::extract::auth::{self, ApiSurface, ReadOnlyRequest};
use crate::http::extract::body::{self, BodyKind};
use crate::http::extract::form::{self, FormContent};
use crate::http::idempotency::{self, ResultPage};
use crate::http::limits;
use crate::http::limits::CallKind;
use crate::http::limits::CallSlot;
use crate::http::limits::RateKey;
use crate::http::limits::{AnswerHolder, AnsweredCall};
use crate::http::listener::{Audience, Listener};
use crate::http::middleware::access_log::MatchedRoute;
use crate::http::middleware::client_address::client_address;
use crate::http::middleware::key_watch::KeyWatch;
use crate::http::middleware::request_log;
use crate::http::respond::error::ApiError;
use crate::http::respond::file::BrowserRequest;
use crate::http::state::{ApiSettings, ApiState};

/// Says which requests of a path change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestEffect {
    /// GET and HEAD change nothing. Every other method does.
    ByMethod,
    /// No method changes anything. All requests count as reads, and an `Idempotency-Key` is ignored.
    Never,
    /// Every method changes something, even GET.
    Always,
}

/// The effect of a form that the browser sends again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormRepeat {
    /// No second effect: the browser is led to the result of the first form.
    Once,
    /// The same effect again, which does no harm: a sign-in, or a form that only reads.
    Harmless,
}

/// The pages for people that a path serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ServedPages {
    None,
    WithoutForm,
    WithForm,
    /// A file that a script of a page sends.
    WithUpload,
}

/// The rules for the requests of one path: which key they need, which limits apply, and how their bodies are read. They
/// are set where the path is declared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoutePolicy {
    pattern: &'static str,
    pub(crate) surface: Option<ApiSurface>,
    pub(crate) effect: RequestEffect,
    /// True if the handlers wait for the authority or for a webhook receiver.
    pub(crate) is_relayed: bool,
    /// True if the body contains many invoices.
    pub(crate) is_bulk: bool,
    pub(crate) body_kind: BodyKind,
    pub(crate) repeat: FormRepeat,
    pub(crate) form: FormContent,
    pub(crate) result_page: ResultPage,
    /// For pages, queries use database connections of their own, and the body of a form is read before its session is
    /// looked up.
    pub(crate) pages: ServedPages,
}

/// A request that the policy has admitted.
#[derive(Default)]
struct AdmittedRequest {
    account: Option<KeyOwner>,
    is_read: bool,
    /// Counts the call as in flight until its answer is sent.
    call: Option<CallSlot>,
}

impl RoutePolicy {
    /// Returns the policy of a path without special rules.
    pub(crate) fn new(pattern: &'static str) -> Self {
        let surface = ApiSurface::for_pattern(pattern);
        Self {
            pattern,
            surface,
            effect: RequestEffect::ByMethod,
            is_relayed: false,
            is_bulk: false,
            body_kind: BodyKind::Json,
            repeat: FormRepeat::Once,
            form: FormContent::Fields,
            result_page: ResultPage::Above { segments: None },
            pages: ServedPages::None,
        }
    }

    /// Returns the policy of a path that needs no key. A key that is sent anyway is not looked up.
    pub(crate) fn without_key(self) -> Self {
        Self {
            surface: None,
            ..self
        }
    }

    /// Returns true if a request with this method changes nothing, so that a read-only key suffices.
    pub(crate) fn only_reads(self, method: &Method) -> bool {
        match self.effect {
            RequestEffect::ByMethod => is_read(method),
            RequestEffect::Never => true,
            RequestEffect::Always => false,
        }
    }

    /// True for a form that has its effect once, however often it is sent.
    fn is_form_with_single_effect(self, method: &Method) -> bool {
        self.pages == ServedPages::WithForm && self.repeat == FormRepeat::Once && !is_read(method)
    }

    fn serves_pages(self) -> bool {
        self.pages != ServedPages::None
    }

    fn is_rate_limited(self) -> bool {
        ["/v1/", "/verify/", "/shared/"]
            .iter()
            .any(|start| self.pattern.starts_with(start))
    }

    pub(crate) fn audience(self) -> Audience {
        let is_one_of = |starts: &[&str], paths: &[&str]| {
            starts.iter().any(|start| self.pattern.starts_with(start))
                || paths.contains(&self.pattern)
        };
        if is_one_of(&["/ops/", "/console/"], &["/console", "/metrics"]) {
            Audience::Operators
        } else if is_one_of(
            &["/health/", "/assets/", "/docs", "/account/", "/sign-in/"],
            &["/sign-in", "/sign-out", "/llms.txt"],
        ) {
            Audience::Everybody
        } else {
            Audience::Customers
        }
    }

    fn call_kind(self, is_read: bool) -> CallKind {
        match (self.is_relayed, is_read) {
            (true, _) => CallKind::Relay,
            (false, true) => CallKind::Read,
            (false, false) => CallKind::Write,
        }
    }

    /// Runs a request under this policy. If `has_handler` is false, the path has no handler for the method: the
    /// response is 405, so the rights of the key are not checked.
    pub(crate) async fn serve_request(
        self,
        request: ServiceRequest,
        next: Next<BoxBody>,
        has_handler: bool,
    ) -> Result<ServiceResponse<BoxBody>, Error> {
        request.extensions_mut().insert(MatchedRoute(self.pattern));
        let state = request.app_data::<web::Data<ApiState>>().cloned();
        if !Listener::from_request(request.request()).serves(self.audience()) {
            return Ok(request.error_response(ApiError::route_not_found()));
        }
        if self.only_reads(request.method()) {
            request.extensions_mut().insert(ReadOnlyRequest);
        }
        if self.serves_pages() {
            request.extensions_mut().insert(BrowserRequest);
        }
        let public_url = state
            .as_ref()
            .and_then(|state| state.settings.public_url.clone());
        let mut response = match state {
            None => next.call(request).await?,
            Some(state) => {
                self.answer_while_key_valid(&state, request, next, has_handler)
                    .await?
            }
        };
        let request = response.request().clone();
        limits::add_limit_headers(&request, response.headers_mut());
        if self.surface.is_some() || self.serves_pages() {
            forbid_caches(response.headers_mut());
        }
        if let (Some(_), Some(url)) = (self.surface, public_url) {
            complete_location(&url, response.headers_mut());
        }
        Ok(response)
    }

    /// Answers a request. A relayed call stops waiting when its key is no longer valid.
    async fn answer_while_key_valid(
        self,
        state: &web::Data<ApiState>,
        request: ServiceRequest,
        next: Next<BoxBody>,
        has_handler: bool,
    ) -> Result<ServiceResponse<BoxBody>, Error> {
        let surface = self.surface.filter(|_| self.is_relayed);
        let Some(watch) = KeyWatch::new(request.request(), state, surface) else {
            return self
                .answer_if_admitted(state, request, next, has_handler)
                .await;
        };
        let waiting_request = request.request().clone();
        tokio::select! {
            biased;
            answer = self.answer_if_admitted(state, request, next, has_handler) => answer,
            error = watch.wait_until_invalid() => Ok(ServiceResponse::from_err(error, waiting_request)),
        }
    }

    /// Admits a request, reads its body and answers it. If a step fails, answers with the error of this step.
    async fn answer_if_admitted(
        self,
        state: &web::Data<ApiState>,
        mut request: ServiceRequest,
        next: Next<BoxBody>,
        has_handler: bool,
    ) -> Result<ServiceResponse<BoxBody>, Error> {
        let admitted = if self.is_rate_limited() {
            let admitted = self.authorize(state, &request, has_handler).await;
            admitted.inspect_err(|error| record_throttled(state, request.request(), error))
        } else {
            Ok(AdmittedRequest::default())
        };
        let body_read = match &admitted {
            Ok(_) if has_handler && !is_read(request.method()) => {
                self.read_before_handler(state, &mut request).await
            }
            _ => Ok(()),
        };
        let only_reads = self.only_reads(request.method());
        request_log::record_request(state, &request, self.pattern, only_reads);
        let admitted = match body_read.and(admitted) {
            Err(error) => return Ok(request.error_response(error)),
            Ok(admitted) => admitted,
        };
        let address = client_address(request.request());
        let call = AnsweredCall {
            holder: AnswerHolder {
                caller: RateKey::new(admitted.account, address),
                payer: auth::paying_account(request.request()).map(PayingAccount::payer),
            },
            slot: admitted.call,
            is_read: only_reads,
        };
        let response = match admitted.account {
            Some(account) if has_handler && !admitted.is_read => {
                idempotency::answer_write(state, account, request, next).await?
            }
            None if has_handler && self.is_form_with_single_effect(request.method()) => {
                run_with_page_pool(idempotency::answer_form(
                    state,
                    self.result_page,
                    request,
                    next,
                ))
                .await?
            }
            _ if self.serves_pages() => run_with_page_pool(next.call(request)).await?,
            _ => next.call(request).await?,
        };
        let (request, answer) = response.into_parts();
        let answer = request_log::record_answer(state, &request, answer);
        let answer = limits::admit_stream(&state.pages, &request, answer)
            .and_then(|answer| state.answers.hold_until_sent(call, answer))
            .unwrap_or_else(HttpResponse::from_error);
        Ok(ServiceResponse::new(request, answer))
    }

    /// Reads the body or the form of a request before the handler runs. After a body, looks the request's key up again,
    /// because the key may have ended while the body arrived. A form comes with a session instead of a key; the
    /// handler's extractors look up the session afterwards.
    async fn read_before_handler(
        self,
        state: &web::Data<ApiState>,
        request: &mut ServiceRequest,
    ) -> Result<(), ApiError> {
        if self.pages == ServedPages::WithUpload {
            // A file is read only for a person with a session. The handler's extractors look the session up again.
            if idempotency::session_token(state, request.request())
                .await?
                .is_none()
            {
                return Ok(());
            }
            let bytes_max = self.body_bytes_max(&state.settings);
            return body::read_before_handler(request, state, bytes_max, self.body_kind).await;
        }
        if self.pages == ServedPages::WithForm {
            return form::read_before_handler(request, state, self.form).await;
        }
        let Some(surface) = self.surface else {
            return Ok(());
        };
        surface.admit(request.request()).await?;
        let bytes_max = self.body_bytes_max(&state.settings);
        body::read_before_handler(request, state, bytes_max, self.body_kind).await?;
        surface.recheck_key(request.request()).await.map(drop)
    }

    async fn authorize(
        self,
        state: &ApiState,
        request: &ServiceRequest,
        has_handler: bool,
    ) -> Result<AdmittedRequest, ApiError> {
        let account = match self.surface {
            None => None,
            Some(_) => auth::recognise_account(request.request()).await?,
        };
        let is_read = self.effect == RequestEffect::Never || is_read(request.method());
        let now = state.now();
        let paying_account = auth::paying_account(request.request());
        let holder = RateKey::new(account, client_address(request.request()));
        let mut allowance = state.limits.count_request(holder, is_read, now);
        if let (Ok(_), Some(integrator)) = (
            &allowance,
            paying_account.and_then(|account| account.integrator),
        ) {
            let integrator_allowance = state
                .limits
                .count_integrator_request(integrator, is_read, now);
            allowance = integrator_allowance.and(allowance);
        }
        limits::store_allowance(request.request(), allowance)?;
        if let (Some(surface), true) = (self.surface, has_handler) {
            surface.admit(request.request()).await?;
        }
        let kind = self.call_kind(is_read);
        let call = paying_account
            .map(|account| state.calls.start_call(account, kind))
            .transpose()?;
        Ok(AdmittedRequest {
            account,
            is_read,
            call,
        })
    }

    /// Returns the largest body that the path accepts, in bytes.
    fn body_bytes_max(self, settings: &ApiSettings) -> usize {
        if self.body_kind == BodyKind::File {
            settings.import_bytes_max
        } else if self.is_bulk {
            settings.bulk_bytes_max
        } else {
            settings.body_bytes_max
        }
    }
}

/// Counts a 429 response in the usage figures of the taxpayer whose key was used.
fn record_throttled(state: &ApiState, request: &HttpRequest, error: &ApiError) {
    let account = auth::paying_account(request).map(|account| account.owner);
    let taxpayer = account.and_then(KeyOwner::taxpayer);
    if let (StatusCode::TOO_MANY_REQUESTS, Some(taxpayer)) = (error.status, taxpayer) {
        state.taxpayers.usage().record_throttled_request(taxpayer);
    }
}

/// Extends a `Location` header that holds only a path to a full URL.
fn complete_location(public_url: &str, headers: &mut HeaderMap) {
    let path = headers.get(LOCATION).and_then(|path| path.to_str().ok());
    let path = path.filter(|path| path.starts_with('/'));
    let location = path.and_then(|path| HeaderValue::try_from(format!("{public_url}{path}")).ok());
    if let Some(location) = location {
        headers.insert(LOCATION, location);
    }
}

/// Forbids caches between the service and the caller to store an answer for one caller. Caches do not recognise such an
/// answer, since the key is in `x-api-key` and not in `Authorization`, and might give it to others.
fn forbid_caches(headers: &mut HeaderMap) {
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
