//! One line of the table of endpoints: a path with its handlers and its policy. Any other method is 405 with `Allow`.

use std::rc::Rc;

use actix_web::dev::{AppService, HttpServiceFactory, ServiceRequest};
use actix_web::guard::{self, GuardContext};
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::{FromRequest, Handler, Resource, Responder, Route, web};

use crate::http::limits::SensitiveOp;
use crate::http::middleware::policy::{Effect, RoutePolicy};
use crate::http::respond::error::ApiError;

/// The methods of a read that may also be posted.
pub(crate) const READ: [Method; 3] = [Method::GET, Method::HEAD, Method::POST];
/// The methods of an update.
pub(crate) const SET: [Method; 3] = [Method::PUT, Method::PATCH, Method::POST];

/// A path with its methods.
pub(crate) struct Path {
    pub(crate) pattern: &'static str,
    routes: Vec<Route>,
    pub(crate) policy: RoutePolicy,
    pub(crate) allowed: Vec<Method>,
}

pub(crate) fn path(pattern: &'static str) -> Path {
    Path { pattern, routes: Vec::new(), policy: RoutePolicy::new(pattern), allowed: Vec::new() }
}

impl Path {
    /// Marks a path that only reads, although it may be posted.
    pub(crate) fn reads(mut self) -> Self {
        self.policy.effect = Effect::Never;
        self
    }

    /// Marks a path that changes something although it accepts GET.
    pub(crate) fn has_effect(mut self) -> Self {
        self.policy.effect = Effect::Always;
        self
    }

    /// Marks a path that waits for the authority or for a webhook receiver.
    pub(crate) fn relays(mut self) -> Self {
        self.policy.relays = true;
        self
    }

    /// Marks a path that takes a body of many invoices.
    pub(crate) fn bulk(mut self) -> Self {
        self.policy.is_bulk = true;
        self
    }

    /// Gives a path its own rate limit for each taxpayer.
    pub(crate) fn sensitive(mut self, operation: SensitiveOp) -> Self {
        self.policy.sensitive = Some(operation);
        self
    }

    /// Marks a path that needs no key.
    pub(crate) fn public(mut self) -> Self {
        self.policy = self.policy.public();
        self
    }

    /// Handles GET, and HEAD without the body.
    pub(crate) fn get<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.on([Method::GET, Method::HEAD], handler)
    }

    pub(crate) fn post<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.on([Method::POST], handler)
    }

    pub(crate) fn patch<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.on([Method::PATCH], handler)
    }

    /// Handles several methods with one operation.
    pub(crate) fn on<F, Args, const N: usize>(mut self, methods: [Method; N], handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.allowed.extend(methods.clone());
        let is_taken = move |context: &GuardContext<'_>| methods.contains(&context.head().method);
        self.routes.push(web::route().guard(guard::fn_guard(is_taken)).to(handler));
        self
    }
}

impl HttpServiceFactory for Path {
    fn register(self, config: &mut AppService) {
        let Self { pattern, routes, policy, allowed } = self;
        let taken: Rc<[Method]> = allowed.clone().into();
        let refuse = move || {
            let allowed = allowed.clone();
            async move { Err::<&str, _>(ApiError::not_allowed(allowed)) }
        };
        let admit = from_fn(move |request: ServiceRequest, next| {
            let is_taken = taken.contains(request.method());
            policy.admit(request, next, is_taken)
        });
        let resource = routes.into_iter().fold(web::resource(pattern), Resource::route);
        resource.default_service(web::to(refuse)).wrap(admit).register(config);
    }
}

/// Handles a request without a matching path.
pub(crate) async fn not_found() -> Result<&'static str, ApiError> {
    std::future::ready(Err(ApiError::route_not_found())).await
}
