//! Reads UBL into a trade document.

mod document;
mod line;
mod money;
mod party;
mod scalar;
mod signs;

use std::collections::BTreeMap;

use jiff::civil::Date;
use trade_document::TradeDocument;

use crate::active_content::find_active_content;
use crate::beside::{UnmappedPart, collect_unmapped_parts};
use crate::codes::{self, RootKind};
use crate::element::{Element, path};
use crate::fault::{Cause, Change, Fault};
use crate::negative_parts::negate_amounts;
use crate::parse::{Limits, parse};

pub(crate) use money::net_charges;

/// After this many faults, no more are reported.
const FAULTS_MAX: usize = 100;
/// The maximum number of discounts and fees on a document.
const CHARGES_MAX: usize = 1_000;

/// A document, and the differences from the XML that it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadDocument {
    pub document: TradeDocument,
    /// The name of the outermost element: `Invoice` or `CreditNote`.
    pub root: String,
    /// Everything for which the document has no field, to be passed to `write_with_parts`.
    pub beside: Vec<UnmappedPart>,
    pub changes: Vec<Change>,
}

/// Reads a UBL invoice or credit note. Returns all faults at once, but only the first fault of malformed XML.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<ReadDocument, Vec<Fault>> {
    read_with_units(bytes, limits, &BTreeMap::new())
}

/// Reads like `read`, but replaces each unit of quantity that is a key of `units` by its value.
pub fn read_with_units(
    bytes: &[u8],
    limits: &Limits,
    units: &BTreeMap<String, String>,
) -> Result<ReadDocument, Vec<Fault>> {
    let tree = parse(bytes, limits).map_err(|fault| vec![fault])?;
    let (root, kind) = find_root(&tree).map_err(|fault| vec![fault])?;
    let mut reader = Reader {
        root,
        units,
        faults: Vec::new(),
        changes: Vec::new(),
    };
    let document = reader.document(kind);
    reader.report_active_content();
    let Reader {
        faults, changes, ..
    } = reader;
    match document {
        Some(document) if faults.is_empty() => {
            let mut beside = collect_unmapped_parts(root);
            if changes
                .iter()
                .any(|change| change.cause == Cause::NegativeDocument)
            {
                negate_amounts(&mut beside);
            }
            Ok(ReadDocument {
                document,
                root: root.name.clone(),
                beside,
                changes,
            })
        }
        _ => Err(faults),
    }
}

/// Returns the invoice or credit note. It may be inside of an envelope, such as that of Peppol. An envelope with
/// several is refused, because only one would be read.
fn find_root(tree: &Element) -> Result<(&Element, RootKind), Fault> {
    let mut found = Vec::new();
    add_roots(tree, &mut found);
    let sentence = match found.as_slice() {
        [only] => return Ok(*only),
        [] => {
            let name = tree.name.rsplit('}').next().unwrap_or_default();
            format!("The document is “{name}”; only Invoice and CreditNote of UBL 2 are read.")
        }
        several => {
            let count = several.len();
            format!("The file has {count} invoices or credit notes; each needs a file of its own.")
        }
    };
    Err(Fault {
        cause: Cause::Format,
        path: "/".to_owned(),
        sentence,
    })
}

fn add_roots<'a>(tree: &'a Element, found: &mut Vec<(&'a Element, RootKind)>) {
    match &*tree.name {
        "Invoice" => found.push((tree, RootKind::Invoice)),
        "CreditNote" => found.push((tree, RootKind::CreditNote)),
        _ => tree
            .children
            .iter()
            .for_each(|child| add_roots(child, found)),
    }
}

/// A tree that is being read, with the faults and changes to report.
struct Reader<'a> {
    root: &'a Element,
    /// The units to replace, each with its replacement.
    units: &'a BTreeMap<String, String>,
    faults: Vec<Fault>,
    changes: Vec<Change>,
}

/// The parts of a document that change if its amounts are negative.
struct Body<'a> {
    root_kind: RootKind,
    currency: String,
    lines: Vec<line::RawLine<'a>>,
    charges: Vec<trade_document::Charge>,
    taxes: Vec<trade_document::TaxSubtotal>,
    totals: trade_document::Totals,
}

