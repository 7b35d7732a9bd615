//! A document of a file: the body of a create request, and the place of each field in the file.

use serde_json::{Map, Value};

use crate::domain::import::stated_sums::StatedSums;
use crate::domain::import::table::Table;
use crate::domain::import::table_sums::TableSums;
use crate::domain::import::ubl_parties::UblParties;
use crate::domain::invoice::batch::INVOICES_MAX;
use crate::domain::invoice::table_columns::LINE_PREFIX;
use crate::domain::invoice::ubl_parts::UblParts;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::fault::Fault;

words! {
    /// The create request whose body a document becomes.
    ImportForm { Standard = "standard", Full = "full" }
}

words! {
    /// The format of a file.
    FileFormat { Ubl = "ubl", Csv = "csv", Xlsx = "xlsx", Ndjson = "ndjson", Json = "json" }
}

impl ImportForm {
    /// Returns the name of the field that holds the lines of the invoice.
    pub fn lines_field(self) -> &'static str {
        match self {
            Self::Standard => "invoice_lines",
            Self::Full => "invoice_line",
        }
    }
}

/// The documents that were read from a file.
#[derive(Debug, Default)]
pub struct SourceFile {
    pub documents: Vec<SourceDocument>,
    /// The table, from which the error file is made; `None` for formats without columns.
    pub table: Option<Table>,
    pub warnings: Vec<String>,
}

/// A document of a file.
#[derive(Debug, Default)]
pub struct SourceDocument {
    /// The body of the create request; `None` if the document cannot be read at all.
    pub body: Option<Map<String, Value>>,
    pub faults: Vec<Fault>,
    pub warnings: Vec<String>,
    pub places: Places,
    /// The indexes of the document's rows in the table.
    pub rows: Vec<usize>,
    /// The sums that a UBL document states.
    pub stated: Option<StatedSums>,
    /// The sums that the columns of a table state.
    pub table_sums: TableSums,
    /// The supplier and the customer of a UBL document. One of them should be the account that imports it.
    pub parties: Option<UblParties>,
    /// The parts of the UBL document that no field of an invoice holds; `None` for other formats.
    pub ubl_parts: Option<UblParts>,
}

/// The places of the fields of a document in the file, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Places {
    /// The place of the whole document, such as `line 7`. A message names the path of the field after it.
    Whole(String),
    /// A table: the word for a row, the number of the row of each invoice line, and the header of each field.
    Table {
        word: &'static str,
        rows: Vec<u64>,
        headers: Vec<(String, String)>,
    },
    /// A UBL document: its root element, the element of the party that becomes the invoice's customer, and the path of
    /// each line. There are no paths if the lines of the invoice are not those of the file.
    Xml {
        root: String,
        customer: &'static str,
        lines: Vec<String>,
    },
}

impl Default for Places {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

/// The element of the customer. If the buyer issued the document, the supplier becomes the customer of the invoice.
pub const CUSTOMER_ELEMENT: &str = "cac:AccountingCustomerParty";
pub const SUPPLIER_ELEMENT: &str = "cac:AccountingSupplierParty";

/// The paths in UBL of the fields of the customer and of the header, from the root. The first name of an entry is the
/// field of Create Standard, the second that of Create Full.
const XML_PLACES: [(&str, &str, &str); 16] = [
    (
        "customer.email",
        "accounting_customer_party.email",
        "cac:AccountingCustomerParty/cac:Party/cac:Contact/cbc:ElectronicMail",
    ),
    (
        "customer.no",
        "accounting_customer_party.customer_no",
        "cac:AccountingCustomerParty/cac:Party/cac:PartyIdentification/cbc:ID",
    ),
    (
        "customer.name",
        "accounting_customer_party.party_name",
        "cac:AccountingCustomerParty/cac:Party/cac:PartyLegalEntity/cbc:RegistrationName",
    ),
    (
        "customer.tin",
        "accounting_customer_party.tin",
        "cac:AccountingCustomerParty/cac:Party/cac:PartyTaxScheme/cbc:CompanyID",
    ),
    (
        "customer.business_description",
        "accounting_customer_party.business_description",
        "cac:AccountingCustomerParty/cac:Party/cbc:IndustryClassificationCode",
    ),
    (
        "customer.address_street_name",
        "accounting_customer_party.postal_address.street_name",
        "cac:AccountingCustomerParty/cac:Party/cac:PostalAddress/cbc:StreetName",
    ),
    (
        "customer.address_city",
        "accounting_customer_party.postal_address.city_name",
        "cac:AccountingCustomerParty/cac:Party/cac:PostalAddress/cbc:CityName",
    ),
    (
        "customer.address_state",
        "accounting_customer_party.postal_address.state",
        "cac:AccountingCustomerParty/cac:Party/cac:PostalAddress/cbc:CountrySubentity",
    ),
    (
        "customer.address_postal_code",
        "accounting_customer_party.postal_address.postal_zone",
        "cac:AccountingCustomerParty/cac:Party/cac:PostalAddress/cbc:PostalZone",
    ),
    (
        "customer.address_country",
        "accounting_customer_party.postal_address.country",
        "cac:AccountingCustomerParty/cac:Party/cac:PostalAddress/cac:Country/cbc:IdentificationCode",
    ),
    (
        "customer",
        "accounting_customer_party",
        "cac:AccountingCustomerParty/cac:Party",
    ),
    ("invoice_no", "invoice_no", "cbc:ID"),
    ("invoice_date", "issue_date", "cbc:IssueDate"),
    ("due_date", "due_date", "cbc:DueDate"),
    (
        "currency",
        "document_currency_code",
        "cbc:DocumentCurrencyCode",
    ),
    (
        "original_invoice_reference",
        "billing_reference",
        "cac:BillingReference/cac:InvoiceDocumentReference/cbc:ID",
    ),
];

impl Places {
    /// Returns the place of the document.
    pub fn document_place(&self) -> String {
        match self {
            Self::Whole(place) => place.clone(),
            Self::Table { word, rows, .. } => match (rows.first(), rows.last()) {
                (Some(first), Some(last)) if first == last => format!("{word} {first}"),
                (Some(first), Some(last)) => format!("{word}s {first} to {last}"),
                _ => String::new(),
            },
            Self::Xml { root, .. } => format!("/{root}"),
        }
    }

