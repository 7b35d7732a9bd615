//! The record of an import: the outcome of each document, the causes of refusals, and the questions. A question lists
//! values that the import profile lacks; with them, refused documents would pass.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::import::profile::CustomerIdentity;
use crate::domain::import::source::{ImportForm, Places};
use crate::domain::import::table::Table;
use crate::domain::import::totals::CreatedTotals;
use crate::domain::invoice::batch::{BatchItem, Duplicate};
use crate::domain::invoice::ubl_parts::UblParts;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;

/// The maximum numbers of items, causes, questions and warnings that the record of a file keeps.
const ITEMS_MAX: usize = 1_000;
const CAUSES_MAX: usize = 1_000;
const QUESTIONS_MAX: usize = 1_000;
const FILE_WARNINGS_MAX: usize = 30;
/// The number of invoices from the beginning of a large file that its preview keeps, even if they were not refused.
const PREVIEWED_ITEMS_MAX: usize = 20;
/// The reason that people see for an import that the account has cancelled.
const CANCELLED_REASON: &str = "The account cancelled the import.";

words! {
    /// The result for a document.
    ImportOutcome {
        Created = "created", Duplicate = "duplicate", Failed = "failed",
        /// The document lacks only values that the import profile can give.
        NeedsAnswer = "needs_answer",
    }
}

/// A file to be imported, without the drafts of its documents.
#[derive(Debug, Clone)]
pub struct ImportedFile {
    pub import_no: String,
    pub form: ImportForm,
    pub documents: Vec<ImportedDocument>,
    /// The number of documents before these in the file, if the file is imported in pieces.
    pub documents_before: usize,
    pub warnings: Vec<String>,
    /// The uploaded table, from which the error file is made; `None` for formats without columns.
    pub table: Option<Table>,
}

/// A document of the file, without its draft.
#[derive(Debug, Clone)]
pub struct ImportedDocument {
    pub places: Places,
    pub warnings: Vec<String>,
    pub customer: CustomerIdentity,
    pub currency: Option<String>,
    /// The amount of the document, for the sums of the causes; `None` if it cannot be read.
    pub amount: Option<Amount>,
    /// The payable as totals count it; `None` if the document has faults.
    pub payable: Option<Amount>,
    /// The indexes of the document's rows in the table.
    pub rows: Vec<usize>,
    /// The parts of the UBL document that no field of an invoice holds; `None` for other formats.
    pub ubl_parts: Option<UblParts>,
}

/// The record of the import of one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Import {
    pub import_no: String,
    pub form: ImportForm,
    /// The batch of the created invoices; `None` for a preview.
    pub batch_no: Option<String>,
    /// The number of documents in the file.
    #[serde(default)]
    pub documents: usize,
    /// The number of documents with each outcome. Documents that are not processed yet are not counted.
    #[serde(default)]
    pub counts: OutcomeCounts,
    /// The totals of the created invoices; in a preview, of those that would be created. Empty in records of older
    /// versions.
    #[serde(default)]
    pub totals: CreatedTotals,
    /// The outcomes of all documents; for a large file only those of the first refused documents, and in its preview
    /// those of the first documents.
    pub items: Vec<ImportItem>,
    pub causes: Vec<RefusalCause>,
    pub questions: Vec<Question>,
    pub warnings: Vec<String>,
    /// The reason why the import of a large file was stopped before all its documents were processed. It continues if
    /// the same file is uploaded again.
    #[serde(default)]
    pub stopped: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCounts {
    pub created: usize,
    pub duplicates: usize,
    /// The number of duplicates whose contents differ from those of the existing invoice.
    #[serde(default)]
    pub different: usize,
    /// The number of duplicates whose existing invoice is cancelled.
    #[serde(default)]
    pub cancelled: usize,
    /// The number of created invoices that replaced a cancelled one.
    #[serde(default)]
    pub replaced: usize,
    pub failed: usize,
    pub unanswered: usize,
}

