//! Documents of many kinds, which the tests and the examples print.

use invoice_pdf::{Logo, LogoKind, PdfError};
use jiff::civil::{date, time};
use rust_decimal::Decimal;
use trade_document::{
    Address, Charge, CodeAndName, ItemKind, Line, Party, PaymentMeans, Reference, ReferenceKind,
    Tax, TaxSubtotal, Totals, TradeDocument,
};

const LOGO: &[u8] = br##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 64">
<path fill="#0f4c5c" d="M0 0h64v64H0z"/><path fill="#e36414" d="M12 52l20-40 20 40z"/>
<path fill="#333" d="M80 16h12v32H80zM100 16h12v32h-12zM120 16h12v32h-12zM140 26h60v12h-60z"/></svg>"##;

pub fn logo() -> Result<Logo, PdfError> {
    Logo::new(LogoKind::Svg, LOGO.to_vec())
}

fn new_code(code: &str, name: &str) -> CodeAndName {
    CodeAndName {
        code: code.to_owned(),
        name: name.to_owned(),
    }
}

/// Returns an invoice with every field, and with this number of lines.
pub fn invoice(lines: u32) -> TradeDocument {
    let lines = sample_lines(lines);
    let net: Decimal = lines.iter().map(|line| line.amount).sum();
    let tax = (net * Decimal::new(75, 3)).round_dp(2);
    TradeDocument {
        number: "INV-2026-00417".to_owned(),
        irn: Some("INV-2026-00417-94CD90AA-20261124".to_owned()),
        document_type: new_code("380", "Commercial invoice"),
        issue_date: date(2026, 11, 24),
        issue_time: Some(time(14, 5, 9, 0)),
        due_date: Some(date(2026, 12, 24)),
        tax_point_date: None,
        delivery_date: Some(date(2026, 11, 20)),
        period: None,
        currency: "NGN".to_owned(),
        tax_currency: None,
        supplier: supplier(),
        customer: customer(),
        references: vec![Reference {
            kind: ReferenceKind::Order,
            id: "PO-88213".to_owned(),
            issue_date: Some(date(2026, 11, 2)),
        }],
        buyer_reference: Some("Site 4, Mrs. Balogun".to_owned()),
        accounting_cost: None,
        notes: vec!["Goods remain our property until they are paid in full.".to_owned()],
        payment_means: vec![PaymentMeans {
            means: new_code("30", "Credit transfer"),
            due_date: Some(date(2026, 12, 24)),
        }],
        payment_terms: Some("30 days net, to First Bank 2031144097".to_owned()),
        charges: Vec::new(),
        lines,
        taxes: vec![TaxSubtotal {
            tax: vat(),
            base: net,
            amount: tax,
        }],
        totals: Totals {
            lines: net,
            tax_exclusive: net,
            tax_inclusive: net + tax,
            prepaid: Decimal::ZERO,
            rounding: Decimal::ZERO,
            payable: net + tax,
        },
    }
}

/// Returns this many lines, taking three kinds of goods in turn.
fn sample_lines(count: u32) -> Vec<Line> {
    let items = [
        (
            "Cement, 50 kg bag",
            "Portland limestone cement, strength class 42.5N",
            "EA",
            "piece",
            Decimal::new(9_850, 0),
        ),
        (
            "Delivery by truck",
            "Lagos to Ibadan, unloading included",
            "KMT",
            "kilometre",
            Decimal::new(12_005, 1),
        ),
        (
            "Reinforcement bars, 16 mm",
            "Hot rolled, 12 m",
            "TNE",
            "tonne (metric ton)",
            Decimal::new(785_000, 0),
        ),
    ];
    items
        .into_iter()
        .cycle()
        .zip(1..=count)
        .map(|((name, description, unit, unit_name, price), position)| {
            let quantity = Decimal::from(position % 7 + 1);
            Line {
                name: name.to_owned(),
                description: Some(description.to_owned()),
                item_number: Some(format!("SKU-{position:04}")),
                item_kind: ItemKind::Product,
                quantity,
                unit: new_code(unit, unit_name),
                price,
                base_quantity: Decimal::ONE,
                charges: Vec::new(),
                amount: quantity * price,
                tax: vat(),
                classification: Some("2523.29".to_owned()),
            }
        })
        .collect()
}

fn vat() -> Tax {
    Tax {
        category: new_code("STANDARD_VAT", "VAT"),
        percent: Some(Decimal::new(75, 1)),
    }
}

fn supplier() -> Party {
    Party {
        name: "Adekunle Building Materials Limited".to_owned(),
        number: None,
        tin: Some("12345678-0001".to_owned()),
        registration: Some("RC 1029384".to_owned()),
        email: Some("accounts@adekunle-building.example".to_owned()),
        telephone: Some("+234 803 123 4567".to_owned()),
        description: None,
        address: Address {
            street: Some("14 Broad Street, Marina".to_owned()),
            city: Some("Lagos Island".to_owned()),
            state: Some("Lagos State".to_owned()),
            postal_code: Some("102273".to_owned()),
            country: Some("NG".to_owned()),
        },
    }
}

fn customer() -> Party {
    Party {
        name: "Niger Delta Construction & Engineering PLC".to_owned(),
        number: Some("C-2209".to_owned()),
        tin: Some("87654321-0001".to_owned()),
        registration: None,
        email: Some("payables@ndce.example".to_owned()),
        telephone: Some("+234 84 555 010".to_owned()),
        description: Some("Civil engineering".to_owned()),
        address: Address {
            street: Some("7 Trans Amadi Industrial Layout".to_owned()),
            city: Some("Port Harcourt".to_owned()),
            state: Some("Rivers State".to_owned()),
            postal_code: Some("500101".to_owned()),
            country: Some("NG".to_owned()),
        },
    }
}

