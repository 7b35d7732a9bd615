//! The result of an import: each document with its outcome, the causes of refusals with their counts and money, and the
//! questions whose answers in the profile would let documents pass.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::import::causes::Causes;
use crate::domain::import::profile::{NamedCustomer, answer_name};
use crate::domain::import::source::{ImportForm, Places};
use crate::domain::import::table::Table;
use crate::domain::invoice::batch::{BatchItem, Duplicate, ITEM_FAULTS_MAX, ItemOutcome};
use crate::domain::invoice::ubl_parts::UblParts;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;

/// The maximum numbers of items, causes, questions and warnings that are kept of a large file.
const ITEMS_MAX: usize = 1_000;
const CAUSES_MAX: usize = 1_000;
const QUESTIONS_MAX: usize = 1_000;
const FILE_WARNINGS_MAX: usize = 30;
/// The maximum number of warnings that are kept of one document.
const WARNINGS_MAX: usize = 30;
/// The maximum length of a warning or a message, in characters.
const SENTENCE_CHARS_MAX: usize = 500;

const DIFFERENT_WARNING: &str =
    "The account has this invoice with other contents, which stay as they are.";

words! {
    /// The result for a document.
    ImportOutcome {
        Created = "created", Duplicate = "duplicate", Failed = "failed",
        /// Only answers are missing that the import profile can give.
        NeedsAnswer = "needs_answer",
    }
}

/// A file that is imported, apart from the drafts of its documents.
#[derive(Debug, Clone)]
pub struct ImportedFile {
    pub import_no: String,
    pub form: ImportForm,
    pub documents: Vec<ImportedDocument>,
    /// The documents of the file that are before these.
    pub documents_before: usize,
    pub warnings: Vec<String>,
    /// The uploaded table, for the file of errors; `None` for formats without columns.
    pub table: Option<Table>,
}

/// A document of the file, apart from its draft.
#[derive(Debug, Clone)]
pub struct ImportedDocument {
    pub places: Places,
    pub warnings: Vec<String>,
    pub customer: NamedCustomer,
    pub currency: Option<String>,
    /// The sum of the document as far as it can be read, for the causes; `None` if nothing of it can be.
    pub amount: Option<Amount>,
    /// The rows of the table, by their position in it.
    pub rows: Vec<usize>,
    /// The parts that no field carries; `None` for a file that is no UBL.
    pub ubl_parts: Option<UblParts>,
}

/// The result of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Import {
    pub import_no: String,
    pub form: ImportForm,
    /// The batch of the created invoices; `None` for a preview.
    pub batch_no: Option<String>,
    /// The number of documents in the file.
    #[serde(default)]
    pub documents: usize,
    /// The outcomes of the documents that are done.
    #[serde(default)]
    pub counts: OutcomeCounts,
    /// All documents, or the first refused ones of a large file.
    pub items: Vec<ImportItem>,
    pub causes: Vec<RefusalCause>,
    pub questions: Vec<Question>,
    pub warnings: Vec<String>,
    /// Why the import of a large file ended before all its documents were done. The same file again goes on with it.
    #[serde(default)]
    pub stopped: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCounts {
    pub created: usize,
    pub duplicates: usize,
    /// The duplicates whose contents are not those of the existing invoice.
    #[serde(default)]
    pub different: usize,
    pub failed: usize,
    pub unanswered: usize,
}

words! {
    /// How far an import has come.
    ImportState {
        /// It only tells what would happen.
        Preview = "preview",
        Running = "running", Done = "done",
        /// It ended before all documents were done.
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
    /// Set for a duplicate. Results that were stored by older versions have none.
    #[serde(default)]
    pub duplicate: Option<Duplicate>,
    pub warnings: Vec<String>,
    pub errors: Vec<ImportFault>,
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

/// A rule that documents break at one field, with the number and the money of these documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefusalCause {
    pub rule: String,
    pub field: String,
    pub count: usize,
    /// The money of those documents whose amount can be read.
    pub amount: Amount,
    pub currency: Option<String>,
    /// The number of documents of which no amount can be read.
    #[serde(default)]
    pub unread: usize,
}

/// The fields of a customer that the profile could answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub customer_no: Option<String>,
    pub name: Option<String>,
    pub fields: Vec<String>,
}

