//! The invoice or credit note that the authority signed. A caller may have sent a document with other lines or amounts
//! than the stored invoice has.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::domain::invoice::breakdown::DocumentTotals;
use crate::domain::invoice::document_amounts::amount_members;
use crate::domain::invoice::document_difference::Differences;
use crate::domain::invoice::{Invoice, Line};
use crate::domain::money::Amount;
use crate::domain::payment::Payment;
use crate::domain::reference::catalog::Catalog;

/// The members of a document that hold its lines and amounts.
const AMOUNT_MEMBERS: [&str; 5] = [
    "allowance_charge",
    "document_currency_code",
    "invoice_line",
    "legal_monetary_total",
    "tax_total",
];
/// The members of a line that determine its amount and its tax.
const LINE_MEMBERS: [&str; 10] = [
    "discount_amount",
    "discount_rate",
    "fee_amount",
    "fee_rate",
    "invoiced_quantity",
    "item",
    "line_extension_amount",
    "price",
    "tax_category",
    "total_tax",
];
/// The members of a signed full document that are copied into the invoice unchanged.
const KEPT_MEMBERS: [&str; 3] = ["allowance_charge", "legal_monetary_total", "tax_total"];
/// The members of a signed line that are copied into the stored line unchanged. Lines of standard invoices state no
/// amounts.
const KEPT_LINE_MEMBERS: [&str; 2] = ["fee_amount", "fee_rate"];
const KEPT_FULL_LINE_MEMBERS: [&str; 4] = [
    "fee_amount",
    "fee_rate",
    "line_extension_amount",
    "total_tax",
];

/// The error for a signed document whose lines and amounts cannot be copied into the stored invoice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "The authority signed {number} with other lines or amounts than are stored here: {signed} signed, {stored} stored. Create the credit note in the system that sent the document."
)]
pub struct SignedAmountsMismatch {
    number: String,
    signed: String,
    stored: String,
}

/// The result of comparing the lines and amounts of a signed document with those of the stored invoice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedContentComparison {
    AsStored,
    /// Other lines or amounts were signed, and `signed_invoice` can copy them into the stored invoice.
    Other,
    /// Other lines or amounts were signed, and they cannot be copied into the stored invoice.
    Unknown,
}

impl SignedContentComparison {
    pub fn compare(stored: &Invoice, document: &Map<String, Value>, catalog: &Catalog) -> Self {
        match signed_invoice(stored, document, catalog) {
            Ok(signed) if signed == *stored => Self::AsStored,
            Ok(_) => Self::Other,
            Err(_) => Self::Unknown,
        }
    }
}

/// Returns the payable of a signed document, in the currency of the stored invoice. `None` if the document is in
/// another currency, in which no payment of the invoice is recorded.
pub fn signed_payable(stored: &Invoice, document: &Value) -> Option<Amount> {
    let currency = document.get("document_currency_code")?.as_str()?;
    let payable = document.pointer("/legal_monetary_total/payable_amount")?;
    let payable = Amount::deserialize(payable).ok()?;
    (currency == stored.currency).then_some(payable)
}

/// Returns the stored invoice with the lines and amounts that the authority signed.
pub fn signed_invoice(
    stored: &Invoice,
    document: &Map<String, Value>,
    catalog: &Catalog,
) -> Result<Invoice, SignedAmountsMismatch> {
    let Some(totals) = document
        .get("legal_monetary_total")
        .and_then(|totals| DocumentTotals::deserialize(totals).ok())
    else {
        return Ok(stored.clone());
    };
    if has_same_amounts(stored, document, catalog) {
        return Ok(stored.clone());
    }
    let taken_over = copy_signed_amounts(stored, document, totals.payable_amount)
        .filter(|invoice| has_same_amounts(invoice, document, catalog));
    taken_over.ok_or_else(|| {
        let currency = document.get("document_currency_code");
        let currency = currency.and_then(Value::as_str).unwrap_or_default();
        SignedAmountsMismatch {
            number: stored.invoice_no.clone(),
            signed: format!("{currency} {}", totals.payable_amount),
            stored: format!("{} {}", stored.currency, stored.payment.payable),
        }
    })
}

/// True if the document has the lines and amounts of the invoice.
fn has_same_amounts(invoice: &Invoice, document: &Map<String, Value>, catalog: &Catalog) -> bool {
    let Ok(mut own) = amount_members(invoice, catalog) else {
        return false;
    };
    if let Some(charges) = invoice.extras.get("allowance_charge") {
        own.insert("allowance_charge".to_owned(), charges.clone());
    }
    let signed = reduce_to_amounts(document);
    Differences::between(&signed, &reduce_to_amounts(&own), invoice.into()).is_empty()
}

fn reduce_to_amounts(document: &Map<String, Value>) -> Map<String, Value> {
    let mut reduced = pick_members(document, &AMOUNT_MEMBERS);
    if let Some(Value::Array(lines)) = reduced.get_mut("invoice_line") {
        for line in lines.iter_mut().filter_map(Value::as_object_mut) {
            *line = pick_members(line, &LINE_MEMBERS);
        }
    }
    reduced
}

