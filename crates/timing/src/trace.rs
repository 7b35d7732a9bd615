//! The trace that a task works for (W3C Trace Context, <https://www.w3.org/TR/trace-context/>), and the spans in it.
//! Finished spans go to a sink, if the process has one. Without a sink, a span has only its ids.

use std::fmt;
use std::future::Future;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rand::RngExt;
use uuid::Uuid;

use crate::clock::{Clock, SystemClock, new_id, system_rng};

/// The header with which a caller passes its trace on.
pub const TRACEPARENT: &str = "traceparent";

const SAMPLED: u8 = 1;

tokio::task_local! {
    static CURRENT: TraceContext;
}

static SINK: OnceLock<Box<dyn SpanSink>> = OnceLock::new();

/// A place in a trace: the span below which further work is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    flags: u8,
}

#[derive(Debug, thiserror::Error)]
#[error("not the header traceparent of W3C Trace Context")]
pub struct MalformedTrace;

impl Default for TraceContext {
    /// Begins a new trace.
    fn default() -> Self {
        Self::from(new_id())
    }
}

impl From<Uuid> for TraceContext {
    /// Begins a new trace with this id.
    fn from(id: Uuid) -> Self {
        Self {
            trace_id: id.as_u128(),
            span_id: new_span_id(),
            flags: SAMPLED,
        }
    }
}

impl fmt::Display for TraceContext {
    /// Writes the value of the header `traceparent` for a call below this span.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            trace_id,
            span_id,
            flags,
        } = self;
        write!(formatter, "00-{trace_id:032x}-{span_id:016x}-{flags:02x}")
    }
}

impl FromStr for TraceContext {
    type Err = MalformedTrace;

    /// Reads a `traceparent` header. Fails if it is malformed. Accepts capital letters, and anything that a later
    /// version adds at the end.
    fn from_str(header: &str) -> Result<Self, MalformedTrace> {
        parse(header).ok_or(MalformedTrace)
    }
}

impl TraceContext {
    /// Returns the trace that the current task works for; `None` if it works for none.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|trace| *trace).ok()
    }

    /// Runs a future as work for this trace.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }

    /// Calls a function as work for this trace.
    pub fn enter<T>(self, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, work)
    }

    /// Returns the id of the trace as headers and log lines have it.
    pub fn id(self) -> String {
        format!("{:032x}", self.trace_id)
    }

    fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }
}

/// The role of a span in the exchange between two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Answers a request of another program.
    Server,
    /// Sends a request to another program.
    Client,
    /// Work inside the process.
    Internal,
    /// Does work that was queued earlier.
    Consumer,
}

/// The value of an attribute of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    Text(String),
    Number(i64),
}

/// The span directly above another span in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParentSpan {
    pub id: u64,
    /// True if another process began the span.
    pub is_remote: bool,
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSpan {
    pub trace_id: u128,
    pub id: u64,
    /// `None` for the first span of a trace.
    pub parent: Option<ParentSpan>,
    pub kind: SpanKind,
    pub name: String,
    pub started_at: Timestamp,
    pub duration: Duration,
    /// Ids, fixed names (such as an operation or an outcome) and measurements. Never document contents or secrets.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    pub has_failed: bool,
}

/// Receives the finished spans of the process.
pub trait SpanSink: Send + Sync {
    /// Takes a span. Must not block, because requests wait for it.
    fn take(&self, span: EndedSpan);
}

/// Sets the sink for the spans of this process. Returns false and changes nothing if it was set before.
pub fn set_sink(sink: Box<dyn SpanSink>) -> bool {
    SINK.set(sink).is_ok()
}

/// A span in progress: one piece of work in a trace. It begins when it is created and ends when it is dropped.
#[derive(Debug)]
pub struct Span {
    context: TraceContext,
    /// `None` if the process has no sink or the trace is not sampled.
    recording: Option<Box<Recording>>,
}

#[derive(Debug)]
struct Recording {
    span: EndedSpan,
    began: Instant,
}

impl Span {
    /// Begins the first span of the trace with this id.
    pub fn root(trace_id: Uuid, kind: SpanKind, name: fmt::Arguments<'_>) -> Self {
        Self::begin(TraceContext::from(trace_id), None, kind, name)
    }

    /// Begins a span for a request whose caller named its own span.
    pub fn remote_child(caller: TraceContext, kind: SpanKind, name: fmt::Arguments<'_>) -> Self {
        Self::begin_below(caller, true, kind, name)
    }

    /// Begins a span below a span of this process or of another replica.
    pub fn child(parent: TraceContext, kind: SpanKind, name: fmt::Arguments<'_>) -> Self {
        Self::begin_below(parent, false, kind, name)
    }

    /// Begins a span in each of these traces, for work that is done for all of them at once. Returns no spans if the
    /// process has no sink.
    pub fn begin_in_each(
        parents: impl Iterator<Item = TraceContext>,
        name: &'static str,
    ) -> Vec<Self> {
        if SINK.get().is_none() {
            return Vec::new();
        }
        parents
            .map(|parent| Self::child(parent, SpanKind::Internal, format_args!("{name}")))
            .collect()
    }

    fn begin_below(
        parent: TraceContext,
        is_remote: bool,
        kind: SpanKind,
        name: fmt::Arguments<'_>,
    ) -> Self {
        let context = TraceContext {
            span_id: new_span_id(),
            ..parent
        };
        let parent = ParentSpan {
            id: parent.span_id,
            is_remote,
        };
        Self::begin(context, Some(parent), kind, name)
    }

