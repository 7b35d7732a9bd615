//! One path of the API or of a console: its handlers, its policy and its documentation.

use actix_web::http::Method;
use actix_web::{FromRequest, Handler, Responder, Route, guard, web};
use utoipa::openapi::path::HttpMethod;

use crate::domain::access::session::OperatorRole;
use crate::http::extract::body::BodyKind;
use crate::http::extract::form::FormContent;
use crate::http::extract::role::NeedsRole;
use crate::http::idempotency::ResultPage;
use crate::http::middleware::policy::{FormRepeat, RequestEffect, RoutePolicy, ServedPages};
use crate::http::openapi::OperationDoc;
use crate::http::openapi::operation::Operation;
use crate::http::respond::code::ErrorCode;

/// The order in which the response header `Allow` lists the methods of a path.
const METHOD_ORDER: [Method; 6] = [
    Method::GET,
    Method::HEAD,
    Method::PUT,
    Method::PATCH,
    Method::POST,
    Method::DELETE,
];

/// One path with the handlers of its methods.
pub(crate) struct Path {
    pub(crate) pattern: &'static str,
    pub(super) routes: Vec<Route>,
    pub(crate) policy: RoutePolicy,
    /// The methods that have a handler, in the order in which the response header `Allow` lists them.
    pub(crate) methods: Vec<Method>,
    /// The methods of each documented handler, and its documentation.
    pub(super) docs: Vec<(Vec<Method>, Doc)>,
    /// The methods of each handler, and the least operator role that the handler requires; `None` if it requires none.
    roles: Vec<(Vec<Method>, Option<OperatorRole>)>,
}

/// A function that returns an operation's documentation, called only when the API document or the names of a query
/// string are needed.
pub(super) type Doc = fn() -> OperationDoc;

pub(crate) fn path(pattern: &'static str) -> Path {
    let policy = RoutePolicy::new(pattern);
    Path {
        pattern,
        routes: Vec::new(),
        policy,
        methods: Vec::new(),
        docs: Vec::new(),
        roles: Vec::new(),
    }
}

impl Path {
    /// Marks a path whose requests change nothing, even if they are POST.
    pub(crate) fn never_writes(mut self) -> Self {
        self.policy.effect = RequestEffect::Never;
        self
    }

    /// Marks a path whose requests change something, even if they are GET.
    pub(crate) fn always_writes(mut self) -> Self {
        self.policy.effect = RequestEffect::Always;
        self
    }

    /// Marks a path whose handlers wait for the authority or for a webhook receiver.
    pub(crate) fn waits_for_other_systems(mut self) -> Self {
        self.policy.is_relayed = true;
        self
    }

    /// Marks a path whose body contains many invoices.
    pub(crate) fn takes_many_invoices(mut self) -> Self {
        self.policy.is_bulk = true;
        self
    }

    /// Marks a path whose body is a file of many invoices, in JSON or another format.
    pub(crate) fn takes_file(mut self) -> Self {
        self.policy.body_kind = BodyKind::File;
        self.takes_many_invoices()
    }

    /// Marks a path that needs no API key.
    pub(crate) fn without_key(mut self) -> Self {
        self.policy = self.policy.without_key();
        self
    }

    /// Handles GET, and also HEAD, whose response has no body.
    pub(crate) fn get<F, Args>(self, handler: F, doc: Doc) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.on_methods([Method::GET, Method::HEAD], handler, doc)
    }

    pub(crate) fn post<F, Args>(self, handler: F, doc: Doc) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.on_methods([Method::POST], handler, doc)
    }

    pub(crate) fn put<F, Args>(self, handler: F, doc: Doc) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.on_methods([Method::PUT], handler, doc)
    }

    pub(crate) fn patch<F, Args>(self, handler: F, doc: Doc) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.on_methods([Method::PATCH], handler, doc)
    }

    /// Handles a read that callers may send with GET, HEAD or POST.
    pub(crate) fn get_or_post<F, Args>(self, handler: F, doc: Doc) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.on_methods([Method::GET, Method::HEAD, Method::POST], handler, doc)
    }

    /// Handles several methods with the same handler, documented as one operation.
    pub(crate) fn on_methods<F, Args, const N: usize>(
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
        self.docs.push((methods.to_vec(), doc));
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
        self.policy.pages = self.policy.pages.max(ServedPages::WithoutForm);
        self.route([Method::GET, Method::HEAD], handler)
    }

    /// Handles POST of a form on a page for people, which the API document does not list. A form that is sent twice has
    /// its effect once, unless `allows_form_repeat` is called.
    pub(crate) fn form<F, Args>(mut self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + NeedsRole + 'static,
        F::Output: Responder + 'static,
    {
        self.policy.pages = ServedPages::WithForm;
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
        self.policy.pages = ServedPages::WithUpload;
        self.route([Method::POST], handler)
    }

    /// Marks a form that does no harm when it is sent again, and whose response is needed each time: a sign-in, or a
    /// form that only reads.
    pub(crate) fn allows_form_repeat(mut self) -> Self {
        self.policy.repeat = FormRepeat::Harmless;
        self
    }

    /// Marks a form that has all lines of an invoice, so that it may be larger than other forms.
    pub(crate) fn form_has_lines(mut self) -> Self {
        self.policy.form = FormContent::InvoiceLines;
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
        self.methods.extend(methods.clone());
        self.methods
            .sort_by_key(|method| METHOD_ORDER.iter().position(|known| known == method));
        let by_method = guard::fn_guard(move |context| methods.contains(&context.head().method));
        self.routes.push(web::route().guard(by_method).to(handler));
        self
    }

    /// Returns true if the API document lists the path.
    pub(crate) fn is_documented(&self) -> bool {
        !self.docs.is_empty()
    }

    /// Returns the documented operations of the path, each with the kinds of keys that the path's policy accepts.
    pub(crate) fn operations(&self) -> impl Iterator<Item = Operation> {
        let path = self.pattern;
        let policy = self.policy;
        self.docs.iter().map(move |(methods, doc)| Operation {
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

/// Returns the method's name in the API document; `None` if the document does not list the method. It does not list
/// HEAD, because every GET path also answers HEAD.
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
