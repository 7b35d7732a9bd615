//! The result of an import: each document with its outcome, the causes of refusals with their counts and money, and the
//! questions whose answers in the profile would let documents pass.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::import::profile::{NamedCustomer, answer_name};
use crate::domain::import::source::{ImportForm, Places, without_index};
use crate::domain::import::table::Table;
use crate::domain::invoice::batch::{BatchItem, ITEM_FAULTS_MAX, ItemOutcome};
use crate::domain::kernel::codes::words;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;

/// The maximum number of warnings that are kept of one document.
const WARNINGS_MAX: usize = 30;
/// The maximum length of a warning or a message, in characters.
const SENTENCE_CHARS_MAX: usize = 500;

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
    /// The sum of the document as far as it can be read, for the causes.
    pub amount: Option<Amount>,
    /// The rows of the table, by their position in it.
    pub rows: Vec<usize>,
}

/// The result of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Import {
    pub import_no: String,
    pub form: ImportForm,
    /// The batch of the created invoices; `None` for a preview.
    pub batch_no: Option<String>,
    pub items: Vec<ImportItem>,
    pub causes: Vec<RefusalCause>,
    pub questions: Vec<Question>,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportItem {
    /// The place of the document in the file.
    pub source: String,
    pub invoice_no: Option<String>,
    pub outcome: ImportOutcome,
    pub id: Option<InvoiceId>,
    pub irn: Option<String>,
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
    pub amount: Amount,
    pub currency: Option<String>,
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

impl Import {
    /// Puts together what became of each document. The results are in the order of the documents.
    pub fn new(
        file: &ImportedFile,
        batch_no: Option<String>,
        results: impl IntoIterator<Item = DocumentResult>,
    ) -> Self {
        let mut causes = Causes::default();
        let mut questions = BTreeMap::new();
        let mut items = Vec::with_capacity(file.documents.len());
        for (document, result) in file.documents.iter().zip(results) {
            let item = import_item(file.form, document, result);
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
            items,
            causes: causes.into_sorted(),
            questions: questions.into_values().collect(),
            warnings: file.warnings.clone(),
        }
    }

    pub fn count(&self, outcome: ImportOutcome) -> usize {
        self.items
            .iter()
            .filter(|item| item.outcome == outcome)
            .count()
    }
}

fn import_item(
    form: ImportForm,
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
            message: shortened(&fault.to_string()),
        });
    let warnings = document.warnings.iter().take(WARNINGS_MAX);
    let more = document.warnings.len().saturating_sub(WARNINGS_MAX);
    let more = (more > 0).then(|| format!("There are {more} more warnings."));
    ImportItem {
        source: document.places.source(),
        invoice_no: item.invoice_no,
        outcome,
        id: item.id,
        irn: item.irn,
        warnings: warnings.map(|text| shortened(text)).chain(more).collect(),
        errors: errors.collect(),
    }
}

/// True if every fault is a missing field that the profile can answer.
fn is_answerable(form: ImportForm, faults: &Faults) -> bool {
    let is_question =
        |fault: &Fault| fault.rule() == "required" && answer_name(form, &fault.path).is_some();
    !faults.is_empty() && !faults.is_full() && faults.iter().all(is_question)
}

fn shortened(text: &str) -> String {
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

/// The causes of refusals, by rule, field and currency.
#[derive(Default)]
struct Causes(BTreeMap<(String, String, Option<String>), RefusalCause>);

impl Causes {
    /// Counts a document once for each rule that it breaks at a field.
    fn add(&mut self, document: &ImportedDocument, errors: &[ImportFault]) {
        let mut broken: Vec<_> = errors
            .iter()
            .map(|error| (error.rule.clone(), without_index(&error.field)))
            .collect();
        broken.sort();
        broken.dedup();
        for (rule, field) in broken {
            let key = (rule.clone(), field.clone(), document.currency.clone());
            let cause = self.0.entry(key).or_insert_with(|| RefusalCause {
                rule,
                field,
                count: 0,
                amount: Amount::ZERO,
                currency: document.currency.clone(),
            });
            cause.count += 1;
            let amount = document.amount.unwrap_or_default();
            cause.amount = cause.amount.plus(amount).unwrap_or(cause.amount);
        }
    }

    /// Returns the causes with the most documents first.
    fn into_sorted(self) -> Vec<RefusalCause> {
        let mut causes: Vec<_> = self.0.into_values().collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
        causes
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
        assert_eq!(
            (
                import.count(ImportOutcome::NeedsAnswer),
                import.count(ImportOutcome::Failed)
            ),
            (2, 1)
        );
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
}
