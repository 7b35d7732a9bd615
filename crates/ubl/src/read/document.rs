//! Reads the parts that concern the whole document: its type, dates, references and payment.

use jiff::civil::Date;
use trade_document::{CodeAndName, PaymentMeans, Period, Reference, ReferenceKind};

use super::Reader;
use crate::codes::{self, ReadCode, RootKind};
use crate::element::Element;
use crate::fault::Cause;
use crate::fixed_texts::{CUSTOMIZATION, IRN_DESCRIPTION, TAX_CURRENCY_DESCRIPTION};

/// The elements that refer to other documents, in the order of the references that are read.
const REFERENCES: [(&str, ReferenceKind); 7] = [
    ("cac:BillingReference", ReferenceKind::Preceding),
    ("cac:OrderReference", ReferenceKind::Order),
    ("cac:DespatchDocumentReference", ReferenceKind::Dispatch),
    ("cac:ReceiptDocumentReference", ReferenceKind::Receipt),
    ("cac:OriginatorDocumentReference", ReferenceKind::Originator),
    ("cac:ContractDocumentReference", ReferenceKind::Contract),
    ("cac:AdditionalDocumentReference", ReferenceKind::Additional),
];

/// The references to other documents, and the fields that the writer puts into references of its own.
#[derive(Default)]
pub(super) struct ReadReferences {
    pub references: Vec<Reference>,
    pub irn: Option<String>,
    pub tax_currency: Option<String>,
}

impl Reader<'_> {
    pub(super) fn document_type(&mut self, root_kind: RootKind) -> CodeAndName {
        let root = self.root;
        if root.peek_at("cbc:CustomizationID") == CUSTOMIZATION {
            root.text_at("cbc:CustomizationID");
        }
        let name = match root_kind {
            RootKind::Invoice => "cbc:InvoiceTypeCode",
            RootKind::CreditNote => "cbc:CreditNoteTypeCode",
        };
        let Some(element) = root.at(name) else {
            let usual = if root_kind == RootKind::Invoice {
                "380"
            } else {
                "381"
            };
            return codes::read_document_type(root_kind, usual, None).value;
        };
        let foreign = root.peek_at(name);
        // Our writer stores the type's name in this attribute. Other programs may store a flag there, so a value
        // without a letter is ignored.
        let title = element.attributes.iter().find(|one| one.name == "name");
        let title = title
            .map(|one| one.value.trim())
            .filter(|name| name.contains(char::is_alphabetic));
        let ReadCode {
            value: coded,
            is_exact,
        } = codes::read_document_type(root_kind, &foreign, title);
        if title.is_some() {
            element.attribute("name");
        }
        if is_exact {
            element.mark_read();
        } else if foreign != coded.code {
            let sentence = format!(
                "The document type {foreign} became {} ({}).",
                coded.code, coded.name
            );
            self.report_change(Cause::DocumentType, element, sentence);
        }
        coded
    }

    pub(super) fn period(&mut self) -> Option<Period> {
        let element = self.root.at("cac:InvoicePeriod")?;
        let start = self.date_at(element, "cbc:StartDate");
        let end = self.date_at(element, "cbc:EndDate");
        (start.is_some() || end.is_some()).then_some(Period { start, end })
    }

    pub(super) fn references(&mut self) -> ReadReferences {
        let mut read = ReadReferences::default();
        for (name, kind) in REFERENCES {
            for element in self.root.children_named(name) {
                let target = match kind {
                    ReferenceKind::Preceding => element.at("cac:InvoiceDocumentReference"),
                    _ => Some(element),
                };
                let Some(target) = target else { continue };
                let Some(id) = target.text_at("cbc:ID") else {
                    continue;
                };
                let description = target.peek_at("cbc:DocumentDescription");
                let own = match (kind, &*description) {
                    (ReferenceKind::Additional, IRN_DESCRIPTION) => Some(&mut read.irn),
                    (ReferenceKind::Additional, TAX_CURRENCY_DESCRIPTION) => {
                        Some(&mut read.tax_currency)
                    }
                    _ => None,
                };
                if let Some(own) = own {
                    target.text_at("cbc:DocumentDescription");
                    *own = Some(id);
                    continue;
                }
                let issue_date = self.date_at(target, "cbc:IssueDate");
                read.references.push(Reference {
                    kind,
                    id,
                    issue_date,
                });
            }
        }
        read
    }

    pub(super) fn payment_means(&mut self) -> Vec<PaymentMeans> {
        self.root
            .children_named("cac:PaymentMeans")
            .filter_map(|element| {
                let code = element.at("cbc:PaymentMeansCode")?;
                element.mark_read();
                let name = code
                    .attribute("name")
                    .map(str::to_owned)
                    .unwrap_or_default();
                Some(PaymentMeans {
                    means: CodeAndName {
                        code: self.means_code(code),
                        name,
                    },
                    due_date: self.date_at(element, "cbc:PaymentDueDate"),
                })
            })
            .collect()
    }

    fn means_code(&mut self, element: &Element) -> String {
        let foreign = crate::element::fold_spaces(&element.text);
        let ReadCode {
            value: own,
            is_exact,
        } = codes::read_payment_means(&foreign);
        if is_exact {
            element.mark_read();
        } else {
            let sentence = format!("The payment means {foreign} of UNTDID 4461 became {own}.");
            self.report_change_once(Cause::PaymentMeans, element, sentence);
        }
        own.to_owned()
    }

    /// Returns the due date of the document; otherwise that of its payment terms; otherwise the earliest one of its
    /// payment means.
    pub(super) fn due_date(&mut self, payment_means: &[PaymentMeans]) -> Option<Date> {
        let of_means = payment_means.iter().filter_map(|means| means.due_date);
        self.date_at(self.root, "cbc:DueDate")
            .or_else(|| self.date_at(self.root, "cac:PaymentTerms/cbc:PaymentDueDate"))
            .or_else(|| of_means.min())
    }
}
