//! Reads the documents of a file with the forms of the create requests, after the import profile has filled in the
//! fields that the file lacks.

use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::domain::import::profile::{CustomerIdentity, ImportProfile};
use crate::domain::import::record::{ImportedDocument, ImportedFile};
use crate::domain::import::source::{ImportForm, SourceDocument, SourceFile};
use crate::domain::import::stated_sums::{ComputedSums, SUM_RULE};
use crate::domain::import::ubl_parties::ImportAccount;
use crate::domain::import::{product_codes, ubl_document, warnings};
use crate::domain::invoice::Draft;
use crate::domain::invoice::batch::{BatchCandidate, ITEM_FAULTS_MAX};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::full_invoice::InvoiceContext;
use crate::http::forms::reader::AcceptedForm;
use crate::http::forms::{batch, full_invoice, reader, standard_invoice};

/// The inputs besides the file that the forms need to read its documents.
pub(crate) struct ImportContext<'a> {
    pub(crate) form: ImportForm,
    pub(crate) profile: &'a ImportProfile,
    pub(crate) account: &'a ImportAccount,
    /// The latest allowed issue date.
    pub(crate) today: Date,
    pub(crate) catalog: &'a Catalog,
}

/// Reads every document. Returns the candidates for the batch, and the imported file. The imported file has the place,
/// the warnings and the amount of each document, which the report of the outcome shows.
pub(crate) fn read(
    file: SourceFile,
    import_no: String,
    context: &ImportContext<'_>,
) -> (Vec<BatchCandidate>, ImportedFile) {
    let documents = file.documents.into_iter();
    let (candidates, documents) = documents
        .map(|document| read_document(document, context))
        .unzip();
    let imported = ImportedFile {
        import_no,
        form: context.form,
        documents,
        documents_before: 0,
        warnings: file.warnings,
        table: file.table,
    };
    (candidates, imported)
}

fn read_document(
    mut document: SourceDocument,
    context: &ImportContext<'_>,
) -> (BatchCandidate, ImportedDocument) {
    let form = context.form;
    // The customer is read before the profile adds values, because the profile's entry for a customer is found by the
    // number, the TIN or the name that the file itself has.
    let customer = document
        .body
        .as_ref()
        .map(|body| CustomerIdentity::from_body(form, body))
        .unwrap_or_default();
    if let Some(body) = &mut document.body {
        document
            .warnings
            .extend(context.profile.complete_body(form, body, context.catalog));
    }
    ubl_document::fill_from_account(&mut document, form, context.account);
    product_codes::restore_product_codes(&mut document, context.catalog);
    let body = document.body.take().unwrap_or_default();
    let form_result = if document.faults.is_empty() || !body.is_empty() {
        read_body(&body, context)
    } else {
        Err(Faults::default())
    };
    let lines_sum = match form {
        ImportForm::Standard => stated_amount(form, &body),
        ImportForm::Full => None,
    };
    let draft = check_draft(form_result, &mut document, lines_sum, context.catalog);
    let currency = currency(form, &body);
    let currency_code = currency.as_deref().unwrap_or_default();
    let digits = context.catalog.currency_digits(currency_code);
    let amount = document
        .stated
        .map(|stated| stated.with_tax)
        .or_else(|| stated_amount(form, &body));
    let payable = draft.as_ref().ok().map(Draft::payable_in_totals);
    let warnings = warnings::merge(document.warnings);
    let candidate = BatchCandidate {
        invoice_no: batch::invoice_no(&body),
        draft: draft.map(Box::new),
        warnings: warnings.clone(),
    };
    let imported = ImportedDocument {
        customer,
        currency,
        amount: amount.map(|amount| amount.round_half_up(digits)),
        payable,
        places: document.places,
        warnings,
        rows: document.rows,
        ubl_parts: document.ubl_parts,
    };
    (candidate, imported)
}

