//! Limits the bytes that are read from a connection until the next response has come. Hyper bounds one head, but
//! neither the number of interim responses (1xx) before it nor what TLS reads beside it, so a receiver could keep a
//! thread busy.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The number of bytes that may still be read from one connection. All clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ReadBudget {
    left: Arc<AtomicUsize>,
    bytes_max: usize,
}

/// The error if a receiver sends more than the budget.
#[derive(Debug, thiserror::Error)]
#[error("more was sent than one answer may have")]
pub(crate) struct ReadBudgetSpent;

impl ReadBudget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            left: Arc::new(AtomicUsize::new(bytes_max)),
            bytes_max,
        }
    }

    /// Permits the whole number of bytes again.
    pub(crate) fn renew(&self) {
        self.left.store(self.bytes_max, Ordering::Relaxed);
    }

    fn is_spent(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    fn spend(&self, bytes: usize) {
        self.left
            .update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.saturating_sub(bytes)
            });
    }
}

/// A stream from which no more than a budget is read. The last read may exceed the budget by the size of its buffer.
#[derive(Debug)]
pub(crate) struct BudgetedStream<S> {
    pub(crate) stream: S,
    pub(crate) budget: ReadBudget,
}

/// Puts the budget among the extensions of each response of the connection.
impl Connection for BudgetedStream<TcpStream> {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(self.budget.clone())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BudgetedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.budget.is_spent() {
            return Poll::Ready(Err(io::Error::other(ReadBudgetSpent)));
        }
        let filled = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.budget.spend(buffer.filled().len() - filled);
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BudgetedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// Reads until the budget is spent. Returns the number of bytes that came.
    async fn read_to_the_end(stream: &mut (impl AsyncRead + Unpin), buffer: &mut [u8]) -> usize {
        let mut read = 0;
        loop {
            match stream.read(buffer).await {
                Ok(more) => read += more,
                Err(error) => {
                    assert!(error.get_ref().unwrap().is::<ReadBudgetSpent>(), "{error}");
                    return read;
                }
            }
        }
    }

    #[tokio::test]
    async fn no_more_is_read_than_the_budget_and_one_buffer() {
        for (bytes_max, buffer, expected) in [
            (1_000, 100, 1_000),
            (1_000, 300, 1_200),
            (1_000, 4_096, 4_096),
            (0, 100, 0),
        ] {
            let budget = ReadBudget::new(bytes_max);
            let mut stream = BudgetedStream {
                stream: tokio::io::repeat(b'x'),
                budget: budget.clone(),
            };
            let mut buffer = vec![0; buffer];
            for _ in 0..2 {
                let read = read_to_the_end(&mut stream, &mut buffer).await;
                assert_eq!(read, expected, "{bytes_max}");
                budget.renew();
            }
        }
    }
}