    fn begin(
        context: TraceContext,
        parent: Option<ParentSpan>,
        kind: SpanKind,
        name: fmt::Arguments<'_>,
    ) -> Self {
        let is_recorded = context.is_sampled() && SINK.get().is_some();
        let recording = is_recorded.then(|| {
            let span = EndedSpan {
                trace_id: context.trace_id,
                id: context.span_id,
                parent,
                kind,
                name: name.to_string(),
                started_at: SystemClock.now(),
                duration: Duration::ZERO,
                attributes: Vec::new(),
                has_failed: false,
            };
            Box::new(Recording {
                span,
                began: Instant::now(),
            })
        });
        Self { context, recording }
    }

    /// Returns the context for work below this span: its trace, and this span as the parent.
    pub fn context(&self) -> TraceContext {
        self.context
    }

    pub fn rename(&mut self, name: fmt::Arguments<'_>) {
        if let Some(recording) = &mut self.recording {
            recording.span.name = name.to_string();
        }
    }

    pub fn set_text(&mut self, name: &'static str, text: &str) {
        if let Some(recording) = &mut self.recording {
            let value = AttributeValue::Text(text.to_owned());
            recording.span.attributes.push((name, value));
        }
    }

    pub fn set_number(&mut self, name: &'static str, number: i64) {
        if let Some(recording) = &mut self.recording {
            let value = AttributeValue::Number(number);
            recording.span.attributes.push((name, value));
        }
    }

    /// Marks the work as failed.
    pub fn mark_failed(&mut self) {
        if let Some(recording) = &mut self.recording {
            recording.span.has_failed = true;
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(recording) = self.recording.take()
            && let Some(sink) = SINK.get()
        {
            let Recording { mut span, began } = *recording;
            span.duration = began.elapsed();
            sink.take(span);
        }
    }
}

/// Returns a random id. Never zero, which means "no id" in the standard.
fn new_span_id() -> u64 {
    system_rng().random_range(1..=u64::MAX)
}

fn parse(header: &str) -> Option<TraceContext> {
    let mut parts = header.trim().split('-');
    let [version, trace, parent, flags] =
        [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    let is_version_0 = version == "00";
    if is_version_0 && parts.next().is_some() || version.eq_ignore_ascii_case("ff") {
        return None;
    }
    parse_hex(version, 2)?;
    Some(TraceContext {
        trace_id: parse_hex(trace, 32).filter(|trace| *trace != 0)?,
        span_id: u64::try_from(parse_hex(parent, 16)?)
            .ok()
            .filter(|parent| *parent != 0)?,
        flags: u8::try_from(parse_hex(flags, 2)?).ok()? & SAMPLED,
    })
}

fn parse_hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    #[derive(Default, Clone)]
    struct Kept(Arc<Mutex<Vec<EndedSpan>>>);

    impl SpanSink for Kept {
        fn take(&self, span: EndedSpan) {
            self.0.lock().unwrap().push(span);
        }
    }

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
            let read = header.parse::<TraceContext>().ok();
            assert_eq!(read.map(|trace| trace.flags), flags, "{header}");
            assert!(read.is_none_or(|trace| trace.id() == TRACE), "{header}");
        }
        let header = format!("00-{TRACE}-{PARENT}-01");
        let read = header.parse::<TraceContext>().unwrap();
        assert_eq!(read.to_string(), header);
    }

    #[tokio::test]
    async fn a_task_works_for_its_trace_and_each_call_has_a_span_of_its_own() {
        assert_eq!(TraceContext::current(), None);
        let id = new_id();
        let trace = TraceContext::from(id);
        assert_eq!(trace.id(), id.simple().to_string());
        let current = trace.scope(async { TraceContext::current() }).await;
        assert_eq!(current, Some(trace));
        let [one, other] =
            [(); 2].map(|()| Span::child(trace, SpanKind::Client, format_args!("call")).context());
        assert_eq!((one.id(), other.id()), (trace.id(), trace.id()));
        assert!(one != other && one != trace, "{one} {other} {trace}");
        assert_eq!(TraceContext::current(), None);
    }

    #[test]
    fn a_span_goes_to_the_sink_with_its_parent_unless_its_caller_wants_none() {
        let kept = Kept::default();
        assert!(set_sink(Box::new(kept.clone())));
        assert!(!set_sink(Box::new(Kept::default())), "the first one stays");
        let id = new_id();
        let unsampled: TraceContext = format!("00-{}-{PARENT}-00", id.simple()).parse().unwrap();
        drop(Span::remote_child(
            unsampled,
            SpanKind::Server,
            format_args!("unwanted"),
        ));
        let mut root = Span::root(id, SpanKind::Server, format_args!("request"));
        root.rename(format_args!("GET {}", "/v1"));
        root.set_text("route", "/v1");
        root.set_number("status", 503);
        root.mark_failed();
        let shared = Span::begin_in_each([root.context()].into_iter(), "commit");
        let parent = root.context();
        let child = shared[0].context();
        drop(shared);
        drop(root);
        let kept = kept.0.lock().unwrap();
        let ours: Vec<_> = kept
            .iter()
            .filter(|span| span.trace_id == id.as_u128())
            .collect();
        let names: Vec<_> = ours.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["commit", "GET /v1"]);
        let below = ParentSpan {
            id: parent.span_id,
            is_remote: false,
        };
        assert_eq!(
            (ours[0].id, ours[0].parent),
            (child.span_id, Some(below)),
            "{ours:?}"
        );
        assert_eq!((ours[1].parent, ours[1].has_failed), (None, true));
        let attributes = [
            ("route", AttributeValue::Text("/v1".to_owned())),
            ("status", AttributeValue::Number(503)),
        ];
        assert_eq!(ours[1].attributes, attributes);
    }
}
