//! Reads the documents of a file with the forms of the create requests, after the profile has filled what the file
//! lacks.

use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::domain::import::profile::{ImportProfile, NamedCustomer};
use crate::domain::import::record::{ImportedDocument, ImportedFile};
use crate::domain::import::source::{ImportForm, SourceDocument, SourceFile};
use crate::domain::import::ubl_document;
use crate::domain::invoice::Draft;
use crate::domain::invoice::batch::{Candidate, ITEM_FAULTS_MAX};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::full_invoice::FormAccount;
use crate::http::forms::{batch, full_invoice, report, standard_invoice};

/// What the forms need to read the documents of a file.
pub(crate) struct ImportContext<'a> {
    pub(crate) form: ImportForm,
    pub(crate) profile: &'a ImportProfile,
    pub(crate) service_id: &'a str,
    /// The latest allowed issue date.
    pub(crate) today: Date,
    pub(crate) catalog: &'a Catalog,
}

/// Reads every document. Returns the candidates of the batch, and the file that their outcomes are told of.
pub(crate) fn read(
    file: SourceFile,
    import_no: String,
    context: &ImportContext<'_>,
) -> (Vec<Candidate>, ImportedFile) {
    let documents = file.documents.into_iter();
    let (candidates, documents) = documents
        .map(|document| read_document(document, context))
        .unzip();
    let imported = ImportedFile {
        import_no,
        form: context.form,
        documents,
        warnings: file.warnings,
        table: file.table,
    };
    (candidates, imported)
}

fn read_document(
    mut document: SourceDocument,
    context: &ImportContext<'_>,
) -> (Candidate, ImportedDocument) {
    let form = context.form;
    if let Some(body) = &mut document.body {
        document
            .warnings
            .extend(context.profile.complete(form, body));
    }
    ubl_document::complete(&mut document, form, context.service_id);
    let body = document.body.take().unwrap_or_default();
    let read = if document.faults.is_empty() || !body.is_empty() {
        read_body(&body, context)
    } else {
        Err(Faults::default())
    };
    let draft = judge(read, &mut document, context);
    let candidate = Candidate {
        invoice_no: batch::invoice_no(&body),
        draft: draft.map(Box::new),
    };
    let imported = ImportedDocument {
        customer: NamedCustomer::from_body(form, &body),
        currency: currency(form, &body),
        amount: document.stated_total.or_else(|| stated_amount(form, &body)),
        places: document.places,
        warnings: document.warnings,
        rows: document.rows,
    };
    (candidate, imported)
}

fn read_body(
    body: &Map<String, Value>,
    context: &ImportContext<'_>,
) -> Result<report::Accepted<Draft>, Faults> {
    match context.form {
        ImportForm::Standard => {
            let read = report::read(body, context.catalog, standard_invoice::read)?;
            Ok(report::Accepted {
                value: read.value.draft,
                warnings: read.warnings,
            })
        }
        ImportForm::Full => {
            let account = FormAccount {
                today: context.today,
                service_id: Some(context.service_id),
            };
            full_invoice::read(body, account, context.catalog)
        }
    }
}

/// Returns the draft if neither the file nor the form has a fault with it, and it comes to the total of the file.
fn judge(
    read: Result<report::Accepted<Draft>, Faults>,
    document: &mut SourceDocument,
    context: &ImportContext<'_>,
) -> Result<Draft, Faults> {
    let (draft, found) = match read {
        Ok(accepted) => {
            document.warnings.extend(accepted.warnings);
            (Some(accepted.value), Faults::default())
        }
        Err(faults) => (None, faults),
    };
    let mut faults = Faults::with_max(ITEM_FAULTS_MAX);
    for fault in document.faults.drain(..).chain(found.iter().cloned()) {
        faults.push(fault);
    }
    if let (Some(draft), Some(total), ImportForm::Standard) =
        (&draft, document.stated_total, context.form)
    {
        match compare_totals(draft, total) {
            TotalsDifference::None => {}
            TotalsDifference::Rounding => document.warnings.push(format!(
                "The total with tax is {} here and {total} in the file, by rounding.",
                draft.payable
            )),
            TotalsDifference::Other => {
                let path = format!(
                    "{}/cac:LegalMonetaryTotal/cbc:TaxInclusiveAmount",
                    document.places.source()
                );
                let message = format!(
                    "The total with tax is {total} in the file, but its lines come to {} with the authority's rates of tax.",
                    draft.payable
                );
                faults.push(Fault::new(path, "sum", message));
            }
        }
    }
    draft.filter(|_| faults.is_empty()).ok_or(faults)
}

enum TotalsDifference {
    None,
    /// No more than a hundredth for each line.
    Rounding,
    Other,
}

fn compare_totals(draft: &Draft, total: Amount) -> TotalsDifference {
    let lines = i64::try_from(draft.lines.len()).unwrap_or(i64::MAX);
    let allowed = Amount::HUNDREDTH.times(Amount::from(lines));
    let difference = draft.payable.minus(total).map(|difference| {
        if difference.is_negative() {
            Amount::ZERO.minus(difference).unwrap_or(difference)
        } else {
            difference
        }
    });
    match (difference, allowed) {
        (Some(difference), _) if difference.is_zero() => TotalsDifference::None,
        (Some(difference), Some(allowed)) if difference <= allowed => TotalsDifference::Rounding,
        _ => TotalsDifference::Other,
    }
}