    /// Returns the place of the field at this path of the body.
    pub fn field_place(&self, path: &str) -> String {
        match self {
            Self::Whole(place) => format!("{place}, {path}"),
            Self::Table {
                word,
                rows,
                headers,
            } => {
                let (line, field) = split_line_path(path);
                let row = line.and_then(|line| rows.get(line)).or(rows.first());
                let row = row.map_or_else(|| self.document_place(), |row| format!("{word} {row}"));
                let name = match line {
                    Some(_) => format!("{LINE_PREFIX}{field}"),
                    None => field.to_owned(),
                };
                let header = headers.iter().find(|(known, _)| *known == name);
                header.map_or_else(
                    || row.clone(),
                    |(_, header)| format!("{row}, column {header}"),
                )
            }
            Self::Xml { .. } if path.starts_with('/') => path.to_owned(),
            Self::Xml {
                root,
                customer,
                lines,
            } => {
                if let (Some(line), _) = split_line_path(path) {
                    let place = lines.get(line).cloned();
                    return place.unwrap_or_else(|| format!("/{root}, line {}", line + 1));
                }
                let element = XML_PLACES
                    .iter()
                    .find(|(standard, full, _)| *standard == path || *full == path);
                element.map_or_else(
                    || format!("/{root}"),
                    |(_, _, element)| {
                        let element = element.replace(CUSTOMER_ELEMENT, customer);
                        format!("/{root}/{element}")
                    },
                )
            }
        }
    }
}

/// Splits a path such as `invoice_lines.2.quantity` into the index of the line and the field of the line.
fn split_line_path(path: &str) -> (Option<usize>, &str) {
    let Some((list, rest)) = path.split_once('.') else {
        return (None, path);
    };
    let (index, field) = rest.split_once('.').unwrap_or((rest, ""));
    match (list, index.parse()) {
        ("invoice_lines" | "invoice_line", Ok(index)) => (Some(index), field),
        _ => (None, path),
    }
}

/// Returns the path with `*` in place of each index, so that faults at the same field of several lines count as one
/// cause.
pub fn mask_indexes(path: &str) -> String {
    let steps = path.split('.').map(|step| {
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            "*"
        } else {
            step
        }
    });
    steps.collect::<Vec<_>>().join(".")
}

/// The stable id of the rule that a file with too many documents breaks.
pub const TOO_MANY_RULE: &str = "batch_too_large";

/// Returns the fault of a file with more documents than one request may have.
pub fn too_many_documents_fault() -> Fault {
    let message = format!(
        "The file has more than {INVOICES_MAX} invoices: split it into files of at most {INVOICES_MAX} each."
    );
    Fault::new("file", TOO_MANY_RULE, message)
}

/// Returns the fault of a file that cannot be read as its format.
pub fn file_fault(rule: &'static str, message: impl Into<String>) -> Fault {
    Fault::new("file", rule, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_its_place_in_the_file() {
        let header = |name: &str, header: &str| (name.to_owned(), header.to_owned());
        let table = Places::Table {
            word: "row",
            rows: vec![4, 5],
            headers: vec![
                header("customer.email", "E-mail"),
                header("line.quantity", "Qty"),
            ],
        };
        let xml = Places::Xml {
            root: "Invoice".to_owned(),
            customer: CUSTOMER_ELEMENT,
            lines: vec!["/Invoice/cac:InvoiceLine[1]".to_owned()],
        };
        let self_billed = Places::Xml {
            root: "Invoice".to_owned(),
            customer: SUPPLIER_ELEMENT,
            lines: Vec::new(),
        };
        for (places, path, place) in [
            (&table, "customer.email", "row 4, column E-mail"),
            (&table, "invoice_lines.1.quantity", "row 5, column Qty"),
            (&table, "invoice_lines.1.unit_price", "row 5"),
            (&table, "due_date", "row 4"),
            (
                &xml,
                "invoice_lines.0.item_no",
                "/Invoice/cac:InvoiceLine[1]",
            ),
            (&xml, "invoice_lines.1.item_no", "/Invoice, line 2"),
            (&xml, "due_date", "/Invoice/cbc:DueDate"),
            (
                &xml,
                "customer",
                "/Invoice/cac:AccountingCustomerParty/cac:Party",
            ),
            (
                &self_billed,
                "customer",
                "/Invoice/cac:AccountingSupplierParty/cac:Party",
            ),
            (&xml, "issue_date", "/Invoice/cbc:IssueDate"),
            (&xml, "/Invoice/cbc:ID", "/Invoice/cbc:ID"),
            (&xml, "invoice_category", "/Invoice"),
            (
                &Places::Whole("line 3".to_owned()),
                "due_date",
                "line 3, due_date",
            ),
        ] {
            assert_eq!(places.field_place(path), place, "{path}");
        }
        assert_eq!(table.document_place(), "rows 4 to 5");
        assert_eq!(
            mask_indexes("invoice_lines.12.quantity"),
            "invoice_lines.*.quantity"
        );
    }
}
