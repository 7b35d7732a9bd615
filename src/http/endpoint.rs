//! An endpoint: a path with its handlers, its policy and its documentation. Other methods get 405 and `Allow`.

use std::collections::HashSet;
use std::future::ready;
use std::rc::Rc;

use actix_web::dev::{AppService, HttpServiceFactory, ServiceRequest};
use actix_web::guard;
use actix_web::http::Method;
use actix_web::http::header::LOCATION;
use actix_web::middleware::{Compat, Compress, Condition, from_fn};
use actix_web::{FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder, Route, web};
use utoipa::openapi::path::HttpMethod;

use crate::domain::access::session::OperatorRole;
use crate::http::extract::body::BodyKind;
use crate::http::extract::form::FormContent;
use crate::http::extract::role::NeedsRole;
use crate::http::idempotency::ResultPage;
use crate::http::known_paths::KnownPaths;
use crate::http::limits::SensitiveOperation;
use crate::http::listener::Listener;
use crate::http::middleware::encodings::ignore_unknown_encodings;
use crate::http::middleware::held_answer::tag_answer;
use crate::http::middleware::policy::{Effect, FormRepeat, Pages, RoutePolicy};
use crate::http::middleware::query_names::check_names;
use crate::http::openapi::OperationDoc;
use crate::http::openapi::document::Tag;
use crate::http::openapi::operation::Operation;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// The order in which `Allow` lists the methods.
const METHOD_ORDER: [Method; 6] = [
    Method::GET,
    Method::HEAD,
    Method::PUT,
    Method::PATCH,
    Method::POST,
    Method::DELETE,
];

/// A part of the API: its name and purpose in the API document, and its endpoints.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) purpose: &'static str,
    pub(crate) endpoints: Vec<Path>,
}

/// One path with the handlers of its methods.
pub(crate) struct Path {
    pub(crate) pattern: &'static str,
    routes: Vec<Route>,
    pub(crate) policy: RoutePolicy,
    pub(crate) allowed: Vec<Method>,
    documented: Vec<(Vec<Method>, Doc)>,
    /// The number of segments of the page above a form, to which GET leads; `None` for a page, and without a page above.
    pub(crate) page_above: Option<usize>,
    /// The methods of each handler, and the least operator role that the handler requires; `None` if it requires none.
    roles: Vec<(Vec<Method>, Option<OperatorRole>)>,
}

/// A function that returns an operation's documentation, called only when the API document or the names of a query
/// string are needed.
type Doc = fn() -> OperationDoc;

pub(crate) fn path(pattern: &'static str) -> Path {
    let policy = RoutePolicy::new(pattern);
    Path {
        pattern,
        routes: Vec::new(),
        policy,
        allowed: Vec::new(),
        documented: Vec::new(),
        page_above: None,
        roles: Vec::new(),
    }
}

impl Path {
    /// Marks a path whose requests change nothing, even if they are POST.
    pub(crate) fn reads(mut self) -> Self {
        self.policy.effect = Effect::Never;
        self
    }

    /// Marks a path whose requests change something, even if they are GET.
    pub(crate) fn has_effect(mut self) -> Self {
        self.policy.effect = Effect::Always;
        self
    }

    /// Marks a path whose handlers wait for the authority or for a webhook receiver.
    pub(crate) fn relays(mut self) -> Self {
        self.policy.relays = true;
        self
    }

    /// Marks a path whose body contains many invoices.
    pub(crate) fn bulk(mut self) -> Self {
        self.policy.is_bulk = true;
        self
    }

    /// Marks a path whose body is a file of many invoices, in JSON or another format.
    pub(crate) fn takes_file(mut self) -> Self {
        self.policy.body_kind = BodyKind::File;
        self.bulk()
    }

    /// Gives the path a rate limit of its own, counted for each taxpayer.
    pub(crate) fn sensitive(mut self, operation: SensitiveOperation) -> Self {
        self.policy.sensitive = Some(operation);
        self
    }

    /// Marks a path that needs no API key.
    pub(crate) fn public(mut self) -> Self {
        self.policy = self.policy.public();
        self
    }

