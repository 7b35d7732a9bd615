//! Reads the lines as they are in the XML. Negative amounts and wrong prices are corrected afterwards, in `signs`.

use rust_decimal::Decimal;
use trade_document::{CodeAndName, ItemKind, Line, Tax, TaxSubtotal};

use super::Reader;
use super::money::{is_in_currency, net_charges};
use crate::codes::{self, EACH, RootKind};
use crate::element::{Element, UNIT, fold_spaces};
use crate::fault::Cause;
use crate::fixed_texts::{ITEM_TYPE, ITEM_TYPES, PRODUCT_LIST, SERVICE_LIST};
use crate::rounding::round;

/// The number of digits of a subheading of the Harmonized System. It is written with a point: 8471.30.
const HEADING_DIGITS: usize = 6;

pub(super) struct RawLine<'a> {
    pub line: Line,
    pub element: &'a Element,
}

impl<'a> Reader<'a> {
    pub(super) fn lines(
        &mut self,
        root_kind: RootKind,
        currency: &str,
        taxes: &[TaxSubtotal],
    ) -> Vec<RawLine<'a>> {
        let (name, quantity) = match root_kind {
            RootKind::Invoice => ("cac:InvoiceLine", "cbc:InvoicedQuantity"),
            RootKind::CreditNote => ("cac:CreditNoteLine", "cbc:CreditedQuantity"),
        };
        let root = self.root;
        let mut lines = Vec::new();
        for (index, element) in root.children_named(name).enumerate() {
            if element.peek_at("cbc:ID") == (index + 1).to_string() {
                element.text_at("cbc:ID");
            }
            let line = self.line(element, quantity, currency, taxes);
            lines.extend(line.map(|line| RawLine { line, element }));
        }
        if root.children_named(name).next().is_none() {
            self.report_fault(
                Cause::Missing,
                root,
                format!("The document has no lines ({name})."),
            );
        }
        lines
    }

    fn line(
        &mut self,
        element: &Element,
        quantity_name: &str,
        currency: &str,
        taxes: &[TaxSubtotal],
    ) -> Option<Line> {
        let Some(amount) = self.amount_at(element, "cbc:LineExtensionAmount", currency) else {
            self.report_fault(
                Cause::Missing,
                element,
                "The line has no amount.".to_owned(),
            );
            return None;
        };
        let item = element.at("cac:Item");
        let name = item.and_then(|item| item.text_at("cbc:Name"));
        let description = item.and_then(|item| item.text_at("cbc:Description"));
        let Some(name) = name.or_else(|| description.clone()) else {
            self.report_fault(
                Cause::Missing,
                element,
                "The line names no item.".to_owned(),
            );
            return None;
        };
        let item = item?;
        let tax = self.line_tax(element, item, taxes)?;
        let quantity_element = element.at(quantity_name);
        let quantity = quantity_element.and_then(|one| self.decimal(one));
        let unit = self.unit(element, quantity_element);
        let base_quantity = self.decimal_at(element, "cac:Price/cbc:BaseQuantity");
        let item_kind = self.item_kind(item, &unit);
        let mut line = Line {
            name,
            description,
            item_number: item.text_at("cac:SellersItemIdentification/cbc:ID"),
            item_kind,
            quantity: quantity.unwrap_or_default(),
            unit: CodeAndName {
                code: unit,
                name: String::new(),
            },
            price: Decimal::ZERO,
            base_quantity: base_quantity
                .filter(|base| *base > Decimal::ZERO)
                .unwrap_or(Decimal::ONE),
            charges: self.charges(element, currency),
            amount,
            tax,
            classification: self.classification(item, item_kind),
        };
        let price = element
            .at("cac:Price/cbc:PriceAmount")
            .filter(|one| is_in_currency(one, currency));
        let price = price.and_then(|one| self.decimal(one));
        self.set_price(element, &mut line, price);
        Some(line)
    }

    /// Sets the price. If the price or the quantity is missing, computes it from the amount of the line.
    fn set_price(&mut self, element: &Element, line: &mut Line, price: Option<Decimal>) {
        if let (Some(price), false) = (price, line.quantity.is_zero() && !line.amount.is_zero()) {
            line.price = price;
            return;
        }
        let gross = line.amount - net_charges(&line.charges);
        let divided = gross
            .checked_mul(line.base_quantity)
            .and_then(|one| one.checked_div(line.quantity));
        match divided {
            Some(price) if price == round(price, 6) => {
                line.price = price.normalize();
            }
            _ => {
                line.quantity = Decimal::ONE;
                line.base_quantity = Decimal::ONE;
                line.price = gross;
            }
        }
        let sentence = format!(
            "The line has no quantity or no price in the document's currency: {} × {} was taken from its amount {}.",
            line.quantity, line.price, line.amount
        );
        self.report_change(Cause::Price, element, sentence);
    }

    /// Returns the tax of a line: its own, otherwise the one in its tax total, otherwise the only one of the document.
    fn line_tax(&mut self, line: &Element, item: &Element, taxes: &[TaxSubtotal]) -> Option<Tax> {
        let own = item
            .at("cac:ClassifiedTaxCategory")
            .and_then(|one| self.tax(one, None));
        let tax = own.or_else(|| self.tax_from_line_total(line));
        if item.children_named("cac:ClassifiedTaxCategory").count() > 1 {
            let sentence = "The line has several taxes; the first was taken.".to_owned();
            self.report_change(Cause::TaxCategory, line, sentence);
        }
        if let Some(mut tax) = tax {
            tax.percent = tax.percent.or_else(|| only_percent(taxes, &tax));
            return Some(tax);
        }
        let sentence = match taxes {
            [only] => {
                let name = &only.tax.category.code;
                self.report_change_once(
                    Cause::TaxCategory,
                    line,
                    format!("Lines without a tax got the only one of the document, {name}."),
                );
                return Some(only.tax.clone());
            }
            [] if self.root.at("cac:TaxTotal").is_none() => {
                let sentence = "The document states no tax: its lines became exempted.".to_owned();
                self.report_change_once(Cause::TaxCategory, line, sentence);
                let own = codes::read_tax_category("E", "VAT", "", None).value;
                let category = CodeAndName {
                    code: own.to_owned(),
                    name: "VAT".to_owned(),
                };
                return Some(Tax {
                    category,
                    percent: Some(Decimal::ZERO),
                });
            }
            _ => "The line does not say its tax, and the document has not just one.",
        };
        self.report_fault(Cause::TaxCategory, line, sentence.to_owned());
        None
    }

    /// Returns the tax in the tax total that a line may have. Our writer puts it into the item instead.
    fn tax_from_line_total(&mut self, line: &Element) -> Option<Tax> {
        let sum = line.at("cac:TaxTotal/cac:TaxSubtotal")?;
        let tax = self.tax(sum.at("cac:TaxCategory")?, Some(sum));
        line.children_named("cac:TaxTotal")
            .for_each(Element::mark_converted);
        let totals = line.children_named("cac:TaxTotal");
        if totals
            .map(|total| total.children_named("cac:TaxSubtotal").count())
            .sum::<usize>()
            > 1
        {
            let sentence = "The line has several taxes; the first was taken.".to_owned();
            self.report_change(Cause::TaxCategory, line, sentence);
        }
        tax
    }

    /// Returns the unit of a quantity. Units that the caller replaces are replaced. Packages and other words for pieces
    /// become the unit for pieces.
    fn unit(&mut self, line: &Element, quantity: Option<&Element>) -> String {
        let attribute = quantity.and_then(|one| {
            one.attributes
                .iter()
                .find(|attribute| attribute.name == UNIT)
        });
        let unit = attribute
            .map(|attribute| fold_spaces(&attribute.value))
            .unwrap_or_default();
        if let Some(wanted) = self.units.get(&unit).cloned() {
            let sentence = format!("The unit {unit} became {wanted}, as it was asked for.");
            self.report_change(Cause::Unit, quantity.unwrap_or(line), sentence);
            return wanted;
        }
        let sentence = match codes::package_name(&unit) {
            _ if unit.is_empty() => format!("The line has no unit; {EACH} (each) was taken."),
            Some(name) => {
                format!("The unit {unit} ({name}, Recommendation 21) became {EACH} (each).")
            }
            None if codes::is_piece_word(&unit) => {
                format!(
                    "The unit {unit}, which is no code of Recommendation 20, became {EACH} (each)."
                )
            }
            None => {
                attribute.inspect(|attribute| attribute.is_read.set(true));
                let base = line.at("cac:Price/cbc:BaseQuantity");
                if base.is_some_and(|base| has_unit(base, &unit)) {
                    base.and_then(|base| base.attribute(UNIT));
                }
                return unit;
            }
        };
        self.report_change(Cause::Unit, quantity.unwrap_or(line), sentence);
        EACH.to_owned()
    }

    /// Returns the kind that our writer stored. Without it, an item whose unit is a unit of time is a service.
    fn item_kind(&mut self, item: &Element, unit: &str) -> ItemKind {
        for property in item.children_named("cac:AdditionalItemProperty") {
            let word = property.peek_at("cbc:Value");
            let kind = ITEM_TYPES.iter().find(|(name, _)| *name == word);
            if let (ITEM_TYPE, Some((_, kind))) = (&*property.peek_at("cbc:Name"), kind) {
                property.mark_all_read();
                return *kind;
            }
        }
        if !codes::is_time_unit(unit) {
            return ItemKind::Product;
        }
        let sentence = format!("Lines with the unit of time {unit} were taken for services.");
        self.report_change_once(Cause::ItemKind, item, sentence);
        ItemKind::Service
    }

    /// Returns the classification of a product in the Harmonized System, or the one that our writer gave a service.
    /// Other classifications are kept as parts (`beside`).
    fn classification(&mut self, item: &Element, kind: ItemKind) -> Option<String> {
        let list = match kind {
            ItemKind::Product => PRODUCT_LIST,
            ItemKind::Service => SERVICE_LIST,
        };
        let code = item
            .children_named("cac:CommodityClassification")
            .filter_map(|one| one.at("cbc:ItemClassificationCode"))
            .find(|code| {
                code.attributes
                    .iter()
                    .any(|one| one.name == "listID" && one.value == list)
            })?;
        let text = code.folded_text()?;
        code.attribute("listID");
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        if kind == ItemKind::Product && is_digits && text.len() >= HEADING_DIGITS {
            let heading = format!("{}.{}", &text[..4], &text[4..HEADING_DIGITS]);
            let sentence = format!("The classification {text} became {heading}.");
            self.report_change(Cause::Classification, code, sentence);
            return Some(heading);
        }
        Some(text)
    }
}

/// Returns the rate of the document's tax subtotal of this category; `None` if there are several such subtotals.
fn only_percent(taxes: &[TaxSubtotal], tax: &Tax) -> Option<Decimal> {
    let code = &tax.category.code;
    let mut same = taxes.iter().filter(|sum| sum.tax.category.code == *code);
    let first = same.next()?;
    let is_only = same.next().is_none();
    first.tax.percent.filter(|_| is_only)
}

fn has_unit(quantity: &Element, unit: &str) -> bool {
    quantity
        .attributes
        .iter()
        .any(|one| one.name == UNIT && fold_spaces(&one.value) == unit)
}
