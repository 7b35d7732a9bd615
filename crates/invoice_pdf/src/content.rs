//! The content of a document as the templates read it: only texts, in the order of the page.

use rust_decimal::Decimal;
use serde::Serialize;
use trade_document::{Line, Party, TaxSubtotal};

use crate::columns::{Columns, WORD_SPACE, printable_figure};
use crate::facts::{SENTENCE, document_title, list_corrected_invoices, list_facts};
use crate::figures::{write_amount, write_number};
use crate::labelled::LabelledText;
use crate::qr::can_print_qr;
use crate::sums::{
    SUM, charge_label, code_label, describe_payment, list_sums, signed_amount, tax_label,
};
use crate::text::{TextSpace, fit_text, printable_lines, printable_text};
use crate::{Sheet, Standing};

/// The space for a text in a third of the page's width. The narrowest column in which a party is printed has this
/// width.
const THIRD: TextSpace = TextSpace {
    characters_max: 300,
    word_max: 18_000,
};
/// The space for the authority's reference, which has a line of its own.
const IRN: TextSpace = TextSpace {
    characters_max: 300,
    word_max: 40_000,
};
/// The space for the text beside the QR code.
const PROOF: TextSpace = TextSpace {
    characters_max: 300,
    word_max: 11_000,
};
/// The space for the payable amount. The amount may be broken after each comma, because it is in large type.
const PAYABLE: TextSpace = TextSpace {
    characters_max: 160,
    word_max: 5_000,
};
/// The length of a line's texts in bytes up to which the line is not divided between two pages.
const SHORT_BYTES_MAX: usize = 800;
const NOTE_LINES_MAX: usize = 60;
/// The maximum length of title and author in the properties of the file.
const PROPERTY_CHARACTERS_MAX: usize = 200;

