//! A sale and its VAT, which the operation Report sends to the authority. The authority's document has its numbers as
//! JSON strings.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::domain::kernel::digest;
use crate::domain::money::Amount;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VatReport {
    pub agent_tin: String,
    pub beneficiary_tin: String,
    pub currency: String,
    pub item_description: String,
    pub transaction_date: Date,
    pub integrator_service_id: String,
    /// The authority's word for the tax treatment.
    pub vat_status: String,
    pub base_amount: AmountText,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub other_taxes: Option<AmountText>,
    pub vat_rate: AmountText,
    pub vat_calculated: AmountText,
    pub total_amount: AmountText,
}

/// An amount that is written as a text, with the digits that the caller gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AmountText(String);

impl From<Amount> for AmountText {
    fn from(amount: Amount) -> Self {
        Self(amount.to_string())
    }
}

impl AmountText {
    fn to_canonical(&self) -> Self {
        Self(digest::canonical_number_text(&self.0).unwrap_or_else(|| self.0.clone()))
    }
}

impl VatReport {
    /// Returns the report with each number in its canonical spelling: `"5"` and `"5.00"` become equal.
    #[must_use]
    pub fn with_canonical_numbers(&self) -> Self {
        Self {
            base_amount: self.base_amount.to_canonical(),
            other_taxes: self.other_taxes.as_ref().map(AmountText::to_canonical),
            vat_rate: self.vat_rate.to_canonical(),
            vat_calculated: self.vat_calculated.to_canonical(),
            total_amount: self.total_amount.to_canonical(),
            ..self.clone()
        }
    }
}
