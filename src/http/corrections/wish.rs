//! The body of a correction. It asks either to cancel a signed invoice, or to replace it with the invoice as it should
//! have been created.

use database::StoreError;
use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::actors::taxpayer::commands::{CorrectInvoice, CorrectedInvoiceIdentifiers};
use crate::domain::correction::plan::CorrectionWish;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::{Draft, Invoice};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::full_invoice::{self, InvoiceContext};
use crate::http::forms::reader::{self, AcceptedForm, Reader};
use crate::http::forms::standard_invoice;
use crate::http::state::ApiState;
use crate::store::invoices::correcting_documents;

/// Reads the body that corrects a standard invoice: `cancel`, or the invoice as it should be.
pub(crate) fn read_standard_wish(reader: &mut Reader<'_>) -> Option<CorrectionWish> {
    if reader.optional("cancel").boolean() == Some(true) {
        return Some(CorrectionWish::Cancel);
    }
    let wanted = standard_invoice::read(reader)?;
    Some(CorrectionWish::Become(Box::new(wanted.draft)))
}

/// The parts of the original invoice that are needed to read and check the body of its correction.
pub(crate) struct ComparedOriginal {
    is_full: bool,
    invoice_no: String,
    irn: Irn,
    today: Date,
}

impl ComparedOriginal {
    pub(crate) fn new(original: &Invoice, today: Date) -> Self {
        Self {
            is_full: original.is_full(),
            invoice_no: original.invoice_no.clone(),
            irn: original.irn.clone(),
            today,
        }
    }

    /// Refuses an invoice number or IRN other than the original's: this service gives the replacement a number of its
    /// own.
    fn check_number_and_irn(&self, wanted: &Draft) -> Result<(), Faults> {
        let mut faults = Faults::default();
        if wanted.invoice_no != self.invoice_no {
            faults.push(differs_from_original_fault("invoice_no", &self.invoice_no));
        }
        let irn = wanted.irn.as_ref();
        if irn.is_some_and(|irn| irn.key() != self.irn.key()) {
            faults.push(differs_from_original_fault("irn", self.irn.as_str()));
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }
}

fn differs_from_original_fault(field: &str, expected: &str) -> Fault {
    let value =
        format!("that of the invoice, {expected}: a replacement gets its own from this service");
    Fault::field(field, FieldRule::must_be("same", value))
}

/// Reads the body with the form of the original: the full form if the original is a full invoice, otherwise the
/// standard form.
pub(crate) fn read_body(
    body: &Map<String, Value>,
    original: &ComparedOriginal,
    catalog: &Catalog,
) -> Result<AcceptedForm<CorrectionWish>, Faults> {
    let is_cancellation = body.get("cancel") == Some(&Value::Bool(true));
    let result = if original.is_full && !is_cancellation {
        let context = InvoiceContext {
            today: original.today,
            service_id: None,
        };
        let mut body = body.clone();
        body.remove("cancel");
        full_invoice::read(&body, context, catalog).map(|form| AcceptedForm {
            value: CorrectionWish::Become(Box::new(form.value)),
            warnings: form.warnings,
        })
    } else {
        reader::read(body, catalog, read_standard_wish)
    };
    let form = result?;
    if let CorrectionWish::Become(wanted) = &form.value {
        original.check_number_and_irn(wanted)?;
    }
    Ok(form)
}

/// Returns the command that corrects this invoice. Looks up the number of bytes that the command has to read,
/// so that a large correction gets a transaction of its own.
pub(crate) async fn make_correction_command(
    state: &ApiState,
    original: &Invoice,
    wish: CorrectionWish,
    is_preview: bool,
) -> Result<CorrectInvoice, StoreError> {
    let references = original.incoming_reference_texts();
    let reader = state.store.reader();
    let correcting_bytes =
        correcting_documents::correcting_documents_size(reader, original.taxpayer_id, &references)
            .await?;
    Ok(CorrectInvoice {
        original: CorrectedInvoiceIdentifiers::from(original),
        wish,
        today: state.today(),
        catalog: state.catalog.get(),
        is_preview,
        original_lines: original.lines.len(),
        correcting_bytes,
    })
}
