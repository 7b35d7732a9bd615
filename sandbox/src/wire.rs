//! Breaks a connection on purpose.
//!
//! A broken reply must never look like a reply: the body fails before its first byte, so the server closes the
//! connection without flushing the head. `reset` also discards the socket's buffers, which the peer sees as a
//! reset. The duplicate handle beside each connection exists for that only.

use std::{
    any::Any,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use actix_web::{
    HttpRequest, HttpResponse,
    body::{BodySize, MessageBody},
    dev::Extensions,
    rt::net::TcpStream,
    web::Bytes,
};
use socket2::{SockRef, Socket};

/// The duplicate handle of a connection.
struct Wire(Socket);

/// Called by the server once per connection.
pub(crate) fn keep(connection: &dyn Any, extensions: &mut Extensions) {
    let socket = connection.downcast_ref::<TcpStream>().map(|stream| SockRef::from(stream).try_clone());
    if let Some(Ok(socket)) = socket {
        extensions.insert(Wire(socket));
    }
}

/// Closes the connection without a reply.
pub(crate) fn drop_reply() -> HttpResponse {
    HttpResponse::Ok().body(Severed)
}

/// Closes the connection with a reset.
pub(crate) fn reset(request: &HttpRequest) -> HttpResponse {
    if let Some(Wire(socket)) = request.conn_data::<Wire>()
        && let Err(error) = socket.set_linger(Some(Duration::ZERO))
    {
        tracing::debug!(%error, "a connection is closed rather than reset");
    }
    drop_reply()
}

/// A body that promises a byte and fails.
struct Severed;

impl MessageBody for Severed {
    type Error = std::io::Error;

    fn size(&self) -> BodySize {
        BodySize::Sized(1)
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionAborted.into())))
    }
}
