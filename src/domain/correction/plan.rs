//! Plans a correction: finds the fewest documents that turn a signed invoice with its credit notes into the wanted
//! invoice (docs/corrections.md).

use jiff::civil::Date;
use serde_json::{Map, Value, json};

use crate::domain::correction::amounts::Amounts;
use crate::domain::correction::credit_note::CreditNoteBuilder;
use crate::domain::correction::lines::{
    has_category, lines_to_credit, match_original_lines, remaining_lines,
};
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::stored_document::invoice_type_code_for;
use crate::domain::invoice::totals::TotalTooLarge;
use crate::domain::invoice::{Draft, Invoice, Line};
use crate::domain::kernel::codes::DeclaredPaymentStatus;
use crate::domain::kernel::digest;
use crate::domain::reference::catalog::Catalog;

/// The fields that are not compared as they are. Amounts and type are compared in another way. The declared payment and
/// the reference to an earlier invoice are not compared at all; a replacement keeps the reference.
const UNCOMPARED_EXTRAS: [&str; 6] = [
    "invoice_type_code",
    "legal_monetary_total",
    "original_invoice_reference",
    "original_invoice_reference_type",
    "payment_status",
    "tax_total",
];
/// A field of a stored invoice that a standard invoice may have, although Create Invoice (Standard) cannot set it.
const NOTE: &str = "note";

/// The state in which the owner of the account wants a signed invoice to be.
#[derive(Debug, Clone)]
pub enum CorrectionWish {
    /// Cancel the invoice: it should not exist.
    Cancel,
    /// Replace the contents of the invoice by this draft, which has the number of the original.
    Become(Box<Draft>),
}

/// The numbers of the new documents of a correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorrectionNumbers {
    pub credit_note: String,
    pub replacement: String,
}

/// A signed invoice that is to be corrected.
#[derive(Debug, Clone, Copy)]
pub struct CorrectionCase<'a> {
    pub original: &'a Invoice,
    /// The signed credit notes of the invoice.
    pub credit_notes: &'a [Invoice],
    pub numbers: &'a CorrectionNumbers,
    pub today: Date,
    pub catalog: &'a Catalog,
}

/// The new documents of a correction, in the order in which they are signed. If nothing has to be done, there are none.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub credit_note: Option<Draft>,
    /// True if the credit note credits all that is left of the invoice.
    pub is_whole: bool,
    pub replacement: Option<Draft>,
    /// The amounts of the invoice less its present credit notes.
    pub before: Amounts,
    /// The amounts after the correction.
    pub after: Amounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(
        "The credit notes of this invoice come to more than the invoice. Correct it in the system that made them."
    )]
    OverCredited,
    #[error(
        "A credit note of this invoice is in another currency. Correct the credit note in the system that made it."
    )]
    OtherCurrency,
    #[error(
        "The amounts of this invoice cannot be computed. Correct it in the system that made it."
    )]
    NoAmounts,
}

impl From<TotalTooLarge> for PlanError {
    fn from(_: TotalTooLarge) -> Self {
        Self::NoAmounts
    }
}

impl<'a> CorrectionCase<'a> {
    pub fn plan(self, wish: &CorrectionWish) -> Result<Plan, PlanError> {
        let left = self.remaining_amounts()?;
        match wish {
            CorrectionWish::Cancel => {
                let credit_note = self.credit_note_for_rest(&left)?;
                Ok(Plan {
                    is_whole: credit_note.is_some(),
                    credit_note,
                    replacement: None,
                    before: left,
                    after: Amounts::zero(),
                })
            }
            CorrectionWish::Become(wanted) => {
                self.plan_change(self.complete_wanted_draft(wanted), &left)
            }
        }
    }

    /// Returns the amounts of the invoice less its credit notes.
    fn remaining_amounts(self) -> Result<Amounts, PlanError> {
        let original = Breakdown::from_invoice(self.original, self.catalog)?;
        let mut left = Amounts::from(original);
        for note in self.credit_notes {
            if note.currency != self.original.currency {
                return Err(PlanError::OtherCurrency);
            }
            let credited = Amounts::from(Breakdown::from_invoice(note, self.catalog)?);
            left = left.minus(&credited).ok_or(PlanError::NoAmounts)?;
        }
        if left.is_negative() {
            return Err(PlanError::OverCredited);
        }
        Ok(left)
    }

    /// Adds the data of the original that Create Invoice (Standard) cannot send: its note, and the descriptions of
    /// lines with the same item. A field that `wanted` has as null was cleared on purpose and stays away.
    fn complete_wanted_draft(self, wanted: &Draft) -> Draft {
        let mut wanted = wanted.clone();
        if self.original.is_full() {
            return wanted;
        }
        add_missing_fields(&mut wanted.extras, self.original.extras.get_key_value(NOTE));
        let known = match_original_lines(&self.original.lines, &wanted.lines);
        for (line, known) in wanted.lines.iter_mut().zip(known) {
            add_missing_fields(
                &mut line.extras,
                known.iter().flat_map(|known| &known.extras),
            );
        }
        wanted
    }

