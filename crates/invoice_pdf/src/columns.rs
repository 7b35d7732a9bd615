//! The widths of the table columns. They are computed here, because typst would lay out every cell twice to find them.

use serde::Serialize;
use trade_document::Line;

use crate::Template;
use crate::figures::{write_amount, write_number};
use crate::fonts::Fonts;
use crate::sums::{code_label, tax_label};
use crate::text::{TextSpace, printable_text};

/// The space left and right of a cell's text, in thousandths of an em.
const INSET: u32 = 900;
/// The width, in thousandths of an em, up to which a figure is not broken: that of a hundred thousand million with two
/// decimal digits.
const FIGURE_MAX: u32 = 9_000;
/// The width, in thousandths of an em, up to which a unit or a tax is not broken.
const WORD_MAX: u32 = 7_000;

/// The widths of the table columns in thousandths of an em. They are texts, because typst may read a JSON number as a
/// float.
#[derive(Debug, Serialize)]
pub struct Columns {
    position: String,
    quantity: String,
    unit: String,
    price: String,
    tax: String,
    amount: String,
    /// The width of the item column: what the other columns leave over.
    #[serde(skip)]
    item: u32,
}

impl Columns {
    pub fn for_lines(lines: &[Line], currency: &str, template: Template) -> Self {
        let position = width_for_texts(&["#".to_owned(), lines.len().to_string()], FIGURE_MAX);
        let mut quantity = width_for_texts(&["Quantity".to_owned()], FIGURE_MAX);
        let mut unit = width_for_texts(&["Unit".to_owned()], WORD_MAX);
        let mut price = width_for_texts(&["Price".to_owned()], FIGURE_MAX);
        let mut tax = width_for_texts(&["Tax".to_owned()], WORD_MAX);
        let mut amount = width_for_texts(&["Amount".to_owned()], FIGURE_MAX);
        for line in lines {
            quantity = quantity.max(width_for_texts(&[write_number(line.quantity)], FIGURE_MAX));
            let per = format!("per {}", write_number(line.base_quantity));
            price = price.max(width_for_texts(
                &[write_amount(line.price, currency), per],
                FIGURE_MAX,
            ));
            amount = amount.max(width_for_texts(
                &[write_amount(line.amount, currency)],
                FIGURE_MAX,
            ));
            unit = unit.max(width_for_texts(
                &[code_label(&line.unit).to_owned()],
                WORD_MAX,
            ));
            tax = tax.max(width_for_texts(&[tax_label(&line.tax)], WORD_MAX));
        }
        let widths = [position, quantity, unit, price, tax, amount].map(|width| width + INSET);
        let item = page_width(template)
            .saturating_sub(widths.iter().sum())
            .saturating_sub(INSET);
        let [position, quantity, unit, price, tax, amount] = widths.map(|width| width.to_string());
        Self {
            position,
            quantity,
            unit,
            price,
            tax,
            amount,
            item,
        }
    }

    pub fn item_space(&self) -> TextSpace {
        TextSpace {
            characters_max: 1_000,
            word_max: self.item,
        }
    }
}

/// The space for a unit or a tax.
pub const WORD_SPACE: TextSpace = TextSpace {
    characters_max: 60,
    word_max: WORD_MAX,
};

/// Returns a figure with marks at which it may break if it is wider than its column.
pub fn printable_figure(figure: &str) -> String {
    let space = TextSpace {
        characters_max: usize::MAX,
        word_max: FIGURE_MAX,
    };
    printable_text(figure, space)
}

/// Returns the width of the text area of a page in thousandths of an em of the table: A4 without the template's
/// margins.
const fn page_width(template: Template) -> u32 {
    match template {
        // 174 mm at 8.5 pt.
        Template::Classic => 58_000,
        // 186 mm at 7.5 pt.
        Template::Compact => 70_200,
    }
}

fn width_for_texts<const N: usize>(texts: &[String; N], width_max: u32) -> u32 {
    let widths = texts.iter().map(|text| Fonts::get().width(text));
    widths.max().unwrap_or_default().min(width_max)
}
