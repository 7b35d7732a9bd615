//! A request in the request log of an account.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::request_log::{BodyExtent, LoggedBody, LoggedRequest};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedRequest)]
pub(crate) struct RequestView<'a> {
    /// The id of the entry; the caller may have given one `request_id` to several requests.
    id: Uuid,
    request_id: &'a str,
    at: String,
    /// The taxpayer whose key was used; null for an integrator's own request.
    taxpayer_id: Option<TaxpayerId>,
    method: &'a str,
    /// The path with its query string, without secrets.
    path: &'a str,
    status: u16,
    /// The code of the error; null if the request succeeded.
    error_code: Option<&'a str>,
    duration_ms: u64,
    /// The name and the last characters of the key, as the list of keys shows it.
    key: &'a str,
    request: BodyView<'a>,
    response: BodyView<'a>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedBody)]
struct BodyView<'a> {
    /// The length of the body as it was sent, in bytes.
    bytes: u64,
    /// `whole`; `redacted` where `(hidden)` stands for secrets; `cut` after 8 KiB; `omitted` if nothing of it is kept.
    kept: &'static str,
    /// The kept part of the body; null if nothing of it is kept.
    body: Option<&'a str>,
}

impl<'a> From<&'a LoggedRequest> for RequestView<'a> {
    fn from(logged: &'a LoggedRequest) -> Self {
        Self {
            id: logged.id,
            request_id: &logged.request_id,
            at: precise_time(logged.at),
            taxpayer_id: logged.caller.taxpayer,
            method: &logged.method,
            path: &logged.path,
            status: logged.status,
            error_code: logged.error_code.as_deref(),
            duration_ms: logged.duration_ms,
            key: &logged.key,
            request: BodyView::from(&logged.request),
            response: BodyView::from(&logged.response),
        }
    }
}

impl<'a> From<&'a LoggedBody> for BodyView<'a> {
    fn from(body: &'a LoggedBody) -> Self {
        Self {
            bytes: body.bytes,
            kept: body.extent.as_str(),
            body: (body.extent != BodyExtent::Omitted).then_some(&body.text),
        }
    }
}
