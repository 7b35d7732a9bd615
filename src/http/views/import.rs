//! The outcome of an imported file of invoices, and the import profile.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::import::profile::ImportProfile;
use crate::domain::import::record::{
    Import, ImportFault, ImportItem, ImportOutcome, ImportState, Question, RefusalCause,
};
use crate::domain::import::source::ImportForm;
use crate::domain::import::totals::CurrencyTotal;
use crate::domain::invoice::batch::Duplicate;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Import)]
pub(crate) struct ImportView<'a> {
    /// The number of the import; null in a preview.
    import_no: Option<&'a str>,
    form: ImportForm,
    /// The batch of the created invoices; null in a preview.
    batch_no: Option<&'a str>,
    /// The state of the import. An import of more than 1,000 invoices is `running` until all documents are done, or
    /// `stopped` if it ended before that.
    state: ImportState,
    /// The reason why the import was stopped; else null. Sending the same file again continues the import.
    stopped: Option<&'a str>,
    /// The number of documents in the file.
    documents: usize,
    /// The number of documents whose outcome is known.
    documents_done: usize,
    created: usize,
    duplicates: usize,
    /// The number of duplicates whose contents differ from those of the existing invoice, which stays as it is.
    duplicates_different: usize,
    /// The number of duplicates whose existing invoice is cancelled. It stays so, unless an import with
    /// `replace_cancelled=true` replaces it.
    duplicates_cancelled: usize,
    /// The number of created invoices that replaced a cancelled one. They are counted in `created`, too.
    replaced: usize,
    failed: usize,
    /// The number of documents that lack only values which the import profile can supply.
    unanswered: usize,
    /// The invoices that were created, by currency; in a preview, those that would be created. Empty for an import of an
    /// older version.
    totals: Vec<TotalView<'a>>,
    /// All documents or, if the file has more than 1,000 invoices, the first 1,000 that were refused. The preview of
    /// such a file has its first 20 invoices, too.
    items: Vec<ItemView<'a>>,
    /// The rules that documents break. The rule that most documents break comes first.
    causes: Vec<CauseView<'a>>,
    /// For each customer, the missing fields for which the import profile could hold values.
    questions: Vec<QuestionView<'a>>,
    /// Warnings about the file as a whole.
    warnings: &'a [String],
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImportItem)]
struct ItemView<'a> {
    /// Position of the document in the file, counted from 0.
    index: usize,
    /// The place of the document in the file, such as `lines 2 to 5`.
    source: &'a str,
    invoice_no: Option<&'a str>,
    outcome: ImportOutcome,
    id: Option<InvoiceId>,
    irn: Option<&'a str>,
    /// For a duplicate, tells whether the existing invoice has the contents that were sent.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate: Option<Duplicate>,
    /// True for a duplicate whose existing invoice is cancelled, and for a created invoice that replaced a cancelled one.
    existing_cancelled: bool,
    /// In a preview, the name of the customer in the file, or else its number; else null, and null for an invoice with
    /// errors.
    customer: Option<&'a str>,
    /// In a preview, the currency of an invoice without errors; else null.
    currency: Option<&'a str>,
    /// In a preview, the amount to pay, below zero for a credit note; else null, and null for an invoice with errors.
    payable: Option<Amount>,
    warnings: &'a [String],
    errors: Vec<FaultView<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImportTotal)]
struct TotalView<'a> {
    currency: &'a str,
    /// The number of invoices and credit notes in this currency.
    invoices: usize,
    /// The sum of the payable amounts. Credit notes count below zero.
    payable: Amount,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImportError)]
struct FaultView<'a> {
    /// The dot path in the body of the create request.
    field: &'a str,
    rule: &'a str,
    /// The place in the file: a row and column, a line, or the path of an XML element.
    place: &'a str,
    message: &'a str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImportCause)]
struct CauseView<'a> {
    rule: &'a str,
    field: &'a str,
    count: usize,
    /// The money of the documents as far as the file states it: with tax in UBL and Create Full, else before tax.
    amount: Amount,
    currency: Option<&'a str>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImportQuestion)]