/// The result of one document in the taxpayer's batch. A failed one has faults.
#[derive(Debug)]
pub struct DocumentResult {
    pub item: BatchItem,
    pub faults: Option<Faults>,
}

impl OutcomeCounts {
    pub fn total(self) -> usize {
        self.created + self.duplicates + self.failed + self.unanswered
    }

    fn add(&mut self, item: &ImportItem) {
        self.different += usize::from(item.is_different());
        *match item.outcome {
            ImportOutcome::Created => &mut self.created,
            ImportOutcome::Duplicate => &mut self.duplicates,
            ImportOutcome::Failed => &mut self.failed,
            ImportOutcome::NeedsAnswer => &mut self.unanswered,
        } += 1;
    }
}

impl ImportItem {
    /// True if the account has an invoice with this number and other contents.
    pub fn is_different(&self) -> bool {
        self.duplicate == Some(Duplicate::Different)
    }

    /// True if the document is neither created nor present.
    pub fn is_refused(&self) -> bool {
        matches!(
            self.outcome,
            ImportOutcome::Failed | ImportOutcome::NeedsAnswer
        )
    }
}

impl Import {
    /// Returns the import of a large file, of which nothing is done yet.
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
            items: Vec::new(),
            causes: Vec::new(),
            questions: Vec::new(),
            warnings: Vec::new(),
            stopped: None,
        }
    }

    /// Returns the import with what the records of older versions lack: they had no counts, and all items.
    pub fn complete(mut self) -> Self {
        if self.documents == 0 {
            self.documents = self.items.len();
            self.counts = OutcomeCounts::default();
            for (index, item) in self.items.iter_mut().enumerate() {
                item.index = index;
                self.counts.add(item);
            }
        }
        self
    }

    pub fn state(&self) -> ImportState {
        match self.batch_no {
            None => ImportState::Preview,
            Some(_) if self.stopped.is_some() => ImportState::Stopped,
            Some(_) if self.counts.total() < self.documents => ImportState::Running,
            Some(_) => ImportState::Done,
        }
    }

    /// Adds the result of the next piece of the file. What is kept of each piece is bounded, so that the record of a
    /// large file stays small; the file of errors has everything.
    pub fn add(&mut self, piece: Self) {
        self.counts.created += piece.counts.created;
        self.counts.duplicates += piece.counts.duplicates;
        self.counts.different += piece.counts.different;
        self.counts.failed += piece.counts.failed;
        self.counts.unanswered += piece.counts.unanswered;
        let room = ITEMS_MAX.saturating_sub(self.items.len());
        let refused = piece.items.into_iter().filter(ImportItem::is_refused);
        self.items.extend(refused.take(room));
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

    /// Puts together what became of each document. The results are in the order of the documents.
    pub fn new(
        file: &ImportedFile,
        batch_no: Option<String>,
        results: impl IntoIterator<Item = DocumentResult>,
    ) -> Self {
        let mut causes = Causes::default();
        let mut questions = BTreeMap::new();
        let mut counts = OutcomeCounts::default();
        let mut items = Vec::with_capacity(file.documents.len());
        let documents = file.documents.iter().zip(file.documents_before..);
        for ((document, index), result) in documents.zip(results) {
            let item = import_item(file.form, index, document, result);
            counts.add(&item);
            causes.add(document, &item.errors);
            if item.outcome == ImportOutcome::NeedsAnswer {
                add_question(&mut questions, file.form, document, &item.errors);
            }
            items.push(item);
        }
        Self {
            import_no: file.import_no.clone(),
            form: file.form,
            batch_no,
            documents: file.documents.len(),
            counts,
            items,
            causes: causes.into_sorted(),
            questions: questions.into_values().collect(),
            warnings: file.warnings.clone(),
            stopped: None,
        }
    }
}