#[derive(Debug, Serialize)]
pub struct Content {
    pub title: String,
    pub number: String,
    pub irn: String,
    /// The title and the author in the properties of the file.
    pub file_title: String,
    pub author: String,
    /// The line at the foot of every page. The part that does not fit into one line is cut off.
    pub foot: String,
    pub standing: &'static str,
    pub accent: String,
    pub is_bright: bool,
    /// The name of the logo's file; empty if there is no logo.
    pub logo: &'static str,
    /// `printed` or `too long`; empty if the document has no QR code.
    pub qr: &'static str,
    /// The address of the page that verifies the document. `verify_text` is this address as it is printed. Both texts
    /// are empty if there is no such page.
    pub verify_link: String,
    pub verify_text: String,
    pub has_ubl: bool,
    /// A sentence for each document that this one corrects.
    pub corrects: Vec<String>,
    pub facts: Vec<LabelledText>,
    pub supplier: PartyContent,
    pub customer: PartyContent,
    pub currency: String,
    pub columns: Columns,
    pub lines: Vec<LineContent>,
    pub taxes: Vec<TaxContent>,
    pub sums: Vec<LabelledText>,
    pub payable: String,
    pub payment: Vec<String>,
    pub notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct PartyContent {
    pub name: String,
    pub details: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct LineContent {
    /// True if the line certainly fits on one page, so that it need not be divided.
    pub is_short: bool,
    pub position: String,
    pub name: String,
    pub details: Vec<String>,
    pub quantity: String,
    pub unit: String,
    pub price: String,
    /// The number of units that the price is for; empty if it is one.
    pub per: String,
    pub tax: String,
    pub amount: String,
}

#[derive(Debug, Serialize)]
pub struct TaxContent {
    pub name: String,
    pub base: String,
    pub amount: String,
}

impl Content {
    pub fn from_sheet(sheet: &Sheet<'_>) -> Self {
        let document = sheet.document;
        let look = sheet.look;
        let currency = document.currency.as_str();
        let columns = Columns::for_lines(&document.lines, currency, look.template);
        let title = document_title(&document.document_type);
        let file_title = format!("{title} {}", document.number);
        let lines = document.lines.iter().enumerate();
        let lines = lines.map(|(index, line)| {
            LineContent::from_line(index + 1, line, currency, columns.item_space())
        });
        let taxes = document.taxes.iter();
        let notes = document.notes.iter();
        let verify_link = sheet.verify_link.unwrap_or_default();
        let foot = format!("{file_title} · {}", document.supplier.name);
        Self {
            title,
            foot: printable_text(&foot, SUM),
            number: printable_text(&document.number, THIRD),
            irn: printable_text(document.irn.as_deref().unwrap_or_default(), IRN),
            file_title: fit_text(&file_title, PROPERTY_CHARACTERS_MAX),
            author: fit_text(&document.supplier.name, PROPERTY_CHARACTERS_MAX),
            standing: match sheet.standing {
                Standing::Draft => "draft",
                Standing::Signed => "signed",
                Standing::Received => "received",
            },
            accent: look.colour.to_string(),
            is_bright: look.colour.is_bright(),
            logo: sheet.logo().map_or("", |logo| logo.kind.file_name()),
            qr: match sheet.qr {
                Some(text) if can_print_qr(text) => "printed",
                Some(_) => "too long",
                None => "",
            },
            verify_link: verify_link.to_owned(),
            verify_text: printable_text(verify_link, PROOF),
            has_ubl: sheet.ubl.is_some(),
            corrects: list_corrected_invoices(&document.references),
            facts: list_facts(document),
            supplier: PartyContent::from_party(&document.supplier),
            customer: PartyContent::from_party(&document.customer),
            currency: printable_text(currency, WORD_SPACE),
            lines: lines.collect(),
            columns,
            taxes: taxes
                .map(|subtotal| TaxContent::from_subtotal(subtotal, currency))
                .collect(),
            sums: list_sums(document),
            payable: printable_text(&write_amount(document.totals.payable, currency), PAYABLE),
            payment: describe_payment(document),
            notes: notes
                .flat_map(|note| printable_lines(note, SENTENCE, NOTE_LINES_MAX))
                .collect(),
        }
    }
}

impl PartyContent {
    fn from_party(party: &Party) -> Self {
        let address = &party.address;
        let town = join_present([&address.postal_code, &address.city], " ");
        let region = join_present([&address.state, &address.country], ", ");
        let details = [
            ("", party.description.as_deref()),
            ("", address.street.as_deref()),
            ("", Some(town.as_str())),
            ("", Some(region.as_str())),
            ("TIN ", party.tin.as_deref()),
            ("Registration ", party.registration.as_deref()),
            ("Number ", party.number.as_deref()),
            ("Email ", party.email.as_deref()),
            ("Telephone ", party.telephone.as_deref()),
        ];
        let details = details.into_iter().filter_map(|(label, text)| {
            let text = fit_text(text?, THIRD.characters_max);
            (!text.is_empty()).then(|| printable_text(&format!("{label}{text}"), THIRD))
        });
        Self {
            name: printable_text(&party.name, THIRD),
            details: details.collect(),
        }
    }
}

fn join_present(fields: [&Option<String>; 2], between: &str) -> String {
    let texts: Vec<&str> = fields.into_iter().flatten().map(String::as_str).collect();
    texts.join(between)
}

impl LineContent {
    fn from_line(position: usize, line: &Line, currency: &str, space: TextSpace) -> Self {
        let codes = [
            ("Item no. ", &line.item_number),
            ("Classification ", &line.classification),
        ];
        let codes: Vec<String> = codes
            .into_iter()
            .filter_map(|(label, code)| Some(format!("{label}{}", code.as_ref()?)))
            .collect();
        let description = line.description.as_deref().unwrap_or_default();
        let mut details = vec![
            printable_text(description, space),
            printable_text(&codes.join(" · "), space),
        ];
        details.extend(line.charges.iter().map(|charge| {
            let amount = write_amount(signed_amount(charge), currency);
            printable_text(&format!("{}: {amount}", charge_label(charge)), space)
        }));
        details.retain(|detail| !detail.is_empty());
        let detail_bytes: usize = details.iter().map(String::len).sum();
        let length = line.name.len() + detail_bytes;
        let per = (line.base_quantity != Decimal::ONE)
            .then(|| printable_figure(&format!("per {}", write_number(line.base_quantity))));
        Self {
            is_short: length <= SHORT_BYTES_MAX,
            position: position.to_string(),
            name: printable_text(&line.name, space),
            details,
            quantity: printable_figure(&write_number(line.quantity)),
            unit: printable_text(code_label(&line.unit), WORD_SPACE),
            price: printable_figure(&write_amount(line.price, currency)),
            per: per.unwrap_or_default(),
            tax: printable_text(&tax_label(&line.tax), WORD_SPACE),
            amount: printable_figure(&write_amount(line.amount, currency)),
        }
    }
}

impl TaxContent {
    fn from_subtotal(subtotal: &TaxSubtotal, currency: &str) -> Self {
        Self {
            name: printable_text(&tax_label(&subtotal.tax), SUM),
            base: printable_text(&write_amount(subtotal.base, currency), SUM),
            amount: printable_text(&write_amount(subtotal.amount, currency), SUM),
        }
    }
}