struct QuestionView<'a> {
    /// The number of the customer, one of the keys under which the import profile can hold values for the customer.
    customer_no: Option<&'a str>,
    name: Option<&'a str>,
    fields: &'a [String],
}

impl<'a> From<&'a Import> for ImportView<'a> {
    fn from(import: &'a Import) -> Self {
        let counts = import.counts;
        Self {
            import_no: import
                .batch_no
                .is_some()
                .then_some(import.import_no.as_str()),
            form: import.form,
            batch_no: import.batch_no.as_deref(),
            state: import.state(),
            stopped: import.stopped.as_deref(),
            documents: import.documents,
            documents_done: counts.total(),
            created: counts.created,
            duplicates: counts.duplicates,
            duplicates_different: counts.different,
            duplicates_cancelled: counts.cancelled,
            replaced: counts.replaced,
            failed: counts.failed,
            unanswered: counts.unanswered,
            totals: import.totals.by_currency().map(TotalView::from).collect(),
            items: import.items.iter().map(ItemView::from).collect(),
            causes: import.causes.iter().map(CauseView::from).collect(),
            questions: import.questions.iter().map(QuestionView::from).collect(),
            warnings: &import.warnings,
        }
    }
}

impl<'a> From<&'a ImportItem> for ItemView<'a> {
    fn from(item: &'a ImportItem) -> Self {
        let contents = item.contents.as_ref();
        Self {
            index: item.index,
            source: &item.source,
            invoice_no: item.invoice_no.as_deref(),
            outcome: item.outcome,
            id: item.id,
            irn: item.irn.as_deref(),
            duplicate: item.duplicate,
            existing_cancelled: item.existing_cancelled,
            customer: contents.and_then(|contents| contents.customer.as_deref()),
            currency: contents.map(|contents| contents.currency.as_str()),
            payable: contents.map(|contents| contents.payable),
            warnings: &item.warnings,
            errors: item.errors.iter().map(FaultView::from).collect(),
        }
    }
}

impl<'a> From<&'a CurrencyTotal> for TotalView<'a> {
    fn from(total: &'a CurrencyTotal) -> Self {
        Self {
            currency: &total.currency,
            invoices: total.invoices,
            payable: total.payable,
        }
    }
}

impl<'a> From<&'a ImportFault> for FaultView<'a> {
    fn from(fault: &'a ImportFault) -> Self {
        Self {
            field: &fault.field,
            rule: &fault.rule,
            place: &fault.place,
            message: &fault.message,
        }
    }
}

impl<'a> From<&'a RefusalCause> for CauseView<'a> {
    fn from(cause: &'a RefusalCause) -> Self {
        Self {
            rule: &cause.rule,
            field: &cause.field,
            count: cause.count,
            amount: cause.amount,
            currency: cause.currency.as_deref(),
        }
    }
}

impl<'a> From<&'a Question> for QuestionView<'a> {
    fn from(question: &'a Question) -> Self {
        Self {
            customer_no: question.customer_no.as_deref(),
            name: question.name.as_deref(),
            fields: &question.fields,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImportProfile)]
pub(crate) struct ImportProfileView<'a> {
    /// Values by the name of their field.
    defaults: &'a BTreeMap<String, String>,
    /// Values for one customer, by its number, TIN or name.
    customers: &'a BTreeMap<String, BTreeMap<String, String>>,
    /// The field of the create request for each column header.
    columns: &'a BTreeMap<String, String>,
    /// The code of the unit of quantity for each unit that files use.
    units: &'a BTreeMap<String, String>,
}

impl<'a> From<&'a ImportProfile> for ImportProfileView<'a> {
    fn from(profile: &'a ImportProfile) -> Self {
        Self {
            defaults: &profile.defaults,
            customers: &profile.customers,
            columns: &profile.columns,
            units: &profile.units,
        }
    }
}
