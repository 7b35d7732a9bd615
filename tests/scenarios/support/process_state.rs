//! The state of a process that a test waited for in vain: its answer on another connection, and what its threads do.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);

/// Describes the process with this number that listens on this port.
pub(crate) fn describe(process: u32, port: u16) -> String {
    let answer =
        ask_readiness(port).map_or_else(|error| error.to_string(), |answer| first_line(&answer));
    format!(
        "asked on another connection whether it is ready: {answer}\n{}",
        threads(process)
    )
}

fn ask_readiness(port: u16) -> io::Result<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port))?;
    connection.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
    connection
        .write_all(b"GET /health/ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or("nothing").to_owned()
}

/// Returns the name, the state and the kernel function of each thread, where the system shows them.
fn threads(process: u32) -> String {
    let mut seen = String::new();
    for thread in fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let read = |file| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        let status = read("status");
        let state = status
            .lines()
            .find(|line| line.starts_with("State:"))
            .unwrap_or_default();
        let _ = writeln!(
            seen,
            "{:<16} {state} {}",
            read("comm").trim(),
            read("wchan")
        );
    }
    seen
}
