//! Parts of a page that update themselves: a stream of server-sent events (WHATWG HTML, section 9.2), each with the
//! part's HTML. All operators who watch the same part through the same worker thread share one rendering per second.
//! Each browser of an account has its own rendering, every five seconds. Nothing is rendered while nobody watches.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::CACHE_CONTROL;
use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse, rt};
use dashmap::DashMap;
use futures_util::future::LocalBoxFuture;
use futures_util::stream;
use secrecy::SecretString;

use crate::console::session::{self, accounts, operators};
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::cached::Cached;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

const EVENT_INTERVAL: Duration = Duration::from_secs(1);
/// A rendering is shared for this long: less than the time between two events, so that no event repeats an old one.
const RENDERING_SHARED_FOR: Duration = Duration::from_millis(900);
/// The number of events after which the session of an operator is checked again. So a stream ends within seconds after
/// the person has lost access.
const EVENTS_PER_SESSION_CHECK: u32 = 3;
/// The number of events after which the stream ends. The browser then connects again.
const EVENTS_MAX: u32 = 60;

/// Renders a part. The caller has checked that the person may see it.
type Render = dyn Fn(web::Data<ApiState>) -> LocalBoxFuture<'static, Result<String, ApiError>>;

/// The time between two events to a browser of an account. Its session is checked before each event.
const ACCOUNT_EVENT_INTERVAL: Duration = Duration::from_secs(5);
const ACCOUNT_EVENTS_MAX: u32 = 6;

/// The last renderings of all parts, by name.
#[derive(Default)]
pub(crate) struct LiveParts(DashMap<String, Arc<Cached<Option<Bytes>>>>);

/// The viewer of a live part of a page.
enum PartViewer {
    /// An operator, by the token of the session.
    Operator(SecretString),
    /// A person of an account or its integrator.
    Account {
        token: SecretString,
        taxpayer: TaxpayerId,
    },
}

/// The stream of a part to one browser.
struct PartStream {
    state: web::Data<ApiState>,
    viewer: PartViewer,
    part: Arc<Cached<Option<Bytes>>>,
    render: Box<Render>,
    last_sent: Option<Bytes>,
    events: u32,
}

impl LiveParts {
    /// Streams a part to the operator who sent the request. `name` distinguishes the parts and their views. It must not
    /// contain text from a browser, because the last rendering of each name is kept for ever.
    pub(crate) fn stream_to_operator(
        &self,
        name: String,
        request: &HttpRequest,
        state: &web::Data<ApiState>,
        render: impl Fn(web::Data<ApiState>) -> LocalBoxFuture<'static, Result<String, ApiError>>
        + 'static,
    ) -> HttpResponse {
        let part = self
            .0
            .entry(name)
            .or_insert_with(|| Arc::new(Cached::new(RENDERING_SHARED_FOR)));
        let token = session::session_token(request).unwrap_or_default();
        let part_stream = PartStream {
            state: state.clone(),
            viewer: PartViewer::Operator(token),
            part: Arc::clone(&part),
            render: Box::new(render),
            last_sent: None,
            events: 0,
        };
        part_stream.into_response()
    }
}

/// Streams a part to a person of an account. The caller has checked that the person may see it.
pub(crate) fn stream_to_account(
    request: &HttpRequest,
    state: &web::Data<ApiState>,
    taxpayer: TaxpayerId,
    render: impl Fn(web::Data<ApiState>) -> LocalBoxFuture<'static, Result<String, ApiError>> + 'static,
) -> HttpResponse {
    let part_stream = PartStream {
        state: state.clone(),
        viewer: PartViewer::Account {
            token: session::session_token(request).unwrap_or_default(),
            taxpayer,
        },
        part: Arc::new(Cached::new(RENDERING_SHARED_FOR)),
        render: Box::new(render),
        last_sent: None,
        events: 0,
    };
    part_stream.into_response()
}

impl PartViewer {
    fn event_interval(&self) -> Duration {
        match self {
            Self::Operator(_) => EVENT_INTERVAL,
            Self::Account { .. } => ACCOUNT_EVENT_INTERVAL,
        }
    }

    fn events_max(&self) -> u32 {
        match self {
            Self::Operator(_) => EVENTS_MAX,
            Self::Account { .. } => ACCOUNT_EVENTS_MAX,
        }
    }
}

impl PartStream {
    fn into_response(self) -> HttpResponse {
        HttpResponse::Ok()
            .content_type("text/event-stream")
            .insert_header((CACHE_CONTROL, "no-store"))
            .streaming(stream::unfold(self, next_event))
    }

    /// True if the viewer may still see the part. False also if the session cannot be checked: the stream then ends,
    /// and the browser connects again.
    async fn may_still_view(&self) -> bool {
        match &self.viewer {
            PartViewer::Operator(token) if self.events.is_multiple_of(EVENTS_PER_SESSION_CHECK) => {
                let may_view = operators::may_view_pages(&self.state, token).await;
                may_view.unwrap_or(false)
            }
            PartViewer::Operator(_) => true,
            PartViewer::Account { token, taxpayer } => {
                let may_view = accounts::may_view_account(&self.state, token, *taxpayer).await;
                may_view.unwrap_or(false)
            }
        }
    }
}

/// Returns the next event: the part if it has changed, otherwise a comment, so that sending fails if the browser has
/// left. `None` ends the stream.
async fn next_event(
    mut part_stream: PartStream,
) -> Option<(Result<Bytes, Infallible>, PartStream)> {
    if part_stream.events > 0 {
        tokio::select! {
            () = rt::time::sleep(part_stream.viewer.event_interval()) => {}
            () = part_stream.state.stopping.wait_for_stop() => return None,
        }
    }
    if part_stream.events == part_stream.viewer.events_max() {
        return None;
    }
    if part_stream.events > 0 && !part_stream.may_still_view().await {
        return None;
    }
    part_stream.events += 1;
    let render = (part_stream.render)(part_stream.state.clone());
    let rendering = async {
        let rendered = render.await.inspect_err(|error| {
            tracing::warn!(
                code = error.code.as_str(),
                "a part of a page could not be rendered"
            );
        });
        rendered.ok().map(|html| encode_event(&html))
    };
    let rendered = part_stream.part.get_or_load(rendering).await;
    let is_new = rendered.is_some() && rendered != part_stream.last_sent;
    let bytes = rendered
        .filter(|_| is_new)
        .unwrap_or_else(|| Bytes::from_static(b":\n\n"));
    if is_new {
        part_stream.last_sent = Some(bytes.clone());
    }
    Some((Ok(bytes), part_stream))
}

/// Encodes a part as an event of the stream. A carriage return alone also ends a line of a stream, so the text after
/// it becomes a further line of the event.
fn encode_event(html: &str) -> Bytes {
    let lines = html.lines().flat_map(|line| line.split('\r'));
    let lines: Vec<_> = lines.map(|line| format!("data: {line}")).collect();
    Bytes::from(lines.join("\n") + "\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_part_is_a_line_of_the_event() {
        for (html, event) in [
            ("<p>\nx</p>", "data: <p>\ndata: x</p>\n\n"),
            ("<p>\r\nx</p>\n", "data: <p>\ndata: x</p>\n\n"),
            ("<p>\rretry: 1</p>", "data: <p>\ndata: retry: 1</p>\n\n"),
            (
                "<p>\r\rx</p>\ny",
                "data: <p>\ndata: \ndata: x</p>\ndata: y\n\n",
            ),
        ] {
            assert_eq!(encode_event(html), event, "{html:?}");
        }
    }
}
