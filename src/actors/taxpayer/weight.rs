//! The weight of commands: about as many units as lines of invoices that a command reads and writes. It bounds how long
//! a transaction takes that several taxpayers share.

use serde_json::{Map, Value};

use crate::actors::taxpayer::command::{CommandEnvelope, TaxpayerCommand};

/// A heavier command is large. It has a transaction of its own and takes turns with other large commands.
const SMALL_MAX: usize = 200;
/// The weight at which a batch or a group takes no further commands.
pub(super) const TRANSACTION_MAX: usize = 2_000;
/// So many bytes of a document weigh as much as a line.
const BYTES_A_UNIT: usize = 1_024;

impl CommandEnvelope {
    pub(super) fn is_large(&self) -> bool {
        self.weight > SMALL_MAX || matches!(self.command, TaxpayerCommand::CreateBatch(_))
    }
}

impl TaxpayerCommand {
    /// The weight of this command, at least 1.
    pub(super) fn weight(&self) -> usize {
        1 + self.line_count() + self.document_bytes() / BYTES_A_UNIT
    }

    /// Returns the number of invoice lines in this command. Each line may need a new item id.
    pub(super) fn line_count(&self) -> usize {
        let revised = match self {
            Self::Revise { revision, .. } => revision.lines.len(),
            _ => 0,
        };
        self.drafts().map(|draft| draft.lines.len()).sum::<usize>() + revised
    }

    /// Returns the length of all texts in the parts of this command that have no fixed form.
    fn document_bytes(&self) -> usize {
        let document = match self {
            Self::OpenRun(request) => text_bytes(&request.document),
            Self::ReceiveSupplierInvoice(received) => text_bytes(&received.document),
            _ => 0,
        };
        let drafts = self.drafts().map(|draft| {
            let lines = draft.lines.iter().map(|line| member_bytes(&line.extras));
            member_bytes(&draft.extras) + lines.sum::<usize>()
        });
        document + drafts.sum::<usize>()
    }
}

/// Returns the length of all texts and names in a value. Numbers and words count as one byte. Documents are parsed from
/// requests, which limits their depth.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(text_bytes).sum(),
        Value::Object(members) => member_bytes(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

fn member_bytes(members: &Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| name.len() + text_bytes(value)).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::actors::taxpayer::tests::draft;
    use crate::domain::invoice::Draft;
    use crate::domain::invoice::batch::Candidate;
    use crate::domain::kernel::audit::Actor;

    fn draft_of(lines: usize, extra_bytes: usize) -> Box<Draft> {
        let mut draft = draft("A", 10);
        let line = draft.lines[0].clone();
        draft.lines = vec![line; lines];
        if extra_bytes > 0 {
            draft.lines[0].extras = Map::from_iter([("note".to_owned(), "x".repeat(extra_bytes).into())]);
        }
        Box::new(draft)
    }

    #[test]
    fn a_command_weighs_its_lines_and_the_bytes_that_callers_may_add() {
        let envelope = |command: TaxpayerCommand| CommandEnvelope::new(command, None, Actor::Service.into());
        for (lines, bytes, weight, is_large) in [
            (1, 0, 2, false),
            (3, 0, 4, false),
            (199, 0, 200, false),
            (200, 0, 201, true),
            (9_000, 0, 9_001, true),
            (1, 100, 2, false),
            (1, 10_240, 12, false),
            (1, 1_600_000, 1_564, true),
        ] {
            let sent = envelope(TaxpayerCommand::Create(draft_of(lines, bytes)));
            assert_eq!((sent.weight, sent.is_large()), (weight, is_large), "{lines} lines, {bytes} bytes");
        }
        let candidate = |lines| Candidate { invoice_no: None, draft: Ok(draft_of(lines, 0)) };
        let batch = envelope(TaxpayerCommand::CreateBatch(vec![candidate(2), candidate(3)]));
        assert_eq!((batch.weight, batch.is_large()), (6, true), "a batch is large, however few it has");
    }

    #[test]
    fn all_texts_of_a_document_count() {
        assert_eq!(text_bytes(&json!({ "ab": ["cde", { "f": "g" }], "h": 1, "i": null })), 11);
    }
}
