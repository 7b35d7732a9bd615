//! Converts a document in the shape of Submit to a `TradeDocument`, from which its PDF and its other files are made.
//! The document is that of a stored invoice, a signed copy, or a document that a supplier sent.

use jiff::civil::{Date, Time};
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::Value;
use trade_document::{
    Address, CodeAndName, ItemKind, Line, Party, PaymentMeans, Period, Reference, ReferenceKind,
    Tax, TaxSubtotal, TradeDocument,
};

use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::trade_sums::{self, DocumentSums};
use crate::domain::money::Amount;
use crate::domain::pipeline::authority_document::parse_date_prefix;
use crate::domain::reference::catalog::{Catalog, ReferenceList};

/// The members that hold references to other documents, and the kind of each reference.
const REFERENCES: [(&str, ReferenceKind); 6] = [
    ("billing_reference", ReferenceKind::Preceding),
    ("dispatch_document_reference", ReferenceKind::Dispatch),
    ("receipt_document_reference", ReferenceKind::Receipt),
    ("originator_document_reference", ReferenceKind::Originator),
    ("contract_document_reference", ReferenceKind::Contract),
    ("additional_document_reference", ReferenceKind::Additional),
];

/// The error for a document that lacks a required member, or has a value of a wrong type there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the document has no usable {0}")]
pub struct UnreadableDocument(pub &'static str);

/// Reads a document. It must have a number, an issue date, a currency, lines and totals.
pub fn read_document(
    document: &Value,
    catalog: &Catalog,
) -> Result<TradeDocument, UnreadableDocument> {
    let root = DocumentNode {
        value: document,
        catalog,
    };
    let irn = root.text("irn");
    let number = root.text("invoice_reference").or_else(|| {
        let irn = Irn::parse(irn.as_deref()?).ok()?;
        Some(irn.invoice_no().to_owned())
    });
    let type_code = root.text("invoice_type_code").unwrap_or_default();
    let currency = root.text("document_currency_code");
    let currency = currency.ok_or(UnreadableDocument("document_currency_code"))?;
    let taxes = root.taxes();
    let digits = catalog.currency_digits(&currency);
    let lines = root
        .items("invoice_line")
        .map(|node| node.line(&taxes, digits));
    let lines = lines
        .collect::<Option<Vec<_>>>()
        .ok_or(UnreadableDocument("invoice_line"))?;
    let DocumentSums {
        charges,
        taxes,
        totals,
    } = root
        .document_sums(taxes)
        .ok_or(UnreadableDocument("legal_monetary_total"))?;
    Ok(TradeDocument {
        number: number.ok_or(UnreadableDocument("invoice_reference"))?,
        irn,
        document_type: root.code_with_name(ReferenceList::InvoiceTypes, type_code),
        issue_date: root
            .date("issue_date")
            .ok_or(UnreadableDocument("issue_date"))?,
        issue_time: root.time("issue_time"),
        due_date: root.date("due_date"),
        tax_point_date: root.date("tax_point_date"),
        delivery_date: root.date("actual_delivery_date"),
        period: root.member("invoice_delivery_period").map(|period| Period {
            start: period.date("start_date"),
            end: period.date("end_date"),
        }),
        tax_currency: root
            .text("tax_currency_code")
            .filter(|code| *code != currency),
        currency,
        supplier: root.party_in("accounting_supplier_party"),
        customer: root.party_in("accounting_customer_party"),
        references: root.references(),
        buyer_reference: root.text("buyer_reference"),
        accounting_cost: root
            .amount("accounting_cost")
            .filter(|cost| !cost.is_zero())
            .map(|cost| cost.to_string()),
        notes: root.text("note").into_iter().collect(),
        payment_means: root
            .items("payment_means")
            .map(DocumentNode::payment_means)
            .collect(),
        payment_terms: root.text("payment_terms_note"),
        charges,
        lines,
        taxes,
        totals,
    })
}

/// Reads a party in the shape of Submit. A member that it lacks becomes empty.
pub fn read_party(party: &Value, catalog: &Catalog) -> Party {
    DocumentNode {
        value: party,
        catalog,
    }
    .party()
}

/// Returns the tax of a category. Its percentage is that of the document's subtotals with this category, if all of them
/// state the same one; otherwise that of the authority's list.
pub fn find_tax(category: &str, taxes: &[TaxSubtotal], catalog: &Catalog) -> Tax {
    let mut summed = taxes.iter().filter(|one| one.tax.category.code == category);
    match summed.next() {
        Some(first) if summed.all(|one| one.tax.percent == first.tax.percent) => first.tax.clone(),
        _ => trade_sums::listed_tax(category.to_owned(), None, catalog),
    }
}

/// A member of the document, with the reference lists that contain the names of its codes.
#[derive(Clone, Copy)]
pub(super) struct DocumentNode<'a> {
    pub(super) value: &'a Value,
    pub(super) catalog: &'a Catalog,
}

