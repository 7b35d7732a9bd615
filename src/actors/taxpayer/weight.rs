//! The weight of a command: about one unit for each invoice line that the command reads or writes. The weight limits
//! the duration of a transaction that several taxpayers share.

use serde_json::{Map, Value};

use crate::domain::invoice::Draft;

/// A command with a greater weight than this is large, so it has a transaction of its own.
pub(super) const SMALL_WEIGHT_MAX: usize = 200;
/// The weight at which a batch or a group takes no further commands.
pub(super) const TRANSACTION_WEIGHT_MAX: usize = 2_000;
/// This many bytes of a document weigh as much as one invoice line.
const BYTES_PER_WEIGHT_UNIT: usize = 1_024;

/// The size of what a command carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommandSize {
    /// The number of invoice lines.
    pub(crate) lines: usize,
    /// The length in bytes of all texts in the parts whose members callers choose: extra fields and whole documents.
    pub(crate) bytes: usize,
}

impl CommandSize {
    pub(crate) fn for_document(document: &Value) -> Self {
        Self {
            lines: 0,
            bytes: text_bytes(document),
        }
    }

    pub(crate) fn for_draft(draft: &Draft) -> Self {
        let lines = draft.lines.iter().map(|line| member_bytes(&line.extras));
        Self {
            lines: draft.lines.len(),
            bytes: member_bytes(&draft.extras) + lines.sum::<usize>(),
        }
    }

    /// Returns the weight of a command of this size, which is at least 1.
    pub(super) fn weight(self) -> usize {
        1 + self.lines + self.bytes / BYTES_PER_WEIGHT_UNIT
    }
}

impl std::iter::Sum for CommandSize {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), |all, one| Self {
            lines: all.lines + one.lines,
            bytes: all.bytes + one.bytes,
        })
    }
}

/// Returns the length of all texts and field names in a value. A number, a boolean or null counts as one byte. The
/// recursion is bounded, because the parser of requests limits the depth of a document.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(text_bytes).sum(),
        Value::Object(members) => member_bytes(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

fn member_bytes(members: &Map<String, Value>) -> usize {
    members
        .iter()
        .map(|(name, value)| name.len() + text_bytes(value))
        .sum()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::civil::date;
    use serde_json::json;

    use super::*;
    use crate::actors::taxpayer::command::TaxpayerCommand;
    use crate::actors::taxpayer::commands::{
        CorrectInvoice, CorrectedInvoiceIdentifiers, CreateBatch, CreateInvoice,
    };
    use crate::actors::taxpayer::handle::CommandEnvelope;
    use crate::actors::taxpayer::tests::draft;
    use crate::domain::correction::plan::CorrectionWish;
    use crate::domain::invoice::batch::BatchCandidate;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::kernel::ids::InvoiceId;
    use crate::domain::reference::catalog::Catalog;

    fn sized_draft(lines: usize, extra_bytes: usize) -> Draft {
        let mut draft = draft("A", 10);
        let line = draft.lines[0].clone();
        draft.lines = vec![line; lines];
        if extra_bytes > 0 {
            draft.lines[0].extras =
                Map::from_iter([("note".to_owned(), "x".repeat(extra_bytes).into())]);
        }
        draft
    }

    fn find_weight(command: impl TaxpayerCommand) -> (usize, bool) {
        let envelope = CommandEnvelope::new(command, None, None);
        (envelope.size.weight(), envelope.is_large())
    }

    #[test]
    fn a_correction_weighs_what_it_reads() {
        for (original_lines, correcting_bytes, expected) in [
            (1, 0, (2, false)),
            (199, 0, (200, false)),
            (200, 0, (201, true)),
            (1, 100 * 1_024, (102, false)),
            (1, 8 << 20, (8_194, true)),
        ] {
            let sent = find_weight(CorrectInvoice {
                original: CorrectedInvoiceIdentifiers {
                    id: InvoiceId(1),
                    irn: Irn::parse("INV1-94AD90FB-20260131").unwrap(),
                    references: Vec::new(),
                },
                wish: CorrectionWish::Cancel,
                today: date(2026, 1, 31),
                catalog: Arc::new(Catalog::default()),
                is_preview: true,
                original_lines,
                correcting_bytes,
            });
            assert_eq!(sent, expected, "{original_lines}, {correcting_bytes}");
        }
    }

    #[test]
    fn a_command_weighs_its_lines_and_the_bytes_that_callers_may_add() {
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
            let sent = find_weight(CreateInvoice(sized_draft(lines, bytes)));
            assert_eq!(sent, (weight, is_large), "{lines} lines, {bytes} bytes");
        }
        let candidate = |lines| BatchCandidate {
            invoice_no: None,
            draft: Ok(Box::new(sized_draft(lines, 0))),
            warnings: Vec::new(),
        };
        let batch = find_weight(CreateBatch(vec![candidate(2), candidate(3)]));
        assert_eq!(batch, (6, true), "a batch is large, however few it has");
    }

    #[test]
    fn all_texts_of_a_document_count() {
        assert_eq!(
            text_bytes(&json!({ "ab": ["cde", { "f": "g" }], "h": 1, "i": null })),
            11
        );
    }
}
