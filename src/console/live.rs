//! Parts of a page that change by themselves: a stream of server-sent events (WHATWG HTML, section 9.2), each with the
//! part's HTML. All browsers that watch a part through one worker thread share one rendering a second, and nothing is
//! rendered while nobody watches.

use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::CACHE_CONTROL;
use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse, rt};
use dashmap::DashMap;
use futures_util::future::LocalBoxFuture;
use futures_util::stream;
use secrecy::SecretString;

use crate::console::session::{self, operators};
use crate::http::cached::Cached;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

const EVERY: Duration = Duration::from_secs(1);
/// A rendering is shared for less than the time between two events, so that no event repeats an old one.
const SHARED_FOR: Duration = Duration::from_millis(900);
/// After so many events the session is looked up again, so a stream ends within seconds after the person has lost the
/// right to see it.
const EVENTS_PER_LOOK: u32 = 3;
/// After so many events the stream ends, and the browser connects again.
const EVENTS_MAX: u32 = 60;

/// Renders a part. The caller has checked that the person may see it.
pub(crate) type Render = fn(web::Data<ApiState>) -> LocalBoxFuture<'static, Result<String, ApiError>>;

/// The last renderings of all parts, by name.
#[derive(Default)]
pub(crate) struct LiveParts(DashMap<&'static str, Arc<Cached<Option<Bytes>>>>);

/// The stream of a part to one browser.
struct Watched {
    state: web::Data<ApiState>,
    session: SecretString,
    part: Arc<Cached<Option<Bytes>>>,
    render: Rc<Render>,
    sent: Option<Bytes>,
    events: u32,
}

impl LiveParts {
    /// Streams a part to the session of the request. The name tells the parts apart.
    pub(crate) fn stream(
        &self,
        name: &'static str,
        request: &HttpRequest,
        state: &web::Data<ApiState>,
        render: Render,
    ) -> HttpResponse {
        let part = self.0.entry(name).or_insert_with(|| Arc::new(Cached::new(SHARED_FOR)));
        let watched = Watched {
            state: state.clone(),
            session: session::token(request).unwrap_or_default(),
            part: Arc::clone(&part),
            render: Rc::new(render),
            sent: None,
            events: 0,
        };
        let events = stream::unfold(watched, next);
        HttpResponse::Ok()
            .content_type("text/event-stream")
            .insert_header((CACHE_CONTROL, "no-store"))
            .streaming(events)
    }
}

/// Returns the next event: the part if it has changed, otherwise a comment, which fails to be sent if the browser has
/// left. `None` ends the stream.
async fn next(mut watched: Watched) -> Option<(Result<Bytes, Infallible>, Watched)> {
    if watched.events > 0 {
        tokio::select! {
            () = rt::time::sleep(EVERY) => {}
            () = watched.state.stopping.wait_for_stop() => return None,
        }
    }
    if watched.events == EVENTS_MAX {
        return None;
    }
    if watched.events > 0 && watched.events.is_multiple_of(EVENTS_PER_LOOK) {
        // A stream whose session cannot be looked up ends, too: the browser connects again.
        let may_look = operators::may_look(&watched.state, &watched.session).await;
        may_look.ok().filter(|may| *may)?;
    }
    watched.events += 1;
    let render = (watched.render)(watched.state.clone());
    let rendering = async {
        let rendered = render.await.inspect_err(|error| {
            tracing::warn!(code = error.code.as_str(), "a part of a page could not be rendered");
        });
        rendered.ok().map(|html| event(&html))
    };
    let rendered = watched.part.get(rendering).await;
    let is_new = rendered.is_some() && rendered != watched.sent;
    let bytes = rendered.filter(|_| is_new).unwrap_or_else(|| Bytes::from_static(b":\n\n"));
    if is_new {
        watched.sent = Some(bytes.clone());
    }
    Some((Ok(bytes), watched))
}

fn event(html: &str) -> Bytes {
    let lines: Vec<_> = html.lines().map(|line| format!("data: {line}")).collect();
    Bytes::from(lines.join("\n") + "\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_part_is_a_line_of_the_event() {
        assert_eq!(event("<p>\nx</p>"), "data: <p>\ndata: x</p>\n\n");
    }
}
