//! A webhook receiver on loopback: HTTP/1.1 on connections that stay open, in a separate thread. It is as light as
//! possible, so that a benchmark does not measure the receiver. Its [`Endpoint`] decides on the answers: [`ScriptedEndpoint`]
//! answers notifications; other endpoints stand for an ERP system or count for a benchmark.

mod http;
mod notification;
mod scripted;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use http::Connection;
pub use http::{Request, Response};
pub use notification::Received;
pub use scripted::{Reply, ScriptedEndpoint};

/// The largest number of connections that wait to be accepted.
const BACKLOG: u32 = 4_096;

/// Answers the requests of a [`Receiver`], in the order of their arrival.
pub trait Endpoint: Send + 'static {
    fn receive(&mut self, request: &Request<'_>) -> Response;

    /// Called when the request with this number is about to be answered. The first request has the number 0.
    fn on_answer(&mut self, _number: usize) {}
}

/// The pace of the answers: held back, or sent after a latency.
#[derive(Debug, Clone, Copy)]
struct Pace {
    is_held: bool,
    latency: Duration,
}

struct CountedEndpoint<E> {
    endpoint: E,
    requests: usize,
    answers: usize,
}

struct ReceiverState<E> {
    counted: Mutex<CountedEndpoint<E>>,
    pace: watch::Sender<Pace>,
}

impl<E> ReceiverState<E> {
    fn lock(&self) -> MutexGuard<'_, CountedEndpoint<E>> {
        self.counted.lock().unwrap()
    }
}

/// A running receiver. It ends when it is dropped.
pub struct Receiver<E = ScriptedEndpoint> {
    port: u16,
    shared: Arc<ReceiverState<E>>,
    _running: oneshot::Sender<()>,
}

impl<E: Endpoint> Receiver<E> {
    /// Starts a receiver at 127.0.0.1.
    pub fn serve(endpoint: E) -> Self {
        Self::serve_at(Ipv4Addr::LOCALHOST, endpoint)
    }

    /// Starts a receiver at an address of this machine; 0.0.0.0 means all its addresses.
    pub fn serve_at(address: Ipv4Addr, endpoint: E) -> Self {
        let pace = watch::Sender::new(Pace {
            is_held: false,
            latency: Duration::ZERO,
        });
        let counted = Mutex::new(CountedEndpoint {
            endpoint,
            requests: 0,
            answers: 0,
        });
        let shared = Arc::new(ReceiverState { counted, pace });
        let (running, stopped) = oneshot::channel();
        let (port_sender, port) = mpsc::channel();
        let for_thread = Arc::clone(&shared);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = listen(address);
                port_sender
                    .send(listener.local_addr().unwrap().port())
                    .unwrap();
                tokio::select! {
                    () = accept(listener, for_thread) => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            port: port.recv().unwrap(),
            shared,
            _running: running,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url_at(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Reads or changes the endpoint.
    pub fn with<T>(&self, call: impl FnOnce(&mut E) -> T) -> T {
        call(&mut self.shared.lock().endpoint)
    }

    /// Holds back all answers. With false, sends those that were held back, and all later ones.
    pub fn hold(&self, is_held: bool) {
        self.shared.pace.send_modify(|pace| pace.is_held = is_held);
    }

    /// Delays each answer to a request that arrives from now on.
    pub fn delay(&self, latency: Duration) {
        self.shared.pace.send_modify(|pace| pace.latency = latency);
    }

    /// Returns the number of requests that arrived.
    pub fn requests(&self) -> usize {
        self.shared.lock().requests
    }

    /// Returns the number of requests that were answered.
    pub fn answers(&self) -> usize {
        self.shared.lock().answers
    }

    /// Returns the number of requests that wait for their answer.
    pub fn unanswered_count(&self) -> usize {
        let counted = self.shared.lock();
        counted.requests - counted.answers
    }
}

fn listen(address: Ipv4Addr) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((address, 0))).unwrap();
    socket.listen(BACKLOG).unwrap()
}

async fn accept<E: Endpoint>(listener: TcpListener, shared: Arc<ReceiverState<E>>) {
    for number in 0.. {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(answer_all(stream, number, Arc::clone(&shared)));
    }
}

/// Answers the requests of a connection one after another. Returns when the connection has ended, and also instead of
/// sending an answer that the endpoint wants to be lost.
async fn answer_all<E: Endpoint>(
    stream: TcpStream,
    number: usize,
    shared: Arc<ReceiverState<E>>,
) -> Option<()> {
    let mut connection = Connection::new(stream, number)?;
    let mut pace = shared.pace.subscribe();
    loop {
        connection.read().await?;
        let (number, response) = {
            let mut counted = shared.lock();
            let response = counted.endpoint.receive(&connection.request()?);
            counted.requests += 1;
            (counted.requests - 1, response)
        };
        let delay = pace.wait_for(|pace| !pace.is_held).await.ok()?.latency + response.delay;
        if !delay.is_zero() {
            sleep(delay).await;
        }
        {
            let mut counted = shared.lock();
            counted.endpoint.on_answer(number);
            counted.answers += 1;
        }
        if response.is_lost {
            return None;
        }
        connection.write(&response).await?;
    }
}
