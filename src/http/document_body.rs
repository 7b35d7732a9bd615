//! The body of Validate, Submit and Report. A body with only an IRN stands for the document of the stored invoice. Any
//! other body is itself the document, and is compared with the stored invoice of the same IRN.

use serde_json::{Map, Value};

use crate::actors::taxpayer::commands::SeenInvoice;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::calculation::{Calculation, DocumentForm};
use crate::domain::invoice::document_difference::Differences;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::report_body::report_body;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::party::Taxpayer;
use crate::domain::pipeline::authority_document::AuthorityDocument;
use crate::domain::pipeline::{Operation, RunState};
use crate::domain::reference::catalog::Catalog;
use crate::http::explain::local_faults;
use crate::http::extract::body::JsonObject;
use crate::http::forms::calculated;
use crate::http::forms::submission::DocumentSource;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::stored_invoice::{StoredInvoice, drop_refused_telephones, to_stored_faults};
use crate::store::runs;

/// The calls that accept an IRN in place of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentCall {
    Validate,
    Submit,
    Report,
}

/// The body of a call, and the document that it stands for.
#[derive(Debug)]
pub(crate) struct DocumentBody {
    call: DocumentCall,
    sent_body: JsonObject,
    /// The document that a body with only an IRN stands for; `None` if the body itself is the document.
    document_by_irn: Option<DocumentByIrn>,
    /// The caller's document with the amounts that were computed for it; `None` before `calculate` is called.
    completed_fields: Option<Map<String, Value>>,
    /// True if the body has only an IRN, but no stored invoice has it.
    is_unknown_irn: bool,
}

/// The result of comparing a document with the stored invoice of the same IRN.
pub(crate) struct DocumentComparison {
    pub(crate) differences: Differences,
    /// The stored invoice that must not have changed when the document is sent: the document was made from it, or the
    /// account allows no difference between the document and the invoice. `None` if changes do not matter.
    pub(crate) source: Option<SeenInvoice>,
}

#[derive(Debug)]
struct DocumentByIrn {
    fields: Map<String, Value>,
    /// The stored invoice. `None` if the document comes from an earlier submission: a repeated call then sends the same
    /// document, even if the invoice has changed since.
    stored: Option<Invoice>,
    warnings: Vec<String>,
}

impl DocumentBody {
    /// Returns the body with the document that it stands for: the body itself or, if the body has only an IRN, the
    /// document of the stored invoice.
    pub(crate) async fn read_or_load(
        state: &ApiState,
        call: DocumentCall,
        taxpayer: Option<&Taxpayer>,
        sent_body: JsonObject,
    ) -> Result<Self, ApiError> {
        let irn = lone_irn(&sent_body).and_then(|text| Irn::parse(text).ok());
        let Some((taxpayer, irn)) = taxpayer.zip(irn) else {
            return Ok(Self {
                call,
                sent_body,
                document_by_irn: None,
                completed_fields: None,
                is_unknown_irn: false,
            });
        };
        let mut document_by_irn = DocumentByIrn::find_by_irn(state, call, taxpayer, &irn).await?;
        if let (Some(document_by_irn), Some(business_id)) =
            (&mut document_by_irn, sent_body.get("business_id"))
        {
            let name = "business_id".to_owned();
            document_by_irn.fields.insert(name, business_id.clone());
        }
        Ok(Self {
            call,
            is_unknown_irn: document_by_irn.is_none(),
            sent_body,
            document_by_irn,
            completed_fields: None,
        })
    }

    pub(crate) fn fields(&self) -> &Map<String, Value> {
        match (&self.document_by_irn, &self.completed_fields) {
            (Some(document), _) => &document.fields,
            (None, Some(fields)) => fields,
            (None, None) => &self.sent_body,
        }
    }

    /// Returns the body as the caller sent it.
    pub(crate) fn sent_fields(&self) -> &Map<String, Value> {
        &self.sent_body
    }

    /// Computes the amounts that the caller's document leaves out. Returns `None` if the body stands for a stored
    /// invoice, which has all amounts.
    pub(crate) fn calculate(&mut self, catalog: &Catalog) -> Option<Result<Calculation, Faults>> {
        if self.document_by_irn.is_some() {
            return None;
        }
        let calculated =
            calculated::compute_amounts(&self.sent_body, DocumentForm::Authority, catalog);
        self.completed_fields = Some(calculated.fields);
        Some(calculated.outcome)
    }

