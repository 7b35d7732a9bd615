//! A receiver as light as can be, so that what is measured is not the receiver: HTTP/1.1 on connections that stay,
//! in a thread of its own. It knows what it was sent by the number in the remark, and takes as long as it is told.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4_096;
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// After so long without anything new, what is missing will not come.
const PATIENCE: Duration = Duration::from_secs(30);

/// The remark by which an event is known here.
pub(crate) fn remark(number: usize) -> String {
    format!("#{number}#")
}

#[derive(Debug, Clone, Copy)]
struct Pace {
    is_open: bool,
    latency: Duration,
}

/// What came.
#[derive(Default)]
struct Book {
    /// When each number was read for the first time.
    received: Vec<Option<Instant>>,
    fresh: usize,
    requests: usize,
    in_hand: usize,
    sample: Vec<u8>,
}

struct Desk {
    book: Mutex<Book>,
    pace: watch::Sender<Pace>,
}

pub(crate) struct Sink {
    port: u16,
    desk: Arc<Desk>,
}

impl Sink {
    /// Listens at every address of this machine; lives as long as the process.
    pub(crate) fn start() -> Self {
        let pace = watch::Sender::new(Pace { is_open: true, latency: Duration::ZERO });
        let desk = Arc::new(Desk { book: Mutex::default(), pace });
        let (told, ports) = std::sync::mpsc::channel();
        let shared = Arc::clone(&desk);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = listen();
                told.send(listener.local_addr().unwrap().port()).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    tokio::spawn(serve(stream, Arc::clone(&shared)));
                }
            });
        });
        Self { port: ports.recv().unwrap(), desk }
    }

    /// An address of its own for each, as strangers have: on Linux all of 127.0.0.0/8 is this machine.
    pub(crate) fn url(&self, number: usize) -> String {
        let is_wide = cfg!(target_os = "linux");
        let host = if is_wide { format!("{}.{}", number / 250, number % 250 + 1) } else { "0.1".into() };
        format!("http://127.0.{host}:{}/{number}", self.port)
    }

    pub(crate) fn takes(&self, latency: Duration) {
        self.desk.pace.send_modify(|pace| pace.latency = latency);
    }

    /// Shut, it reads requests and answers none.
    pub(crate) fn open(&self, is_open: bool) {
        self.desk.pace.send_modify(|pace| pace.is_open = is_open);
    }

    /// How many requests are read and not answered.
    pub(crate) fn in_hand(&self) -> usize {
        self.book().in_hand
    }

    /// How many requests came, and how many different numbers.
    pub(crate) fn seen(&self) -> (usize, usize) {
        let book = self.book();
        (book.requests, book.fresh)
    }

    /// The body of a notification that came.
    pub(crate) fn sample(&self) -> Vec<u8> {
        self.book().sample.clone()
    }

    /// When a number was read for the first time.
    pub(crate) fn received(&self, number: usize) -> Option<Instant> {
        self.book().received.get(number).copied().flatten()
    }

    /// Waits until so many different numbers have come.
    pub(crate) async fn have(&self, count: usize) {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            let (_, fresh) = self.seen();
            if fresh >= count {
                return;
            }
            if fresh > last {
                (last, since) = (fresh, Instant::now());
            }
            assert!(since.elapsed() < PATIENCE, "{fresh} of {count} notifications have come and no more do");
            sleep(LOOK_EVERY).await;
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.desk.book.lock().unwrap()
    }
}

fn listen() -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
    socket.listen(BACKLOG).unwrap()
}

/// Answers one request after the other until the other side has enough.
async fn serve(stream: TcpStream, desk: Arc<Desk>) -> Option<()> {
    let mut pace = desk.pace.subscribe();
    let mut buffer = Vec::new();
    stream.set_nodelay(true).ok()?;
    loop {
        let (head, end) = request(&stream, &mut buffer).await?;
        keep(&mut desk.book.lock().unwrap(), &buffer[head..end]);
        let latency = pace.wait_for(|pace| pace.is_open).await.ok()?.latency;
        if !latency.is_zero() {
            sleep(latency).await;
        }
        desk.book.lock().unwrap().in_hand -= 1;
        answer(&stream).await?;
        buffer.drain(..end);
    }
}

fn keep(book: &mut Book, body: &[u8]) {
    book.requests += 1;
    book.in_hand += 1;
    let Some(number) = number(body) else { return };
    if book.received.len() <= number {
        book.received.resize(number + 1, None);
    }
    if book.received[number].is_none() {
        book.received[number] = Some(Instant::now());
        book.fresh += 1;
    }
    if book.sample.is_empty() {
        book.sample = body.to_vec();
    }
}

/// The number in the remark of a notification.
fn number(body: &[u8]) -> Option<usize> {
    const MARK: &[u8] = b"\"remark\":\"#";
    let start = find(body, MARK)? + MARK.len();
    let digits = body[start..].split(|byte| *byte == b'#').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Reads until a whole request is there: where its body begins and ends.
async fn request(stream: &TcpStream, buffer: &mut Vec<u8>) -> Option<(usize, usize)> {
    let mut chunk = [0; 4 * 1_024];
    loop {
        if let Some(whole) = whole(buffer) {
            return Some(whole);
        }
        stream.readable().await.ok()?;
        match stream.try_read(&mut chunk) {
            Ok(0) => return None,
            Ok(count) => buffer.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

fn whole(buffer: &[u8]) -> Option<(usize, usize)> {
    const LENGTH: &[u8] = b"\r\ncontent-length: ";
    let head = find(buffer, b"\r\n\r\n")? + 4;
    let start = find(&buffer[..head], LENGTH).expect("a length of the body, in lower case") + LENGTH.len();
    let digits = buffer[start..head].split(|byte| *byte == b'\r').next()?;
    let length: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (buffer.len() >= head + length).then_some((head, head + length))
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window == word)
}

async fn answer(stream: &TcpStream) -> Option<()> {
    let mut rest = ANSWER;
    while !rest.is_empty() {
        stream.writable().await.ok()?;
        match stream.try_write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
    Some(())
}