impl<'a> DocumentNode<'a> {
    pub(super) fn member(self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| value.is_object())?;
        Some(Self { value, ..self })
    }

    pub(super) fn items(self, name: &str) -> impl Iterator<Item = Self> + use<'a> {
        let items = self.value.get(name).and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .map(move |value| Self { value, ..self })
    }

    pub(super) fn text(self, name: &str) -> Option<String> {
        let text = self.value.get(name)?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn date(self, name: &str) -> Option<Date> {
        parse_date_prefix(self.value.get(name)?.as_str()?)
    }

    fn time(self, name: &str) -> Option<Time> {
        self.text(name)?.parse().ok()
    }

    pub(super) fn amount(self, name: &str) -> Option<Decimal> {
        Amount::deserialize(self.value.get(name)?)
            .ok()
            .map(Decimal::from)
    }

    fn code_with_name(self, list: ReferenceList, code: String) -> CodeAndName {
        let name = self
            .catalog
            .name(list, &code)
            .unwrap_or_default()
            .to_owned();
        CodeAndName { code, name }
    }

    /// Returns the party in a member; an empty party if the document has none.
    fn party_in(self, name: &str) -> Party {
        self.member(name)
            .map(DocumentNode::party)
            .unwrap_or_default()
    }

    fn party(self) -> Party {
        let address = self.member("postal_address");
        let place = |name: &str| address.and_then(|address| address.text(name));
        Party {
            name: self.text("party_name").unwrap_or_default(),
            number: self.text("customer_no"),
            tin: self.text("tin"),
            registration: None,
            email: self.text("email"),
            telephone: self.text("telephone"),
            description: self.text("business_description"),
            address: Address {
                street: place("street_name"),
                city: place("city_name"),
                state: None,
                postal_code: place("postal_zone"),
                country: place("country"),
            },
        }
    }

    fn references(self) -> Vec<Reference> {
        let order = self.text("order_reference").map(|id| Reference {
            kind: ReferenceKind::Order,
            id,
            issue_date: None,
        });
        let others = REFERENCES.into_iter().flat_map(|(name, kind)| {
            let one = self.member(name).into_iter();
            one.chain(self.items(name)).filter_map(move |node| {
                Some(Reference {
                    kind,
                    id: node.text("irn")?,
                    issue_date: node.date("issue_date"),
                })
            })
        });
        order.into_iter().chain(others).collect()
    }

    fn payment_means(self) -> PaymentMeans {
        let code = self.text("payment_means_code").unwrap_or_default();
        PaymentMeans {
            means: self.code_with_name(ReferenceList::PaymentMeans, code),
            due_date: self.date("payment_due_date"),
        }
    }

    /// Reads a line. Its tax has the percentage that the document's tax subtotals state for its category. If the line
    /// has no category, as in Submit, it has the tax of the document, if there is only one.
    fn line(self, taxes: &[TaxSubtotal], digits: u32) -> Option<Line> {
        let item = self.member("item")?;
        let name = item.text("name")?;
        let price = self.member("price")?;
        let is_service = self
            .text("isic_code")
            .or_else(|| self.text("service_category"));
        let unit = price.text("price_unit").unwrap_or_default();
        let tax = match (self.text("tax_category"), taxes) {
            (Some(category), _) => find_tax(&category, taxes, self.catalog),
            (None, [only]) => only.tax.clone(),
            (None, _) => Tax::default(),
        };
        Some(Line {
            // Submit requires a description. One that only repeats the name is dropped.
            description: item.text("description").filter(|text| *text != name),
            name,
            item_number: item.text("sellers_item_identification"),
            item_kind: if is_service.is_some() {
                ItemKind::Service
            } else {
                ItemKind::Product
            },
            quantity: self.amount("invoiced_quantity")?,
            unit: self.code_with_name(ReferenceList::QuantityCodes, unit),
            price: price.amount("price_amount")?,
            base_quantity: price.amount("base_quantity").unwrap_or(Decimal::ONE),
            charges: self.line_charges(digits),
            amount: self.amount("line_extension_amount")?,
            tax,
            classification: is_service.or_else(|| self.text("hsn_code")),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        let lists = [
            (
                ReferenceList::TaxCategories,
                json!([
                    { "code": "STANDARD_VAT", "value": "Standard Value-Added Tax", "percent": 7.5 },
                    { "code": "STAMP_DUTY", "value": "Stamp Duty", "percent": 0 },
                ]),
            ),
            (
                ReferenceList::InvoiceTypes,
                json!([{ "code": "380", "value": "Credit Note" }]),
            ),
            (
                ReferenceList::QuantityCodes,
                json!([{ "code": "EA", "name": "each" }]),
            ),
        ];
        for (list, items) in lists {
            catalog.load(list, &items);
        }
        catalog
    }

    fn document() -> Value {
        json!({
            "irn": "INV1-94AD90FB-20260115", "issue_date": "2026-01-15", "invoice_type_code": "380",
            "document_currency_code": "NGN", "tax_currency_code": "NGN", "note": " ", "accounting_cost": 0,
            "billing_reference": [{ "irn": "INV0-94AD90FB-20260101", "issue_date": "2026-01-01" }],
            "contract_document_reference": { "irn": "C-1" },
            "accounting_supplier_party": { "party_name": "Us", "postal_address": { "city_name": "Lagos" } },
            "allowance_charge": [{ "charge_indicator": true, "amount": 5 }, { "amount": 1 }],
            "invoice_line": [{
                "item": { "name": "Laptop", "description": "Light" }, "hsn_code": "8471.30", "tax_category": "STANDARD_VAT",
                "price": { "price_amount": 500, "base_quantity": 2, "price_unit": "EA" }, "invoiced_quantity": 8,
                "line_extension_amount": 1797.5, "discount_rate": 10, "discount_amount": 2.5,
            }],
            "tax_total": [{ "tax_subtotal": [{
                "taxable_amount": 1797.50, "tax_amount": 134.81, "tax_category": { "id": "STANDARD_VAT", "percent": 7.5 },
            }] }],
            "legal_monetary_total": {
                "line_extension_amount": 1797.5, "tax_exclusive_amount": 1797.5, "tax_inclusive_amount": 1932.31,
                "payable_amount": 1937.31,
            },
        })
    }

    #[test]
    fn a_document_is_read_with_the_names_of_its_codes() {
        let found = read_document(&document(), &catalog()).unwrap();
        assert_eq!(
            (found.number.as_str(), found.document_type.name.as_str()),
            ("INV1", "Credit Note")
        );
        assert_eq!(
            (found.tax_currency, found.notes.len(), found.accounting_cost),
            (None, 0, None)
        );
        let kinds: Vec<_> = found
            .references
            .iter()
            .map(|one| (one.kind, one.id.as_str()))
            .collect();
        let expected = [
            (ReferenceKind::Preceding, "INV0-94AD90FB-20260101"),
            (ReferenceKind::Contract, "C-1"),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(found.supplier.address.city.as_deref(), Some("Lagos"));
        assert_eq!(found.charges.len(), 1);
        let line = &found.lines[0];
        assert_eq!(
            (line.unit.name.as_str(), line.tax.category.name.as_str()),
            ("each", "VAT")
        );
        let charges: Vec<_> = line
            .charges
            .iter()
            .map(|charge| charge.amount.to_string())
            .collect();
        assert_eq!(charges, ["200", "2.5"]);
        assert_eq!(line.tax.percent, Some(Decimal::new(75, 1)));
        assert_eq!(line.description.as_deref(), Some("Light"));
        let mut repeating = document();
        repeating["invoice_line"][0]["item"]["description"] = json!("Laptop");
        let read = read_document(&repeating, &catalog()).unwrap();
        assert_eq!(read.lines[0].description, None);
        assert_eq!(found.taxes[0].amount, Decimal::new(13_481, 2));
        assert_eq!(found.totals.prepaid, Decimal::ZERO);
    }

    #[test]
    fn what_every_invoice_has_is_required() {
        let cases = [
            ("irn", "invoice_reference"),
            ("issue_date", "issue_date"),
            ("document_currency_code", "document_currency_code"),
            ("legal_monetary_total", "legal_monetary_total"),
        ];
        for (removed, named) in cases {
            let mut document = document();
            document.as_object_mut().unwrap().remove(removed);
            assert_eq!(
                read_document(&document, &catalog()),
                Err(UnreadableDocument(named))
            );
        }
        let mut odd = document();
        odd["invoice_line"][0]["price"] = json!("free");
        assert_eq!(
            read_document(&odd, &catalog()),
            Err(UnreadableDocument("invoice_line"))
        );
    }

    #[test]
    fn a_line_has_the_rate_of_its_subtotals_if_they_have_one() {
        // The authority's list says 7.5 percent.
        for (rates, expected) in [
            (&[10.0][..], "10"),
            (&[10.0, 10.0], "10"),
            (&[10.0, 5.0], "7.5"),
            (&[], "7.5"),
        ] {
            let subtotals = rates.iter().map(|rate| {
                json!({
                    "taxable_amount": 1, "tax_amount": 1, "tax_category": { "id": "STANDARD_VAT", "percent": rate },
                })
            });
            let mut document = document();
            document["tax_total"][0]["tax_subtotal"] = subtotals.collect();
            let found = read_document(&document, &catalog()).unwrap();
            let percent = found.lines[0].tax.percent.unwrap();
            assert_eq!(percent.normalize().to_string(), expected, "{rates:?}");
        }
    }

    #[test]
    fn a_line_without_a_tax_has_that_of_the_document_if_there_is_one() {
        let mut document = document();
        document["invoice_line"][0]
            .as_object_mut()
            .unwrap()
            .remove("tax_category");
        let code = |document: &Value| {
            let found = read_document(document, &catalog()).unwrap();
            found.lines[0].tax.category.code.clone()
        };
        assert_eq!(code(&document), "STANDARD_VAT");
        let other = document["tax_total"][0]["tax_subtotal"][0].clone();
        document["tax_total"][0]["tax_subtotal"] = json!([other, other]);
        assert_eq!(code(&document), "");
    }
}
