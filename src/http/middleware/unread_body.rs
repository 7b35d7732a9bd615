//! Handles a body that no handler read to its end. A short rest is read, so that the connection can be reused. After a
//! long rest, the connection is closed a moment after the response, so that the caller can read the response.

use std::cell::RefCell;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::ConnectionType;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::web::Bytes;
use actix_web::{HttpMessage, HttpResponse};
use futures_util::{Stream, StreamExt};
use tokio::time::{Sleep, sleep, timeout};

use crate::http::limits::Connection;

/// The connection is kept only if the unread rest of a body is at most this long and arrives within this time.
const REST_BYTES_MAX: usize = 64 * 1024;
const REST_WAIT: Duration = Duration::from_millis(100);
/// The time for which a closing connection stays open after the response, and the maximum number of bytes that are read
/// from it in that time.
const LINGER_TIME: Duration = Duration::from_millis(500);
const LINGER_BYTES_MAX: usize = 256 * 1024;

/// The body of a request. The middleware shares it with the handler, to see whether the handler read all of it.
#[derive(Clone)]
pub(crate) struct RequestStream(Rc<RefCell<SharedPayload>>);

impl std::fmt::Debug for RequestStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestStream")
            .field("has_ended", &self.has_ended())
            .finish_non_exhaustive()
    }
}

struct SharedPayload {
    payload: Payload,
    has_ended: bool,
    /// The `Content-Length` of the request.
    declared: Option<usize>,
    sender: Option<BodyConnection>,
}

/// The connection on which a body arrives, and the client for which the connection counts while more of the body is
/// awaited.
pub(crate) struct BodyConnection {
    pub(crate) connection: Connection,
    pub(crate) client: Option<IpAddr>,
}

impl RequestStream {
    /// Takes over the payload of a request. Returns `None` if the request has no body.
    pub(crate) fn take_from(
        request: &mut ServiceRequest,
        sender: Option<BodyConnection>,
    ) -> Option<Self> {
        let payload = match request.take_payload() {
            Payload::None => return None,
            payload => payload,
        };
        let length = request
            .headers()
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok());
        let declared = length.and_then(|length| length.parse().ok());
        let stream = Self(Rc::new(RefCell::new(SharedPayload {
            payload,
            has_ended: false,
            declared,
            sender,
        })));
        request.set_payload(Payload::Stream {
            payload: stream.clone().boxed_local(),
        });
        Some(stream)
    }

    fn has_ended(&self) -> bool {
        self.0.borrow().has_ended
    }

    /// Reads the rest of the body, up to `REST_BYTES_MAX` bytes. Reads nothing if the `Content-Length` is greater.
    async fn read_rest(&mut self) {
        if self
            .0
            .borrow()
            .declared
            .is_some_and(|length| length > REST_BYTES_MAX)
        {
            return;
        }
        let rest = async {
            let mut left = REST_BYTES_MAX;
            while let Some(Ok(chunk)) = self.next().await {
                match left.checked_sub(chunk.len()) {
                    Some(fewer) => left = fewer,
                    None => break,
                }
            }
        };
        // The result is ignored, because `has_ended` tells whether the whole body was read.
        let _ = timeout(REST_WAIT, rest).await;
    }

    /// Reads what is left of the body if it is short. If it is not, makes the response close the connection.
    pub(crate) async fn read_rest_or_close(mut self, response: HttpResponse) -> HttpResponse {
        if !self.has_ended() {
            self.read_rest().await;
        }
        self.close_unless_read(response)
    }

    /// Makes the response close the connection, unless the body was read to its end.
    pub(crate) fn close_unless_read(self, mut response: HttpResponse) -> HttpResponse {
        if self.has_ended() {
            return response;
        }
        response
            .head_mut()
            .set_connection_type(ConnectionType::Close);
        response.map_body(|_, body| {
            BoxBody::new(LastResponseBody {
                body,
                stream: self,
                linger: None,
            })
        })
    }
}

impl Stream for RequestStream {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut shared = self.0.borrow_mut();
        if shared.has_ended {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut shared.payload).poll_next(context);
        match (&shared.sender, &polled) {
            (Some(sender), Poll::Pending) => sender.connection.mark_waiting_for_body(sender.client),
            (Some(sender), Poll::Ready(_)) => sender.connection.mark_at_work(),
            (None, _) => (),
        }
        shared.has_ended = matches!(polled, Poll::Ready(None | Some(Err(_))));
        polled
    }
}

/// The body of the last response on a connection. It ends with a delay, so that the caller can still read it. It keeps
/// `stream` alive, because otherwise the framework would not close the connection.
struct LastResponseBody {
    body: BoxBody,
    stream: RequestStream,
    linger: Option<LingerBeforeClose>,
}

struct LingerBeforeClose {
    until: Pin<Box<Sleep>>,
    bytes_left: usize,
}

impl MessageBody for LastResponseBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = &mut *self;
        if this.linger.is_none()
            && let Some(chunk) = ready!(Pin::new(&mut this.body).poll_next(context))
        {
            return Poll::Ready(Some(chunk));
        }
        let linger = this.linger.get_or_insert_with(|| LingerBeforeClose {
            until: Box::pin(sleep(LINGER_TIME)),
            bytes_left: LINGER_BYTES_MAX,
        });
        linger.poll(&mut this.stream, context).map(|()| None)
    }
}

impl LingerBeforeClose {
    /// Drops what the caller still sends. Becomes ready at the end of the request's body or after `LINGER_TIME`.
    fn poll(&mut self, stream: &mut RequestStream, context: &mut Context<'_>) -> Poll<()> {
        while self.bytes_left > 0 {
            match stream.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(chunk))) => {
                    self.bytes_left = self.bytes_left.saturating_sub(chunk.len());
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        self.until.as_mut().poll(context)
    }
}
