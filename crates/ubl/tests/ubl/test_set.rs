//! The documents that the tests write and read, and that `export.rs` writes for the judges.

use rust_decimal::Decimal;
use trade_document::{
    Address, Charge, CodeAndName, ItemKind, Line, Party, PaymentMeans, Period, ROUNDING, Reference,
    ReferenceKind, Tax, TaxSubtotal, Totals, TradeDocument,
};

/// Returns all documents, each with a name for its file.
pub fn documents() -> Vec<(&'static str, TradeDocument)> {
    let mut all = vec![
        ("plain", plain()),
        ("full", full()),
        ("credit_note", credit_note()),
        ("credit_note_with_terms", credit_note_with_terms()),
        ("zero_and_exempt", zero_and_exempt()),
        ("reduced_rate", reduced_rate()),
        ("charges", charges()),
        ("untaxed_charges", untaxed_charges()),
        ("paid_in_part", paid_in_part()),
        ("services", services()),
        ("prices_per_thousand", prices_per_thousand()),
        ("yen", yen()),
        ("many_lines", many_lines()),
        ("other_scripts", other_scripts()),
        ("consumer", consumer()),
        ("negative_rounding", negative_rounding()),
        ("tax_currency", tax_currency()),
    ];
    let types = [
        ("debit_note", "384", "Debit Note"),
        ("self_billed", "385", "Self Billed"),
        ("factored", "386", "Factored"),
        ("proforma", "390", "Proforma"),
        ("consignment", "392", "Consignment"),
        ("self_billed_credit_note", "393", "Self-billed Credit Note"),
        ("self_billed_invoice", "394", "Self-billed Invoice"),
        ("final_settlement", "397", "Final Settlement"),
    ];
    all.extend(types.map(|(file, code, name)| {
        let mut document = plain();
        document.document_type = coded(code, name);
        (file, document)
    }));
    all
}

/// Parses a decimal that is written in a test.
pub fn decimal(text: &str) -> Decimal {
    text.parse()
        .unwrap_or_else(|_| panic!("{text} is no decimal"))
}

pub fn coded(code: &str, name: &str) -> CodeAndName {
    CodeAndName {
        code: code.to_owned(),
        name: name.to_owned(),
    }
}

pub fn tax(code: &str, percent: &str) -> Tax {
    Tax {
        category: coded(code, "VAT"),
        percent: Some(decimal(percent)),
    }
}

/// Returns a line without charges.
pub fn line(name: &str, quantity: &str, price: &str, tax: Tax) -> Line {
    let (quantity, price) = (decimal(quantity), decimal(price));
    Line {
        name: name.to_owned(),
        description: Some(format!("{name}, as ordered")),
        item_number: Some(format!("SKU-{}", name.len())),
        item_kind: ItemKind::Product,
        quantity,
        unit: coded("EA", ""),
        price,
        base_quantity: Decimal::ONE,
        charges: Vec::new(),
        amount: round(quantity * price),
        tax,
        classification: Some("8471.30".to_owned()),
    }
}

pub fn charge(is_fee: bool, amount: &str, reason: Option<&str>, tax: Option<Tax>) -> Charge {
    Charge {
        is_fee,
        amount: decimal(amount),
        rate: None,
        reason: reason.map(str::to_owned),
        tax,
    }
}

pub fn round(value: Decimal) -> Decimal {
    value.round_dp_with_strategy(2, rust_decimal::RoundingStrategy::MidpointAwayFromZero)
}

