//! A client's connection. It ends when a new connection needs its place (`open_connections`), or when the client reads
//! too little of an answer. The framework has no timeout for writes, so without this limit a client that reads nothing
//! would keep an answer in memory for ever.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::http::limits::open_connections::Connection;

/// The bytes that a client has to read within the time limit, so that a slow trickle of bytes is not enough.
const BYTES_READ_MIN: usize = 16 * 1024;

/// A client's connection with its timeout; `S` is the stream of bytes.
#[derive(Debug)]
pub(crate) struct GuardedStream<S> {
    stream: S,
    connection: Connection,
    /// The time within which a client has to read `BYTES_READ_MIN` bytes that are ready for it.
    stalled_after: Duration,
    stall: Option<StallTimer>,
}

/// The deadline of a slow client, and the bytes that the client has read since the timer started.
#[derive(Debug)]
struct StallTimer {
    deadline: Pin<Box<Sleep>>,
    bytes_read: usize,
}

impl StallTimer {
    fn start(limit: Duration) -> Self {
        Self {
            deadline: Box::pin(sleep(limit)),
            bytes_read: 0,
        }
    }
}

impl<S> GuardedStream<S> {
    pub(crate) fn new(stream: S, connection: Connection, stalled_after: Duration) -> Self {
        Self {
            stream,
            connection,
            stalled_after,
            stall: None,
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Counts the bytes of a write that the client has taken, and returns the result of the write. Returns an error
    /// instead if the client has read too little within `stalled_after`.
    fn check_progress(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let is_pending = written.is_pending();
        if !is_pending && self.stall.is_none() {
            return written;
        }
        let limit = self.stalled_after;
        let stall = self.stall.get_or_insert_with(|| StallTimer::start(limit));
        if let Poll::Ready(Ok(bytes)) = written {
            stall.bytes_read += bytes;
        }
        while is_pending && stall.deadline.as_mut().poll(context).is_ready() {
            if stall.bytes_read < BYTES_READ_MIN {
                return Poll::Ready(Err(abort_error("the client takes nothing")));
            }
            *stall = StallTimer::start(limit);
        }
        written
    }
}

impl<S> Drop for GuardedStream<S> {
    fn drop(&mut self) {
        self.connection.unregister();
    }
}

fn abort_error(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::ConnectionAborted, reason)
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.connection.poll_closed(context) {
            return Poll::Ready(Err(abort_error("the place of the connection is needed")));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.connection.poll_closed(context) {
            return Poll::Ready(Err(abort_error("the place of the connection is needed")));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.connection.mark_answer_part_taken();
        }
        self.check_progress(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The framework flushes once everything is written, so the client is not behind.
        self.stall = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Instant;

    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::http::limits::open_connections::{ConnectionLimits, OpenConnections};

    const LIMITS: ConnectionLimits = ConnectionLimits {
        all_max: 1,
        address_max: 1,
    };
    const STALLED_AFTER: Duration = Duration::from_millis(50);

    fn guarded_stream<S>(stream: S, open: &OpenConnections) -> GuardedStream<S> {
        let connection = open.admit(Some([10, 0, 0, 1].into())).unwrap();
        GuardedStream::new(stream, connection, STALLED_AFTER)
    }

    fn open() -> OpenConnections {
        OpenConnections::new(LIMITS)
    }

    /// Returns both ends of a connection.
    async fn connect() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        (listener.accept().await.unwrap().0, client)
    }

    async fn write_until_error<S: AsyncWrite + Unpin>(stream: &mut GuardedStream<S>) -> io::Error {
        let bytes = vec![0; 65_536];
        loop {
            let written =
                poll_fn(|context| Pin::new(&mut *stream).poll_write(context, &bytes)).await;
            if let Err(error) = written {
                return error;
            }
        }
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_dropped() {
        let (ours, _client) = connect().await;
        let failed = write_until_error(&mut guarded_stream(ours, &open())).await;
        assert_eq!(failed.to_string(), "the client takes nothing");
    }

    /// Lets the client read this many bytes once, and then nothing. Returns how long it takes until the stream fails.
    async fn time_until_failure(bytes: usize) -> Duration {
        let mut stream = guarded_stream((), &open());
        let began = Instant::now();
        poll_fn(|context| {
            assert!(stream.check_progress(Poll::Pending, context).is_pending());
            assert!(
                stream
                    .check_progress(Poll::Ready(Ok(bytes)), context)
                    .is_ready()
            );
            Poll::Ready(())
        })
        .await;
        let failed = poll_fn(|context| stream.check_progress(Poll::Pending, context)).await;
        assert!(failed.is_err());
        began.elapsed()
    }

    #[tokio::test]
    async fn only_a_client_that_takes_more_than_a_trickle_gets_more_time() {
        assert!(time_until_failure(BYTES_READ_MIN - 1).await >= STALLED_AFTER);
        assert!(time_until_failure(BYTES_READ_MIN).await >= 2 * STALLED_AFTER);
    }

    #[tokio::test]
    async fn an_idle_connection_is_closed_before_one_that_takes_an_answer() {
        let open = OpenConnections::new(ConnectionLimits {
            all_max: 2,
            address_max: 2,
        });
        let (ours, _client) = connect().await;
        let mut downloading = guarded_stream(ours, &open);
        let idle = guarded_stream((), &open);
        let sent = poll_fn(|context| Pin::new(&mut downloading).poll_write(context, b"part")).await;
        assert_eq!(sent.unwrap(), 4);
        assert!(open.admit(Some([10, 0, 0, 1].into())).is_some());
        let both = [downloading.connection(), idle.connection()];
        let closed = poll_fn(|context| Poll::Ready(both.map(|one| one.poll_closed(context)))).await;
        assert_eq!(closed, [false, true]);
    }

    #[tokio::test]
    async fn a_connection_whose_place_is_needed_ends() {
        let ((ours, _client), open) = (connect().await, open());
        let mut stream = guarded_stream(ours, &open);
        let mut read = async || {
            let mut byte = [0];
            poll_fn(|context| {
                Pin::new(&mut stream).poll_read(context, &mut ReadBuf::new(&mut byte))
            })
            .await
        };
        let newcomer = async { assert!(open.admit(Some([10, 0, 0, 1].into())).is_some()) };
        let (failed, ()) = tokio::join!(read(), newcomer);
        assert_eq!(
            failed.unwrap_err().to_string(),
            "the place of the connection is needed"
        );
    }
}
