//! The trace that a task works for (W3C Trace Context, <https://www.w3.org/TR/trace-context/>). A request brings its
//! trace or begins one; a run and a delivery have traces named by their own ids, so that no table is needed to find them.

use std::future::Future;

use rand::RngExt;
use uuid::Uuid;

use crate::clock::{new_id, system_rng};

/// The header that carries a trace from a caller to whom it calls.
pub const TRACEPARENT: &str = "traceparent";

const SAMPLED: u8 = 1;

tokio::task_local! {
    static CURRENT: TraceContext;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: u128,
    flags: u8,
}

impl Default for TraceContext {
    /// Begins a trace.
    fn default() -> Self {
        Self::from(new_id())
    }
}

impl From<Uuid> for TraceContext {
    fn from(id: Uuid) -> Self {
        Self {
            trace_id: id.as_u128(),
            flags: SAMPLED,
        }
    }
}

impl TraceContext {
    /// Reads a header. `None` if it is malformed; then its caller has no trace that could go on. Capital letters and what a
    /// later version adds at the end are accepted.
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let [version, trace, parent, flags] =
            [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
        let is_version_0 = version == "00";
        if is_version_0 && parts.next().is_some() || version.eq_ignore_ascii_case("ff") {
            return None;
        }
        parse_hex(version, 2)?;
        parse_hex(parent, 16).filter(|parent| *parent != 0)?;
        Some(Self {
            trace_id: parse_hex(trace, 32).filter(|trace| *trace != 0)?,
            flags: u8::try_from(parse_hex(flags, 2)?).ok()? & SAMPLED,
        })
    }

    /// Returns the trace that the present task works for.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|trace| *trace).ok()
    }

    /// Runs a future as work for this trace.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }

    /// Returns the id as headers and log lines have it.
    pub fn id(self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// Returns the header of one call within this trace.
    pub fn call_header(self) -> String {
        let span = system_rng().random_range(1..=u64::MAX);
        format!("00-{:032x}-{span:016x}-{:02x}", self.trace_id, self.flags)
    }
}

fn parse_hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    #[test]
    fn a_header_is_read_leniently_and_nonsense_is_none() {
        for (header, flags) in [
            (format!("00-{TRACE}-{PARENT}-01"), Some(1)),
            (format!(" 00-{TRACE}-{PARENT}-00 "), Some(0)),
            (format!("00-{}-{PARENT}-03", TRACE.to_uppercase()), Some(1)),
            (format!("cc-{TRACE}-{PARENT}-01-what-comes-later"), Some(1)),
            (format!("00-{TRACE}-{PARENT}-01-more"), None),
            (format!("ff-{TRACE}-{PARENT}-01"), None),
            (format!("0x-{TRACE}-{PARENT}-01"), None),
            (format!("00-{}-{PARENT}-01", "0".repeat(32)), None),
            (format!("00-{TRACE}-{}-01", "0".repeat(16)), None),
            (format!("00-{TRACE}-{PARENT}-1"), None),
            (format!("00-+{}-{PARENT}-01", &TRACE[1..]), None),
            (format!("00-{TRACE}-{PARENT}"), None),
            (String::new(), None),
        ] {
            let read = TraceContext::parse(&header);
            assert_eq!(read.map(|trace| trace.flags), flags, "{header}");
            assert!(read.is_none_or(|trace| trace.id() == TRACE), "{header}");
        }
    }

    #[tokio::test]
    async fn each_call_of_a_task_is_within_its_trace_and_has_a_span_of_its_own() {
        assert_eq!(TraceContext::current(), None);
        let id = new_id();
        let trace = TraceContext::from(id);
        assert_eq!(trace.id(), id.simple().to_string());
        let headers = trace
            .scope(async {
                let current = TraceContext::current().unwrap();
                [current.call_header(), current.call_header()]
            })
            .await;
        for header in &headers {
            assert_eq!(TraceContext::parse(header), Some(trace), "{header}");
        }
        assert_ne!(headers[0], headers[1]);
        assert_eq!(TraceContext::current(), None);
    }
}
