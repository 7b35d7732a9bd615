//! Answers to pages that are made while they are sent: parts that update themselves, and files. The slot of the page is
//! free when its answer begins, so such an answer takes a slot of its own until it has ended. Its queries use the
//! database connections of pages.

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::http::Method;
use actix_web::web::Bytes;
use actix_web::{HttpMessage, HttpRequest, HttpResponse};
use database::poll_with_page_pool;

use crate::http::limits::page_limits::{PageLimits, PageSlot, StreamSlot};
use crate::http::respond::error::ApiError;

/// Counts the streamed answer to a page as in flight until it has ended. Fails if the person has too many streamed
/// answers in flight. A streamed answer to HEAD gets an empty body. Other answers stay unchanged.
pub(crate) fn admit_stream(
    pages: &PageLimits,
    request: &HttpRequest,
    answer: HttpResponse,
) -> Result<HttpResponse, ApiError> {
    if answer.body().size() != BodySize::Stream {
        return Ok(answer);
    }
    if request.method() == Method::HEAD {
        return Ok(answer.map_body(|_, _| BoxBody::new(UnsentStream)));
    }
    let person = request
        .extensions()
        .get::<PageSlot>()
        .and_then(PageSlot::person);
    let Some(person) = person else {
        return Ok(answer);
    };
    let slot = pages.admit_stream(person)?;
    Ok(answer.map_body(|_, body| BoxBody::new(PageStream { body, _slot: slot })))
}

/// The body of a streamed answer to HEAD. The framework does not send it, but would make the whole body nevertheless.
struct UnsentStream;

impl MessageBody for UnsentStream {
    type Error = std::convert::Infallible;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(None)
    }
}

/// A body that is made while it is sent, and counts as in flight until it has ended.
struct PageStream {
    body: BoxBody,
    _slot: StreamSlot,
}

impl MessageBody for PageStream {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        poll_with_page_pool(|| Pin::new(&mut self.body).poll_next(context))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use actix_web::test::TestRequest;
    use futures_util::stream;
    use jiff::Timestamp;

    use super::*;
    use crate::domain::access::session::SessionOwner;
    use crate::http::limits::PageRates;

    fn page_slot(pages: &PageLimits) -> PageSlot {
        let now = Timestamp::UNIX_EPOCH;
        let slot = pages.admit(7, None, now).unwrap();
        pages
            .admit_person(slot, 7, SessionOwner::Operator(1), now)
            .unwrap()
    }

    fn streamed_answer() -> HttpResponse {
        HttpResponse::Ok().streaming(stream::pending::<Result<Bytes, Infallible>>())
    }

    #[test]
    fn only_streams_to_a_person_are_limited() {
        let pages = PageLimits::new(PageRates {
            per_s: 0,
            concurrent_max: 2,
        });
        for (method, has_session, is_streamed, admitted) in [
            (Method::GET, true, true, 2),
            (Method::GET, true, false, 5),
            (Method::HEAD, true, true, 5),
            (Method::GET, false, true, 5),
        ] {
            let answer = || {
                if is_streamed {
                    streamed_answer()
                } else {
                    HttpResponse::Ok().body("whole")
                }
            };
            let request = TestRequest::default()
                .method(method.clone())
                .to_http_request();
            if has_session {
                request.extensions_mut().insert(page_slot(&pages));
            }
            let answers: Vec<_> = (0..5)
                .filter_map(|_| admit_stream(&pages, &request, answer()).ok())
                .collect();
            assert_eq!(answers.len(), admitted, "{method} {has_session}");
        }
    }

    #[actix_web::test]
    async fn a_slot_is_free_when_its_stream_ends_and_head_ends_at_once() {
        let pages = PageLimits::new(PageRates {
            per_s: 0,
            concurrent_max: 1,
        });
        let get = TestRequest::get().to_http_request();
        get.extensions_mut().insert(page_slot(&pages));
        let first = admit_stream(&pages, &get, streamed_answer()).unwrap();
        assert!(admit_stream(&pages, &get, streamed_answer()).is_err());
        drop(first);
        assert!(admit_stream(&pages, &get, streamed_answer()).is_ok());
        let head = TestRequest::default()
            .method(Method::HEAD)
            .to_http_request();
        let unsent = admit_stream(&pages, &head, streamed_answer()).unwrap();
        assert_eq!(
            unsent.body().size(),
            BodySize::Stream,
            "with the same headers"
        );
        let body = actix_web::body::to_bytes(unsent.into_body()).await.unwrap();
        assert!(body.is_empty());
    }
}
