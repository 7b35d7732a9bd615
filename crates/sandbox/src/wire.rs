//! Breaks a connection on purpose, so that the caller gets no answer, not even headers.
//!
//! `drop_reply` closes the connection before the first byte of the answer. `reset_connection` closes the socket with a
//! TCP reset: the server owns the socket, so `keep_socket` stores a second handle of it.

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
struct SocketHandle(Socket);

/// Stores a second handle of the connection's socket. The server calls this once for each new connection.
pub(crate) fn keep_socket(connection: &dyn Any, extensions: &mut Extensions) {
    let socket = connection
        .downcast_ref::<TcpStream>()
        .map(|stream| SockRef::from(stream).try_clone());
    if let Some(Ok(socket)) = socket {
        extensions.insert(SocketHandle(socket));
    }
}

/// Returns a response that makes the server close the connection without sending anything.
pub(crate) fn drop_reply() -> HttpResponse {
    HttpResponse::Ok().body(SeveredBody)
}

/// Returns a response that makes the server close the connection with a TCP reset.
pub(crate) fn reset_connection(request: &HttpRequest) -> HttpResponse {
    if let Some(SocketHandle(socket)) = request.conn_data::<SocketHandle>()
        && let Err(error) = socket.set_linger(Some(Duration::ZERO))
    {
        tracing::debug!(%error, "a connection is closed rather than reset");
    }
    drop_reply()
}

/// A response body that fails before its first byte.
struct SeveredBody;

impl MessageBody for SeveredBody {
    type Error = std::io::Error;

    fn size(&self) -> BodySize {
        BodySize::Sized(1)
    }

    fn poll_next(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionAborted.into())))
    }
}