    /// Returns warnings about the values of the stored invoice that its document leaves out.
    pub(crate) fn warnings(&self) -> &[String] {
        self.document_by_irn
            .as_ref()
            .map_or(&[], |document| &document.warnings)
    }

    pub(crate) fn source(&self) -> DocumentSource {
        match self.document_by_irn {
            Some(_) => DocumentSource::StoredInvoice,
            None => DocumentSource::Caller,
        }
    }

    fn stored_invoice(&self) -> Option<&Invoice> {
        self.document_by_irn.as_ref()?.stored.as_ref()
    }

    /// Returns the error for faults of the document. If the document was made from a stored invoice, the faults name
    /// the fields of that invoice.
    pub(crate) fn refusal_error(&self, faults: Faults, catalog: &Catalog) -> ApiError {
        let Some(invoice) = self.stored_invoice() else {
            return local_faults::refusal_error(self.faults_to_report(faults), self.fields());
        };
        let faults = to_stored_faults(invoice, catalog, faults);
        local_faults::refusal_error(faults, &self.sent_body)
    }

    /// If the body has only an IRN, returns only the faults of the fields that were sent: the caller did not begin to
    /// write a document, so missing fields do not matter.
    fn faults_to_report(&self, faults: Faults) -> Faults {
        if self.document_by_irn.is_some() || !has_only_irn(&self.sent_body) {
            return faults;
        }
        let sent = faults
            .iter()
            .filter(|fault| self.sent_body.contains_key(&fault.path));
        let mut reported: Faults = sent.cloned().collect();
        if self.is_unknown_irn && !reported.iter().any(|fault| fault.path == "irn") {
            reported.push(Fault::field("irn", not_stored_rule()));
        }
        if reported.is_empty() {
            faults
        } else {
            reported
        }
    }

    /// Compares a document that the caller sent with the stored invoice of the same IRN, if there is one. `sent` is the
    /// document as its form reads it. For an account with the setting `strict_documents`, any difference is an error
    /// that lists all of them.
    pub(crate) async fn compare_with_stored(
        &self,
        state: &ApiState,
        taxpayer: &Taxpayer,
        irn: &Irn,
        sent: &Map<String, Value>,
    ) -> Result<DocumentComparison, ApiError> {
        if self.document_by_irn.is_some() {
            return Ok(DocumentComparison {
                differences: Differences::default(),
                source: self.stored_invoice().map(SeenInvoice::from),
            });
        }
        let Some(stored) = StoredInvoice::find(&state.store, taxpayer, irn).await? else {
            return Ok(DocumentComparison {
                differences: Differences::default(),
                source: None,
            });
        };
        let differences = self.differences(state, taxpayer, &stored, sent)?;
        let is_strict = taxpayer.settings.strict_documents;
        if is_strict && !differences.is_empty() {
            let message = format!("This account is strict about documents, and {differences}");
            let error = ApiError::new(ErrorCode::IrnContentChanged, message);
            return Err(error.with_faults(differences.to_faults()));
        }
        Ok(DocumentComparison {
            differences,
            source: is_strict.then(|| SeenInvoice::from(&stored.invoice)),
        })
    }

    fn differences(
        &self,
        state: &ApiState,
        taxpayer: &Taxpayer,
        stored: &StoredInvoice,
        sent: &Map<String, Value>,
    ) -> Result<Differences, ApiError> {
        let document = stored.document(&state.catalog.get())?;
        let amounts = (&stored.invoice).into();
        if self.call != DocumentCall::Report {
            return Ok(Differences::between(sent, &document, amounts));
        }
        // An invoice with several VAT rates is reported in parts, which cannot be compared with the whole invoice.
        let whole = report_body(&document, taxpayer).ok();
        Ok(whole
            .map(|whole| Differences::between(sent, &whole, amounts))
            .unwrap_or_default())
    }
}

impl DocumentByIrn {
    async fn find_by_irn(
        state: &ApiState,
        call: DocumentCall,
        taxpayer: &Taxpayer,
        irn: &Irn,
    ) -> Result<Option<Self>, ApiError> {
        if call != DocumentCall::Report
            && let Some(fields) = earlier_submission_document(state, taxpayer, irn).await?
        {
            return Ok(Some(Self {
                fields,
                stored: None,
                warnings: Vec::new(),
            }));
        }
        let Some(stored) = StoredInvoice::find(&state.store, taxpayer, irn).await? else {
            return Ok(None);
        };
        let mut fields = stored.document(&state.catalog.get())?;
        let mut warnings = Vec::new();
        match call {
            DocumentCall::Validate => {}
            DocumentCall::Submit => warnings = drop_refused_telephones(&mut fields),
            DocumentCall::Report => {
                let report = report_body(&fields, taxpayer);
                fields = report.map_err(|reason| {
                    let rule = FieldRule::other("single_rate", reason.to_string());
                    Fault::field("vat_rate", rule)
                })?;
            }
        }
        Ok(Some(Self {
            fields,
            stored: Some(stored.invoice),
            warnings,
        }))
    }
}