fn pick_members(object: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let members = names.iter().filter_map(|name| object.get_key_value(*name));
    members
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Returns the stored invoice with the lines and amounts of the document. `None` if a line of the document lacks its
/// price or quantity, or matches no line of the invoice, so that its tax category is unknown.
fn copy_signed_amounts(
    stored: &Invoice,
    document: &Map<String, Value>,
    payable: Amount,
) -> Option<Invoice> {
    let lines = document.get("invoice_line")?.as_array()?;
    let kept: &[&str] = if stored.is_full() {
        &KEPT_FULL_LINE_MEMBERS
    } else {
        &KEPT_LINE_MEMBERS
    };
    let mut known: Vec<Option<&Line>> = stored.lines.iter().map(Some).collect();
    let is_by_place = known.len() == lines.len();
    let mut signed = Vec::with_capacity(lines.len());
    for (place, line) in lines.iter().enumerate() {
        let name = line.pointer("/item/name").and_then(Value::as_str);
        let is_named = |known: &&Line| Some(known.item_name.as_str()) == name;
        let named = known
            .iter()
            .position(|known| known.as_ref().is_some_and(is_named));
        let at = named.or(is_by_place.then_some(place))?;
        let stored = known.get_mut(at)?.take()?;
        signed.push(signed_line(stored, line, kept)?);
    }
    let mut extras = stored.extras.clone();
    if stored.is_full() {
        replace_members(&mut extras, document, &KEPT_MEMBERS);
    }
    Some(Invoice {
        lines: signed,
        payment: Payment {
            payable,
            ..stored.payment
        },
        extras,
        ..stored.clone()
    })
}

/// Returns the stored line as the line `document` of the signed document states it. The members `kept_members` are
/// copied unchanged. `None` if the signed line lacks its price or quantity.
fn signed_line(stored: &Line, document: &Value, kept_members: &[&str]) -> Option<Line> {
    let amount = |pointer: &str| Amount::deserialize(document.pointer(pointer)?).ok();
    let text = |pointer: &str, stored: &str| {
        let stated = document.pointer(pointer).and_then(Value::as_str);
        stated.unwrap_or(stored).to_owned()
    };
    let mut line = Line {
        item_name: text("/item/name", &stored.item_name),
        unit_price: amount("/price/price_amount")?,
        quantity: amount("/invoiced_quantity")?,
        item_no: document
            .pointer("/item/sellers_item_identification")
            .and_then(Value::as_str)
            .map(str::to_owned)
            .or_else(|| stored.item_no.clone()),
        price_unit: text("/price/price_unit", &stored.price_unit),
        tax_category: text("/tax_category", &stored.tax_category),
        discount_rate: amount("/discount_rate"),
        discount_amount: amount("/discount_amount"),
        ..stored.clone()
    };
    let price = document.get("price")?.as_object()?;
    replace_members(&mut line.extras, price, &["base_quantity"]);
    replace_members(&mut line.extras, document.as_object()?, kept_members);
    Some(line)
}

/// Replaces these members by those of `document`. A member that `document` lacks is removed.
fn replace_members(extras: &mut Map<String, Value>, document: &Map<String, Value>, names: &[&str]) {
    extras.retain(|name, _| !names.contains(&name.as_str()));
    extras.extend(pick_members(document, names));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::correction::plan::CorrectionWish;
    use crate::domain::correction::testing::{catalog, draft, plan, signed};

    fn laptops() -> Line {
        Line {
            quantity: 2.into(),
            unit_price: 500.into(),
            ..Line::sample()
        }
    }

    fn mouse() -> Line {
        Line {
            item_name: "Mouse".to_owned(),
            ..Line::sample()
        }
    }

    fn document(invoice: &Invoice) -> Map<String, Value> {
        amount_members(invoice, &catalog()).unwrap()
    }

    #[test]
    fn a_payable_counts_in_the_currency_of_the_invoice() {
        let stored = signed(draft(vec![laptops()]));
        let document = |currency: &str| json!({ "document_currency_code": currency, "legal_monetary_total": { "payable_amount": 215 } });
        for (document, payable) in [
            (document("NGN"), Some(Amount::from(215))),
            (document("USD"), None),
            (json!({ "document_currency_code": "NGN" }), None),
            (json!({}), None),
        ] {
            assert_eq!(signed_payable(&stored, &document), payable, "{document}");
        }
    }

    #[test]
    fn lines_and_amounts_are_those_that_were_signed() {
        let stored = signed(draft(vec![laptops(), mouse()]));
        let one = Line {
            quantity: 1.into(),
            ..laptops()
        };
        let cheaper = Line {
            unit_price: Amount::parse("499.99").unwrap(),
            discount_rate: Some(10.into()),
            ..laptops()
        };
        for (lines, payable) in [
            (vec![laptops(), mouse()], "1182.50"),
            (vec![one.clone(), mouse()], "645.00"),
            (vec![cheaper, mouse()], "1074.98"),
            (vec![mouse()], "107.50"),
            (vec![mouse(), laptops()], "1182.50"),
        ] {
            let sent = draft(lines);
            let wanted = CorrectionWish::Become(Box::new(sent.clone()));
            let document = document(&signed(sent));
            let original = signed_invoice(&stored, &document, &catalog()).unwrap();
            assert_eq!(original.payment.payable.to_string(), payable);
            let same = plan(&original, &[], &wanted).unwrap();
            assert_eq!(
                (same.credit_note, same.replacement),
                (None, None),
                "{payable}"
            );
            let cancelled = plan(&original, &[], &CorrectionWish::Cancel).unwrap();
            let cancelled = cancelled.credit_note.unwrap();
            assert_eq!(cancelled.payable.to_string(), payable);
            assert_eq!(cancelled.lines, original.lines);
        }
    }

    #[test]
    fn what_was_signed_is_compared_in_currency_lines_and_taxes() {
        let stored = signed(draft(vec![laptops()]));
        let two_lines = signed(draft(vec![laptops(), mouse()]));
        // As much in all as two laptops with VAT, in other parts.
        let untaxed = Line {
            tax_category: "ZERO_VAT".to_owned(),
            unit_price: Amount::parse("537.5").unwrap(),
            ..laptops()
        };
        let mut foreign = document(&stored);
        foreign["document_currency_code"] = json!("USD");
        let mut split = document(&stored);
        split["legal_monetary_total"]["tax_inclusive_amount"] = json!(1_080);
        for (document, content) in [
            (document(&stored), SignedContentComparison::AsStored),
            (Map::new(), SignedContentComparison::AsStored),
            (
                document(&signed(draft(vec![untaxed]))),
                SignedContentComparison::Other,
            ),
            (document(&two_lines), SignedContentComparison::Unknown),
            (foreign, SignedContentComparison::Unknown),
            (split, SignedContentComparison::Unknown),
        ] {
            let found = SignedContentComparison::compare(&stored, &document, &catalog());
            assert_eq!(found, content, "{document:?}");
        }
    }

    #[test]
    fn another_document_that_cannot_be_taken_over_is_refused_with_both_amounts() {
        let stored = signed(draft(vec![laptops()]));
        let other_total = |name: &str, value: Value| {
            let mut document = document(&stored);
            document["legal_monetary_total"][name] = value;
            document
        };
        let mut foreign = document(&stored);
        foreign["document_currency_code"] = json!("USD");
        let mut charged = document(&stored);
        let charge = json!([{ "charge_indicator": true, "amount": 5 }]);
        charged.insert("allowance_charge".to_owned(), charge);
        for (document, signed) in [
            (
                other_total("payable_amount", json!(10_750)),
                "NGN 10750 signed",
            ),
            (
                other_total("tax_inclusive_amount", json!(1_080)),
                "NGN 1075.00 signed",
            ),
            (foreign, "USD 1075.00 signed"),
            (charged, "NGN 1075.00 signed"),
            (
                document(&signed(draft(vec![laptops(), mouse()]))),
                "NGN 1182.50 signed",
            ),
        ] {
            let refused = signed_invoice(&stored, &document, &catalog()).unwrap_err();
            let words = refused.to_string();
            assert!(words.contains(signed), "{words}");
            assert!(words.contains("NGN 1075.00 stored"), "{words}");
        }
    }

    #[test]
    fn a_full_invoice_has_the_totals_that_were_signed() {
        let full = |lines: Vec<Line>, total: &str, allowance: Value| {
            let mut draft = draft(lines);
            let amount = Amount::parse(total).unwrap();
            draft.payable = amount;
            let totals = json!({
                "line_extension_amount": amount, "tax_exclusive_amount": amount,
                "tax_inclusive_amount": amount, "payable_amount": amount,
            });
            draft
                .extras
                .insert("legal_monetary_total".to_owned(), totals);
            draft
                .extras
                .insert("allowance_charge".to_owned(), allowance);
            signed(draft)
        };
        let stored = full(vec![laptops()], "1075", json!([]));
        let allowance = json!([{ "charge_indicator": false, "amount": 75 }]);
        let sent = full(vec![laptops()], "1000", allowance.clone());
        let mut document = document(&sent);
        document.insert("allowance_charge".to_owned(), allowance.clone());
        let original = signed_invoice(&stored, &document, &catalog()).unwrap();
        assert_eq!(original.payment.payable, Amount::from(1_000));
        let cancelled = plan(&original, &[], &CorrectionWish::Cancel).unwrap();
        let cancelled = cancelled.credit_note.unwrap();
        assert_eq!(cancelled.payable, Amount::from(1_000));
        assert_eq!(cancelled.extras["allowance_charge"], allowance);
    }
}