fn import_item(
    form: ImportForm,
    index: usize,
    document: &ImportedDocument,
    result: DocumentResult,
) -> ImportItem {
    let DocumentResult { item, faults } = result;
    let faults = faults.unwrap_or_default();
    let outcome = match item.outcome {
        ItemOutcome::Created => ImportOutcome::Created,
        ItemOutcome::Duplicate => ImportOutcome::Duplicate,
        ItemOutcome::Failed if is_answerable(form, &faults) => ImportOutcome::NeedsAnswer,
        ItemOutcome::Failed => ImportOutcome::Failed,
    };
    let errors = faults
        .iter()
        .take(ITEM_FAULTS_MAX)
        .map(|fault| ImportFault {
            field: fault.path.clone(),
            rule: fault.rule().to_owned(),
            place: document.places.place(&fault.path),
            message: shorten(&fault.to_string()),
        });
    let other = item.duplicate.filter(|one| *one == Duplicate::Different);
    let other = other.map(|_| DIFFERENT_WARNING.to_owned());
    let warnings = document.warnings.iter().take(WARNINGS_MAX);
    let more = document.warnings.len().saturating_sub(WARNINGS_MAX);
    let more = (more > 0).then(|| format!("There are {more} more warnings."));
    ImportItem {
        index,
        source: document.places.source(),
        invoice_no: item.invoice_no,
        outcome,
        id: item.id,
        irn: item.irn,
        duplicate: item.duplicate,
        warnings: other
            .into_iter()
            .chain(warnings.map(|text| shorten(text)))
            .chain(more)
            .collect(),
        errors: errors.collect(),
    }
}

/// True if every fault is a missing field that the profile can answer.
fn is_answerable(form: ImportForm, faults: &Faults) -> bool {
    let is_question =
        |fault: &Fault| fault.rule() == "required" && answer_name(form, &fault.path).is_some();
    !faults.is_empty() && !faults.is_full() && faults.iter().all(is_question)
}

fn shorten(text: &str) -> String {
    text.chars().take(SENTENCE_CHARS_MAX).collect()
}

fn add_question(
    questions: &mut BTreeMap<NamedCustomer, Question>,
    form: ImportForm,
    document: &ImportedDocument,
    errors: &[ImportFault],
) {
    let customer = &document.customer;
    let question = questions
        .entry(customer.clone())
        .or_insert_with(|| Question {
            customer_no: customer.no.clone().or_else(|| customer.tin.clone()),
            name: customer.name.clone(),
            fields: Vec::new(),
        });
    for name in errors
        .iter()
        .filter_map(|error| answer_name(form, &error.field))
    {
        if !question.fields.iter().any(|field| field == name) {
            question.fields.push(name.to_owned());
        }
    }
}

/// Returns the number of an import. It is made of the digest of its file, so that the same file has the same number.
pub fn import_number(digest: &str) -> String {
    let part: String = digest.chars().take(IMPORT_NO_DIGITS).collect();
    format!("I{}", part.to_uppercase())
}

/// The digits of the digest in the number of an import.
const IMPORT_NO_DIGITS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::field_rule::FieldRule;

    fn document(no: &str, amount: i64) -> ImportedDocument {
        ImportedDocument {
            places: Places::Whole("line 1".to_owned()),
            warnings: vec!["w".to_owned(); 40],
            customer: NamedCustomer {
                no: Some(no.to_owned()),
                ..NamedCustomer::default()
            },
            currency: Some("NGN".to_owned()),
            amount: Some(amount.into()),
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
            whole.add(piece.clone());
            whole.add(piece);
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
        let import = old.complete();
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
            import.add(piece(before));
            assert_eq!(import.state(), ImportState::Running);
        }
        import.add(piece(1_500));
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
