//! Applies the policy of a path. Before the body: looks up the key, counts the request for the rate limit, checks the
//! rights of the key, and limits concurrent calls. Then reads the body or the form, and looks the key up again: a right
//! that ended while the body came in allows nothing. Executes a write with an `Idempotency-Key` only once.

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, web};

use crate::domain::access::api_key::KeyOwner;
use crate::domain::kernel::ids::parse_number;
use crate::http::extract::auth::{self, ChangesNothing, Surface};
use crate::http::extract::{body, form};
use crate::http::idempotency::{self, ResultPage};
use crate::http::limits;
use crate::http::limits::CallKind;
use crate::http::limits::CallSlot;
use crate::http::limits::RateKey;
use crate::http::limits::SensitiveOp;
use crate::http::middleware::access_log::MatchedRoute;
use crate::http::middleware::client_address::client_address;
use crate::http::middleware::key_watch::KeyWatch;
use crate::http::respond::error::ApiError;
use crate::http::state::{ApiSettings, ApiState};

/// Says which requests of a path change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// GET and HEAD change nothing. Every other method does.
    OfMethod,
    /// No method changes anything. All requests count as reads, and an `Idempotency-Key` is ignored.
    Never,
    /// Every method changes something, even GET.
    Always,
}

/// Says what a form does that the browser sends again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormRepeat {
    /// Nothing: it leads to the result of the first one.
    Once,
    /// The same again, which does no harm: a sign-in, or a form that only reads.
    Harmless,
}

/// The policy of one path, as the table of endpoints defines it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoutePolicy {
    pattern: &'static str,
    pub(crate) surface: Option<Surface>,
    pub(crate) effect: Effect,
    /// True if the handlers wait for the authority or for a webhook receiver.
    pub(crate) relays: bool,
    /// True if the body contains many invoices.
    pub(crate) is_bulk: bool,
    /// True if the path takes the form of a page. It is read before the session of its sender is looked up.
    pub(crate) posts_form: bool,
    pub(crate) repeat: FormRepeat,
    pub(crate) result_page: ResultPage,
    pub(crate) sensitive: Option<SensitiveOp>,
}

/// A request that the policy has admitted.
#[derive(Default)]
struct Admitted {
    account: Option<KeyOwner>,
    is_read: bool,
    /// Counts the call as in flight until the call ends.
    _call: Option<CallSlot>,
}

impl RoutePolicy {
    /// Returns the policy of a path without special rules.
    pub(crate) fn new(pattern: &'static str) -> Self {
        let surface = Surface::of(pattern);
        Self {
            pattern,
            surface,
            effect: Effect::OfMethod,
            relays: false,
            is_bulk: false,
            posts_form: false,
            repeat: FormRepeat::Once,
            result_page: ResultPage::Above,
            sensitive: None,
        }
    }

    /// Returns the policy of a path that needs no key. A key that is sent anyway is not looked up.
    pub(crate) fn public(self) -> Self {
        Self { surface: None, ..self }
    }

    /// Returns true if a request with this method changes nothing, so that a read-only key suffices.
    pub(crate) fn only_reads(self, method: &Method) -> bool {
        match self.effect {
            Effect::OfMethod => is_read(method),
            Effect::Never => true,
            Effect::Always => false,
        }
    }

    /// True for a form that has its effect once, however often it is sent.
    fn counts_once(self, method: &Method) -> bool {
        self.posts_form && self.repeat == FormRepeat::Once && !is_read(method)
    }

    fn is_counted(self) -> bool {
        self.pattern.starts_with("/v1/")
    }

    fn is_for_operators(self) -> bool {
        ["/ops/", "/console/"].iter().any(|start| self.pattern.starts_with(start))
            || ["/console", "/metrics"].contains(&self.pattern)
    }

    /// True for paths that both listeners serve: health probes, and what every page needs.
    fn is_for_all(self) -> bool {
        let starts = ["/health/", "/assets/", "/account/"];
        starts.iter().any(|start| self.pattern.starts_with(start))
            || ["/sign-in", "/sign-out", "/sign-in/invitation/{token}"].contains(&self.pattern)
    }

    fn call_kind(self, is_read: bool) -> CallKind {
        match (self.relays, is_read) {
            (true, _) => CallKind::Relay,
            (false, true) => CallKind::Read,
            (false, false) => CallKind::Write,
        }
    }

    /// Runs a request under this policy. If `is_taken` is false, the path has no handler for the method: the response
    /// is 405, so the rights of the key are not checked.
    pub(crate) async fn admit(
        self,
        request: ServiceRequest,
        next: Next<BoxBody>,
        is_taken: bool,
    ) -> Result<ServiceResponse<BoxBody>, Error> {
        request.extensions_mut().insert(MatchedRoute(self.pattern));
        let state = request.app_data::<web::Data<ApiState>>().cloned();
        if state.as_ref().is_some_and(|state| self.is_elsewhere(&request, &state.settings)) {
            return Ok(request.error_response(ApiError::route_not_found()));
        }
        if self.only_reads(request.method()) {
            request.extensions_mut().insert(ChangesNothing);
        }
        let mut response = match state {
            None => next.call(request).await?,
            Some(state) => self.answer_under_key(&state, request, next, is_taken).await?,
        };
        let request = response.request().clone();
        limits::tell(&request, response.headers_mut());
        Ok(response)
    }

