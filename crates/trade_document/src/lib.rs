//! An invoice or credit note as one complete value. Formats are written from it and read into it.
//!
//! Codes are texts, because each program that makes a document has its own lists of codes. Amounts are decimals with
//! the digits that their source wrote.

use jiff::civil::{Date, Time};
use rust_decimal::Decimal;

/// The reason of a discount or fee that a line has only because the amounts of all lines are rounded together.
pub const ROUNDING: &str = "Rounding";

/// An invoice or credit note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TradeDocument {
    /// The number that the supplier gave to the document.
    pub number: String,
    /// The invoice reference number (IRN), under which the authority knows the document; `None` if the authority does
    /// not know the document.
    pub irn: Option<String>,
    /// The code of the document type, such as 381, and its name in words.
    pub document_type: CodeAndName,
    pub issue_date: Date,
    pub issue_time: Option<Time>,
    pub due_date: Option<Date>,
    pub tax_point_date: Option<Date>,
    pub delivery_date: Option<Date>,
    pub period: Option<Period>,
    /// The ISO 4217 code of every amount.
    pub currency: String,
    /// The currency in which the tax is reported; `None` if it is that of the amounts.
    pub tax_currency: Option<String>,
    pub supplier: Party,
    pub customer: Party,
    pub references: Vec<Reference>,
    pub buyer_reference: Option<String>,
    pub accounting_cost: Option<String>,
    pub notes: Vec<String>,
    pub payment_means: Vec<PaymentMeans>,
    pub payment_terms: Option<String>,
    /// The discounts and fees on the whole document.
    pub charges: Vec<Charge>,
    pub lines: Vec<Line>,
    pub taxes: Vec<TaxSubtotal>,
    pub totals: Totals,
}

/// A code and its name. The name is empty if the source has only the code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeAndName {
    pub code: String,
    pub name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub start: Option<Date>,
    pub end: Option<Date>,
}

/// A company or person on a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Party {
    pub name: String,
    /// The number under which the other party knows this party.
    pub number: Option<String>,
    pub tin: Option<String>,
    /// The party's number in the register of companies.
    pub registration: Option<String>,
    pub email: Option<String>,
    pub telephone: Option<String>,
    pub description: Option<String>,
    pub address: Address,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Address {
    pub street: Option<String>,
    pub city: Option<String>,
    pub state: Option<String>,
    pub postal_code: Option<String>,
    /// The ISO 3166 code of two letters.
    pub country: Option<String>,
}

/// Another document that this one refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub kind: ReferenceKind,
    pub id: String,
    pub issue_date: Option<Date>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferenceKind {
    /// The invoice that this document corrects.
    Preceding,
    Order,
    Dispatch,
    Receipt,
    Originator,
    Contract,
    Additional,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentMeans {
    pub means: CodeAndName,
    pub due_date: Option<Date>,
}

/// A discount or fee. `rate` is the percentage from which the amount was computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    pub is_fee: bool,
    pub amount: Decimal,
    pub rate: Option<Decimal>,
    pub reason: Option<String>,
    /// The tax that the amount belongs to; `None` if the source does not say.
    pub tax: Option<Tax>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub name: String,
    pub description: Option<String>,
    /// The number of the item in the supplier's catalogue.
    pub item_number: Option<String>,
    pub item_kind: ItemKind,
    pub quantity: Decimal,
    /// The unit of the quantity: a code of UN/ECE Recommendation 20, or one of Recommendation 21 with an X before it.
    pub unit: CodeAndName,
    /// The price of `base_quantity` units before tax.
    pub price: Decimal,
    pub base_quantity: Decimal,
    pub charges: Vec<Charge>,
    /// The amount of the line after its discounts and fees and before tax.
    pub amount: Decimal,
    pub tax: Tax,
    /// The code that classifies the goods or the service, such as 8471.30.
    pub classification: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemKind {
    Product,
    Service,
}

/// A tax category, such as `STANDARD_VAT` with the name VAT and 7.5 percent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tax {
    pub category: CodeAndName,
    pub percent: Option<Decimal>,
}

impl Tax {
    /// Returns the category code and the percent. Taxes with the same key are the same tax.
    pub fn code_and_percent(&self) -> (&str, Decimal) {
        let percent = self.percent.unwrap_or_default();
        (self.category.code.as_str(), percent)
    }
}

/// The tax of one category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaxSubtotal {
    pub tax: Tax,
    pub base: Decimal,
    pub amount: Decimal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// The sum of the amounts of the lines.
    pub lines: Decimal,
    pub tax_exclusive: Decimal,
    pub tax_inclusive: Decimal,
    pub prepaid: Decimal,
    pub rounding: Decimal,
    pub payable: Decimal,
}

impl TradeDocument {
    /// Returns the sum of the tax of all categories.
    pub fn tax(&self) -> Decimal {
        let amounts = self.taxes.iter().map(|subtotal| subtotal.amount);
        amounts.sum()
    }
}