fn read_body(
    body: &Map<String, Value>,
    context: &ImportContext<'_>,
) -> Result<AcceptedForm<Draft>, Faults> {
    match context.form {
        ImportForm::Standard => {
            let form = reader::read(body, context.catalog, standard_invoice::read)?;
            Ok(AcceptedForm {
                value: form.value.draft,
                warnings: form.warnings,
            })
        }
        ImportForm::Full => {
            let invoice_context = InvoiceContext {
                today: context.today,
                service_id: Some(&context.account.service_id),
            };
            full_invoice::read(body, invoice_context, context.catalog)
        }
    }
}

/// Returns the draft if neither the reader of the file nor the form found a fault, and its amounts agree with the sums
/// that the file states.
fn check_draft(
    form_result: Result<AcceptedForm<Draft>, Faults>,
    document: &mut SourceDocument,
    lines_sum: Option<Amount>,
    catalog: &Catalog,
) -> Result<Draft, Faults> {
    let (mut draft, form_faults) = match form_result {
        Ok(accepted) => {
            document.warnings.extend(accepted.warnings);
            (Some(accepted.value), Faults::default())
        }
        Err(faults) => (None, faults),
    };
    let mut faults = Faults::with_max(ITEM_FAULTS_MAX);
    // If the reader of the file and the form found a fault of the same field, only the fault of the reader is kept,
    // because it says more.
    let is_known = |fault: &&Fault| document.faults.iter().any(|known| known.path == fault.path);
    let form_faults: Vec<_> = form_faults
        .iter()
        .filter(|fault| !is_known(fault))
        .cloned()
        .collect();
    for fault in document.faults.drain(..).chain(form_faults) {
        faults.push(fault);
    }
    if let (Some(draft), Some(stated), Some(lines_sum)) = (&draft, document.stated, lines_sum) {
        let computed_sums = ComputedSums {
            without_tax: lines_sum,
            with_tax: draft.payable,
            lines: draft.lines.len(),
            digits: catalog.currency_digits(&draft.currency),
        };
        match stated.compare(computed_sums) {
            Ok(warning) => drop(document.warnings.splice(0..0, warning)),
            Err(message) => {
                let place = document.places.document_place();
                let path = format!("{place}/cac:LegalMonetaryTotal/cbc:TaxExclusiveAmount");
                faults.push(Fault::new(path, SUM_RULE, message));
            }
        }
    }
    if let Some(draft) = draft.as_mut().filter(|_| faults.is_empty()) {
        match document.table_sums.apply_to(draft, catalog) {
            Ok(warning) => drop(document.warnings.splice(0..0, warning)),
            Err(fault) => faults.push(fault),
        }
    }
    draft.filter(|_| faults.is_empty()).ok_or(faults)
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

/// Returns the amount of a document as far as it can be read: the payable amount in the full form, and the sum of the
/// lines before tax in the standard form. `None` if no amount can be read.
fn stated_amount(form: ImportForm, body: &Map<String, Value>) -> Option<Amount> {
    let amount = |value: &Value, name: &str| match value.get(name)? {
        Value::Number(number) => Amount::parse(&number.to_string()).ok(),
        _ => None,
    };
    match form {
        ImportForm::Full => amount(body.get("legal_monetary_total")?, "payable_amount"),
        ImportForm::Standard => {
            let lines = body.get(form.lines_field())?.as_array()?;
            let amounts = lines.iter().filter_map(|line| {
                let gross = amount(line, "unit_price")?.times(amount(line, "quantity")?)?;
                let discount_rate = amount(line, "discount_rate")
                    .filter(|discount_rate| is_possible_discount_rate(*discount_rate));
                let rate_discount = discount_rate.unwrap_or_default().percent_share(gross)?;
                let discount_amount = amount(line, "discount_amount").unwrap_or_default();
                let net = gross.minus(rate_discount)?.minus(discount_amount)?;
                // A discount cannot be larger than the amount of its line.
                Some(net.max(gross.min(Amount::ZERO)))
            });
            let amounts: Vec<_> = amounts.collect();
            Amount::sum(amounts.iter().copied()).filter(|_| !amounts.is_empty())
        }
    }
}

/// Returns true for a rate from 0 to 100 percent. The form reports any other rate as a fault, so such a rate does not
/// reduce the amount.
fn is_possible_discount_rate(rate: Amount) -> bool {
    !rate.is_negative() && rate <= Amount::ONE_HUNDRED
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::domain::import::source::{CUSTOMER_ELEMENT, Places};
    use crate::domain::import::stated_sums::StatedSums;
    use crate::domain::import::{csv_table, json_documents, table_documents};
    use crate::http::forms::testing::{catalog, full_invoice, import_account, standard_invoice};

    fn context<'a>(
        catalog: &'a Catalog,
        profile: &'a ImportProfile,
        account: &'a ImportAccount,
        form: ImportForm,
    ) -> ImportContext<'a> {
        ImportContext {
            form,
            profile,
            account,
            today: Date::MAX,
            catalog,
        }
    }

    fn summaries(file: SourceFile, form: ImportForm, profile: &ImportProfile) -> Vec<String> {
        let catalog = catalog();
        let account = import_account();
        let context = context(&catalog, profile, &account, form);
        let (candidates, imported) = read(file, "I1".to_owned(), &context);
        list_outcomes(&candidates, &imported)
    }

    fn list_outcomes(candidates: &[BatchCandidate], imported: &ImportedFile) -> Vec<String> {
        let documents = candidates.iter().zip(&imported.documents);
        documents
            .map(|(candidate, document)| match &candidate.draft {
                Ok(draft) => format!("{} {}", draft.invoice_no, draft.payable),
                Err(faults) => {
                    let faults = faults.iter().map(|fault| {
                        format!(
                            "{}: {}",
                            document.places.field_place(&fault.path),
                            fault.rule()
                        )
                    });
                    faults.collect::<Vec<_>>().join(", ")
                }
            })
            .collect()
    }

    #[test]
    fn bodies_of_the_api_pass_their_own_form() {
        let standard = json!([standard_invoice(), { "invoice_no": "A" }]).to_string();
        let standard_outcomes = summaries(
            json_documents::read(standard.as_bytes()).unwrap(),
            ImportForm::Standard,
            &ImportProfile::default(),
        );
        assert!(
            !standard_outcomes[0].contains(": "),
            "{standard_outcomes:?}"
        );
        assert!(
            standard_outcomes[1].contains("document 2, invoice_date: required"),
            "{standard_outcomes:?}"
        );
        let full = full_invoice().to_string();
        let full_outcomes = summaries(
            json_documents::read(full.as_bytes()).unwrap(),
            ImportForm::Full,
            &ImportProfile::default(),
        );
        assert!(!full_outcomes[0].contains(": "), "{full_outcomes:?}");
    }

    #[test]
    fn a_fault_of_a_table_names_row_and_column() {
        let text = "Nr,line.quantity,line.unit_price\nA,1,2\nA,two,-1\n";
        let names = BTreeMap::from([("Nr".to_owned(), "invoice_no".to_owned())]);
        let file =
            table_documents::read(csv_table::read(text.as_bytes()).unwrap(), &names).unwrap();
        let outcomes = summaries(file, ImportForm::Standard, &ImportProfile::default());
        assert!(
            outcomes[0].contains("line 3, column line.quantity: type"),
            "{outcomes:?}"
        );
        assert!(
            outcomes[0].contains("line 3, column line.unit_price: min"),
            "{outcomes:?}"
        );
        assert!(outcomes[0].contains("line 2: required"), "{outcomes:?}");
    }

    /// A preview asks for missing values of a customer, and the profile stores the answers under the customer that the
    /// question names. So the question must name the customer with the values of the file: an entry under a value that
    /// the profile itself added would never be found.
    #[test]
    fn an_imported_document_has_the_customer_as_the_file_names_it() {
        let by_name = json!({ "Retail Stores Ltd": { "no": "C-9", "tin": "T-9" } });
        let by_no = json!({ "C-001": { "tin": "T-9" } });
        for (left_out, defaults, customers, expected) in [
            (&["no", "tin"][..], json!({}), by_name, [None, None]),
            (
                &["no", "tin"],
                json!({ "no": "C-9" }),
                json!({}),
                [None, None],
            ),
            (&["tin"], json!({}), by_no, [Some("C-001"), None]),
        ] {
            let profile = json!({
                "defaults": defaults, "customers": customers, "columns": {}, "units": {},
            });
            let profile: ImportProfile = serde_json::from_value(profile).unwrap();
            let mut body = standard_invoice();
            body["customer"]["no"] = json!("C-001");
            body["customer"]["name"] = json!("Retail Stores Ltd");
            for name in left_out {
                body["customer"][*name] = Value::Null;
            }
            let file = json_documents::read(body.to_string().as_bytes()).unwrap();
            let catalog = catalog();
            let account = import_account();
            let context = context(&catalog, &profile, &account, ImportForm::Standard);
            let (_, imported) = read(file, "I1".to_owned(), &context);
            let customer = &imported.documents[0].customer;
            let found = [customer.no.as_deref(), customer.tin.as_deref()];
            assert_eq!(found, expected, "{profile:?}");
            assert_eq!(customer.name.as_deref(), Some("Retail Stores Ltd"));
        }
    }

    #[test]
    fn the_discounts_of_a_refused_document_reduce_its_amount() {
        for (rate, flat, expected) in [
            (Value::Null, Value::Null, 200),
            (json!(25), Value::Null, 150),
            (Value::Null, json!(10), 190),
            (json!(25), json!(10), 140),
            (json!(250), Value::Null, 200),
            (Value::Null, json!(500), 0),
            (json!(25), json!(160), 0),
        ] {
            let mut body = standard_invoice();
            body["due_date"] = Value::Null;
            body["invoice_lines"][0]["discount_rate"] = rate;
            body["invoice_lines"][0]["discount_amount"] = flat;
            let file = json_documents::read(body.to_string().as_bytes()).unwrap();
            let catalog = catalog();
            let profile = ImportProfile::default();
            let account = import_account();
            let context = context(&catalog, &profile, &account, ImportForm::Standard);
            let (candidates, imported) = read(file, "I1".to_owned(), &context);
            assert!(candidates[0].draft.is_err());
            let expected = Amount::from(expected);
            assert_eq!(imported.documents[0].amount, Some(expected), "{body}");
        }
    }

    #[test]
    fn a_total_that_the_lines_do_not_come_to_is_a_fault_and_other_rates_of_tax_are_a_warning() {
        for (without_tax, with_tax, has_other_rates, expected, expected_warning) in [
            ("1000", "1075", false, "A 1075.00", None),
            (
                "1000",
                "1075.01",
                false,
                "A 1075.00",
                Some("1075.01 in the file, by rounding"),
            ),
            (
                "1000",
                "1190",
                true,
                "A 1075.00",
                Some("1190 in the file, because the authority's rates"),
            ),
            (
                "1000",
                "1100",
                false,
                "A 1075.00",
                Some("1100 in the file, because the tax of the file"),
            ),
            (
                "1100",
                "1190",
                true,
                "/Invoice/cac:LegalMonetaryTotal/cbc:TaxExclusiveAmount: sum",
                None,
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
            let document = SourceDocument {
                body: Some(body),
                places: Places::Xml {
                    root: "Invoice".to_owned(),
                    customer: CUSTOMER_ELEMENT,
                    lines: Vec::new(),
                },
                stated: Some(StatedSums {
                    without_tax: Amount::parse(without_tax).unwrap(),
                    with_tax: Amount::parse(with_tax).unwrap(),
                    has_other_rates,
                }),
                ..SourceDocument::default()
            };
            let file = SourceFile {
                documents: vec![document],
                ..SourceFile::default()
            };
            let catalog = catalog();
            let profile = ImportProfile::default();
            let account = import_account();
            let context = context(&catalog, &profile, &account, ImportForm::Standard);
            let (candidates, imported) = read(file, "I1".to_owned(), &context);
            assert_eq!(list_outcomes(&candidates, &imported), [expected]);
            let has_warning = imported.documents[0]
                .warnings
                .iter()
                .any(|warning| expected_warning.is_some_and(|text| warning.contains(text)));
            assert_eq!(
                has_warning,
                expected_warning.is_some(),
                "{:?}",
                imported.documents[0].warnings
            );
        }
    }
}
