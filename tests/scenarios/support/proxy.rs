//! A proxy before PostgreSQL that can swallow: what is silenced stays connected and brings no byte any more, to either
//! side. The server keeps such a session until one of its own limits ends it, as with a machine that lost its network.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

const BUFFER_BYTES: usize = 64 * 1024;

/// Connections are numbered as they come; those below a number are silent.
#[derive(Debug, Default)]
struct Numbers {
    next: AtomicU64,
    silent_below: AtomicU64,
}

pub(crate) struct Proxy {
    address: SocketAddr,
    numbers: Arc<Numbers>,
}

impl Proxy {
    /// Listens on a port of its own for the server of a URL.
    pub(crate) async fn start(server: &Url) -> Self {
        let server = (
            server.host_str().unwrap().to_owned(),
            server.port().unwrap_or(5432),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let numbers = Arc::new(Numbers::default());
        let shared = Arc::clone(&numbers);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = shared.next.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(connect(client, server.clone(), number, Arc::clone(&shared)));
            }
        });
        Self { address, numbers }
    }

    /// The same URL through this proxy.
    pub(crate) fn url(&self, server: &str) -> String {
        let mut url: Url = server.parse().unwrap();
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(self.address.port())).unwrap();
        url.to_string()
    }

    /// Silences all connections that are open; new ones work.
    pub(crate) fn silence(&self) -> u64 {
        let open = self.numbers.next.load(Ordering::SeqCst);
        self.numbers.silent_below.store(open, Ordering::SeqCst);
        open
    }

    /// Lets new connections work again.
    pub(crate) fn thaw(&self) {
        self.silence();
    }

    /// Silences all connections, also those that come.
    pub(crate) fn freeze(&self) {
        self.numbers.silent_below.store(u64::MAX, Ordering::SeqCst);
    }
}

async fn connect(client: TcpStream, server: (String, u16), number: u64, numbers: Arc<Numbers>) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    let is_silent = move || numbers.silent_below.load(Ordering::SeqCst) > number;
    let there = forward(from_client, to_server, &is_silent);
    let back = forward(from_server, to_client, &is_silent);
    tokio::join!(there, back);
}

/// Passes bytes on until one side ends. Of a silent connection neither side learns that the other has ended.
async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, is_silent: &impl Fn() -> bool) {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await.unwrap_or(0);
        if is_silent() {
            if count == 0 {
                return std::future::pending().await;
            }
        } else if count == 0 || to.write_all(&buffer[..count]).await.is_err() {
            let _ = to.shutdown().await;
            return;
        }
    }
}
