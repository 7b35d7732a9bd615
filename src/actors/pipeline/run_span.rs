//! The span of the work on a run.

use timing::trace::{Span, SpanKind};

use crate::domain::pipeline::Run;

/// Begins the span of the work on a run, in the trace of the request that made the run due. A run that no request made
/// due has a trace with its own id.
pub(super) fn begin_span(run: &Run) -> Span {
    let name = format_args!("run {}", run.operation());
    let mut span = match run.trace {
        Some(trace) => Span::child(trace, SpanKind::Consumer, name),
        None => Span::root(run.id, SpanKind::Consumer, name),
    };
    span.set_text("einvoice.run_id", &run.id.to_string());
    span.set_number("einvoice.taxpayer_id", run.taxpayer_id.0);
    span
}