words! {
    /// The state of an import.
    ImportState {
        /// Nothing was created: the record shows the outcomes that an import would have.
        Preview = "preview",
        Running = "running", Done = "done",
        /// The import ended before all documents were processed.
        Stopped = "stopped",
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportItem {
    /// The position of the document in the file, counted from 0.
    #[serde(default)]
    pub index: usize,
    /// The place of the document in the file.
    pub source: String,
    pub invoice_no: Option<String>,
    pub outcome: ImportOutcome,
    pub id: Option<InvoiceId>,
    pub irn: Option<String>,
    /// Set for a duplicate; `None` in results that an older version stored.
    #[serde(default)]
    pub duplicate: Option<Duplicate>,
    /// True if the existing invoice is cancelled. True for a created invoice that replaced a cancelled one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub existing_cancelled: bool,
    /// Set in a preview, for a document without faults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<ItemContents>,
    pub warnings: Vec<String>,
    pub errors: Vec<ImportFault>,
}

/// The values of a document by which a person recognises it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemContents {
    /// The name of the customer or, if the file has none, the number.
    pub customer: Option<String>,
    pub currency: String,
    /// The payable as totals count it.
    pub payable: Amount,
}

/// A fault of a document, with its place in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportFault {
    /// The dot path in the body of the create request.
    pub field: String,
    pub rule: String,
    pub place: String,
    pub message: String,
}

/// A rule that documents break at one field, with the number of these documents and the sum of their amounts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefusalCause {
    pub rule: String,
    pub field: String,
    pub count: usize,
    /// The sum of the amounts of those documents whose amount can be read.
    pub amount: Amount,
    pub currency: Option<String>,
    /// The number of documents whose amount cannot be read.
    #[serde(default)]
    pub unread: usize,
}

/// The fields of one customer whose values the profile could give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub customer_no: Option<String>,
    pub name: Option<String>,
    pub fields: Vec<String>,
}

/// The result of one document in the batch of the import. A failed document has faults.
#[derive(Debug)]
pub struct DocumentResult {
    pub item: BatchItem,
    pub faults: Option<Faults>,
}

impl OutcomeCounts {
    pub fn total(self) -> usize {
        self.created + self.duplicates + self.failed + self.unanswered
    }

    pub(super) fn count_item(&mut self, item: &ImportItem) {
        self.different += usize::from(item.is_different_duplicate());
        match item.outcome {
            ImportOutcome::Created => self.replaced += usize::from(item.existing_cancelled),
            _ => self.cancelled += usize::from(item.existing_cancelled),
        }
        *match item.outcome {
            ImportOutcome::Created => &mut self.created,
            ImportOutcome::Duplicate => &mut self.duplicates,
            ImportOutcome::Failed => &mut self.failed,
            ImportOutcome::NeedsAnswer => &mut self.unanswered,
        } += 1;
    }
}

impl ImportedDocument {
    pub(super) fn contents(&self) -> Option<ItemContents> {
        let customer = &self.customer;
        Some(ItemContents {
            customer: customer.name.clone().or_else(|| customer.no.clone()),
            currency: self.currency.clone()?,
            payable: self.payable?,
        })
    }
}

impl ImportItem {
    /// True if an invoice with this number but other contents exists.
    pub fn is_different_duplicate(&self) -> bool {
        self.duplicate == Some(Duplicate::Different)
    }

    /// True if the document was not imported: it is neither created nor a duplicate.
    pub fn is_refused(&self) -> bool {
        matches!(
            self.outcome,
            ImportOutcome::Failed | ImportOutcome::NeedsAnswer
        )
    }
}

impl Import {
    /// Creates the record of a large file of which nothing is imported yet.
    pub fn start(
        import_no: String,
        form: ImportForm,
        batch_no: Option<String>,
        documents: usize,
    ) -> Self {
        Self {
            import_no,
            form,
            batch_no,
            documents,
            counts: OutcomeCounts::default(),
            totals: CreatedTotals::default(),
            items: Vec::new(),
            causes: Vec::new(),
            questions: Vec::new(),
            warnings: Vec::new(),
            stopped: None,
        }
    }

    /// Computes the counts that a record of an older version lacks from its items, of which older versions kept all.
    pub fn complete_older_record(mut self) -> Self {
        if self.documents == 0 {
            self.documents = self.items.len();
            self.counts = OutcomeCounts::default();
            for (index, item) in self.items.iter_mut().enumerate() {
                item.index = index;
                self.counts.count_item(item);
            }
        }
        self
    }