    /// Answers a request. A relayed call ends its wait when its key ends.
    async fn answer_under_key(
        self,
        state: &web::Data<ApiState>,
        request: ServiceRequest,
        next: Next<BoxBody>,
        is_taken: bool,
    ) -> Result<ServiceResponse<BoxBody>, Error> {
        let surface = self.surface.filter(|_| self.relays);
        let Some(watch) = KeyWatch::new(request.request(), state, surface) else {
            return self.answer(state, request, next, is_taken).await;
        };
        let waiting = request.request().clone();
        tokio::select! {
            biased;
            answer = self.answer(state, request, next, is_taken) => answer,
            error = watch.end() => Ok(ServiceResponse::from_err(error, waiting)),
        }
    }

    async fn answer(
        self,
        state: &web::Data<ApiState>,
        mut request: ServiceRequest,
        next: Next<BoxBody>,
        is_taken: bool,
    ) -> Result<ServiceResponse<BoxBody>, Error> {
        let admitted = if self.is_counted() {
            self.authorize(state, &request, is_taken).await
        } else {
            Ok(Admitted::default())
        };
        let read = match &admitted {
            Ok(_) if is_taken && !is_read(request.method()) => self.read_first(state, &mut request).await,
            _ => Ok(()),
        };
        match read.and(admitted) {
            Err(error) => Ok(request.error_response(error)),
            Ok(Admitted { account: Some(account), is_read: false, _call }) if is_taken => {
                idempotency::visit(state, account, request, next).await
            }
            Ok(_page) if is_taken && self.counts_once(request.method()) => {
                idempotency::visit_form(state, self.result_page, request, next).await
            }
            Ok(_visitor) => next.call(request).await,
        }
    }

    /// Reads the body of a request, and looks its key up again. The session of a form is looked up by the handler's
    /// extractors, which run after this.
    async fn read_first(
        self,
        state: &web::Data<ApiState>,
        request: &mut ServiceRequest,
    ) -> Result<(), ApiError> {
        if self.posts_form {
            return form::read_first(request, state.settings.body_timeout).await;
        }
        let Some(surface) = self.surface else { return Ok(()) };
        surface.admit(request.request()).await?;
        body::read_first(request, state, self.body_bytes_max(&state.settings)).await?;
        surface.admit_again(request.request()).await.map(drop)
    }

    async fn authorize(
        self,
        state: &ApiState,
        request: &ServiceRequest,
        is_taken: bool,
    ) -> Result<Admitted, ApiError> {
        let account = match self.surface {
            None => None,
            Some(_) => auth::recognised(request.request()).await?,
        };
        let is_read = self.effect == Effect::Never || is_read(request.method());
        let now = state.now();
        let paying = auth::paying(request.request());
        let holder = RateKey::new(account, client_address(request.request()));
        let mut counted = state.limits.request(holder, is_read, now);
        if let (Ok(_), Some(integrator)) = (&counted, paying.and_then(|account| account.integrator)) {
            let of_all = state.limits.integrator_request(integrator, is_read, now);
            counted = of_all.and(counted);
        }
        let taxpayer = request.match_info().get("id").and_then(parse_number);
        if let (Ok(_), Some(operation), Some(account), Some(taxpayer)) =
            (&counted, self.sensitive, account, taxpayer)
        {
            counted = state.limits.sensitive(operation, account, taxpayer, now);
        }
        limits::noted(request.request(), counted)?;
        if let (Some(surface), true) = (self.surface, is_taken) {
            surface.admit(request.request()).await?;
        }
        let kind = self.call_kind(is_read);
        let call = paying.map(|account| state.calls.start(account, kind)).transpose()?;
        Ok(Admitted { account, is_read, _call: call })
    }

    /// True for a request on the wrong listener. With a listener for operators, `/ops`, `/console` and `/metrics` are
    /// served only there, health probes and the sign-in on both, all other paths only on the main one.
    fn is_elsewhere(self, request: &ServiceRequest, settings: &ApiSettings) -> bool {
        let listener = request.app_config().local_addr();
        let is_wrong = |ops| (listener == ops) != self.is_for_operators();
        settings.ops_address.is_some_and(|ops| !self.is_for_all() && is_wrong(ops))
    }

    /// Returns the largest body that the path accepts, in bytes.
    fn body_bytes_max(self, settings: &ApiSettings) -> usize {
        if self.is_bulk { settings.bulk_bytes_max } else { settings.body_bytes_max }
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
