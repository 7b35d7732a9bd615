//! Runs typst: from the files of a document to the bytes of its PDF.

use jiff::civil::{Date, Time};
use typst::diag::SourceDiagnostic;
use typst::foundations::{Bytes, Datetime, Smart};
use typst_layout::PagedDocument;
use typst_pdf::{PdfOptions, PdfStandard, PdfStandards, Timestamp};

use crate::breaks::remove_break_marks;
use crate::content::Content;
use crate::qr::{can_print_qr, draw_qr};
use crate::text::REPLACEMENT;
use crate::world::PageWorld;
use crate::{Logo, PdfError, Sheet, Template};

/// Empties typst's cache when it is dropped, also after a failure or a panic. Otherwise the cache would grow with each
/// document.
struct CacheEviction;

impl Drop for CacheEviction {
    fn drop(&mut self) {
        comemo::evict(0);
    }
}

/// Typesets a document that is within the limits.
pub fn typeset_sheet(sheet: &Sheet<'_>) -> Result<Vec<u8>, PdfError> {
    let document = sheet.document;
    let supplier = &document.supplier;
    let identity = format!(
        "{}\n{}\n{}",
        supplier.tin.as_deref().unwrap_or(&supplier.name),
        document.number,
        document.irn.as_deref().unwrap_or_default(),
    );
    let world = to_world(sheet)?;
    let result = typeset_pages(&world, identity, document.issue_date, document.issue_time);
    match (sheet.logo(), result) {
        // The logo may be the cause. Then the error says so, because the owner of the logo can correct it.
        (Some(logo), Err(error)) => Err(logo.check_printable().err().unwrap_or(error)),
        (_, result) => result,
    }
}

/// The note on a document that has letters which no font has.
const UNPRINTED: &str =
    "Letters that could not be printed are shown as \u{fffd}. The electronic document has them.";

fn to_json(content: &Content) -> Result<String, PdfError> {
    serde_json::to_string(content).map_err(|error| PdfError::Internal(error.to_string()))
}

/// Returns the files that the template of a document reads.
fn to_world(sheet: &Sheet<'_>) -> Result<PageWorld, PdfError> {
    let mut content = Content::from_sheet(sheet);
    let mut data = to_json(&content)?;
    if data.contains(REPLACEMENT) {
        content.notes.push(UNPRINTED.to_owned());
        data = to_json(&content)?;
    }
    let data = data.into_bytes();
    let mut files = vec![("data.json", Bytes::new(data))];
    if let Some(logo) = sheet.logo() {
        let name = logo.kind.file_name();
        files.push((name, logo.bytes.clone()));
    }
    if let Some(text) = sheet.qr.filter(|text| can_print_qr(text)) {
        files.push(("qr.svg", Bytes::from_string(draw_qr(text)?)));
    }
    if let Some(ubl) = sheet.ubl {
        files.push(("invoice.xml", Bytes::new(ubl.to_vec())));
    }
    let template = match sheet.look.template {
        Template::Classic => "classic.typ",
        Template::Compact => "compact.typ",
    };
    PageWorld::new(template, files)
}

impl Logo {
    /// Typesets the picture on an empty page, so that a damaged one is refused when it is uploaded and not with each
    /// document. Takes as long as a short document.
    pub fn check_printable(&self) -> Result<(), PdfError> {
        typeset_logo(self).map(drop).map_err(|_| {
            PdfError::Logo("it is damaged: open it in a drawing program and save it again")
        })
    }
}

/// Typesets a logo on a page of its own.
fn typeset_logo(logo: &Logo) -> Result<Vec<u8>, PdfError> {
    let name = Bytes::from_string(logo.kind.file_name());
    let files = vec![
        ("name.txt", name),
        (logo.kind.file_name(), logo.bytes.clone()),
    ];
    let world = PageWorld::new("logo.typ", files)?;
    typeset_pages(&world, "logo".to_owned(), Date::constant(2000, 1, 1), None)
}

fn typeset_pages(
    world: &PageWorld,
    identity: String,
    date: Date,
    time: Option<Time>,
) -> Result<Vec<u8>, PdfError> {
    let _eviction = CacheEviction;
    let standards = PdfStandards::new(&[PdfStandard::A_3a])
        .map_err(|error| PdfError::Internal(error.message().to_string()))?;
    let options = PdfOptions {
        ident: Smart::Custom(identity),
        creator: Smart::Custom(Some("einvoice".to_owned())),
        timestamp: to_timestamp(date, time.unwrap_or_default()),
        page_ranges: None,
        standards,
        tagged: true,
        pretty: false,
    };
    let pages = lay_out(world)?;
    typst_pdf::pdf(&pages, &options).map_err(|faults| to_error(&faults))
}

