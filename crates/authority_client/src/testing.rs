//! Helpers for tests: an HTTP server that sends fixed answers, or drops, delays or corrupts them; test keys; and the
//! limit of concurrent calls, for simulations in virtual time.
//! Compiled for tests only: those of this crate, and those of whoever turns on the feature `testing`.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on ends by panicking"
)]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::cipher::{AES_256, DecryptionContext, EncryptingKey, UnboundCipherKey};
use secrecy::SecretString;
use timing::clock::{SharedClock, SystemClock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

pub use crate::admission::adaptive_limit::{AdaptiveLimit, CallStart};
pub use crate::admission::load_signal::LoadSignal;
use crate::client::Authority;
use crate::client_settings::ClientSettings;

/// The way in which the server handles a request.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// Writes these bytes and closes the connection.
    Bytes(Vec<u8>),
    /// Closes the connection without an answer.
    Drop,
    /// Sends nothing for longer than any test waits.
    Stall,
    /// Writes these bytes and then keeps the connection open without sending more.
    BytesThenStall(Vec<u8>),
    /// Writes the head of a response and then a body without end.
    Endless,
    /// Answers slowly, as [`BusyServer`] describes.
    Busy(BusyServer),
    /// Writes the bytes of the first entry whose text occurs in the request line. If none does, closes the connection.
    ByPath(Vec<(&'static str, Vec<u8>)>),
    /// Like `ByPath`, but each further request gets the next entry that matches. The last such entry repeats.
    InTurn(Vec<(&'static str, Vec<u8>)>),
}

/// A server that handles `workers` requests at a time, each for the time `work`. Further requests wait, or get a 429 if
/// `rejects` is true.
#[derive(Debug, Clone)]
pub struct BusyServer {
    workers: Arc<Semaphore>,
    work: Duration,
    rejects: bool,
    reply: Vec<u8>,
    present: Arc<AtomicUsize>,
    /// The highest number of concurrent requests so far.
    peak: Arc<AtomicUsize>,
}

impl BusyServer {
    pub fn new(workers: usize, work: Duration, rejects: bool, body: &str) -> Self {
        let workers = Arc::new(Semaphore::new(workers));
        let present = Arc::default();
        let peak = Arc::default();
        Self {
            workers,
            work,
            rejects,
            reply: http(200, "", body),
            present,
            peak,
        }
    }

    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::SeqCst)
    }

    async fn answer(&self, stream: &mut TcpStream) {
        let present = self.present.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(present, Ordering::SeqCst);
        let worker = if self.rejects {
            self.workers.try_acquire().ok()
        } else {
            self.workers.acquire().await.ok()
        };
        let reply = match &worker {
            Some(_) => {
                tokio::time::sleep(self.work).await;
                self.reply.clone()
            }
            None => http(429, "", ""),
        };
        self.present.fetch_sub(1, Ordering::SeqCst);
        drop(worker);
        stream.write_all(&reply).await.unwrap_or_default();
    }
}

/// A listening server and the requests that it received. A request is stored as text, with head and body.
pub struct Server {
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&received);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, behaviour.clone(), Arc::clone(&log)));
            }
        });
        Self { address, received }
    }

    /// Starts a server that answers every request with this status and JSON body.
    pub async fn json(status: u16, body: &str) -> Self {
        Self::start(Behaviour::Bytes(http(status, "", body))).await
    }

    pub fn received_requests(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }

    pub fn authority(&self) -> Authority {
        self.authority_at(Arc::new(SystemClock))
    }

    pub fn authority_at(&self, clock: SharedClock) -> Authority {
        authority(&format!("http://{}", self.address), clock)
    }

    /// Returns a client with a timeout of one second.
    pub fn impatient_authority(&self) -> Authority {
        self.limited_authority(64)
    }

    /// Returns a client with a timeout of one second that makes at most this many concurrent calls of an operation.
    pub fn limited_authority(&self, max_concurrent_calls: u32) -> Authority {
        let base_url = format!("http://{}", self.address).parse().unwrap();
        Authority::new(
            &base_url,
            &settings(1, max_concurrent_calls),
            Arc::new(SystemClock),
        )
        .unwrap()
    }
}

/// Returns a client with a timeout that even a busy test machine does not reach.
pub fn authority(base_url: &str, clock: SharedClock) -> Authority {
    Authority::new(&base_url.parse().unwrap(), &settings(30, 64), clock).unwrap()
}

/// Returns settings with test keys, this timeout and this limit of concurrent calls.
pub fn settings(timeout_s: u64, max_concurrent_calls: u32) -> ClientSettings {
    ClientSettings {
        api_key: SecretString::from("0a1b2c3d-0000-4000-8000-000000000000"),
        api_secret: SecretString::from("the-secret"),
        extra_ca_file: None,
        timeout: Duration::from_secs(timeout_s),
        max_concurrent_calls,
        is_paused: false,
    }
}