/// Computes line amounts, taxes and totals from quantities, prices and charges.
pub fn sum_up(document: &mut TradeDocument) {
    let net = |charges: &[Charge]| -> Decimal {
        charges
            .iter()
            .map(|one| if one.is_fee { one.amount } else { -one.amount })
            .sum()
    };
    for line in &mut document.lines {
        line.amount = round(line.quantity * line.price / line.base_quantity) + net(&line.charges);
    }
    let mut taxes: Vec<TaxSubtotal> = Vec::new();
    let of_lines = document.lines.iter().map(|line| (&line.tax, line.amount));
    let of_charges = document.charges.iter().filter_map(|one| {
        Some((
            one.tax.as_ref()?,
            if one.is_fee { one.amount } else { -one.amount },
        ))
    });
    for (tax, amount) in of_lines.chain(of_charges) {
        match taxes.iter_mut().find(|subtotal| subtotal.tax == *tax) {
            Some(subtotal) => subtotal.base += amount,
            None => taxes.push(TaxSubtotal {
                tax: tax.clone(),
                base: amount,
                amount: Decimal::ZERO,
            }),
        }
    }
    for subtotal in &mut taxes {
        let percent = subtotal.tax.percent.unwrap_or_default();
        subtotal.amount = round(subtotal.base * percent / Decimal::ONE_HUNDRED);
    }
    document.taxes = taxes;
    let lines = document.lines.iter().map(|line| line.amount).sum();
    let tax_exclusive = lines + net(&document.charges);
    let tax_inclusive = tax_exclusive + document.tax();
    let Totals {
        prepaid, rounding, ..
    } = document.totals;
    document.totals = Totals {
        lines,
        tax_exclusive,
        tax_inclusive,
        prepaid,
        rounding,
        payable: tax_inclusive - prepaid + rounding,
    };
}

fn finish(mut document: TradeDocument) -> TradeDocument {
    sum_up(&mut document);
    document
}

fn address(street: &str, city: &str, state: &str) -> Address {
    Address {
        street: Some(street.to_owned()),
        city: Some(city.to_owned()),
        state: Some(state.to_owned()),
        postal_code: Some("101233".to_owned()),
        country: Some("NG".to_owned()),
    }
}

/// Returns a small invoice with one line.
pub fn plain() -> TradeDocument {
    let supplier = Party {
        name: "Ade Stores & Sons Ltd".to_owned(),
        tin: Some("12345678-0001".to_owned()),
        email: Some("billing@ade.example".to_owned()),
        telephone: Some("+2348012345678".to_owned()),
        description: Some("Sale of office machines".to_owned()),
        address: address("12 Marina Road", "Lagos", "NG-LA"),
        ..Party::default()
    };
    let customer = Party {
        name: "Bola Foods <Kano>".to_owned(),
        number: Some("C-001".to_owned()),
        tin: Some("87654321-0001".to_owned()),
        email: Some("accounts@bola.example".to_owned()),
        description: Some("Wholesale of food".to_owned()),
        address: address("5 Ibrahim Taiwo Road", "Kano", "NG-KN"),
        ..Party::default()
    };
    finish(TradeDocument {
        number: "INV001".to_owned(),
        irn: Some("INV001-94AD90FB-20261125".to_owned()),
        document_type: coded("381", "Commercial Invoice"),
        issue_date: jiff::civil::date(2026, 11, 25),
        issue_time: None,
        due_date: Some(jiff::civil::date(2026, 12, 25)),
        tax_point_date: None,
        delivery_date: None,
        period: None,
        currency: "NGN".to_owned(),
        tax_currency: None,
        supplier,
        customer,
        references: Vec::new(),
        buyer_reference: None,
        accounting_cost: None,
        notes: Vec::new(),
        payment_means: Vec::new(),
        payment_terms: None,
        charges: Vec::new(),
        lines: vec![line("Laptop", "2", "450000", tax("STANDARD_VAT", "7.5"))],
        taxes: Vec::new(),
        totals: Totals::default(),
    })
}