    /// Stops the import at the wish of the account. The remaining documents are not imported, unless the same file is
    /// sent again.
    #[must_use]
    pub fn cancel(self) -> Self {
        Self {
            stopped: Some(CANCELLED_REASON.to_owned()),
            ..self
        }
    }

    pub fn state(&self) -> ImportState {
        match self.batch_no {
            None => ImportState::Preview,
            Some(_) if self.stopped.is_some() => ImportState::Stopped,
            Some(_) if self.counts.total() < self.documents => ImportState::Running,
            Some(_) => ImportState::Done,
        }
    }

    /// Adds the result of the next piece of the file. The number of items kept is limited, so that the record of a
    /// large file stays small; the error file has the errors of all documents.
    pub fn add_piece(&mut self, piece: Self) {
        self.counts.created += piece.counts.created;
        self.counts.duplicates += piece.counts.duplicates;
        self.counts.different += piece.counts.different;
        self.counts.cancelled += piece.counts.cancelled;
        self.counts.replaced += piece.counts.replaced;
        self.counts.failed += piece.counts.failed;
        self.counts.unanswered += piece.counts.unanswered;
        self.totals.add_all(piece.totals);
        let room = ITEMS_MAX.saturating_sub(self.items.len());
        let previewed_max = if self.state() == ImportState::Preview {
            PREVIEWED_ITEMS_MAX
        } else {
            0
        };
        let items = piece.items.into_iter();
        let kept = items.filter(|item| item.is_refused() || item.index < previewed_max);
        self.items.extend(kept.take(room));
        piece
            .causes
            .into_iter()
            .for_each(|cause| self.add_cause(cause));
        self.causes
            .sort_by_key(|cause| std::cmp::Reverse(cause.count));
        for question in piece.questions {
            self.add_question(question);
        }
        for warning in piece.warnings {
            if self.warnings.len() < FILE_WARNINGS_MAX && !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }

    fn add_cause(&mut self, cause: RefusalCause) {
        let known = self.causes.iter_mut().find(|known| {
            (&known.rule, &known.field, &known.currency)
                == (&cause.rule, &cause.field, &cause.currency)
        });
        if let Some(known) = known {
            known.count += cause.count;
            known.unread += cause.unread;
            let sum = known.amount.plus(cause.amount);
            known.amount = sum.unwrap_or(known.amount);
        } else if self.causes.len() < CAUSES_MAX {
            self.causes.push(cause);
        }
    }

    fn add_question(&mut self, question: Question) {
        let known = self.questions.iter_mut().find(|known| {
            (&known.customer_no, &known.name) == (&question.customer_no, &question.name)
        });
        if let Some(known) = known {
            for field in question.fields {
                if !known.fields.contains(&field) {
                    known.fields.push(field);
                }
            }
        } else if self.questions.len() < QUESTIONS_MAX {
            self.questions.push(question);
        }
    }
}

/// Returns the number of an import. It consists of the first digits of the file's digest, so that the same file always
/// gets the same number.
pub fn import_number(digest: &str) -> String {
    let part: String = digest.chars().take(IMPORT_NO_DIGITS).collect();
    format!("I{}", part.to_uppercase())
}

/// The number of hexadecimal digits of the digest that the number of an import contains.
const IMPORT_NO_DIGITS: usize = 32;
/// The number of digits of the import's number that the batch number of a large file contains.
const BATCH_NO_DIGITS: usize = 16;

/// Returns the number of the batch of a large file. It contains the first digits of the number of the import, so that
/// the import is found by the batch, which has no record of its own.
pub fn import_batch_number(import_no: &str, now: Timestamp) -> String {
    let digits: String = import_no.chars().skip(1).take(BATCH_NO_DIGITS).collect();
    format!("B{}-{digits}", now.strftime("%Y%m%d"))
}

/// Returns the first characters of the import's number, taken from the number of its batch. `None` if `batch_no` is not
/// the batch number of a large file.
pub fn import_no_prefix(batch_no: &str) -> Option<String> {
    let (_, digits) = batch_no.split_once('-')?;
    let mut bytes = digits.bytes();
    let has_digits_alone = bytes.all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
    let is_number = has_digits_alone && digits.len() == BATCH_NO_DIGITS;
    is_number.then(|| format!("I{digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::import::assembly::WARNINGS_MAX;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::kernel::fault::Fault;
    use crate::domain::kernel::field_rule::FieldRule;

    fn document(no: &str, amount: i64) -> ImportedDocument {
        ImportedDocument {
            places: Places::Whole("line 1".to_owned()),
            warnings: vec!["w".to_owned(); 40],
            customer: CustomerIdentity {
                no: Some(no.to_owned()),
                ..CustomerIdentity::default()
            },
            currency: Some("NGN".to_owned()),
            amount: Some(amount.into()),
            payable: Some(amount.into()),
            rows: Vec::new(),
            ubl_parts: None,
        }
    }

    fn failed(paths: &[(&str, FieldRule)]) -> DocumentResult {
        let faults: Faults = paths
            .iter()
            .map(|(path, rule)| Fault::field(*path, rule.clone()))
            .collect();
        DocumentResult {
            item: BatchItem::from_faults(Some("A".to_owned()), &faults),
            faults: Some(faults),
        }
    }

    #[test]
    fn the_number_of_a_batch_leads_to_its_import() {
        let import_no = import_number(&"0123456789abcdef".repeat(4));
        let batch_no = import_batch_number(&import_no, Timestamp::UNIX_EPOCH);
        assert_eq!(batch_no, "B19700101-0123456789ABCDEF");
        let prefix = import_no_prefix(&batch_no).unwrap();
        assert!(import_no.starts_with(&prefix), "{prefix}");
        for odd in ["", "B1", "B19700101-", "B19700101-0123456789abcdef", "-%"] {
            assert_eq!(import_no_prefix(odd), None, "{odd}");
        }
    }

    #[test]
    fn refusals_are_counted_by_cause_and_questions_by_customer() {
        let file = ImportedFile {
            import_no: import_number(&"ab".repeat(32)),
            form: ImportForm::Standard,
            documents: vec![
                document("C-1", 100),
                document("C-1", 20),
                document("C-2", 3),
            ],
            documents_before: 0,
            warnings: Vec::new(),
            table: None,
        };
        let import = Import::new(
            &file,
            None,
            [
                failed(&[
                    ("customer.email", FieldRule::Required),
                    ("invoice_lines.0.price_unit", FieldRule::Required),
                    ("invoice_lines.1.price_unit", FieldRule::Required),
                ]),
                failed(&[("customer.email", FieldRule::Required)]),
                failed(&[
                    ("customer.email", FieldRule::Required),
                    ("due_date", FieldRule::DATE),
                ]),
            ],
        );
        assert_eq!(import.import_no, format!("I{}", "AB".repeat(16)));
        assert_eq!((import.counts.unanswered, import.counts.failed), (2, 1));
        let causes: Vec<_> = import
            .causes
            .iter()
            .map(|cause| {
                format!(
                    "{} {} {} {}",
                    cause.rule, cause.field, cause.count, cause.amount
                )
            })
            .collect();
        assert_eq!(
            causes,
            [
                "required customer.email 3 123",
                "date due_date 1 3",
                "required invoice_lines.*.price_unit 1 100",
            ]
        );
        let question = Question {
            customer_no: Some("C-1".to_owned()),
            name: None,
            fields: vec!["email".to_owned(), "price_unit".to_owned()],
        };
        assert_eq!(import.questions, [question]);
        assert_eq!(import.items[0].warnings.len(), WARNINGS_MAX + 1);
    }

    #[test]
    fn a_cause_counts_the_documents_whose_money_cannot_be_read() {
        let unread = ImportedDocument {
            amount: None,
            ..document("C-1", 0)
        };
        // The documents, and the money and the unread documents of the cause.
        let cases = [
            (vec![document("C-1", 5)], (5, 0)),
            (vec![unread.clone()], (0, 1)),
            (vec![unread.clone(), document("C-1", 5), unread], (5, 2)),
        ];
        for (documents, (amount, unread)) in cases {
            let file = ImportedFile {
                import_no: "I1".to_owned(),
                form: ImportForm::Standard,
                documents,
                documents_before: 0,
                warnings: Vec::new(),
                table: None,
            };
            let results = || failed(&[("due_date", FieldRule::DATE)]);
            let piece = Import::new(&file, None, std::iter::repeat_with(results));
            let mut whole = Import::start("I1".to_owned(), ImportForm::Standard, None, 6);
            whole.add_piece(piece.clone());
            whole.add_piece(piece);
            let [cause] = &whole.causes[..] else {
                panic!("{:?}", whole.causes)
            };
            let found = (cause.amount, cause.unread);
            assert_eq!(found, ((2 * amount).into(), 2 * unread));
        }
    }

    #[test]
    fn a_record_of_an_older_version_is_completed() {
        let item = |outcome: &str| {
            serde_json::json!({
                "source": "line 2", "invoice_no": null, "outcome": outcome, "id": null, "irn": null,
                "warnings": [], "errors": [],
            })
        };
        let old = serde_json::json!({
            "import_no": "I1", "form": "standard", "batch_no": "B1", "causes": [], "questions": [], "warnings": [],
            "items": [item("created"), item("failed"), item("created")],
        });
        let old: Import = serde_json::from_value(old).unwrap();
        let import = old.complete_older_record();
        let counts = OutcomeCounts {
            created: 2,
            failed: 1,
            ..OutcomeCounts::default()
        };
        assert_eq!((import.documents, import.counts), (3, counts));
        assert_eq!(
            (import.items[2].index, import.state()),
            (2, ImportState::Done)
        );
        let stopped = Import {
            stopped: Some("x".to_owned()),
            ..import
        };
        assert_eq!(stopped.state(), ImportState::Stopped);
    }

    #[test]
    fn the_preview_of_a_large_file_keeps_its_first_invoices_and_the_totals_of_all() {
        let irn = Irn::parse("A-94AD90FB-20260131").unwrap();
        for (batch_no, kept) in [(None, PREVIEWED_ITEMS_MAX), (Some("B1"), 0)] {
            let batch_no = batch_no.map(str::to_owned);
            let form = ImportForm::Standard;
            let mut import = Import::start("I1".to_owned(), form, batch_no.clone(), 30);
            for documents_before in [0, 15] {
                let file = ImportedFile {
                    import_no: "I1".to_owned(),
                    form,
                    documents: vec![document("C-1", 2); 15],
                    documents_before,
                    warnings: Vec::new(),
                    table: None,
                };
                let results = std::iter::repeat_with(|| DocumentResult {
                    item: BatchItem::for_irn(&irn, None),
                    faults: None,
                });
                import.add_piece(Import::new(&file, batch_no.clone(), results));
            }
            assert_eq!(import.items.len(), kept, "{batch_no:?}");
            assert!(import.items.iter().all(|item| item.contents.is_some()));
            let totals: Vec<_> = import.totals.by_currency().collect();
            let [total] = &totals[..] else {
                panic!("{totals:?}")
            };
            assert_eq!((total.invoices, total.payable), (30, 60.into()));
        }
    }

    #[test]
    fn the_record_of_a_large_file_grows_no_further_than_its_bounds() {
        let piece = |before: usize| {
            let documents: Vec<_> = (0..500)
                .map(|number| document(&format!("C-{}", before + number), 2))
                .collect();
            let file = ImportedFile {
                import_no: "I1".to_owned(),
                form: ImportForm::Standard,
                documents,
                documents_before: before,
                warnings: vec!["The column x is not read.".to_owned()],
                table: None,
            };
            let email = || failed(&[("customer.email", FieldRule::Required)]);
            Import::new(&file, None, std::iter::repeat_with(email))
        };
        let batch = Some("B1".to_owned());
        let mut import = Import::start("I1".to_owned(), ImportForm::Standard, batch, 2_000);
        for before in [0, 500, 1_000] {
            import.add_piece(piece(before));
            assert_eq!(import.state(), ImportState::Running);
        }
        import.add_piece(piece(1_500));
        assert_eq!(import.state(), ImportState::Done);
        assert_eq!(
            (import.counts.unanswered, import.counts.total()),
            (2_000, 2_000)
        );
        assert_eq!(
            (import.items.len(), import.items[999].index),
            (ITEMS_MAX, 999)
        );
        assert_eq!(import.questions.len(), QUESTIONS_MAX);
        assert_eq!(import.warnings.len(), 1);
        let [cause] = &import.causes[..] else {
            panic!("{:?}", import.causes)
        };
        assert_eq!((cause.count, cause.amount), (2_000, 4_000.into()));
    }
}