    /// Handles GET, and also HEAD, whose response has no body.
    pub(crate) fn get<F, Args>(self, handler: F, doc: Doc) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.on([Method::GET, Method::HEAD], handler, doc)
    }

    pub(crate) fn post<F, Args>(self, handler: F, doc: Doc) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.on([Method::POST], handler, doc)
    }

    pub(crate) fn put<F, Args>(self, handler: F, doc: Doc) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.on([Method::PUT], handler, doc)
    }

    pub(crate) fn patch<F, Args>(self, handler: F, doc: Doc) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.on([Method::PATCH], handler, doc)
    }

    /// Handles a read that callers may send with GET, HEAD or POST.
    pub(crate) fn get_or_post<F, Args>(self, handler: F, doc: Doc) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.on([Method::GET, Method::HEAD, Method::POST], handler, doc)
    }

    /// Handles several methods with the same handler, documented as one operation.
    pub(crate) fn on<F, Args, const N: usize>(
        mut self,
        methods: [Method; N],
        handler: F,
        doc: Doc,
    ) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.documented.push((methods.to_vec(), doc));
        self.route(methods, handler)
    }

    /// Handles GET with a page for people, which the API document does not list.
    pub(crate) fn page<F, Args>(mut self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.policy.result_page = ResultPage::Own;
        self.policy.pages = self.policy.pages.max(Pages::WithoutForm);
        self.route([Method::GET, Method::HEAD], handler)
    }

    /// Handles POST of a form on a page for people, which the API document does not list. A form that is sent twice has
    /// its effect once, unless it is `repeatable`.
    pub(crate) fn form<F, Args>(mut self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.policy.pages = Pages::WithForm;
        self.route([Method::POST], handler)
    }

    /// Handles POST of a file that a script of a page sends. A file that is sent twice does no harm.
    pub(crate) fn upload<F, Args>(mut self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self = self.takes_file();
        self.policy.pages = Pages::WithUpload;
        self.route([Method::POST], handler)
    }

    /// Marks a form that does no harm when it is sent again, and whose answer is needed each time: a sign-in, or a form
    /// that only reads.
    pub(crate) fn repeatable(mut self) -> Self {
        self.policy.repeat = FormRepeat::Harmless;
        self
    }

    /// Marks a form that carries a file, which may be larger than other forms.
    pub(crate) fn form_takes_file(mut self) -> Self {
        self.policy.form = FormContent::File;
        self
    }

    fn route<F, Args, const N: usize>(mut self, methods: [Method; N], handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.roles.push((methods.to_vec(), Args::LEAST_ROLE));
        self.allowed.extend(methods.clone());
        self.allowed
            .sort_by_key(|method| METHOD_ORDER.iter().position(|known| known == method));
        let by_method = guard::fn_guard(move |context| methods.contains(&context.head().method));
        self.routes.push(web::route().guard(by_method).to(handler));
        self
    }

    /// Returns true if the API document lists the path.
    pub(crate) fn is_documented(&self) -> bool {
        !self.documented.is_empty()
    }

    /// Returns the documented operations of the path, each with the kinds of keys that the path's policy accepts.
    pub(crate) fn operations(&self) -> impl Iterator<Item = Operation> {
        let path = self.pattern;
        let policy = self.policy;
        self.documented.iter().map(move |(methods, doc)| Operation {
            path,
            methods: methods.iter().filter_map(to_openapi_method).collect(),
            keys: policy.surface.map_or(&[], |surface| surface.kinds),
            key_error_codes: key_error_codes(policy, methods),
            least_role: methods.first().and_then(|method| self.least_role(method)),
            doc: doc(),
        })
    }

    /// Returns the least role of an operator that may call this method; `None` if other rights decide.
    pub(crate) fn least_role(&self, method: &Method) -> Option<OperatorRole> {
        self.roles
            .iter()
            .find(|(methods, _)| methods.contains(method))
            .and_then(|(_, role)| *role)
    }

    /// Returns the sort key of the path. It puts a fixed segment before a parameter: `/invoices/full` before
    /// `/invoices/{id}`.
    fn precedence(&self) -> Vec<bool> {
        self.pattern
            .split('/')
            .map(|segment| segment.starts_with('{'))
            .collect()
    }
}

/// Returns the error codes of a call whose key is missing or does not allow the call. Empty if the policy checks no
/// key.
fn key_error_codes(policy: RoutePolicy, methods: &[Method]) -> Vec<ErrorCode> {
    let Some(surface) = policy.surface else {
        return Vec::new();
    };
    let writes = methods.iter().any(|method| !policy.only_reads(method));
    surface
        .key_error_codes()
        .into_iter()
        .chain(writes.then_some(ErrorCode::KeyReadOnly))
        .collect()
}

/// Returns the names of the query string that these operations know.
fn query_names(docs: &[Doc]) -> Vec<String> {
    docs.iter().flat_map(|doc| doc().query_names()).collect()
}

/// Returns the method's name in the API document. HEAD is not listed there, because every GET path also answers HEAD.
fn to_openapi_method(method: &Method) -> Option<HttpMethod> {
    match *method {
        Method::GET => Some(HttpMethod::Get),
        Method::PUT => Some(HttpMethod::Put),
        Method::PATCH => Some(HttpMethod::Patch),
        Method::POST => Some(HttpMethod::Post),
        Method::DELETE => Some(HttpMethod::Delete),
        _ => None,
    }
}

impl Part {
    pub(crate) fn operations(&self) -> impl Iterator<Item = Operation> {
        self.endpoints.iter().flat_map(Path::operations)
    }

    /// Returns this part of the API as the API document lists it.
    pub(crate) fn tag(&self) -> Tag {
        Tag {
            name: self.name,
            purpose: self.purpose,
            operations: self.operations().collect(),
        }
    }
}

/// Returns the endpoints in the order in which a request is matched against them.
pub(crate) fn sort_by_precedence(mut endpoints: Vec<Path>) -> Vec<Path> {
    endpoints.sort_by_cached_key(Path::precedence);
    endpoints
}