    fn plan_change(self, wanted: Draft, left: &Amounts) -> Result<Plan, PlanError> {
        let after = Amounts::from(Breakdown::from_draft(&wanted, self.catalog)?);
        let nothing = Plan {
            credit_note: None,
            is_whole: false,
            replacement: None,
            before: left.clone(),
            after: after.clone(),
        };
        if self.has_same_header(&wanted) {
            let lines = self.remaining_lines();
            let credited = lines.and_then(|lines| lines_to_credit(&lines, &wanted.lines));
            match credited {
                Some(credited) if credited.is_empty() && after == *left => return Ok(nothing),
                Some(credited) if !credited.is_empty() => {
                    if let Some(credit_note) = self.partial_credit_note(credited, left, &after) {
                        return Ok(Plan {
                            credit_note: Some(credit_note),
                            ..nothing
                        });
                    }
                }
                _ => {}
            }
        }
        let credit_note = self.credit_note_for_rest(left)?;
        Ok(Plan {
            is_whole: credit_note.is_some(),
            credit_note,
            replacement: Some(self.replacement_draft(wanted)),
            ..nothing
        })
    }

    /// True if only lines and amounts differ from the original. The customer is compared by its number, because the
    /// stored data of a customer wins over what is sent; an added tax number also counts as a difference.
    fn has_same_header(self, wanted: &Draft) -> bool {
        let original = self.original;
        let customer = &original.customer;
        let is_same_customer = wanted.customer.no == customer.external_customer_no
            && (customer.tin.is_some() || wanted.customer.tin.is_none());
        let type_of = |extras: &Map<String, Value>, text: &str| {
            let stated = extras.get("invoice_type_code").and_then(Value::as_str);
            let stated = stated.map(str::to_owned);
            stated.or_else(|| invoice_type_code_for(text, self.catalog))
        };
        let is_same_type = type_of(&original.extras, &original.invoice_type)
            == type_of(&wanted.extras, &wanted.invoice_type);
        is_same_customer
            && is_same_type
            && original.category == wanted.category
            && original.currency == wanted.currency
            && original.invoice_date == wanted.invoice_date
            && original.due_date == wanted.due_date
            && comparable_extras_text(&original.extras) == comparable_extras_text(&wanted.extras)
    }

    fn remaining_lines(self) -> Option<Vec<Line>> {
        let credited = self.credit_notes.iter().flat_map(|note| &note.lines);
        remaining_lines(&self.original.lines, credited)
    }

    fn credit_note_builder(self) -> CreditNoteBuilder<'a> {
        CreditNoteBuilder {
            original: self.original,
            invoice_no: &self.numbers.credit_note,
            date: self.today,
            catalog: self.catalog,
        }
    }

    /// Returns the credit note over these lines if it reduces the amounts from `left` to `after` in each tax category;
    /// otherwise `None`.
    fn partial_credit_note(
        self,
        lines: Vec<Line>,
        left: &Amounts,
        after: &Amounts,
    ) -> Option<Draft> {
        let difference = left.minus(after)?;
        let is_part = !difference.is_negative() && !difference.totals.payable_amount.is_zero();
        let mut categories = difference.taxes.keys();
        let is_covered =
            self.original.is_full() || categories.all(|category| has_category(&lines, category));
        if !is_part || !is_covered {
            return None;
        }
        self.credit_note_builder().credit_lines(lines, &difference)
    }

    /// Returns the credit note over all that is left of the invoice; `None` if nothing is left.
    fn credit_note_for_rest(self, left: &Amounts) -> Result<Option<Draft>, PlanError> {
        let notes = self.credit_note_builder();
        if self.credit_notes.is_empty() {
            return Ok(Some(notes.credit_whole_invoice()));
        }
        if left.is_zero() {
            return Ok(None);
        }
        let lines = self.remaining_lines().filter(|lines| !lines.is_empty());
        let over_rest = lines.and_then(|lines| notes.credit_lines(lines, left));
        let found = over_rest.or_else(|| notes.credit_lines(notes.summary_lines(left)?, left));
        found.map(Some).ok_or(PlanError::NoAmounts)
    }

    /// Returns the wanted invoice under a new number, with nothing paid yet.
    fn replacement_draft(self, wanted: Draft) -> Draft {
        let mut extras = wanted.extras;
        if let Some(status) = extras.get_mut("payment_status") {
            *status = json!(DeclaredPaymentStatus::Pending);
        }
        Draft {
            invoice_no: self.numbers.replacement.clone(),
            irn: None,
            declared: DeclaredPaymentStatus::Pending,
            batch_no: None,
            extras,
            ..wanted
        }
    }
}

/// Adds each known field that is missing. Then removes the fields that are null, which a caller has cleared.
fn add_missing_fields<'a>(
    fields: &mut Map<String, Value>,
    known: impl IntoIterator<Item = (&'a String, &'a Value)>,
) {
    for (name, value) in known {
        let field = fields.entry(name.clone());
        field.or_insert_with(|| value.clone());
    }
    fields.retain(|_, value| !value.is_null());
}

/// Returns the compared fields as text. The spelling of a number, such as `75` or `75.00`, does not change the text.
fn comparable_extras_text(extras: &Map<String, Value>) -> String {
    let compared: Map<_, _> = extras
        .iter()
        .filter(|(name, _)| !UNCOMPARED_EXTRAS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    digest::canonical_text(&Value::Object(compared))
}