fn currency(form: ImportForm, body: &Map<String, Value>) -> Option<String> {
    let name = match form {
        ImportForm::Standard => "currency",
        ImportForm::Full => "document_currency_code",
    };
    let text = body.get(name)?.as_str()?.trim();
    let is_code = text.len() == 3 && text.bytes().all(|letter| letter.is_ascii_alphabetic());
    is_code.then(|| text.to_owned())
}

/// Returns the money of a document as far as it can be read: the payable amount of the full form, and the lines before
/// tax of the standard one.
fn stated_amount(form: ImportForm, body: &Map<String, Value>) -> Option<Amount> {
    let amount = |value: &Value, name: &str| match value.get(name)? {
        Value::Number(number) => Amount::parse(&number.to_string()).ok(),
        _ => None,
    };
    match form {
        ImportForm::Full => amount(body.get("legal_monetary_total")?, "payable_amount"),
        ImportForm::Standard => {
            let lines = body.get(form.lines_field())?.as_array()?;
            Amount::sum(lines.iter().filter_map(|line| {
                let whole = amount(line, "unit_price")?.times(amount(line, "quantity")?)?;
                whole.minus(amount(line, "discount_amount").unwrap_or_default())
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::domain::import::{csv_table, json_documents, table_documents};
    use crate::http::forms::testing::{catalog, full_invoice, standard_invoice};

    fn summaries(file: SourceFile, form: ImportForm, profile: &ImportProfile) -> Vec<String> {
        let catalog = catalog();
        let context = ImportContext {
            form,
            profile,
            service_id: "94AD90FB",
            today: Date::MAX,
            catalog: &catalog,
        };
        let (candidates, imported) = read(file, "I1".to_owned(), &context);
        let documents = candidates.iter().zip(&imported.documents);
        documents
            .map(|(candidate, document)| match &candidate.draft {
                Ok(draft) => format!("{} {}", draft.invoice_no, draft.payable),
                Err(faults) => {
                    let faults = faults.iter().map(|fault| {
                        format!("{}: {}", document.places.place(&fault.path), fault.rule())
                    });
                    faults.collect::<Vec<_>>().join(", ")
                }
            })
            .collect()
    }

    #[test]
    fn bodies_of_the_api_pass_their_own_form() {
        let standard = json!([standard_invoice(), { "invoice_no": "A" }]).to_string();
        let told_standard = summaries(
            json_documents::read(standard.as_bytes()).unwrap(),
            ImportForm::Standard,
            &ImportProfile::default(),
        );
        assert!(!told_standard[0].contains(": "), "{told_standard:?}");
        assert!(
            told_standard[1].contains("document 2, invoice_date: required"),
            "{told_standard:?}"
        );
        let full = full_invoice().to_string();
        let told_full = summaries(
            json_documents::read(full.as_bytes()).unwrap(),
            ImportForm::Full,
            &ImportProfile::default(),
        );
        assert!(!told_full[0].contains(": "), "{told_full:?}");
    }

    #[test]
    fn a_fault_of_a_table_names_row_and_column() {
        let text = "Nr,line.quantity,line.unit_price\nA,1,2\nA,two,-1\n";
        let names = BTreeMap::from([("Nr".to_owned(), "invoice_no".to_owned())]);
        let file =
            table_documents::read(csv_table::read(text.as_bytes()).unwrap(), &names).unwrap();
        let said = summaries(file, ImportForm::Standard, &ImportProfile::default());
        assert!(
            said[0].contains("line 3, column line.quantity: type"),
            "{said:?}"
        );
        assert!(
            said[0].contains("line 3, column line.unit_price: min"),
            "{said:?}"
        );
        assert!(said[0].contains("line 2: required"), "{said:?}");
    }

    #[test]
    fn a_total_that_the_lines_do_not_come_to_is_a_fault() {
        for (total, expected) in [
            ("1075", "A 1075.00"),
            ("1075.01", "A 1075.00"),
            (
                "1190",
                "/Invoice/cac:LegalMonetaryTotal/cbc:TaxInclusiveAmount: sum",
            ),
        ] {
            let mut body = standard_invoice().as_object().unwrap().clone();
            body.insert("invoice_no".to_owned(), json!("A"));
            let line = body["invoice_lines"][0].as_object_mut().unwrap();
            line.insert("unit_price".to_owned(), json!(1_000));
            line.insert("quantity".to_owned(), json!(1));
            for name in ["discount_rate", "discount_amount"] {
                line.remove(name);
            }
            let line = Value::Object(line.clone());
            body.insert("invoice_lines".to_owned(), json!([line]));
            let file = SourceFile {
                documents: vec![SourceDocument {
                    body: Some(body),
                    places: crate::domain::import::source::Places::Xml {
                        root: "Invoice".to_owned(),
                        lines: Vec::new(),
                    },
                    stated_total: Some(Amount::parse(total).unwrap()),
                    ..SourceDocument::default()
                }],
                ..SourceFile::default()
            };
            assert_eq!(
                summaries(file, ImportForm::Standard, &ImportProfile::default()),
                [expected]
            );
        }
    }
}
