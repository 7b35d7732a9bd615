//! Sends requests to the service on connections that stay open: each as soon as the one before is answered, or at a
//! steady rate. Measures the time of each answer. The client is as light as possible, because it shares the machine
//! with the service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant as Due, sleep_until};

/// Makes the request with this number.
pub(crate) type Requests = Arc<dyn Fn(usize) -> Request<Full<Bytes>> + Send + Sync>;

/// The rule for when the next request is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// As soon as the last request of the connection was answered.
    Full,
    /// This many requests per second on all connections together. The time of an answer counts from the moment at
    /// which its request was due, so that a service that falls behind cannot hide it.
    PerSecond(f64),
}

/// The rate and the times of the answers that arrived.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) per_second: f64,
    pub(crate) count: usize,
    sorted: Vec<Duration>,
}

impl Answers {
    /// Returns the time within which this many of a thousand answers arrived, in milliseconds. 500 gives the median.
    pub(crate) fn per_mille_ms(&self, per_mille: usize) -> f64 {
        let last = self.sorted.len().saturating_sub(1);
        self.sorted
            .get(last * per_mille / 1_000)
            .map_or(f64::NAN, Duration::as_secs_f64)
            * 1_000.0
    }
}

/// A load: the address it goes to, the requests, the number of connections and the time.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Requests,
    pub(crate) connections: usize,
    pub(crate) span: Duration,
    /// The number of the next request. A request is never sent twice.
    pub(crate) next: Arc<AtomicUsize>,
}

impl Load {
    pub(crate) async fn run_repeatedly(&self, pace: Pace, runs: usize) -> Vec<Answers> {
        let mut answers = Vec::new();
        for _ in 0..runs {
            answers.push(self.run(pace).await);
        }
        answers
    }

    pub(crate) async fn run(&self, pace: Pace) -> Answers {
        let load = self.clone();
        tokio::task::spawn_blocking(move || load.run_in_own_threads(pace))
            .await
            .unwrap()
    }

    fn run_in_own_threads(&self, pace: Pace) -> Answers {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let begun = Instant::now();
            let due = Arc::new(AtomicUsize::new(0));
            let connections = (0..self.connections).map(|_| {
                let load = self.clone();
                let due = Arc::clone(&due);
                tokio::spawn(async move { load.run_one_connection(pace, begun, &due).await })
            });
            let mut sorted: Vec<_> = join_all(connections)
                .await
                .into_iter()
                .flat_map(Result::unwrap)
                .collect();
            let elapsed = begun.elapsed().as_secs_f64();
            sorted.sort_unstable();
            let count = sorted.len();
            Answers {
                per_second: f64::from(u32::try_from(count).unwrap()) / elapsed,
                count,
                sorted,
            }
        })
    }

    async fn run_one_connection(
        &self,
        pace: Pace,
        begun: Instant,
        due: &AtomicUsize,
    ) -> Vec<Duration> {
        let mut sender = self.connect().await;
        let mut times = Vec::new();
        loop {
            let start = match pace {
                Pace::Full => Instant::now(),
                Pace::PerSecond(rate) => {
                    let number = u32::try_from(due.fetch_add(1, Ordering::Relaxed)).unwrap();
                    let start = begun + Duration::from_secs_f64(f64::from(number) / rate);
                    sleep_until(Due::from_std(start)).await;
                    start
                }
            };
            if start.duration_since(begun) >= self.span {
                return times;
            }
            let request = (self.requests)(self.next.fetch_add(1, Ordering::Relaxed));
            let what = request.uri().clone();
            let answer = sender.send_request(request).await.unwrap();
            let status = answer.status();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert!(
                status.is_success() || status == StatusCode::ACCEPTED,
                "{what}: {status} {body:?}"
            );
            times.push(start.elapsed());
        }
    }

    async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }
}
