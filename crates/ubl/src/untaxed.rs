//! Takes the discounts and fees without tax out of a document, for formats that apply them after the tax. The payable
//! amount does not change.

use rust_decimal::Decimal;
use trade_document::{Charge, TradeDocument};

use crate::allocate::is_same_tax;
use crate::read::net_charges;

/// A document, and the discounts and fees on it that are applied after its tax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitCharges {
    pub document: TradeDocument,
    pub after_tax: Vec<Charge>,
}

/// Takes out the charges whose tax has zero percent and is the tax of no line. The totals before and after tax no
/// longer include them.
pub fn split_untaxed(mut document: TradeDocument) -> SplitCharges {
    let charges = std::mem::take(&mut document.charges);
    let lines = &document.lines;
    let (after_tax, rest): (Vec<_>, Vec<_>) = charges.into_iter().partition(|charge| {
        charge.tax.as_ref().is_some_and(|tax| {
            let is_zero = tax.percent.unwrap_or_default().is_zero();
            is_zero && !lines.iter().any(|line| is_same_tax(tax, &line.tax))
        })
    });
    document.charges = rest;
    let added = net_charges(&after_tax);
    document.totals.tax_exclusive -= added;
    document.totals.tax_inclusive -= added;
    for charge in &after_tax {
        let tax = charge.tax.clone().unwrap_or_default();
        let base = net_charges(std::slice::from_ref(charge));
        let mut taxes = document.taxes.iter_mut();
        if let Some(subtotal) = taxes.find(|subtotal| is_same_tax(&tax, &subtotal.tax)) {
            subtotal.base -= base;
        }
    }
    document.taxes.retain(|subtotal| {
        let is_empty = subtotal.base.is_zero() && subtotal.amount == Decimal::ZERO;
        !is_empty
            || document
                .lines
                .iter()
                .any(|line| is_same_tax(&subtotal.tax, &line.tax))
    });
    SplitCharges {
        document,
        after_tax,
    }
}
