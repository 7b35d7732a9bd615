//! Takes the discounts and fees without tax out of a document, for formats that apply them after the tax. The payable
//! amount does not change.

use std::collections::{HashMap, HashSet};

use rust_decimal::Decimal;
use trade_document::{Charge, TradeDocument};

use crate::read::net_charges;

/// A document, and the discounts and fees on it that are applied after its tax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitCharges {
    pub document: TradeDocument,
    pub after_tax: Vec<Charge>,
}

/// Takes out the charges whose tax has zero percent and is the tax of no line. The totals before and after tax no
/// longer include them.
pub fn split_untaxed_charges(mut document: TradeDocument) -> SplitCharges {
    let charges = std::mem::take(&mut document.charges);
    // A document may have many charges, taxes and lines, so they are not compared each with each.
    let lines = document.lines.iter();
    let lines: HashSet<_> = lines.map(|line| line.tax.code_and_percent()).collect();
    let (after_tax, rest): (Vec<_>, Vec<_>) = charges.into_iter().partition(|charge| {
        charge.tax.as_ref().is_some_and(|tax| {
            let is_zero = tax.percent.unwrap_or_default().is_zero();
            is_zero && !lines.contains(&tax.code_and_percent())
        })
    });
    document.charges = rest;
    let added = net_charges(&after_tax);
    document.totals.tax_exclusive -= added;
    document.totals.tax_inclusive -= added;
    let mut bases: HashMap<_, Decimal> = HashMap::new();
    for charge in &after_tax {
        if let Some(tax) = &charge.tax {
            *bases.entry(tax.code_and_percent()).or_default() +=
                net_charges(std::slice::from_ref(charge));
        }
    }
    // The first of several subtotals with the same tax takes all charges.
    for subtotal in &mut document.taxes {
        let base = bases.remove(&subtotal.tax.code_and_percent());
        subtotal.base -= base.unwrap_or_default();
    }
    document.taxes.retain(|subtotal| {
        let is_empty = subtotal.base.is_zero() && subtotal.amount == Decimal::ZERO;
        !is_empty || lines.contains(&subtotal.tax.code_and_percent())
    });
    SplitCharges {
        document,
        after_tax,
    }
}
