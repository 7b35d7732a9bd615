//! Handles a body that no handler read to its end. A short rest is read, so that the connection can be reused. After a
//! long rest, the connection is closed a moment after the response, so that the caller can read the response. Until then
//! the rest is read and discarded, up to a limit, because many callers write the whole body before they read anything.

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
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::http::limits::{Connection, LingerSlot};

/// The connection is kept only if the unread rest of a body is at most this long and arrives within this time.
const REST_BYTES_MAX: usize = 64 * 1024;
const REST_WAIT: Duration = Duration::from_millis(100);
/// A closing connection stays open for one period after the response. It stays open for further periods while its client
/// sends at least this many bytes in each, so that a client that trickles gains nothing.
const LINGER_PERIOD: Duration = Duration::from_millis(500);
const BYTES_PER_PERIOD_MIN: usize = 16 * 1024;
/// The maximum number of periods, and of bytes that are read in them, for a connection with a slot to linger. The bytes
/// cover the largest body of a request other than an import.
const LONG_LINGER_PERIODS: u32 = 10;
const LONG_LINGER_BYTES: usize = 16 * 1024 * 1024;
/// The maximum number of bytes that are read in the only period of a connection without a slot.
const SHORT_LINGER_BYTES: usize = 256 * 1024;

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
    declared_length: Option<usize>,
    body_connection: Option<BodyConnection>,
}

/// The connection on which a body arrives, and the client for which the connection counts while more of the body is
/// awaited.
pub(crate) struct BodyConnection {
    pub(crate) connection: Connection,
    pub(crate) client: Option<IpAddr>,
}

impl RequestStream {
    /// Takes over the payload of a request. Returns `None` if the request has no body.
    pub(crate) fn take_payload(
        request: &mut ServiceRequest,
        body_connection: Option<BodyConnection>,
    ) -> Option<Self> {
        let payload = match request.take_payload() {
            Payload::None => return None,
            payload => payload,
        };
        let length = request
            .headers()
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok());
        let declared_length = length.and_then(|length| length.parse().ok());
        let stream = Self(Rc::new(RefCell::new(SharedPayload {
            payload,
            has_ended: false,
            declared_length,
            body_connection,
        })));
        request.set_payload(Payload::Stream {
            payload: stream.clone().boxed_local(),
        });
        Some(stream)
    }

    fn has_ended(&self) -> bool {
        self.0.borrow().has_ended
    }

    /// Returns a permission to discard a long rest of the body. Returns `None` if the rest is too long to be read
    /// to its end, or if too many connections linger already.
    fn take_linger_slot(&self) -> Option<LingerSlot> {
        let shared = self.0.borrow();
        if shared
            .declared_length
            .is_some_and(|length| length > LONG_LINGER_BYTES)
        {
            return None;
        }
        let body_connection = shared.body_connection.as_ref()?;
        let client = body_connection.client;
        body_connection.connection.take_linger_slot(client)
    }

    /// Reads the rest of the body, up to `REST_BYTES_MAX` bytes. Reads nothing if the `Content-Length` is greater.
    async fn read_rest(&mut self) {
        if self
            .0
            .borrow()
            .declared_length
            .is_some_and(|length| length > REST_BYTES_MAX)
        {
            return;
        }
        let rest = async {
            let mut bytes_left = REST_BYTES_MAX;
            while let Some(Ok(chunk)) = self.next().await {
                match bytes_left.checked_sub(chunk.len()) {
                    Some(fewer) => bytes_left = fewer,
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
        match (&shared.body_connection, &polled) {
            (Some(body), Poll::Pending) => body.connection.mark_waiting_for_body(body.client),
            (Some(body), Poll::Ready(_)) => body.connection.mark_at_work(),
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
    period_end: Pin<Box<Sleep>>,
    /// The number of periods that may follow this one.
    periods_left: u32,
    bytes_left: usize,
    /// The number of bytes that were read in this period.
    period_bytes: usize,
    _slot: Option<LingerSlot>,
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
        let linger = this
            .linger
            .get_or_insert_with(|| LingerBeforeClose::start(this.stream.take_linger_slot()));
        linger.poll(&mut this.stream, context).map(|()| None)
    }
}

impl LingerBeforeClose {
    /// Starts to discard what the caller still sends. With a slot, more is read for a longer time.
    fn start(slot: Option<LingerSlot>) -> Self {
        let (periods, bytes_left) = match slot {
            Some(_) => (LONG_LINGER_PERIODS, LONG_LINGER_BYTES),
            None => (1, SHORT_LINGER_BYTES),
        };
        Self {
            period_end: Box::pin(sleep(LINGER_PERIOD)),
            periods_left: periods - 1,
            bytes_left,
            period_bytes: 0,
            _slot: slot,
        }
    }

    /// Discards what the caller still sends. Becomes ready at the end of the request's body, or at the end of a period
    /// that is the last one or in which the caller sent too little.
    fn poll(&mut self, stream: &mut RequestStream, context: &mut Context<'_>) -> Poll<()> {
        loop {
            while self.bytes_left > 0 {
                match stream.poll_next_unpin(context) {
                    Poll::Ready(Some(Ok(chunk))) => {
                        self.bytes_left = self.bytes_left.saturating_sub(chunk.len());
                        self.period_bytes += chunk.len();
                    }
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => break,
                }
            }
            ready!(self.period_end.as_mut().poll(context));
            let is_last = self.periods_left == 0 || self.bytes_left == 0;
            if is_last || self.period_bytes < BYTES_PER_PERIOD_MIN {
                return Poll::Ready(());
            }
            self.periods_left -= 1;
            self.period_bytes = 0;
            self.period_end
                .as_mut()
                .reset(Instant::now() + LINGER_PERIOD);
        }
    }
}
