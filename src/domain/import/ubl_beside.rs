//! The parts of a UBL document that no field of its invoice holds. Some are kept and put back into the UBL of the
//! invoice. Warnings name all of them.

use trade_document::TradeDocument;
use ubl::UnmappedPart;

use crate::domain::invoice::ubl_parts::{UblParts, is_replaced_by_profile};

/// The maximum number of parts that a warning names.
const SHOWN_MAX: usize = 10;

/// The parts that are kept beside the invoice, and warnings that name the kept and the lost parts.
pub(super) struct KeptParts {
    pub(super) parts: UblParts,
    pub(super) warnings: Vec<String>,
}

/// The document in three stages between the file and the invoice.
pub(super) struct DocumentStages<'a> {
    pub(super) read: &'a TradeDocument,
    pub(super) imported: &'a TradeDocument,
    /// The imported document without the data for which the create request has no field.
    pub(super) emptied: &'a TradeDocument,
    pub(super) has_charges_after_tax: bool,
}

/// Keeps the parts that still fit the imported document, up to the size limit of `UblParts`. The warnings name the
/// others, too.
pub(super) fn keep_fitting_parts(
    beside: Vec<UnmappedPart>,
    stages: &DocumentStages<'_>,
) -> KeptParts {
    let has_same_charges = stages.has_same_charges();
    let (fitting, mut lost): (Vec<_>, Vec<_>) = beside.into_iter().partition(|part| {
        let is_about_tax = part.root_child() == "cac:TaxTotal";
        let fits_charges = has_same_charges || !is_about_charge(part);
        let is_replaced = is_replaced_by_profile(part, &stages.read.document_type.code);
        fits_charges && !is_replaced && (!stages.has_charges_after_tax || !is_about_tax)
    });
    let taken = parts_warning(&fitting, |names| {
        format!("No field takes {names}: kept for the UBL of the invoice.")
    });
    let parts = ubl::parts_after_emptying(stages.imported, stages.emptied, &fitting);
    let limited = UblParts::split_by_size_limit(stages.emptied, parts);
    lost.extend(limited.too_large);
    let missing = parts_warning(&lost, |names| {
        format!("The UBL of the invoice lacks {names}.")
    });
    KeptParts {
        parts: limited.kept,
        warnings: taken.into_iter().chain(missing).collect(),
    }
}

impl DocumentStages<'_> {
    /// True if the charges are those of the file, so that a part such as the base of a charge still fits. False if
    /// charges were divided, or if a line had several, which are joined into one.
    fn has_same_charges(&self) -> bool {
        !self.has_charges_after_tax
            && self.imported.lines == self.read.lines
            && self.imported.charges == self.read.charges
            && self.read.lines.iter().all(|line| line.charges.len() <= 1)
    }
}

fn is_about_charge(part: &UnmappedPart) -> bool {
    part.path.contains("/cac:AllowanceCharge") && !part.path.contains("/cac:Price/")
}

/// Returns a warning that names the parts, unless there are none.
fn parts_warning(beside: &[UnmappedPart], text: impl Fn(&str) -> String) -> Option<String> {
    let names = beside.iter().take(SHOWN_MAX).map(|part| {
        let tag = part.value.strip_prefix('<');
        let name = tag.and_then(|tag| tag.split(['>', ' ', '/']).next());
        match name {
            Some(name) => format!("{}/{name}", part.path),
            None => part.path.clone(),
        }
    });
    let names = names.collect::<Vec<_>>().join(", ");
    let more = match beside.len().saturating_sub(SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!beside.is_empty()).then(|| text(&format!("{names}{more}")))
}