/// A credit note that names its invoice, with discounts, a fee, a prepayment and rounding.
pub fn credit_note() -> TradeDocument {
    let mut document = invoice(3);
    document.document_type = new_code("381", "Credit note");
    "CN-2026-00031".clone_into(&mut document.number);
    document.references.insert(
        0,
        Reference {
            kind: ReferenceKind::Preceding,
            id: "INV-2026-00398".to_owned(),
            issue_date: Some(date(2026, 10, 3)),
        },
    );
    let discount = Charge {
        is_fee: false,
        amount: Decimal::new(1_970, 0),
        rate: Some(Decimal::new(10, 0)),
        reason: Some("Damaged bags".to_owned()),
        tax: None,
    };
    document.lines[0].charges.push(discount);
    document.lines[0].amount -= Decimal::new(1_970, 0);
    document.lines[1].price = Decimal::new(120_050, 0);
    document.lines[1].base_quantity = Decimal::new(100, 0);
    document.lines[1].tax = Tax {
        category: new_code("ZERO_VAT", "Zero-rated VAT"),
        percent: Some(Decimal::ZERO),
    };
    document.charges = vec![
        Charge {
            is_fee: false,
            amount: Decimal::new(5_000, 0),
            rate: None,
            reason: Some("Loyalty".to_owned()),
            tax: Some(vat()),
        },
        Charge {
            is_fee: true,
            amount: Decimal::new(25_005, 1),
            rate: None,
            reason: Some("Return freight".to_owned()),
            tax: Some(vat()),
        },
    ];
    let amounts = document.lines.iter().map(|line| line.amount);
    let lines: Decimal = amounts.sum();
    let zero = document.lines[1].amount;
    let net = lines - Decimal::new(5_000, 0) + Decimal::new(25_005, 1);
    let tax = ((net - zero) * Decimal::new(75, 3)).round_dp(2);
    document.taxes = vec![
        TaxSubtotal {
            tax: vat(),
            base: net - zero,
            amount: tax,
        },
        TaxSubtotal {
            tax: document.lines[1].tax.clone(),
            base: zero,
            amount: Decimal::ZERO,
        },
    ];
    document.totals = Totals {
        lines,
        tax_exclusive: net,
        tax_inclusive: net + tax,
        prepaid: Decimal::new(100_000, 0),
        rounding: Decimal::new(-4, 2),
        payable: net + tax - Decimal::new(100_000, 0) - Decimal::new(4, 2),
    };
    document
}

/// Returns an invoice with names in another script.
pub fn invoice_in_script(names: [&str; 5]) -> TradeDocument {
    let [supplier, customer, street, item, note] = names;
    let mut document = invoice(3);
    supplier.clone_into(&mut document.supplier.name);
    customer.clone_into(&mut document.customer.name);
    document.customer.address.street = Some(street.to_owned());
    item.clone_into(&mut document.lines[0].name);
    document.lines[1].description = Some(item.to_owned());
    document.notes = vec![note.to_owned()];
    document
}

pub const ARABIC: [&str; 5] = [
    "شركة الأمل للتجارة المحدودة",
    "مؤسسة النور (Kano) للمقاولات",
    "١٢ شارع الملك فهد، كانو",
    "أسمنت بورتلاندي، 50 كجم",
    "تبقى البضاعة ملكاً لنا حتى السداد الكامل.",
];
pub const YORUBA: [&str; 5] = [
    "Ilé-iṣẹ́ Ọlọ́run Ṣọlá àti Àwọn Ọmọ",
    "Ẹgbẹ́ Oníṣòwò Ìbàdàn ń Bẹ̀rẹ̀",
    "Òpópónà Ọba Adéṣọjí, Ilé kẹẹ̀ẹ́dógún",
    "Àpò símẹ́ńtì ọ̀gbọ̀n, ẹ̀bùn fún ọ̀rẹ́",
    "Ẹ ṣeun púpọ̀ fún ìṣòwò yín.",
];
pub const GREEK: [&str; 5] = [
    "Οικοδομικά Υλικά Παπαδόπουλος Α.Ε.",
    "Строительная компания «Нева»",
    "Λεωφόρος Κηφισίας 124, Αθήνα",
    "Τσιμέντο Πόρτλαντ, σακί 50 κιλών",
    "Τα εμπορεύματα παραμένουν στην κυριότητά μας. Ευχαριστούμε.",
];
pub const HEBREW: [&str; 5] = [
    "חברת הבנייה כרמל בע\"מ",
    "שלום ובניו (Lagos) שותפות",
    "רחוב הרצל 12, חיפה",
    "מלט פורטלנד, שק 50 ק\"ג",
    "הסחורה נשארת בבעלותנו עד לתשלום מלא.",
];
/// The text of a QR code that is as long as one of the authority's.
pub const QR: &str = "eyJpcm4iOiJJTlYtMjAyNi0wMDQxNy05NENEOTBBQS0yMDI2MTEyNCIsImNlcnRpZmljYXRlIjoiTUlJQ0l6QUJCZ05WIn0.qD3lS7rP0vKx8yNfW2tQmZc4aHbJ6uE1gYoR5sTiLwXkVjB9nFpMdCzGhAeIUOqy";
