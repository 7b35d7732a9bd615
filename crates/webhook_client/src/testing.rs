//! An HTTP server for tests. It records its connections and their first requests, and sends a fixed response.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The behaviour on a connection after the server has sent its fixed response.
#[derive(Debug, Clone, Copy)]
pub(super) enum AfterResponse {
    Close,
    /// Keeps the connection open and sends nothing after the response.
    Stall,
    /// Sends the letter `x` without end and without a pause: a body or a header line that never ends.
    Flood,
    /// Sends this text, such as a header line, again and again, without end and without a pause.
    Repeat(&'static str),
    /// Sends these bytes one at a time, and starts again after the last one.
    Drip(&'static str),
    /// Sends the same response to each further request on the connection.
    Again,
}

/// A running test server and the first request of each of its connections.
pub(super) struct TestReceiver {
    pub(super) address: SocketAddr,
    connections: Arc<Mutex<Vec<String>>>,
    flood_bytes: Arc<AtomicUsize>,
}

impl TestReceiver {
    pub(super) async fn start(answer: &str, then: AfterResponse) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), answer, then).await
    }

    pub(super) async fn at(address: SocketAddr, answer: &str, then: AfterResponse) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&connections);
        let flood_bytes = Arc::new(AtomicUsize::new(0));
        let flood_count = Arc::clone(&flood_bytes);
        let answer = answer.to_owned();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let index = log.lock().unwrap().len();
                log.lock().unwrap().push(String::new());
                let answer = answer.clone();
                let log = (Arc::clone(&log), index);
                let flood_count = Arc::clone(&flood_count);
                tokio::spawn(serve(stream, answer, then, log, flood_count));
            }
        });
        Self {
            address,
            connections,
            flood_bytes,
        }
    }

    /// Starts a server that sends this response and closes the connection. Each line of `headers` ends with CRLF.
    pub(super) async fn with_answer(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} Status\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}"
        );
        Self::start(&format!("{head}\r\n{body}"), AfterResponse::Close).await
    }

    pub(super) fn connections(&self) -> Vec<String> {
        self.connections.lock().unwrap().clone()
    }

    /// Returns the number of connections that the server has accepted.
    pub(super) fn calls(&self) -> usize {
        self.connections.lock().unwrap().len()
    }

    /// Returns the number of bytes that the operating system has taken for `Flood` and `Repeat`.
    pub(super) fn flood_bytes(&self) -> usize {
        self.flood_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: String,
    then: AfterResponse,
    log: (Arc<Mutex<Vec<String>>>, usize),
    flood_count: Arc<AtomicUsize>,
) {
    let mut buffer = [0; 4_096];
    let read = stream.read(&mut buffer).await.unwrap_or_default();
    log.0.lock().unwrap()[log.1] = String::from_utf8_lossy(&buffer[..read]).into_owned();
    if stream.write_all(answer.as_bytes()).await.is_err() {
        return;
    }
    match then {
        AfterResponse::Close => {}
        AfterResponse::Stall => std::future::pending().await,
        AfterResponse::Flood => flood(stream, "x", &flood_count).await,
        AfterResponse::Repeat(text) => flood(stream, text, &flood_count).await,
        AfterResponse::Drip(drops) => {
            for drop in drops.bytes().cycle() {
                tokio::time::sleep(Duration::from_millis(10)).await;
                if stream.write_all(&[drop]).await.is_err() {
                    return;
                }
            }
        }
        AfterResponse::Again => {
            while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn flood(mut stream: TcpStream, text: &str, count: &AtomicUsize) {
    let block = text.repeat(16_384 / text.len());
    while stream.write_all(block.as_bytes()).await.is_ok() {
        count.fetch_add(block.len(), Ordering::Relaxed);
    }
}