fn lay_out(world: &PageWorld) -> Result<PagedDocument, PdfError> {
    let result = typst::compile::<PagedDocument>(world);
    let pages = result.output.map_err(|faults| to_error(&faults))?;
    Ok(remove_break_marks(&pages))
}

/// Returns the date of the document for the properties of the file. With the current time, the bytes would differ each
/// time.
fn to_timestamp(date: Date, time: Time) -> Option<Timestamp> {
    let [month, day, hour, minute, second] = [
        date.month(),
        date.day(),
        time.hour(),
        time.minute(),
        time.second(),
    ]
    .map(|number| u8::try_from(number).unwrap_or_default());
    Datetime::from_ymd_hms(i32::from(date.year()), month, day, hour, minute, second)
        .map(Timestamp::new_utc)
}

fn to_error(faults: &[SourceDiagnostic]) -> PdfError {
    let messages: Vec<&str> = faults
        .iter()
        .take(3)
        .map(|fault| fault.message.as_str())
        .collect();
    PdfError::Internal(messages.join("; "))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::char;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use trade_document::{Reference, ReferenceKind, TradeDocument};
    use typst::layout::{Abs, Frame, FrameItem};

    use crate::samples::{self, credit_note, invoice};
    use crate::text::BREAK;
    use crate::{Look, Standing, render};

    use super::*;

    /// The narrowest margin of a template.
    fn margin() -> Abs {
        Abs::pt(34.0)
    }

    /// Texts that could be read as markup, as directions or as nothing, or that fit no column.
    fn hostile_texts() -> Vec<String> {
        [
            "#panic(\"x\") #import \"@preview/x:1.0.0\": y",
            "$ x^2 $ *bold* _emph_ `raw` <label> @reference = Heading",
            "\\ \"quoted\" [content] ]] }} ((",
            "// comment /* comment */ https://example.org/a?b=c#d",
            "line\nline\r\nline\tline\u{b}\u{c}\u{85}\u{2028}\u{2029}",
            "zero\u{200b}width\u{200c}join\u{200d}er\u{feff}\u{ad}\u{2060}",
            "amount \u{202e}00.1 NGN\u{202c} \u{2066}x\u{2069} \u{200f}y",
            "中文 日本語 한국어 हिन्दी ไทย 🙂👩‍👩‍👧 🇳🇬",
            "a\u{64b} ب\u{301} ש\u{300}\u{5b8} q\u{5b8}\u{64b}\u{301}",
            "\u{e000} \u{f8ff} \u{f0000} \u{ffff} \u{fffe} \u{0} \u{7} \u{1b}[31m \u{7f}",
            "ﷺ ﻷ لا \u{640}\u{640} كـ\u{200c}ب \u{200d}ه\u{200d}",
            "\u{301}\u{301} leading marks \u{5b8}",
            "{\"$serde_json::private::Number\": \"1\"}",
            "",
            "   ",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// Writes a text into every field that takes any text.
    fn fill(document: &mut TradeDocument, text: &str) {
        let some = || Some(text.to_owned());
        document.number = text.to_owned();
        document.irn = some();
        document.document_type.name = text.to_owned();
        document.currency = text.to_owned();
        document.tax_currency = some();
        document.buyer_reference = some();
        document.accounting_cost = some();
        document.payment_terms = some();
        document.notes = vec![text.to_owned()];
        document.payment_means[0].means.name = text.to_owned();
        for kind in [ReferenceKind::Preceding, ReferenceKind::Contract] {
            document.references.push(Reference {
                kind,
                id: text.to_owned(),
                issue_date: None,
            });
        }
        for party in [&mut document.supplier, &mut document.customer] {
            party.name = text.to_owned();
            for field in [
                &mut party.number,
                &mut party.tin,
                &mut party.registration,
                &mut party.email,
                &mut party.telephone,
                &mut party.description,
                &mut party.address.street,
                &mut party.address.city,
                &mut party.address.state,
                &mut party.address.postal_code,
                &mut party.address.country,
            ] {
                *field = some();
            }
        }
        for line in &mut document.lines {
            line.name = text.to_owned();
            line.description = some();
            line.item_number = some();
            line.classification = some();
            line.unit.name = text.to_owned();
            line.tax.category.name = text.to_owned();
        }
        for charge in document.lines[0]
            .charges
            .iter_mut()
            .chain(&mut document.charges)
        {
            charge.reason = some();
        }
        document.taxes[0].tax.category.name = text.to_owned();
    }

    fn look(template: Template) -> Look {
        Look {
            template,
            logo: Some(samples::logo().unwrap()),
            ..Look::default()
        }
    }

    fn sheet<'a>(document: &'a TradeDocument, look: &'a Look) -> Sheet<'a> {
        Sheet {
            document,
            look,
            standing: Standing::Signed,
            qr: Some(samples::QR),
            verify_link: Some("https://invoices.example/verify/AAAAAAAAAAAAAAAAAAAAAA"),
            ubl: Some(b"<Invoice/>"),
        }
    }

    /// Collects the text of a frame, and each piece of it that reaches over the margins.
    fn read_frame(
        frame: &Frame,
        left: Abs,
        right_max: Abs,
        text: &mut String,
        outside: &mut Vec<String>,
    ) {
        for (position, item) in frame.items() {
            let x = left + position.x;
            match item {
                FrameItem::Group(group) => {
                    read_frame(
                        &group.frame,
                        x + group.transform.tx,
                        right_max,
                        text,
                        outside,
                    );
                }
                FrameItem::Text(run) => {
                    let _ = write!(text, "{} ", run.text);
                    assert!(!run.text.contains(BREAK), "{:?}", run.text);
                    let mut places = run.glyphs.iter().map(|glyph| run.text.get(glyph.range()));
                    assert!(places.all(|place| place.is_some()), "{:?}", run.text);
                    if x < margin() - Abs::pt(1.0) || x + run.width() > right_max + Abs::pt(1.0) {
                        outside.push(run.text.to_string());
                    }
                }
                _ => {}
            }
        }
    }

    /// Sets a document. Returns the text of each page; panics if a text leaves the page.
    fn read_pages(sheet: &Sheet<'_>) -> Vec<String> {
        let _eviction = CacheEviction;
        let pages = lay_out(&to_world(sheet).unwrap()).unwrap();
        let read = |page: &typst_layout::Page| {
            let mut text = String::new();
            let mut outside = Vec::new();
            let right_max = page.frame.width() - margin();
            read_frame(&page.frame, Abs::zero(), right_max, &mut text, &mut outside);
            assert!(outside.is_empty(), "{outside:?}");
            text
        };
        pages.pages().iter().map(read).collect()
    }

    #[test]
    fn text_of_users_is_neither_markup_nor_wider_than_the_page() {
        for (index, text) in hostile_texts().iter().enumerate() {
            let mut document = credit_note();
            // Typst is slow where it is not optimised, and one line shows as much as many.
            document.lines.truncate(1);
            fill(&mut document, text);
            let look = look(Template::ALL[index % 2]);
            let sheet = sheet(&document, &look);
            let pages = read_pages(&sheet);
            assert!(pages.len() <= 20, "{} pages of {text:.40}", pages.len());
            let printed = render(&sheet);
            assert!(printed.is_ok(), "{text:.40}: {:?}", printed.err());
        }
    }

    #[test]
    fn long_words_and_texts_break_within_the_page() {
        let long = [
            "W".repeat(10_000),
            "Wide words ".repeat(1_000),
            "ẹ\u{300}".repeat(5_000),
            "مرحبا".repeat(2_000),
            format!("A{}", "\u{301}".repeat(300)),
        ];
        let mut document = credit_note();
        document.lines.truncate(long.len());
        for (line, text) in document.lines.iter_mut().zip(&long) {
            line.name.clone_from(text);
        }
        let [word, words, stacked, arabic, marks] = long;
        document.supplier.name = word.clone();
        document.supplier.address.street = Some(arabic);
        document.customer.name = stacked;
        document.customer.tin = Some(marks);
        document.number = word;
        document.notes = vec![words];
        let look = look(Template::Classic);
        let sheet = sheet(&document, &look);
        assert!(read_pages(&sheet).len() <= 20);
        assert!(render(&sheet).is_ok(), "{:?}", render(&sheet).err());
    }

    #[test]
    fn a_credit_note_says_what_it_corrects_and_every_sum() {
        let document = credit_note();
        for template in Template::ALL {
            let look = look(template);
            let text = read_pages(&sheet(&document, &look)).join(" ");
            let address = "https://invoices.example/verify/AAAAAAAAAAAAAAAAAAAAAA";
            let bare: String = text.split_whitespace().collect();
            assert!(bare.contains(address), "{bare}");
            for expected in [
                "Credit note",
                "CN-2026-00031",
                "INV-2026-00417-94CD90AA-20261124",
                "Corrects INV-2026-00398 of 3 October 2026",
                "24 November 2026, 14:05",
                "24 December 2026",
                "PO-88213 of 2 November 2026",
                "Adekunle Building Materials Limited",
                "14 Broad Street, Marina",
                "102273 Lagos Island",
                "Lagos State, NG",
                "TIN 12345678-0001",
                "Registration RC 1029384",
                "Email payables@ndce.example",
                "Telephone +234 84 555 010",
                "Cement, 50 kg bag",
                "kilometre",
                "120,050.00",
                "per 100",
                "VAT 7.5\u{a0}%",
                "Zero-rated VAT 0\u{a0}%",
                "Discount 10\u{a0}%, Damaged bags: -1,970.00",
                "Discount, Loyalty",
                "-5,000.00",
                "2,500.50",
                "Prepaid",
                "-100,000.00",
                "Rounding",
                "-0.04",
                "Payable",
                "Credit transfer, due 24 December 2026",
                "30 days net, to First Bank 2031144097",
                "Scan to verify",
                "signed by the tax authority",
                "Page 1 of 1",
            ] {
                let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let expected = expected.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(joined.contains(&expected), "{expected} in {joined}");
            }
        }
    }

    #[test]
    fn every_page_repeats_the_head_of_the_table_and_is_numbered() {
        let document = invoice(200);
        for template in Template::ALL {
            let look = look(template);
            let pages = read_pages(&sheet(&document, &look));
            let count = pages.len();
            assert!((3..=12).contains(&count), "{count}");
            for (index, page) in pages.iter().enumerate() {
                assert!(
                    page.contains(&format!("Page {} of {count}", index + 1)),
                    "{page}"
                );
                let has_lines = page.contains("SKU-");
                assert_eq!(page.contains("Quantity"), has_lines, "{page}");
            }
            let text = pages.join(" ");
            for position in 1..=200 {
                assert_eq!(text.matches(&format!("SKU-{position:04}")).count(), 1);
            }
        }
    }

    /// Returns how far down a text reaches.
    fn lowest_text(frame: &Frame, top: Abs) -> Abs {
        let items = frame.items().map(|(position, item)| match item {
            FrameItem::Group(group) => {
                lowest_text(&group.frame, top + position.y + group.transform.ty)
            }
            FrameItem::Text(_) => top + position.y,
            _ => Abs::zero(),
        });
        items.fold(Abs::zero(), Abs::max)
    }

    #[test]
    fn many_totals_go_on_on_the_next_page() {
        let mut document = credit_note();
        let charge = document.charges[0].clone();
        document.charges = vec![charge; 150];
        for template in Template::ALL {
            let look = look(template);
            let _eviction = CacheEviction;
            let pages = lay_out(&to_world(&sheet(&document, &look)).unwrap()).unwrap();
            assert!((2..=8).contains(&pages.pages().len()));
            for page in pages.pages() {
                let lowest = lowest_text(&page.frame, Abs::zero());
                assert!(lowest < page.frame.height(), "{lowest:?}");
            }
        }
    }

    #[test]
    fn the_largest_amount_covers_no_label() {
        let mut document = credit_note();
        document.totals.payable = "-999999999999999.99".parse().unwrap();
        let printed = "-999,999,999,999,999.99";
        // The amount at the foot of the compact template fits into one line. The others are wider than their space.
        for (template, whole) in Template::ALL.into_iter().zip([0, 1]) {
            let look = look(template);
            let text = read_pages(&sheet(&document, &look)).join(" ");
            assert_eq!(text.matches(printed).count(), whole, "{text}");
            let bare: String = text.split_whitespace().collect();
            assert_eq!(bare.matches(printed).count(), whole + 1, "{bare}");
        }
    }

    #[test]
    fn every_page_of_a_draft_says_that_it_is_not_signed() {
        let document = invoice(60);
        for template in Template::ALL {
            let look = look(template);
            let draft = Sheet {
                standing: Standing::Draft,
                qr: None,
                verify_link: None,
                ..sheet(&document, &look)
            };
            let _eviction = CacheEviction;
            let pages = lay_out(&to_world(&draft).unwrap()).unwrap();
            assert!(pages.pages().len() > 1);
            for page in pages.pages() {
                let mut text = String::new();
                read_frame(
                    &page.frame,
                    Abs::zero(),
                    Abs::zero(),
                    &mut text,
                    &mut Vec::new(),
                );
                assert!(text.contains("NOT SIGNED"), "{text}");
                assert!(!text.contains("is signed by"), "{text}");
            }
        }
    }

    #[test]
    fn a_qr_code_that_is_too_long_is_left_out_and_the_page_says_so() {
        let document = invoice(1);
        let said = "Its QR code is too long to be scanned from paper";
        let long = "x".repeat(1_201);
        for (template, qr, is_printed) in [
            (Template::Classic, long.as_str(), false),
            (Template::Compact, long.as_str(), false),
            (Template::Classic, samples::QR, true),
        ] {
            let look = look(template);
            let sheet = Sheet {
                qr: Some(qr),
                ..sheet(&document, &look)
            };
            let text = read_pages(&sheet).join(" ");
            let words: Vec<_> = text.split_whitespace().collect();
            let text = words.join(" ");
            assert_eq!(text.contains("Scan to verify"), is_printed, "{text}");
            assert_eq!(text.contains(said), !is_printed, "{text}");
            assert!(text.contains("signed by the tax authority"), "{text}");
            let bare: String = words.concat();
            assert!(bare.contains("https://invoices.example/verify/"), "{bare}");
            assert!(render(&sheet).is_ok());
        }
    }

    #[test]
    fn a_received_document_has_no_logo_of_the_account() {
        let document = invoice(1);
        let look = look(Template::Classic);
        let own = sheet(&document, &look);
        let received = Sheet {
            standing: Standing::Received,
            ..own
        };
        assert_eq!(Content::from_sheet(&own).logo, "logo.svg");
        assert_eq!(Content::from_sheet(&received).logo, "");
        assert!(
            read_pages(&received)
                .join(" ")
                .contains("Received from the supplier")
        );
    }

    #[test]
    fn the_same_document_gives_the_same_bytes_of_a_pdf_a_3a() {
        let document = credit_note();
        let look = look(Template::Classic);
        let sheet = sheet(&document, &look);
        let first = render(&sheet).unwrap();
        assert_eq!(first, render(&sheet).unwrap());
        let text = String::from_utf8_lossy(&first);
        for part in [
            "<pdfaid:part>3</pdfaid:part>",
            "<pdfaid:conformance>A</pdfaid:conformance>",
            "Credit note CN-2026-00031",
            "2026-11-24T14:05:09",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }

    #[test]
    fn names_of_every_script_are_printed_whole() {
        let template = Template::Classic;
        let look = look(template);
        for names in [
            samples::ARABIC,
            samples::YORUBA,
            samples::GREEK,
            samples::HEBREW,
        ] {
            let document = samples::invoice_in_script(names);
            let text = read_pages(&sheet(&document, &look)).join(" ");
            assert!(!text.contains('\u{fffd}'), "{text}");
            for word in names.join(" ").split([' ', '"']) {
                let letters: String = word.chars().filter(|c| c.is_alphabetic()).collect();
                let printed: String = text.chars().filter(|c| c.is_alphabetic()).collect();
                assert!(printed.contains(&letters), "{word} in {text}");
            }
            assert!(render(&sheet(&document, &look)).is_ok());
        }
    }

    /// Any character, and more often one of the scripts and marks that the fonts have.
    fn character() -> impl Strategy<Value = char> {
        prop_oneof![
            any::<char>(),
            char::range('\u{20}', '\u{7ff}'),
            char::range('\u{1e00}', '\u{2bff}'),
            char::range('\u{fb00}', '\u{feff}'),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4))]

        #[test]
        fn no_text_is_refused_by_pdf_a(names in vec(vec(character(), 1..30), 40)) {
            let mut document = invoice(40);
            for (line, name) in document.lines.iter_mut().zip(names) {
                line.name = name.into_iter().collect();
            }
            let look = look(Template::Compact);
            let result = render(&sheet(&document, &look));
            prop_assert!(result.is_ok(), "{:?}", result.err());
        }
    }
}
