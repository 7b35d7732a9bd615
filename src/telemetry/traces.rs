//! Sends the spans of the process to an OpenTelemetry collector, with OTLP over HTTP. A thread of its own sends them in
//! batches. Code that ends a span only puts it into a queue of limited length. If the queue is full, or if the
//! collector does not accept a batch, spans are dropped and counted.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc as blocking_mpsc;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use opentelemetry::trace as otel;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{
    ExporterBuildError, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use timing::trace::{AttributeValue, EndedSpan, SpanKind, SpanSink, set_sink};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use crate::config::TelemetrySettings;

/// The maximum number of spans in the queue. With about 1 kB each they take no more than a few megabytes.
const QUEUE_SPANS_MAX: usize = 8_192;
const BATCH_SPANS_MAX: usize = 512;
/// The time that a batch waits for more spans.
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// The longest time that the collector may take to accept a batch, including all attempts.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest time that a stopping process waits until the collector has accepted the last spans.
const FLUSH_WAIT_MAX: Duration = Duration::from_secs(2);
/// The path that takes traces, below the root of a collector (OTLP specification, "OTLP/HTTP Request").
const TRACES_PATH: &str = "v1/traces";
const SERVICE_NAME: &str = env!("CARGO_PKG_NAME");

static EXPORTED: AtomicU64 = AtomicU64::new(0);
static DROPPED_BY_QUEUE: AtomicU64 = AtomicU64::new(0);
static DROPPED_BY_COLLECTOR: AtomicU64 = AtomicU64::new(0);