/// Returns a complete HTTP response. `headers` are complete header lines, each with its line end.
pub fn http(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Status\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

async fn serve(mut stream: TcpStream, behaviour: Behaviour, log: Arc<Mutex<Vec<String>>>) {
    let request = read_request(&mut stream).await;
    let line = request.lines().next().unwrap_or_default().to_owned();
    let earlier = log.lock().unwrap().clone();
    log.lock().unwrap().push(request);
    match behaviour {
        Behaviour::InTurn(answers) => {
            let fitting: Vec<_> = answers
                .iter()
                .filter(|(part, _)| line.contains(part))
                .collect();
            let part = fitting.first().map_or("", |(part, _)| *part);
            let first_line =
                |request: &&String| request.lines().next().unwrap_or_default().contains(part);
            let turn = earlier
                .iter()
                .filter(first_line)
                .count()
                .min(fitting.len().saturating_sub(1));
            let bytes = fitting
                .get(turn)
                .map(|(_, bytes)| bytes.as_slice())
                .unwrap_or_default();
            stream.write_all(bytes).await.unwrap_or_default();
        }
        Behaviour::ByPath(answers) => {
            let found = answers.iter().find(|(part, _)| line.contains(part));
            let bytes = found.map(|(_, bytes)| bytes.as_slice()).unwrap_or_default();
            stream.write_all(bytes).await.unwrap_or_default();
        }
        Behaviour::Bytes(bytes) => stream.write_all(&bytes).await.unwrap_or_default(),
        Behaviour::Drop => {}
        Behaviour::Stall => tokio::time::sleep(Duration::from_mins(1)).await,
        Behaviour::BytesThenStall(bytes) => {
            stream.write_all(&bytes).await.unwrap_or_default();
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
        Behaviour::Busy(server) => server.answer(&mut stream).await,
        Behaviour::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while stream.write_all(&[b' '; 16_384]).await.is_ok() {}
        }
    }
}

/// Reads a request: the head, and the body if the head announces one.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4_096];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && body.len() >= content_length(head)
        {
            break;
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn content_length(head: &str) -> usize {
    let line = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    line.map_or(0, |length| length.parse().unwrap())
}

/// The first 24 characters of the key that encrypts a test download.
pub const PUBLIC_PART: &str = "abcdefghijklmnopqrstuvwx";

/// Encrypts `plain` so that [`authority`] can decrypt it. Returns the initialisation vector and the ciphertext.
pub fn encrypt(plain: &[u8]) -> (String, Vec<u8>) {
    let key = format!("{PUBLIC_PART}0a1b2c3d");
    let key =
        EncryptingKey::cfb128(UnboundCipherKey::new(&AES_256, key.as_bytes()).unwrap()).unwrap();
    let mut bytes = plain.to_vec();
    let DecryptionContext::Iv128(iv) = key.encrypt(&mut bytes).unwrap() else {
        panic!("no 128-bit vector")
    };
    (hex::encode(iv.as_ref()), bytes)
}

/// A certificate, encoded as in a key file.
pub const CERTIFICATE: &str = "bEF0V3pYc0RGc2h0b1NvZE5sTGtqQT09";

/// The public key of a key pair that only tests use, as `SubjectPublicKeyInfo`.
pub const PUBLIC_KEY_PEM: &str = "\
-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAmQpyUT3abxDCDVPyXm/x
tADdOlEa02cO5dKe1yEOavF0hxHvE2dtVKrQ5O77JKs61xyOZpfzpC5BTFAKc8Gs
jwp0oqDus84ryPgBfcGGc+15arFVoPyjK0W4SDvInijAGt8ftAq27ic8DmLPAMOq
8mlLGj8AUva74IuXZ8i0ltoL48MsGfKX5p5RTXD214jLCVwKDSaaNczDDKF1Tnkl
QYrtFTlcBEi3qiVVEsLtUYhNcKuZcsdj6m2mv5xhGzuwIgKWT881bqSXtzdP7izR
Xxg86CFY5DFFk+Da2qX7VYqRhulPpjCFg8Y+GU3xOk3TUbrklAFquYHjD4u+wqwa
pwIDAQAB
-----END PUBLIC KEY-----";

/// The same key as [`PUBLIC_KEY_PEM`], but in the form of PKCS#1.
pub const RSA_PUBLIC_KEY_PEM: &str = "\
-----BEGIN RSA PUBLIC KEY-----
MIIBCgKCAQEAmQpyUT3abxDCDVPyXm/xtADdOlEa02cO5dKe1yEOavF0hxHvE2dt
VKrQ5O77JKs61xyOZpfzpC5BTFAKc8Gsjwp0oqDus84ryPgBfcGGc+15arFVoPyj
K0W4SDvInijAGt8ftAq27ic8DmLPAMOq8mlLGj8AUva74IuXZ8i0ltoL48MsGfKX
5p5RTXD214jLCVwKDSaaNczDDKF1TnklQYrtFTlcBEi3qiVVEsLtUYhNcKuZcsdj
6m2mv5xhGzuwIgKWT881bqSXtzdP7izRXxg86CFY5DFFk+Da2qX7VYqRhulPpjCF
g8Y+GU3xOk3TUbrklAFquYHjD4u+wqwapwIDAQAB
-----END RSA PUBLIC KEY-----";

/// The private key that belongs to [`PUBLIC_KEY_PEM`], as PKCS#8 in base64.
pub const PRIVATE_KEY: &str = "\
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCZCnJRPdpvEMIN
U/Jeb/G0AN06URrTZw7l0p7XIQ5q8XSHEe8TZ21UqtDk7vskqzrXHI5ml/OkLkFM
UApzwayPCnSioO6zzivI+AF9wYZz7XlqsVWg/KMrRbhIO8ieKMAa3x+0CrbuJzwO
Ys8Aw6ryaUsaPwBS9rvgi5dnyLSW2gvjwywZ8pfmnlFNcPbXiMsJXAoNJpo1zMMM
oXVOeSVBiu0VOVwESLeqJVUSwu1RiE1wq5lyx2Pqbaa/nGEbO7AiApZPzzVupJe3
N0/uLNFfGDzoIVjkMUWT4NrapftVipGG6U+mMIWDxj4ZTfE6TdNRuuSUAWq5geMP
i77CrBqnAgMBAAECggEACYquIGRyEz0X4e2PwAMnwKY/txoFSV2rfzAKEj7v34t/
qMfv9zesrQUS1v2A3cMy/Qjh1Er5eFZpF68FlGEJG9rarBKB5AtOn/vd610VmwSZ
ANyVwV64LDpvXwD+EsEyYr8WuW8tTC80MLkkPU51yf0/VdZevU12ukilMZyurSuT
bzAjdnpKnDD842thQLlH5WDTMJ44FszMNJVjjmHs8s8mDs3tN3paBGvgId8BsyD0
MbPT0idZtCPtzkbspqPH2yoQDvh8iQzFaeFP2Unbj2csNQdtO+Al0DD4wtE3hFzx
QXRPV4ZLJMvtmmZLPU0k9fzJL3sIkvprCT/UrjPyRQKBgQDF8qD3z1O00PsEinge
aqE/C1luxJql9KkI3x6/BLZNqeICLEw2cqb1/mDwXiv3adrjJFu+xYdiOdfWc7EO
3xKD4vstSIIOswg4HPwbG58ieBawos9ldp6GR1b+1H9zFMra1vkKy5Hen+nL+GgT
jlxmgU4wQVM9/sa5hmLqr6jZLQKBgQDF7FPFNPjQVtozRKK6hB1pNwcGE7pZKJdz
C0UZP2XYls7VtaooO6tR98wlOmV7yJaFyJSfQvfipXg5FRNR7BUlmX+0rttDZNB3
Xo8kGf/bmgBS5DOLNce8A+8aeEbZPkyOeKKdpF0aYPDpk316q9fK/54KdQJCURUo
AhqUWu7/owKBgA67xntrdSGKRITMAbDR4vqcT6XNAG3FzicY5GL3aNJTCL18qpeK
5R5+NpzthXw+5sntVN7YOQF4qLYPmmgu9mPWqzdtpDCP5ta2YZVq8udP5PB0zdcR
gy8fdDw3eN0J+SdcxOCm0k6tvGswLB74g6wlh7pTwmxk4EnC1O3+8SRpAoGAcLp0
z/qmyIrfRpoOESuUUMvtrTFpTsTG1diSZ5nrWRwz/Ba3Lqkln88CMCX9jS4nRVWE
CN2ssCNMwT5Wva84MC0oRnHdIpp1/bcW0hoY1yv0iUG+dciQ1W5sLehZefx4wCDH
hgAKoy6ZqH+/1TGw+8bxbcVNHxZtdVcVanAMdf8CgYEAgmTBmBFnW4j5IOUqmRza
LCHTdOqgwg+NpXGP7fhycAAFwObpX2PK/ICzY0mwiSsvsCr6x9UN9dwZkVP7DxeV
3C82PlTam+GSWzFDcMROEMyL2CjdEDtguCaTFIPNgb1m6hhxRuLO9L5/JoD0wen7
V/MOWN7z9YpjkGxTf0Mi7Jc=";