fn not_stored_rule() -> FieldRule {
    FieldRule::with_expected(
        "stored",
        "is of no stored invoice, so the whole document is needed",
        "the irn of a stored invoice, or the whole document",
    )
}

/// Returns the IRN of a body that has no other field except, optionally, the business id of its taxpayer.
pub(crate) fn lone_irn(fields: &Map<String, Value>) -> Option<&str> {
    let irn = fields.get("irn").filter(|_| has_only_irn(fields));
    irn?.as_str()
}

fn has_only_irn(fields: &Map<String, Value>) -> bool {
    let mut names = fields.keys().map(String::as_str);
    fields.contains_key("irn") && names.all(|name| ["irn", "business_id"].contains(&name))
}

/// Returns the document of an earlier submission of this IRN, unless that submission was refused or cancelled.
async fn earlier_submission_document(
    state: &ApiState,
    taxpayer: &Taxpayer,
    irn: &Irn,
) -> Result<Option<Map<String, Value>>, ApiError> {
    let reader = state.store.reader();
    let runs = runs::find_owned_by_irn_keys(reader, taxpayer.id, vec![irn.key()]).await?;
    let submission = runs.iter().find(|run| run.operation() == Operation::Submit);
    let valid_submission =
        submission.filter(|run| !matches!(run.state(), RunState::Refused | RunState::Cancelled));
    let document = valid_submission.and_then(|run| run.payload.submission());
    Ok(document.map(AuthorityDocument::validate_request_body))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::submission;
    use crate::http::forms::testing::{catalog, object};

    #[test]
    fn a_body_with_only_an_irn_has_only_the_faults_of_its_fields() {
        let irn = "INV001-94AD90FB-20261121";
        for (sent, is_unknown_irn, expected) in [
            (json!({ "irn": "INV001" }), false, vec!["irn_malformed"]),
            (json!({ "irn": 7 }), false, vec!["type"]),
            (json!({ "irn": irn }), true, vec!["stored"]),
            (
                json!({ "irn": "INV001", "business_id": "b" }),
                false,
                vec!["irn_malformed", "uuid"],
            ),
            (
                json!({ "irn": irn, "business_id": "b" }),
                true,
                vec!["stored", "uuid"],
            ),
        ] {
            let fields = object(sent.clone());
            let faults = submission::read(DocumentSource::Caller, &fields, None, &catalog());
            let body = DocumentBody {
                call: DocumentCall::Submit,
                sent_body: fields.into(),
                document_by_irn: None,
                completed_fields: None,
                is_unknown_irn,
            };
            let faults = body.faults_to_report(faults.unwrap_err());
            let mut rules: Vec<_> = faults.iter().map(Fault::rule).collect();
            rules.sort_unstable();
            assert_eq!(rules, expected, "{sent}");
        }
        let fields = object(json!({ "irn": "INV001", "note": "x" }));
        let faults = submission::read(DocumentSource::Caller, &fields, None, &catalog());
        let faults = faults.unwrap_err();
        let body = DocumentBody {
            call: DocumentCall::Submit,
            sent_body: fields.into(),
            document_by_irn: None,
            completed_fields: None,
            is_unknown_irn: false,
        };
        assert_eq!(body.faults_to_report(faults.clone()), faults);
    }

    #[test]
    fn only_a_body_with_nothing_but_an_irn_stands_for_the_stored_invoice() {
        let irn = "INV001-94AD90FB-20261121";
        let cases = [
            (json!({ "irn": irn }), Some(irn)),
            (json!({ "irn": irn, "business_id": "b" }), Some(irn)),
            (json!({ "irn": irn, "note": "x" }), None),
            (json!({ "irn": 7 }), None),
            (json!({ "business_id": "b" }), None),
            (json!({}), None),
        ];
        for (body, expected) in cases {
            assert_eq!(lone_irn(body.as_object().unwrap()), expected, "{body}");
        }
    }
}
