//! The part of HTTP/1.1 that a receiver of webhooks needs: requests with a content length, one after the other.

use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::time::Duration;

use tokio::net::TcpStream;

const CHUNK_BYTES: usize = 4 * 1_024;

/// A request. It borrows from the buffer of its connection.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    head: &'a str,
    pub body: &'a [u8],
    /// The number of the connection that the request came over.
    pub connection: usize,
}

impl<'a> Request<'a> {
    pub fn path(&self) -> &'a str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns the headers as they were sent.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "))
    }

    /// Returns the value of a header; an empty text if it is missing.
    pub fn header(&self, name: &str) -> &'a str {
        let found = self
            .headers()
            .find(|header| header.0.eq_ignore_ascii_case(name));
        found.map_or("", |header| header.1)
    }
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    /// The delay of this answer, in addition to the receiver's latency.
    pub delay: Duration,
    /// True if the connection ends without an answer.
    pub is_lost: bool,
    /// True if the announced length is larger than the body, so that the sender waits for the rest in vain.
    pub is_unfinished: bool,
}

impl Response {
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: String::new(),
            delay: Duration::ZERO,
            is_lost: false,
            is_unfinished: false,
        }
    }

    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            ..Self::status(status)
        }
    }

    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn to_text(&self) -> String {
        let mut text = format!("HTTP/1.1 {} \r\n", self.status);
        for (name, value) in &self.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        if self.status != 204 {
            let length = self.body.len() + usize::from(self.is_unfinished);
            let _ = write!(text, "content-length: {length}\r\n");
        }
        text + "\r\n" + &self.body
    }
}

/// A connection, with the request that was read last.
pub(super) struct Connection {
    stream: TcpStream,
    number: usize,
    buffer: Vec<u8>,
    head_end: usize,
    end: usize,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, number: usize) -> Option<Self> {
        stream.set_nodelay(true).ok()?;
        Some(Self {
            stream,
            number,
            buffer: Vec::new(),
            head_end: 0,
            end: 0,
        })
    }

    /// Reads the next request to its end. Returns `None` when the connection has ended.
    pub(super) async fn read(&mut self) -> Option<()> {
        self.buffer.drain(..self.end);
        (self.head_end, self.end) = (0, 0);
        let mut chunk = [0; CHUNK_BYTES];
        while !self.is_whole() {
            self.stream.readable().await.ok()?;
            match when_ready(self.stream.try_read(&mut chunk)).ok()? {
                Some(0) => return None,
                Some(count) => self.buffer.extend_from_slice(&chunk[..count]),
                None => {}
            }
        }
        Some(())
    }

    fn is_whole(&mut self) -> bool {
        if self.head_end == 0 {
            let Some(at) = self
                .buffer
                .windows(4)
                .position(|bytes| bytes == b"\r\n\r\n")
            else {
                return false;
            };
            self.head_end = at + 4;
            let length = self.request().unwrap().header("content-length");
            self.end = self.head_end
                + if length.is_empty() {
                    0
                } else {
                    length.parse::<usize>().unwrap()
                };
        }
        self.buffer.len() >= self.end
    }

    pub(super) fn request(&self) -> Option<Request<'_>> {
        let head = std::str::from_utf8(&self.buffer[..self.head_end]).ok()?;
        let range = self.head_end..self.end;
        let body = self.buffer.get(range).unwrap_or_default();
        Some(Request {
            head,
            body,
            connection: self.number,
        })
    }

    pub(super) async fn write(&self, response: &Response) -> Option<()> {
        let text = response.to_text();
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            self.stream.writable().await.ok()?;
            let written = when_ready(self.stream.try_write(rest)).ok()?;
            rest = &rest[written.unwrap_or_default()..];
        }
        Some(())
    }
}

/// Returns `None` instead of an error if the stream was not ready after all, so that the caller tries again.
fn when_ready(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        result => result.map(Some),
    }
}
