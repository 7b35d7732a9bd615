//! The span of a call, if the call is part of a trace.

use timing::trace::{Span, SpanKind, TraceContext};

use crate::admission::call_stats::CallOutcome;
use crate::operation::Operation;
use crate::transport::failure::Cause;

pub(crate) struct CallSpan(Option<Span>);

impl CallSpan {
    /// Begins the span in the trace of the current task. A task without a trace gets no span.
    pub(crate) fn begin(operation: Operation) -> Self {
        let span = TraceContext::current().map(|trace| {
            let name = format_args!("authority {}", operation.name());
            Span::child(trace, SpanKind::Client, name)
        });
        Self(span)
    }

    /// Returns the trace context to send to the authority; `None` without a trace.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.0.as_ref().map(Span::context)
    }

    /// Ends the span with the outcome of the call. The span does not contain the IRN, because it contains the number of
    /// an invoice.
    pub(crate) fn end(self, status: Option<u16>, outcome: CallOutcome, cause: Option<&Cause>) {
        let Some(mut span) = self.0 else {
            return;
        };
        if let Some(status) = status {
            span.set_number("http.response.status_code", status.into());
        }
        span.set_text("einvoice.outcome", outcome.name());
        if let Some(cause) = cause {
            span.set_text("error.type", cause.kind().name());
            span.mark_failed();
        }
    }
}
