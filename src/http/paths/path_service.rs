//! Serves a path. A method that the path does not handle gets 405 and the header `Allow`; an unknown path gets 404.

use std::future::ready;
use std::rc::Rc;

use actix_web::dev::{AppService, HttpServiceFactory, ServiceRequest};
use actix_web::http::header::LOCATION;
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::{Compat, Compress, Condition, from_fn};
use actix_web::{HttpRequest, HttpResponse, Resource, web};

use crate::http::idempotency::ResultPage;
use crate::http::known_paths::KnownPaths;
use crate::http::listener::Listener;
use crate::http::middleware::encodings::ignore_unknown_encodings;
use crate::http::middleware::held_answer::tag_or_answer_not_modified;
use crate::http::middleware::ignored_body::warn_of_ignored_body;
use crate::http::middleware::query_names::{QueryRules, check_query_names};
use crate::http::openapi::OperationDoc;
use crate::http::paths::api_path::{Doc, Path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

impl HttpServiceFactory for Path {
    fn register(self, config: &mut AppService) {
        let Self {
            pattern,
            routes,
            policy,
            methods,
            docs,
            ..
        } = self;
        let handled_methods: Rc<[Method]> = methods.clone().into();
        let answer_other_methods = web::to(move |request: HttpRequest| {
            let is_read = [Method::GET, Method::HEAD].contains(request.method());
            ready(match policy.result_page {
                page @ ResultPage::Above { segments: Some(_) } if is_read => {
                    Ok(redirect_to(page.page_path(request.path())))
                }
                _ => Err(ApiError::method_not_allowed(methods.clone())),
            })
        });
        let apply_policy = from_fn(move |request: ServiceRequest, next| {
            let has_handler = handled_methods.contains(request.method());
            policy.serve_request(request, next, has_handler)
        });
        let docs: Rc<[Doc]> = docs.into_iter().map(|(_, doc)| doc).collect();
        let is_documented = !docs.is_empty();
        let check_query = from_fn(move |request: ServiceRequest, next| {
            let docs = Rc::clone(&docs);
            check_query_names(request, next, move || query_rules(&docs))
        });
        let resource = routes
            .into_iter()
            .fold(web::resource(pattern), Resource::route);
        resource
            .default_service(answer_other_methods)
            .wrap(Compat::new(Condition::new(
                is_documented,
                from_fn(warn_of_ignored_body),
            )))
            .wrap(Compat::new(Condition::new(is_documented, check_query)))
            .wrap(Compat::new(Condition::new(
                policy.surface.is_some(),
                from_fn(tag_or_answer_not_modified),
            )))
            .wrap(apply_policy)
            .wrap(Compat::new(Condition::new(
                is_documented,
                Compress::default(),
            )))
            .wrap(from_fn(ignore_unknown_encodings))
            .register(config);
    }
}

/// Returns the rules for the query strings of these operations.
fn query_rules(docs: &[Doc]) -> QueryRules {
    let docs: Vec<_> = docs.iter().map(|doc| doc()).collect();
    let invalid_status = docs.iter().map(OperationDoc::invalid_status).min();
    QueryRules {
        invalid_status: invalid_status.unwrap_or(StatusCode::UNPROCESSABLE_ENTITY),
        names: docs
            .into_iter()
            .flat_map(OperationDoc::query_parameter_names)
            .collect(),
    }
}

fn redirect_to(path: &str) -> HttpResponse {
    HttpResponse::SeeOther()
        .insert_header((LOCATION, path))
        .finish()
}

/// Answers a request that matches no path with 404. The message suggests the path that was probably meant.
pub(crate) async fn answer_unknown_path(
    request: HttpRequest,
    known_paths: web::Data<KnownPaths>,
) -> Result<&'static str, ApiError> {
    let listener = Listener::from_request(&request);
    std::future::ready(Err(match known_paths.nearest(request.path(), listener) {
        Some(path) => ApiError::new(
            ErrorCode::RouteNotFound,
            format!("No such path (did you mean {path}?)"),
        ),
        None => ApiError::route_not_found(),
    }))
    .await
}
