//! The parts of a UBL file that no field of its invoice takes: those that go back into its UBL, and what is told of them.

use trade_document::TradeDocument;
use ubl::Beside;

use crate::domain::invoice::ubl_parts::UblParts;

/// The maximum number of parts that a warning names.
const SHOWN_MAX: usize = 10;

/// The parts that are kept beside the invoice, and the warnings about all.
pub(super) struct Kept {
    pub(super) parts: UblParts,
    pub(super) warnings: Vec<String>,
}

/// The document on its way from the file to the invoice.
pub(super) struct Stages<'a> {
    pub(super) read: &'a TradeDocument,
    pub(super) imported: &'a TradeDocument,
    /// The imported document without the fields for which the form has no place.
    pub(super) emptied: &'a TradeDocument,
    pub(super) has_charges_after_tax: bool,
}

/// Keeps the parts that belong where they stood, as far as there is room.
pub(super) fn keep(beside: Vec<Beside>, stages: &Stages<'_>) -> Kept {
    let has_same_charges = stages.has_same_charges();
    let (fitting, mut lost): (Vec<_>, Vec<_>) = beside.into_iter().partition(|part| {
        let is_about_tax = part.root_child() == "cac:TaxTotal";
        let fits_charges = has_same_charges || !is_about_charge(part);
        fits_charges && (!stages.has_charges_after_tax || !is_about_tax)
    });
    let taken = warning(&fitting, |names| {
        format!("No field takes {names}: kept for the UBL of the invoice.")
    });
    let parts = ubl::empty_fields(stages.imported, stages.emptied, &fitting);
    let (parts, too_large) = UblParts::split_by_room(stages.imported, parts);
    lost.extend(too_large);
    let missing = warning(&lost, |names| {
        format!("The UBL of the invoice lacks {names}.")
    });
    Kept {
        parts,
        warnings: taken.into_iter().chain(missing).collect(),
    }
}

impl Stages<'_> {
    /// True if the parts of a charge, such as its base, still belong to one: it was neither divided nor joined with others
    /// of its line.
    fn has_same_charges(&self) -> bool {
        !self.has_charges_after_tax
            && self.imported.lines == self.read.lines
            && self.imported.charges == self.read.charges
            && self.read.lines.iter().all(|line| line.charges.len() <= 1)
    }
}

fn is_about_charge(part: &Beside) -> bool {
    part.path.contains("/cac:AllowanceCharge") && !part.path.contains("/cac:Price/")
}

/// Returns a warning that names the parts, unless there are none.
fn warning(beside: &[Beside], text: impl Fn(&str) -> String) -> Option<String> {
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
