//! The text by which people recognise the key of a request.

use std::sync::Arc;

use actix_web::{HttpMessage, HttpRequest};

use crate::domain::access::api_key::{key_label, visible_key_end};
use crate::http::extract::auth;

/// The name of the request's key, if the key has a name. For a request that a page sends, the name of the person.
#[derive(Debug, Clone)]
pub(super) struct KeyName(pub(super) Option<Arc<str>>);

/// Returns the name and the last characters of the request's key. Call it after the key was looked up.
pub(crate) fn api_key_label(request: &HttpRequest) -> String {
    let extensions = request.extensions();
    let name = extensions
        .get::<KeyName>()
        .and_then(|KeyName(name)| name.as_deref());
    let end = auth::sent_key(request).map(visible_key_end);
    key_label(name, end.as_deref()).unwrap_or_default()
}
