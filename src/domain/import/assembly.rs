//! Builds the record of an import from its documents and their results.

use std::collections::BTreeMap;

use crate::domain::import::causes::RefusalCauses;
use crate::domain::import::profile::{CustomerIdentity, profile_field_name};
use crate::domain::import::record::{
    DocumentResult, Import, ImportFault, ImportItem, ImportOutcome, ImportedDocument, ImportedFile,
    OutcomeCounts, Question,
};
use crate::domain::import::source::ImportForm;
use crate::domain::import::totals::{CreatedTotals, CurrencyTotal};
use crate::domain::invoice::batch::{BatchItem, Duplicate, ITEM_FAULTS_MAX, ItemOutcome};
use crate::domain::kernel::fault::{Fault, Faults};

/// The maximum number of warnings that are kept of one document.
pub(super) const WARNINGS_MAX: usize = 30;
/// The maximum length of a warning or a message, in characters.
const SENTENCE_CHARS_MAX: usize = 500;

const DIFFERENT_WARNING: &str =
    "The account has this invoice with other contents, which stay as they are.";
const CANCELLED_WARNING: &str = "The account has this invoice, but it is cancelled and stays so. An import that replaces \
    cancelled invoices (replace_cancelled=true) creates it again, unless it was sent to the authority, a payment was \
    recorded, or its invoice date is another one.";
const REPLACED_WARNING: &str = "It replaces the cancelled invoice with this number.";

impl Import {
    /// Builds the record of an import. `results` holds the result of each document, in the order of the documents.
    pub fn new(
        file: &ImportedFile,
        batch_no: Option<String>,
        results: impl IntoIterator<Item = DocumentResult>,
    ) -> Self {
        let mut causes = RefusalCauses::default();
        let mut questions = BTreeMap::new();
        let mut counts = OutcomeCounts::default();
        let mut totals = CreatedTotals::default();
        let mut items = Vec::with_capacity(file.documents.len());
        let documents = file.documents.iter().zip(file.documents_before..);
        for ((document, index), result) in documents.zip(results) {
            let mut item = import_item(file.form, index, document, result);
            counts.count_item(&item);
            let contents = document.contents();
            if item.outcome == ImportOutcome::Created
                && let Some(contents) = &contents
            {
                totals.add(CurrencyTotal {
                    currency: contents.currency.clone(),
                    invoices: 1,
                    payable: contents.payable,
                });
            }
            item.contents = contents.filter(|_| batch_no.is_none());
            causes.count_document(document, &item.errors);
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
            totals,
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
    let existing_warning = existing_invoice_warning(&item);
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
            place: document.places.field_place(&fault.path),
            message: shorten(&fault.to_string()),
        });
    let warnings = document.warnings.iter().take(WARNINGS_MAX);
    let more = document.warnings.len().saturating_sub(WARNINGS_MAX);
    let more = (more > 0).then(|| format!("There are {more} more warnings."));
    ImportItem {
        index,
        source: document.places.document_place(),
        invoice_no: item.invoice_no,
        outcome,
        id: item.id,
        irn: item.irn,
        duplicate: item.duplicate,
        existing_cancelled: item.existing_cancelled,
        contents: None,
        warnings: existing_warning
            .map(str::to_owned)
            .into_iter()
            .chain(warnings.map(|text| shorten(text)))
            .chain(more)
            .collect(),
        errors: errors.collect(),
    }
}

/// Returns the warning about the existing invoice with the number of the document; `None` if there is none, or if it has
/// the same contents.
fn existing_invoice_warning(item: &BatchItem) -> Option<&'static str> {
    match item.duplicate {
        None if item.existing_cancelled => Some(REPLACED_WARNING),
        Some(_) if item.existing_cancelled => Some(CANCELLED_WARNING),
        Some(Duplicate::Different) => Some(DIFFERENT_WARNING),
        None | Some(Duplicate::Identical) => None,
    }
}

/// True if each fault is a missing field whose value the import profile can give.
fn is_answerable(form: ImportForm, faults: &Faults) -> bool {
    let is_question = |fault: &Fault| {
        fault.rule() == "required" && profile_field_name(form, &fault.path).is_some()
    };
    !faults.is_empty() && !faults.is_full() && faults.iter().all(is_question)
}

fn shorten(text: &str) -> String {
    text.chars().take(SENTENCE_CHARS_MAX).collect()
}

fn add_question(
    questions: &mut BTreeMap<CustomerIdentity, Question>,
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
        .filter_map(|error| profile_field_name(form, &error.field))
    {
        if !question.fields.iter().any(|field| field == name) {
            question.fields.push(name.to_owned());
        }
    }
}