/// Returns an invoice with every field.
fn full() -> TradeDocument {
    let date = |day| Some(jiff::civil::date(2026, 11, day));
    let reference = |kind, id: &str, issue_date| Reference {
        kind,
        id: id.to_owned(),
        issue_date,
    };
    let mut document = plain();
    document.issue_time = Some(jiff::civil::time(13, 45, 7, 0));
    document.tax_point_date = date(24);
    document.delivery_date = date(23);
    document.period = Some(Period {
        start: date(1),
        end: date(30),
    });
    document.supplier.number = Some("V-77".to_owned());
    document.supplier.registration = Some("RC 123456".to_owned());
    document.customer.registration = Some("RC 654321".to_owned());
    document.customer.telephone = Some("+2348098765432".to_owned());
    document.references = vec![
        reference(
            ReferenceKind::Preceding,
            "INV000-94AD90FB-20261001",
            date(1),
        ),
        reference(ReferenceKind::Preceding, "INV00A-94AD90FB-20261002", None),
        reference(ReferenceKind::Order, "PO-9", None),
        reference(ReferenceKind::Dispatch, "DN-9", date(22)),
        reference(ReferenceKind::Receipt, "GRN-9", date(23)),
        reference(ReferenceKind::Originator, "TENDER-1", None),
        reference(ReferenceKind::Contract, "CTR-2026", date(2)),
        reference(ReferenceKind::Additional, "WAYBILL-1", date(3)),
        reference(ReferenceKind::Additional, "WAYBILL-2", None),
    ];
    document.buyer_reference = Some("Project Delta".to_owned());
    document.accounting_cost = Some("4500".to_owned());
    document.notes = vec![
        "Delivered to the back door.\nMind the step.".to_owned(),
        "Ẹ ṣé!".to_owned(),
    ];
    document.payment_means = vec![
        PaymentMeans {
            means: coded("30", "Credit Transfer"),
            due_date: date(28),
        },
        PaymentMeans {
            means: coded("58", "Banker's Draft"),
            due_date: None,
        },
        PaymentMeans {
            means: coded("97", ""),
            due_date: None,
        },
    ];
    document.payment_terms = Some("30 days net.\n2 % within 8 days.".to_owned());
    let mut discounted = line("Keyboard", "10", "15000.50", tax("STANDARD_VAT", "7.5"));
    discounted.charges = vec![
        charge(false, "1500.05", Some("Loyalty"), None),
        charge(true, "250", None, None),
        Charge {
            rate: Some(decimal("5")),
            ..charge(false, "7500.25", None, None)
        },
    ];
    document.lines.push(discounted);
    finish(document)
}

fn credit_note() -> TradeDocument {
    let mut document = plain();
    document.document_type = coded("380", "Credit Note");
    document.references = vec![Reference {
        kind: ReferenceKind::Preceding,
        id: "INV000-94AD90FB-20261001".to_owned(),
        issue_date: Some(jiff::civil::date(2026, 10, 1)),
    }];
    document.payment_means = vec![PaymentMeans {
        means: coded("30", "Credit Transfer"),
        due_date: document.due_date,
    }];
    document.lines[0].charges = vec![charge(false, "100", Some("Rebate"), None)];
    finish(document)
}

fn credit_note_with_terms() -> TradeDocument {
    TradeDocument {
        payment_means: Vec::new(),
        payment_terms: Some("Set off against INV002".to_owned()),
        ..credit_note()
    }
}

fn zero_and_exempt() -> TradeDocument {
    let mut document = plain();
    document
        .lines
        .push(line("Rice", "12.5", "800", tax("ZERO_VAT", "0")));
    document
        .lines
        .push(line("Textbook", "3", "4999.99", tax("EXEMPTED", "0")));
    document.lines[1].unit = coded("KGM", "");
    finish(document)
}

fn reduced_rate() -> TradeDocument {
    let mut document = plain();
    document
        .lines
        .push(line("Newspaper", "7", "333.33", tax("REDUCED_VAT", "5")));
    finish(document)
}

fn charges() -> TradeDocument {
    let mut document = zero_and_exempt();
    document.charges = vec![
        charge(
            false,
            "1000",
            Some("Anniversary"),
            Some(tax("STANDARD_VAT", "7.5")),
        ),
        charge(
            true,
            "333.33",
            Some("Freight"),
            Some(tax("STANDARD_VAT", "7.5")),
        ),
        charge(true, "50", None, Some(tax("ZERO_VAT", "0"))),
        Charge {
            rate: Some(decimal("2.5")),
            ..charge(false, "374.99", Some("Schools"), Some(tax("EXEMPTED", "0")))
        },
    ];
    finish(document)
}

/// Charges that bear no tax, on lines that all do.
pub fn untaxed_charges() -> TradeDocument {
    let mut document = plain();
    document.charges = vec![
        charge(false, "10.01", None, Some(tax("EXEMPTED", "0"))),
        charge(true, "3.33", None, Some(tax("EXEMPTED", "0"))),
    ];
    finish(document)
}