impl<'a> Reader<'a> {
    /// Reads the whole document. `None` if a fault was reported.
    fn document(&mut self, root_kind: RootKind) -> Option<TradeDocument> {
        let root = self.root;
        let number = self.required_text(root, "cbc:ID", "number");
        let issue_date = self.required_date(root, "cbc:IssueDate");
        let currency = self.currency();
        let mut body = self.body(root_kind, currency?);
        let mut document_type = self.document_type(root_kind);
        if self.convert_negative_invoice(&mut body) {
            let credit = codes::credit_note_code(&document_type.code);
            document_type = codes::read_document_type(RootKind::CreditNote, credit, None).value;
        }
        self.correct_lines(&mut body);
        self.check_totals(&body);
        let payment_means = self.payment_means();
        let supplier = self.party("cac:AccountingSupplierParty", "supplier");
        let customer = self.party("cac:AccountingCustomerParty", "customer");
        let read = self.references();
        Some(TradeDocument {
            number: number?,
            irn: read.irn,
            document_type,
            issue_date: issue_date?,
            issue_time: self.issue_time(),
            due_date: self.due_date(&payment_means),
            tax_point_date: self.date_at(root, "cbc:TaxPointDate"),
            delivery_date: self.date_at(root, "cac:Delivery/cbc:ActualDeliveryDate"),
            period: self.period(),
            tax_currency: root.text_at("cbc:TaxCurrencyCode").or(read.tax_currency),
            currency: body.currency,
            supplier,
            customer,
            references: read.references,
            buyer_reference: root.text_at("cbc:BuyerReference"),
            accounting_cost: root.text_at("cbc:AccountingCost"),
            notes: root
                .children_named("cbc:Note")
                .filter_map(Element::folded_lines)
                .collect(),
            payment_means,
            payment_terms: root
                .at("cac:PaymentTerms/cbc:Note")
                .and_then(Element::folded_lines),
            charges: body.charges,
            lines: body.lines.into_iter().map(|raw| raw.line).collect(),
            taxes: body.taxes,
            totals: body.totals,
        })
    }

    fn body(&mut self, root_kind: RootKind, currency: String) -> Body<'a> {
        let taxes = self.taxes(&currency);
        let lines = self.lines(root_kind, &currency, &taxes);
        let charges = self.charges(self.root, &currency);
        if charges.len() > CHARGES_MAX {
            let sentence = format!("The document has more than {CHARGES_MAX} discounts and fees.");
            self.report_fault(Cause::Limit, self.root, sentence);
        }
        let taxes = self.complete_taxes(taxes, &lines, &currency);
        let mut body = Body {
            root_kind,
            currency,
            lines,
            charges,
            taxes,
            totals: trade_document::Totals::default(),
        };
        body.totals = self.totals(&body);
        body
    }

    fn report_fault(&mut self, cause: Cause, element: &Element, sentence: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(Fault {
                cause,
                path: path(self.root, element),
                sentence,
            });
        }
    }

    fn report_change(&mut self, cause: Cause, element: &Element, sentence: String) {
        self.changes.push(Change {
            cause,
            path: path(self.root, element),
            sentence,
        });
    }

    /// Reports a change once, however many elements it concerns. The path is that of the first element.
    fn report_change_once(&mut self, cause: Cause, element: &Element, sentence: String) {
        if self
            .changes
            .iter()
            .all(|change| change.sentence != sentence)
        {
            self.report_change(cause, element, sentence);
        }
    }

    /// Reports once each namespace of which elements or attributes are left out. The path is that of the first element.
    fn report_active_content(&mut self) {
        // A document may have very many of these elements and other changes, so they are not compared each with each.
        let mut found: Vec<(&Element, &str)> = Vec::new();
        find_active_content(self.root, &mut |element, namespace| {
            if found.iter().all(|(_, known)| *known != namespace) {
                found.push((element, namespace));
            }
        });
        for (element, namespace) in found {
            let sentence = format!(
                "What is in the namespace {namespace} is left out, because a browser would act on it."
            );
            self.report_change(Cause::ActiveContent, element, sentence);
        }
    }

    fn required_text(&mut self, parent: &Element, name: &str, label: &str) -> Option<String> {
        let text = parent.text_at(name);
        if text.is_none() {
            self.report_fault(
                Cause::Missing,
                parent,
                format!("The {label} is missing ({name})."),
            );
        }
        text
    }

    fn required_date(&mut self, parent: &Element, name: &str) -> Option<Date> {
        let Some(element) = parent.at(name) else {
            self.report_fault(
                Cause::Missing,
                parent,
                format!("The date {name} is missing."),
            );
            return None;
        };
        self.date(element)
    }

    /// Returns the currency of the document, or else that of the amount to pay.
    fn currency(&mut self) -> Option<String> {
        let root = self.root;
        let payable = root.at("cac:LegalMonetaryTotal/cbc:PayableAmount");
        let of_payable = payable.and_then(|amount| amount.attribute(crate::element::CURRENCY));
        let currency = root
            .text_at("cbc:DocumentCurrencyCode")
            .or_else(|| of_payable.map(str::to_owned));
        if currency.is_none() {
            let sentence = "The currency is missing (cbc:DocumentCurrencyCode).".to_owned();
            self.report_fault(Cause::Missing, root, sentence);
        }
        currency
    }
}
