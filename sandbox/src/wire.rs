//! Breaks a connection on purpose.
//!
//! A broken connection must never look like an answer. So the body fails before its first byte, and the server closes
//! the connection without sending the headers. For a reset, the socket must also be told to discard its buffers when it
//! is closed. The framework owns the socket, so `keep` stores a second handle of the socket for each connection, and
//! `reset` uses that handle.

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

/// The second handle of a connection's socket.
struct Wire(Socket);

/// Stores a second handle of the connection's socket. The server calls this once for each new connection.
pub(crate) fn keep(connection: &dyn Any, extensions: &mut Extensions) {
    let socket = connection.downcast_ref::<TcpStream>().map(|stream| SockRef::from(stream).try_clone());
    if let Some(Ok(socket)) = socket {
        extensions.insert(Wire(socket));
    }
}

/// Returns a response that makes the server close the connection without sending anything.
pub(crate) fn drop_reply() -> HttpResponse {
    HttpResponse::Ok().body(Severed)
}

/// Returns a response that makes the server close the connection with a TCP reset.
pub(crate) fn reset(request: &HttpRequest) -> HttpResponse {
    if let Some(Wire(socket)) = request.conn_data::<Wire>()
        && let Err(error) = socket.set_linger(Some(Duration::ZERO))
    {
        tracing::debug!(%error, "a connection is closed rather than reset");
    }
    drop_reply()
}

/// A response body that announces one byte and fails before sending it.
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