impl HttpServiceFactory for Path {
    fn register(self, config: &mut AppService) {
        let Self {
            pattern,
            routes,
            policy,
            allowed,
            documented,
            page_above,
            ..
        } = self;
        let taken: Rc<[Method]> = allowed.clone().into();
        let refusal = web::to(move |request: HttpRequest| {
            let is_read = [Method::GET, Method::HEAD].contains(request.method());
            let above = page_above.filter(|_| is_read);
            ready(match above {
                Some(segments) => Ok(lead_to(first_segments(request.path(), segments))),
                None => Err(ApiError::method_not_allowed(allowed.clone())),
            })
        });
        let admit = from_fn(move |request: ServiceRequest, next| {
            let has_handler = taken.contains(request.method());
            policy.admit(request, next, has_handler)
        });
        let docs: Rc<[Doc]> = documented.into_iter().map(|(_, doc)| doc).collect();
        let is_documented = !docs.is_empty();
        let check_query = from_fn(move |request: ServiceRequest, next| {
            let docs = Rc::clone(&docs);
            check_names(request, next, move || query_names(&docs))
        });
        let resource = routes
            .into_iter()
            .fold(web::resource(pattern), Resource::route);
        resource
            .default_service(refusal)
            .wrap(Compat::new(Condition::new(is_documented, check_query)))
            .wrap(Compat::new(Condition::new(
                policy.surface.is_some(),
                from_fn(tag_answer),
            )))
            .wrap(admit)
            .wrap(Compat::new(Condition::new(
                is_documented,
                Compress::default(),
            )))
            .wrap(from_fn(ignore_unknown_encodings))
            .register(config);
    }
}

/// Makes GET of a form lead to the nearest page above it: who reloads after a fault, or opens the address again, finds the
/// page with the form.
pub(crate) fn lead_forms_to_pages(mut paths: Vec<Path>) -> Vec<Path> {
    let pages: HashSet<_> = paths
        .iter()
        .filter(|path| path.allowed.contains(&Method::GET))
        .map(|path| shape(path.pattern))
        .collect();
    for path in &mut paths {
        if path.policy.pages == Pages::WithForm && !path.allowed.contains(&Method::GET) {
            let shape = shape(path.pattern);
            path.page_above = (2..shape.len())
                .rev()
                .find(|segments| pages.contains(&shape[..*segments]));
        }
    }
    paths
}

/// Returns the segments of a pattern; `None` stands for a parameter.
fn shape(pattern: &str) -> Vec<Option<&str>> {
    let segments = pattern.split('/');
    segments
        .map(|segment| Some(segment).filter(|segment| !segment.starts_with('{')))
        .collect()
}

/// Returns the beginning of a path. Before its first slash stands an empty segment.
fn first_segments(path: &str, segments: usize) -> &str {
    let end = path.match_indices('/').nth(segments - 1);
    end.map_or(path, |(end, _)| &path[..end])
}

fn lead_to(path: &str) -> HttpResponse {
    HttpResponse::SeeOther()
        .insert_header((LOCATION, path))
        .finish()
}

/// Answers a request that matches no path, with the path that was probably meant.
pub(crate) async fn answer_unknown_path(
    request: HttpRequest,
    known: web::Data<KnownPaths>,
) -> Result<&'static str, ApiError> {
    let listener = Listener::from_request(&request);
    std::future::ready(Err(match known.nearest(request.path(), listener) {
        Some(path) => ApiError::new(
            ErrorCode::RouteNotFound,
            format!("No such path (did you mean {path}?)"),
        ),
        None => ApiError::route_not_found(),
    }))
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_leads_to_the_nearest_page_above_it() {
        let page = |pattern| path(pattern).page(async || "");
        let form = |pattern| path(pattern).form(async || "");
        let paths = lead_forms_to_pages(vec![
            page("/a/{id}"),
            page("/a/{id}/keys"),
            form("/a/{key}/keys/{key}/revoke"),
            form("/a/{id}/approve"),
            form("/b"),
            page("/a/{id}/keys/new").form(async || ""),
        ]);
        let above: Vec<_> = paths.iter().map(|path| path.page_above).collect();
        assert_eq!(above, [None, None, Some(4), Some(3), None, None]);
        for (segments, expected) in [(4, "/a/5%2F/keys"), (3, "/a/5%2F"), (9, "/a/5%2F/keys/7/x")] {
            assert_eq!(first_segments("/a/5%2F/keys/7/x", segments), expected);
        }
    }

    #[test]
    fn a_fixed_segment_is_matched_before_a_parameter() {
        let patterns = ["/a/{id}", "/a/{id}/c", "/a/b", "/{any}", "/a/b/{id}", "/a"];
        let sorted = sort_by_precedence(patterns.map(path).into());
        let before = |first: &str, second: &str| {
            let at = |pattern| {
                sorted
                    .iter()
                    .position(|path| path.pattern == pattern)
                    .unwrap()
            };
            assert!(at(first) < at(second), "{first} is not before {second}");
        };
        before("/a/b", "/a/{id}");
        before("/a", "/{any}");
        before("/a/b/{id}", "/a/{id}/c");
    }
}