/// The reason why no spans can be exported.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    #[error("the HTTP client for telemetry.otlp_endpoint cannot be built")]
    Client(#[from] reqwest::Error),
    #[error("telemetry.otlp_endpoint cannot be used")]
    Exporter(#[from] ExporterBuildError),
    #[error("it takes no traces: {0}")]
    Refused(#[from] OTelSdkError),
    #[error("the thread that sends traces cannot be started")]
    Thread(#[from] io::Error),
}

/// The numbers of spans that this process has sent to its collector, and that it has dropped for each reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanCounts {
    pub exported: u64,
    pub dropped_by_queue: u64,
    pub dropped_by_collector: u64,
}

/// A handle to the exporting thread, which makes the thread send the waiting spans at once.
#[derive(Debug, Clone)]
pub struct TraceExport {
    flushes: mpsc::Sender<oneshot::Sender<()>>,
}

/// The sending end of the queue of spans.
struct SpanQueue(mpsc::Sender<EndedSpan>);

struct ExportLoop {
    spans: mpsc::Receiver<EndedSpan>,
    flushes: mpsc::Receiver<oneshot::Sender<()>>,
    exporter: SpanExporter,
    scope: InstrumentationScope,
    /// The number of spans that were dropped since the collector accepted the last batch; `None` while it accepts
    /// batches.
    lost: Option<u64>,
}

/// Starts to export spans, if the settings name a collector. Further calls in the same process, as in tests, change
/// nothing.
pub fn start(
    settings: &TelemetrySettings,
    replica: &str,
) -> Result<Option<TraceExport>, TracesError> {
    let Some(root) = &settings.otlp_endpoint else {
        return Ok(None);
    };
    let exporter = build_exporter(root, replica)?;
    let (sender, spans) = mpsc::channel(QUEUE_SPANS_MAX);
    let (flush_sender, flushes) = mpsc::channel(1);
    if !set_sink(Box::new(SpanQueue(sender))) {
        return Ok(None);
    }
    let export_loop = ExportLoop {
        spans,
        flushes,
        exporter,
        scope: InstrumentationScope::builder(SERVICE_NAME)
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
        lost: None,
    };
    export_loop.spawn()?;
    Ok(Some(TraceExport {
        flushes: flush_sender,
    }))
}

/// Sends an export without spans to the collector with this root, to find out whether it accepts traces.
pub async fn probe_collector(root: &str) -> Result<(), TracesError> {
    let exporter = build_exporter(root, "doctor")?;
    Ok(exporter.export(Vec::new()).await?)
}

/// Returns the counts since the start of the process.
pub fn span_counts() -> SpanCounts {
    SpanCounts {
        exported: EXPORTED.load(Ordering::Relaxed),
        dropped_by_queue: DROPPED_BY_QUEUE.load(Ordering::Relaxed),
        dropped_by_collector: DROPPED_BY_COLLECTOR.load(Ordering::Relaxed),
    }
}

fn build_exporter(root: &str, replica: &str) -> Result<SpanExporter, TracesError> {
    let client = reqwest::Client::builder()
        .timeout(EXPORT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()?;
    let endpoint = format!("{}/{TRACES_PATH}", root.trim_end_matches('/'));
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(endpoint)
        .with_timeout(EXPORT_TIMEOUT)
        .build()?;
    let resource = Resource::builder_empty()
        .with_service_name(SERVICE_NAME)
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", replica.to_owned()),
        ])
        .build();
    exporter.set_resource(&resource);
    Ok(exporter)
}

impl TraceExport {
    /// Sends the waiting spans, as far as the collector accepts them within `FLUSH_WAIT_MAX`.
    pub async fn flush(&self) {
        let (sender, receiver) = oneshot::channel();
        let flush = async {
            if self.flushes.send(sender).await.is_ok() {
                // An error means that the exporting thread has ended; the waiting spans are then lost.
                let _ = receiver.await;
            }
        };
        if timeout(FLUSH_WAIT_MAX, flush).await.is_err() {
            tracing::warn!("the last spans could not be exported in time");
        }
    }
}

impl SpanSink for SpanQueue {
    fn take(&self, span: EndedSpan) {
        if self.0.try_send(span).is_err() {
            DROPPED_BY_QUEUE.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl ExportLoop {
    /// Starts the thread. It has a runtime of its own, so that exporting delays no request.
    fn spawn(self) -> io::Result<()> {
        let (sender, started) = blocking_mpsc::channel();
        thread::Builder::new()
            .name("traces".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                match runtime {
                    Ok(runtime) => {
                        let _ = sender.send(Ok(()));
                        runtime.block_on(self.run());
                    }
                    Err(error) => {
                        let _ = sender.send(Err(error));
                    }
                }
            })?;
        started.recv().unwrap_or(Ok(()))
    }

    /// Exports spans until the queue is closed and empty.
    async fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            let flush = tokio::select! {
                Some(flush) = self.flushes.recv() => Some(flush),
                () = fill_batch(&mut self.spans, &mut batch) => None,
            };
            if flush.is_some() {
                while let Ok(span) = self.spans.try_recv() {
                    batch.push(span);
                }
            }
            let is_finished = batch.is_empty() && self.spans.is_closed();
            while !batch.is_empty() {
                let later_spans = batch.split_off(batch.len().min(BATCH_SPANS_MAX));
                self.export(batch).await;
                batch = later_spans;
            }
            if let Some(flush) = flush {
                // The caller of `flush` may have stopped waiting.
                let _ = flush.send(());
            }
            if is_finished {
                return;
            }
        }
    }

    async fn export(&mut self, batch: Vec<EndedSpan>) {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let spans = batch
            .into_iter()
            .map(|span| to_span_data(span, &self.scope))
            .collect();
        match self.exporter.export(spans).await {
            Ok(()) => {
                EXPORTED.fetch_add(count, Ordering::Relaxed);
                if let Some(lost) = self.lost.take() {
                    tracing::info!(lost, "the collector takes spans again");
                }
            }
            Err(error) => {
                DROPPED_BY_COLLECTOR.fetch_add(count, Ordering::Relaxed);
                if self.lost.is_none() {
                    tracing::warn!(%error, "the collector takes no spans; they are dropped until it does");
                }
                self.lost = Some(self.lost.unwrap_or_default() + count);
            }
        }
    }
}

/// Waits for a span, and then up to `BATCH_WAIT` for more spans. Spans that were taken from the queue are in `batch`,
/// even if the caller stops waiting.
async fn fill_batch(spans: &mut mpsc::Receiver<EndedSpan>, batch: &mut Vec<EndedSpan>) {
    if spans.recv_many(batch, BATCH_SPANS_MAX).await == 0 {
        return;
    }
    let deadline = Instant::now() + BATCH_WAIT;
    while batch.len() < BATCH_SPANS_MAX {
        let remaining = BATCH_SPANS_MAX - batch.len();
        match timeout_at(deadline, spans.recv_many(batch, remaining)).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
    }
}

fn to_span_data(span: EndedSpan, scope: &InstrumentationScope) -> SpanData {
    let started_at = span.started_at.duration_since(jiff::Timestamp::UNIX_EPOCH);
    let start_time = UNIX_EPOCH + started_at.unsigned_abs();
    let attributes = span.attributes.into_iter();
    let attributes = attributes.map(|(name, value)| match value {
        AttributeValue::Text(text) => KeyValue::new(name, text),
        AttributeValue::Number(number) => KeyValue::new(name, number),
    });
    SpanData {
        span_context: otel::SpanContext::new(
            otel::TraceId::from(span.trace_id),
            otel::SpanId::from(span.id),
            otel::TraceFlags::SAMPLED,
            false,
            otel::TraceState::NONE,
        ),
        parent_span_id: span
            .parent
            .map_or(otel::SpanId::INVALID, |parent| parent.id.into()),
        parent_span_is_remote: span.parent.is_some_and(|parent| parent.is_remote),
        span_kind: match span.kind {
            SpanKind::Server => otel::SpanKind::Server,
            SpanKind::Client => otel::SpanKind::Client,
            SpanKind::Internal => otel::SpanKind::Internal,
            SpanKind::Consumer => otel::SpanKind::Consumer,
        },
        name: span.name.into(),
        start_time,
        end_time: start_time + span.duration,
        attributes: attributes.collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: if span.has_failed {
            otel::Status::error("")
        } else {
            otel::Status::Unset
        },
        instrumentation_scope: scope.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    fn span() -> EndedSpan {
        EndedSpan {
            trace_id: 7,
            id: 8,
            parent: None,
            kind: SpanKind::Server,
            name: "GET /".to_owned(),
            started_at: jiff::Timestamp::UNIX_EPOCH,
            duration: Duration::from_millis(3),
            attributes: vec![("status", AttributeValue::Number(200))],
            has_failed: true,
        }
    }

    /// Starts a collector that answers each request with the next of these statuses. Returns its root.
    fn collector(statuses: &'static [u16]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let root = format!("http://{}/", listener.local_addr().unwrap());
        thread::spawn(move || {
            for status in statuses {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                let mut chunk = [0; 1_024];
                while !is_complete_request(&request) {
                    let count = stream.read(&mut chunk).unwrap();
                    request.extend_from_slice(&chunk[..count]);
                }
                let answer = format!(
                    "HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                );
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        root
    }

    fn is_complete_request(request: &[u8]) -> bool {
        let text = String::from_utf8_lossy(request).to_lowercase();
        let Some((head, _)) = text.split_once("\r\n\r\n") else {
            return false;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .and_then(|length| length.parse::<usize>().ok())
            .unwrap_or_default();
        request.len() >= head.len() + 4 + length
    }

    #[test]
    fn a_full_queue_drops_spans_and_counts_them() {
        let (sender, mut spans) = mpsc::channel(1);
        let queue = SpanQueue(sender);
        let before = DROPPED_BY_QUEUE.load(Ordering::Relaxed);
        queue.take(span());
        queue.take(span());
        assert_eq!(DROPPED_BY_QUEUE.load(Ordering::Relaxed), before + 1);
        assert_eq!(spans.try_recv().unwrap(), span());
        assert!(spans.try_recv().is_err());
    }

    #[tokio::test]
    async fn spans_that_a_collector_refuses_are_counted_until_it_accepts_spans_again() {
        let (_, spans) = mpsc::channel(1);
        let (_, flushes) = mpsc::channel(1);
        let mut export_loop = ExportLoop {
            spans,
            flushes,
            exporter: build_exporter(&collector(&[400, 403, 200]), "test").unwrap(),
            scope: InstrumentationScope::default(),
            lost: None,
        };
        let before = span_counts();
        export_loop.export(vec![span(), span()]).await;
        assert_eq!(export_loop.lost, Some(2));
        export_loop.export(vec![span()]).await;
        assert_eq!(export_loop.lost, Some(3));
        export_loop.export(vec![span()]).await;
        assert_eq!(export_loop.lost, None);
        let after = span_counts();
        assert_eq!(after.exported, before.exported + 1);
        assert_eq!(after.dropped_by_collector, before.dropped_by_collector + 3);
    }

    #[tokio::test]
    async fn a_collector_is_probed_without_spans() {
        let answer = probe_collector(&collector(&[200])).await;
        assert!(answer.is_ok(), "{answer:?}");
        let refused = probe_collector(&collector(&[403]))
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains("403"), "{refused}");
    }

    #[tokio::test]
    async fn a_batch_has_the_waiting_spans_and_ends_with_the_queue() {
        let (sender, mut spans) = mpsc::channel(4);
        for _ in 0..3 {
            sender.send(span()).await.unwrap();
        }
        drop(sender);
        let mut batch = Vec::new();
        fill_batch(&mut spans, &mut batch).await;
        assert_eq!(batch.len(), 3);
        fill_batch(&mut spans, &mut batch).await;
        assert_eq!(batch.len(), 3, "the queue is closed");
    }

    #[test]
    fn a_span_keeps_its_ids_its_times_and_its_outcome() {
        let parent = timing::trace::ParentSpan {
            id: 9,
            is_remote: true,
        };
        let ended = EndedSpan {
            parent: Some(parent),
            ..span()
        };
        let data = to_span_data(ended, &InstrumentationScope::default());
        assert_eq!(data.span_context.trace_id(), otel::TraceId::from(7_u128));
        assert_eq!(data.span_context.span_id(), otel::SpanId::from(8_u64));
        assert_eq!(data.parent_span_id, otel::SpanId::from(9_u64));
        assert!(data.parent_span_is_remote && data.span_context.is_sampled());
        let duration = data.end_time.duration_since(data.start_time).unwrap();
        assert_eq!(duration, Duration::from_millis(3));
        assert_eq!(data.status, otel::Status::error(""));
        assert_eq!(data.attributes, [KeyValue::new("status", 200)]);
    }
}