fn paid_in_part() -> TradeDocument {
    let mut document = plain();
    document.totals.prepaid = decimal("500000");
    document.totals.rounding = decimal("0.50");
    finish(document)
}

fn services() -> TradeDocument {
    let mut document = plain();
    let vat = || tax("STANDARD_VAT", "7.5");
    let mut audit = line("Audit", "37.25", "18000", vat());
    audit.item_kind = ItemKind::Service;
    audit.unit = coded("HUR", "");
    audit.classification = Some("6920".to_owned());
    let mut haulage = line("Haulage", "1", "90000", vat());
    haulage.item_kind = ItemKind::Service;
    haulage.classification = None;
    let mut rental = line("Generator by the day", "4", "2500", vat());
    rental.unit = coded("DAY", "");
    document.lines = vec![audit, haulage, rental];
    finish(document)
}

fn prices_per_thousand() -> TradeDocument {
    let mut document = plain();
    let mut screws = line("Screws", "2500", "1234.5678", tax("STANDARD_VAT", "7.5"));
    screws.base_quantity = decimal("1000");
    let mut fuel = line("Fuel", "33.333", "897.123456", tax("STANDARD_VAT", "7.5"));
    fuel.unit = coded("LTR", "");
    fuel.description = None;
    fuel.item_number = None;
    document.lines = vec![screws, fuel];
    finish(document)
}

fn yen() -> TradeDocument {
    let mut document = plain();
    document.currency = String::from("JPY");
    document.lines = vec![line("Tea", "10", "150", tax("ZERO_VAT", "0"))];
    finish(document)
}

fn many_lines() -> TradeDocument {
    let mut document = plain();
    let rates = [
        ("STANDARD_VAT", "7.5"),
        ("ZERO_VAT", "0"),
        ("EXEMPTED", "0"),
    ];
    document.lines = (1..=200)
        .map(|number| {
            let (code, percent) = rates[number % rates.len()];
            let price = format!("{}.{:02}", number * 7, number % 100);
            line(
                &format!("Item {number}"),
                &number.to_string(),
                &price,
                tax(code, percent),
            )
        })
        .collect();
    finish(document)
}

fn other_scripts() -> TradeDocument {
    let mut document = plain();
    document.supplier.name = String::from("Ọlá & Ọ̀ṣun ‘Ltd’");
    document.customer.name = String::from("شركة النور \"للتجارة\"");
    document.lines[0].name = String::from("Καφές ελληνικός ☕ 500 g");
    document.notes = vec!["]]> &amp; <b>𝒩</b>".to_owned()];
    document
}

fn consumer() -> TradeDocument {
    let mut document = plain();
    document.irn = None;
    document.due_date = None;
    document.payment_terms = Some("Paid at the counter".to_owned());
    document.customer = Party {
        name: "Walk-in customer".to_owned(),
        address: Address {
            country: Some("NG".to_owned()),
            ..Address::default()
        },
        ..Party::default()
    };
    document
}

fn negative_rounding() -> TradeDocument {
    let mut document = plain();
    document.lines = vec![line("Nails", "3", "0.33", tax("STANDARD_VAT", "7.5"))];
    document.totals.rounding = decimal("-0.01");
    finish(document)
}

fn tax_currency() -> TradeDocument {
    TradeDocument {
        tax_currency: Some("USD".to_owned()),
        ..plain()
    }
}

/// Returns an invoice whose lines are rounded together. It does not come back as it is, because the charges that say so
/// are taken back.
pub fn rounded_together() -> TradeDocument {
    let mut document = plain();
    let mut screw = line("Screw", "1", "0.005", tax("ZERO_VAT", "0"));
    screw.charges = vec![charge(false, "0.01", Some(ROUNDING), None)];
    let mut wire = line("Wire", "1", "4.753", tax("STANDARD_VAT", "7.5"));
    wire.charges = vec![charge(true, "0.01", Some(ROUNDING), None)];
    document.lines.extend([screw, wire]);
    finish(document)
}
