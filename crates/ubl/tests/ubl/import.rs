//! What invoices of others have and this service's forms do not: each case is mapped and told, or
//! refused in one sentence.

use crate::test_set::{self, charge, decimal, line, plain, sum_up, tax};
use rust_decimal::Decimal;
use trade_document::{ItemKind, ROUNDING, TradeDocument};
use ubl::{
    Fault, Limits, ReadDocument, UnmappedPart, allocate_charges, fold_fees_into_prices, read,
    split_untaxed_charges, write, write_with_parts,
};

/// Reads the XML of the plain invoice with some of its texts replaced.
fn read_with(replacements: &[(&str, &str)]) -> Result<ReadDocument, Vec<Fault>> {
    let mut xml = write(&plain()).unwrap_or_default();
    for (from, to) in replacements {
        assert!(xml.contains(from), "{from} is not in {xml}");
        xml = xml.replace(from, to);
    }
    read(xml.as_bytes(), &Limits::default())
}

fn sentences(read: &ReadDocument) -> Vec<&str> {
    read.changes
        .iter()
        .map(|change| &*change.sentence)
        .collect()
}

#[test]
fn a_total_that_is_off_by_more_than_a_unit_is_told_in_every_currency() {
    for (currency, off, is_told) in [
        ("NGN", "0.01", false),
        ("NGN", "0.02", true),
        ("KWD", "0.001", false),
        ("KWD", "0.009", true),
        ("JPY", "0.01", false),
        ("JPY", "1", true),
    ] {
        let mut document = plain();
        document.currency = currency.to_owned();
        document.totals.lines += decimal(off);
        let xml = write(&document).unwrap();
        let read = read(xml.as_bytes(), &Limits::default()).unwrap();
        let mut told = sentences(&read).into_iter();
        let is_found = told.any(|one| one.starts_with("The amount of the lines is"));
        assert_eq!(is_found, is_told, "{currency} {off}");
    }
}

#[test]
fn a_package_becomes_a_piece_and_is_given_back() {
    let read = read_with(&[("unitCode=\"EA\"", "unitCode=\"XBX\"")]).unwrap();
    assert_eq!(read.document.lines[0].unit.code, "EA");
    assert_eq!(
        sentences(&read),
        ["The unit XBX (box, Recommendation 21) became EA (each)."]
    );
    let xml = write_with_parts(&read.document, &read.beside).unwrap();
    assert!(xml.contains("unitCode=\"XBX\""), "{xml}");
}

#[test]
fn a_negative_invoice_becomes_a_credit_note() {
    let mut document = plain();
    document
        .lines
        .push(line("Mouse", "1", "2500.50", tax("STANDARD_VAT", "7.5")));
    document.lines[0].charges = vec![charge(false, "100", Some("Rebate"), None)];
    document.charges = vec![charge(
        true,
        "10",
        Some("Freight"),
        Some(tax("STANDARD_VAT", "7.5")),
    )];
    sum_up(&mut document);
    let negative = turned(&document);
    let xml = write(&negative).unwrap();
    let read = read(xml.as_bytes(), &Limits::default()).unwrap();
    let expected = TradeDocument {
        document_type: test_set::coded("380", "Credit Note"),
        ..document
    };
    assert_eq!(read.document, expected);
    assert_eq!(
        sentences(&read),
        ["The invoice of -970091.29 became a credit note of 970091.29."]
    );
}

/// Returns the document with the opposite of every amount.
fn turned(document: &TradeDocument) -> TradeDocument {
    let mut document = document.clone();
    for line in &mut document.lines {
        line.quantity = -line.quantity;
        line.amount = -line.amount;
        line.charges
            .iter_mut()
            .for_each(|charge| charge.amount = -charge.amount);
    }
    document
        .charges
        .iter_mut()
        .for_each(|charge| charge.amount = -charge.amount);
    for tax in &mut document.taxes {
        tax.base = -tax.base;
        tax.amount = -tax.amount;
    }
    let totals = &mut document.totals;
    for amount in [
        &mut totals.lines,
        &mut totals.tax_exclusive,
        &mut totals.tax_inclusive,
        &mut totals.payable,
    ] {
        *amount = -*amount;
    }
    document
}

#[test]
fn what_the_buyer_issued_stays_self_billed_as_a_credit() {
    let mut document = turned(&plain());
    document.document_type = test_set::coded("394", "Self-billed Invoice");
    let read = read(write(&document).unwrap().as_bytes(), &Limits::default()).unwrap();
    assert_eq!(read.document.document_type.code, "393");
    assert_eq!(read.root, "Invoice");
}

#[test]
fn a_document_type_that_keeps_its_code_is_no_change() {
    let mut document = plain();
    document.document_type = test_set::coded("380", "Credit Note");
    let xml = write(&document).unwrap();
    let code = |code: &str| format!("<cbc:CreditNoteTypeCode>{code}</cbc:CreditNoteTypeCode>");
    assert!(xml.contains(&code("381")), "{xml}");
    for (foreign, told) in [
        ("380", &[][..]),
        ("381", &[]),
        ("386", &["The document type 386 became 380 (Credit Note)."]),
    ] {
        let xml = xml.replace(&code("381"), &code(foreign));
        let read = read(xml.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(read.document.document_type.code, "380", "{foreign}");
        assert_eq!(sentences(&read), told, "{foreign}");
    }
}

#[test]
fn a_negative_credit_note_is_refused() {
    let mut document = turned(&plain());
    document.document_type = test_set::coded("380", "Credit Note");
    let xml = write(&document).unwrap();
    let faults = read(xml.as_bytes(), &Limits::default()).unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "/CreditNote: The amounts of the credit note are negative, which may mean a credit or a debit."
    );
}

#[test]
fn charges_without_tax_that_no_line_shares_are_taken_out_and_the_payable_stays() {
    let untaxed = test_set::untaxed_charges();
    let split = split_untaxed_charges(untaxed.clone());
    assert_eq!(split.after_tax, untaxed.charges);
    assert_eq!(split.document.charges, []);
    assert_eq!(split.document.taxes, plain().taxes);
    let totals = split.document.totals;
    let before = untaxed.totals;
    assert_eq!(totals.tax_exclusive, totals.lines);
    assert_eq!(totals.tax_inclusive, before.tax_inclusive + decimal("6.68"));
    assert_eq!(totals.payable, before.payable);

    // A charge stays if a line has its tax, or if it bears tax.
    let mut shared = untaxed.clone();
    shared
        .lines
        .push(line("Book", "1", "20", tax("EXEMPTED", "0")));
    sum_up(&mut shared);
    let mut taxed = plain();
    taxed.charges = vec![charge(false, "5", None, Some(tax("STANDARD_VAT", "7.5")))];
    sum_up(&mut taxed);
    for document in [shared, taxed] {
        let split = split_untaxed_charges(document.clone());
        assert_eq!((split.document, split.after_tax), (document, Vec::new()));
    }
}

#[test]
fn a_negative_line_becomes_a_discount() {
    let mut document = plain();
    let mut returned = line("Bottles returned", "-3", "100", tax("STANDARD_VAT", "7.5"));
    returned.amount = decimal("-300");
    document.lines.push(returned);
    sum_up(&mut document);
    let xml = write(&document).unwrap();
    let read = read(xml.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(
        read.document.charges,
        [charge(
            false,
            "300",
            Some("Bottles returned"),
            Some(tax("STANDARD_VAT", "7.5"))
        )]
    );
    assert_eq!(read.document.lines.len(), 1);
    assert_eq!(read.document.totals.lines, decimal("900000"));
    assert_eq!(read.document.totals.tax_exclusive, decimal("899700"));
    assert_eq!(read.beside, []);
    assert_eq!(
        sentences(&read),
        ["The line of −300.00, “Bottles returned”, became a discount on the document."]
    );
    let allocated = allocate_charges(&read.document).unwrap();
    assert_eq!(allocated.document.lines[0].amount, decimal("899700"));
}

#[test]
fn the_amount_of_a_line_is_the_truth() {
    let amounts =
        |amount: &str| format!("<cbc:PriceAmount currencyID=\"NGN\">{amount}</cbc:PriceAmount>");
    let read = read_with(&[(&amounts("450000.00"), &amounts("450000.25"))]).unwrap();
    assert_eq!(read.document.lines[0].amount, decimal("900000"));
    assert_eq!(
        read.document.lines[0].charges,
        [charge(
            false,
            "0.50",
            Some("Difference to quantity × price"),
            None
        )]
    );
    assert_eq!(
        sentences(&read),
        [
            "2 × 450000.25 with fees and discounts gives 900000.50, but the line is 900000.00: a discount of 0.50 makes it so."
        ]
    );
    let read = read_with(&[(&amounts("450000.00"), &amounts("449999"))]).unwrap();
    let line = &fold_fees_into_prices(&read.document).document.lines[0];
    assert_eq!((line.price, line.charges.len()), (decimal("450000"), 0));
}

#[test]
fn a_charge_that_is_a_rounding_is_taken_back_and_the_amount_stays() {
    let rounding = |is_fee, amount| charge(is_fee, amount, Some(ROUNDING), None);
    let other = charge(false, "1", Some("Loyalty"), None);
    for (currency, price, charges, amount, left) in [
        ("NGN", "0.005", vec![rounding(false, "0.01")], "0", 0),
        ("NGN", "4.756819", vec![rounding(false, "0.01")], "4.75", 0),
        ("JPY", "148.288", vec![rounding(true, "1")], "149", 0),
        (
            "NGN",
            "4.756819",
            vec![other.clone(), rounding(false, "0.01")],
            "3.75",
            1,
        ),
        // It is more than a rounding, or it is not the last charge, as ours is.
        ("NGN", "4.756819", vec![rounding(false, "0.02")], "4.74", 1),
        ("NGN", "4.756819", vec![rounding(true, "0.01")], "4.77", 1),
        (
            "NGN",
            "4.756819",
            vec![rounding(false, "0.01"), other.clone()],
            "3.75",
            2,
        ),
    ] {
        let mut document = plain();
        document.currency = currency.to_owned();
        document.lines[0].quantity = Decimal::ONE;
        document.lines[0].price = decimal(price);
        document.lines[0].charges = charges;
        document.lines[0].amount = decimal(amount);
        let xml = write(&document).unwrap();
        let read = read(xml.as_bytes(), &Limits::default()).unwrap();
        let line = &read.document.lines[0];
        assert_eq!(line.charges.len(), left, "{price} {amount}");
        assert_eq!(line.amount, decimal(amount), "{price}");
        assert_eq!(read.beside, [], "{price} {amount}");
        let told = sentences(&read).join(" ");
        assert!(!told.contains("makes it so"), "{price} {amount}: {told}");
    }
}

#[test]
fn a_line_without_price_or_quantity_gets_them_from_its_amount() {
    let price = "<cac:Price>\n      <cbc:PriceAmount currencyID=\"NGN\">450000.00</cbc:PriceAmount>\n    </cac:Price>";
    let quantity = "<cbc:InvoicedQuantity unitCode=\"EA\">2</cbc:InvoicedQuantity>";
    let without_price = read_with(&[(price, "")]).unwrap().document.lines.remove(0);
    assert_eq!(
        (without_price.quantity, without_price.price),
        (decimal("2"), decimal("450000"))
    );
    let without_both = read_with(&[(price, ""), (quantity, "")]).unwrap();
    let line = &without_both.document.lines[0];
    assert_eq!(
        (line.quantity, line.price, &*line.unit.code),
        (decimal("1"), decimal("900000"), "EA")
    );
    assert_eq!(
        sentences(&without_both),
        [
            "The line has no unit; EA (each) was taken.",
            "The line has no quantity or no price in the document's currency: 1 × 900000.00 was taken from its amount 900000.00."
        ]
    );
}

#[test]
fn a_price_in_another_currency_stays_beside_and_a_rate_comes_from_the_sum() {
    let price = "<cbc:PriceAmount currencyID=\"NGN\">450000.00<";
    let category = "<cac:ClassifiedTaxCategory>\n        <cbc:ID>S</cbc:ID>\n";
    let with_rate = format!("{category}        <cbc:Percent>7.5</cbc:Percent>\n");
    let read = read_with(&[
        (price, "<cbc:PriceAmount currencyID=\"USD\">281.25<"),
        (&with_rate, category),
    ])
    .unwrap();
    assert_eq!(read.document, plain());
    let xml = write_with_parts(&read.document, &read.beside).unwrap();
    assert!(xml.contains(price), "{xml}");
}

#[test]
fn negative_discounts_and_signs_are_turned() {
    let mut document = plain();
    document.lines[0].charges = vec![charge(false, "-50", Some("Handling"), None)];
    sum_up(&mut document);
    document.lines[0].quantity = -document.lines[0].quantity;
    document.lines[0].price = -document.lines[0].price;
    let xml = write(&document).unwrap();
    let read = read(xml.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(
        read.document.lines[0].charges,
        [charge(true, "50", Some("Handling"), None)]
    );
    assert_eq!(read.document.lines[0].price, decimal("450000"));
    assert_eq!(
        sentences(&read),
        [
            "The negative discount became a fee of 50.00.",
            "Quantity and price, both negative, became positive."
        ]
    );
}

#[test]
fn categories_and_means_that_the_authority_lacks_are_mapped_and_given_back() {
    let category = "<cbc:ID>S</cbc:ID>\n";
    let read = read_with(&[
        (category, "<cbc:ID>AE</cbc:ID>\n"),
        ("<cbc:Percent>7.5</cbc:Percent>", "<cbc:Percent>0</cbc:Percent>"),
        ("<cac:TaxTotal>", "<cac:PaymentMeans><cbc:PaymentMeansCode>59</cbc:PaymentMeansCode></cac:PaymentMeans><cac:TaxTotal>"),
    ])
    .unwrap();
    assert_eq!(read.document.lines[0].tax.category.code, "EXEMPTED");
    assert_eq!(read.document.payment_means[0].means.code, "49");
    assert_eq!(
        sentences(&read),
        [
            "The tax category AE of VAT became EXEMPTED.",
            "The payment means 59 of UNTDID 4461 became 49."
        ]
    );
    let xml = write_with_parts(&read.document, &read.beside).unwrap();
    assert_eq!(xml.matches("<cbc:ID>AE</cbc:ID>").count(), 2, "{xml}");
    assert!(xml.contains("<cbc:PaymentMeansCode>59<"), "{xml}");
}

#[test]
fn sums_that_are_off_are_told_with_their_numbers() {
    let read = read_with(&[("967500.00", "967400.00")]).unwrap();
    assert_eq!(
        sentences(&read),
        ["The amount with tax is 967400.00, but 900000.00 + 67500.00 tax is 967500.00."]
    );
}

#[test]
fn what_is_missing_or_malformed_is_told_with_its_path_and_all_at_once() {
    let faults = read_with(&[
        ("<cbc:ID>INV001</cbc:ID>", ""),
        ("2026-11-25", "25.11.2026"),
        (">2</cbc:InvoicedQuantity>", ">two</cbc:InvoicedQuantity>"),
    ])
    .unwrap_err();
    let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "/Invoice: The number is missing (cbc:ID).",
            "/Invoice/cbc:IssueDate: “25.11.2026” is no date; one is written like 2026-11-26.",
            "/Invoice/cac:InvoiceLine/cbc:InvoicedQuantity: “two” is no number of at most 15 digits before the decimal point.",
        ]
    );
}

#[test]
fn an_amount_in_another_currency_is_refused_but_the_tax_in_one_is_kept() {
    let faults = read_with(&[(
        "<cbc:PayableAmount currencyID=\"NGN\">",
        "<cbc:PayableAmount currencyID=\"USD\">",
    )])
    .unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "/Invoice/cac:LegalMonetaryTotal/cbc:PayableAmount: The amount is in USD, the document in NGN."
    );
    let other =
        "<cac:TaxTotal><cbc:TaxAmount currencyID=\"USD\">45.00</cbc:TaxAmount></cac:TaxTotal>";
    let read = read_with(&[
        (
            "<cac:LegalMonetaryTotal>",
            &format!("{other}<cac:LegalMonetaryTotal>"),
        ),
        (
            "<cac:AccountingSupplierParty>",
            "<cbc:TaxCurrencyCode>USD</cbc:TaxCurrencyCode><cac:AccountingSupplierParty>",
        ),
    ])
    .unwrap();
    assert_eq!(read.document.tax_currency.as_deref(), Some("USD"));
    assert_eq!(read.document.taxes.len(), 1);
    assert_eq!(read.beside[0].value, other);
}

#[test]
fn the_currency_of_the_tax_is_stated_only_beside_the_tax_in_it() {
    let code = "<cbc:TaxCurrencyCode>USD</cbc:TaxCurrencyCode>";
    for (kept, is_stated) in [(None, false), (Some("USD"), true), (Some("EUR"), false)] {
        let mut document = plain();
        document.tax_currency = Some("USD".to_owned());
        let totals = kept.into_iter().map(|currency| UnmappedPart {
            path: "/Invoice".to_owned(),
            value: format!(
                "<cac:TaxTotal><cbc:TaxAmount currencyID=\"{currency}\">45.00</cbc:TaxAmount></cac:TaxTotal>"
            ),
        });
        let parts: Vec<_> = totals.collect();
        let xml = write_with_parts(&document, &parts).unwrap();
        assert_eq!(xml.contains(code), is_stated, "{kept:?}: {xml}");
        let read = read(xml.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(read.document, document, "{kept:?}");
        assert_eq!(read.beside, parts, "{kept:?}");
        assert_eq!(read.changes, [], "{kept:?}");
    }
}

#[test]
fn an_attribute_of_a_tax_currency_that_is_not_stated_leaves_no_empty_element() {
    let part = UnmappedPart {
        path: "/Invoice/cbc:TaxCurrencyCode/@listID".to_owned(),
        value: "ISO4217".to_owned(),
    };
    let xml = write_with_parts(&plain(), &[part]).unwrap();
    assert_eq!(xml, write(&plain()).unwrap());
}

#[test]
fn white_space_is_folded_and_numbers_are_rounded() {
    let read = read_with(&[
        (">Laptop<", ">\n   Laptop\t 15\n inch <"),
        (
            ">450000.00</cbc:PriceAmount>",
            "> 449999.99999999999 </cbc:PriceAmount>",
        ),
    ])
    .unwrap();
    assert_eq!(read.document.lines[0].name, "Laptop 15 inch");
    assert_eq!(read.document.lines[0].price, decimal("450000"));
    assert_eq!(
        sentences(&read),
        [
            "449999.99999999999 became 450000.000000: at most 6 digits after the decimal point are kept."
        ]
    );
}

#[test]
fn services_are_told_by_their_unit_of_time() {
    let property = |word: &str| {
        format!(
            "<cac:AdditionalItemProperty><cbc:Name>Item type</cbc:Name><cbc:Value>{word}</cbc:Value></cac:AdditionalItemProperty></cac:Item>"
        )
    };
    let read = read_with(&[("unitCode=\"EA\"", "unitCode=\"HUR\"")]).unwrap();
    assert_eq!(read.document.lines[0].item_kind, ItemKind::Service);
    assert_eq!(
        sentences(&read),
        ["Lines with the unit of time HUR were taken for services."]
    );
    let noted = read_with(&[
        ("unitCode=\"EA\"", "unitCode=\"HUR\""),
        ("</cac:Item>", &property("PRODUCT")),
    ]);
    assert_eq!(
        noted.unwrap().document.lines[0].item_kind,
        ItemKind::Product
    );
}

#[test]
fn a_longer_classification_is_cut_to_its_heading_and_another_list_stays_beside() {
    let read = read_with(&[(">8471.30<", ">84713000<")]).unwrap();
    assert_eq!(
        read.document.lines[0].classification.as_deref(),
        Some("8471.30")
    );
    assert_eq!(
        sentences(&read),
        ["The classification 84713000 became 8471.30."]
    );
    let read = read_with(&[("listID=\"HS\">8471.30<", "listID=\"TST\">43211503<")]).unwrap();
    assert_eq!(read.document.lines[0].classification, None);
    assert_eq!(
        read.beside[0].value,
        "<cac:CommodityClassification><cbc:ItemClassificationCode listID=\"TST\">43211503</cbc:ItemClassificationCode></cac:CommodityClassification>"
    );
}

#[test]
fn a_sum_of_tax_alone_is_the_tax_of_all_lines() {
    let xml = write(&plain()).unwrap();
    let start = xml.find("<cac:TaxSubtotal>").unwrap();
    let end = xml.find("</cac:TaxSubtotal>").unwrap() + "</cac:TaxSubtotal>".len();
    let without = format!("{}{}", &xml[..start], &xml[end..]);
    let read = read(without.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(read.document, plain());
    assert_eq!(
        sentences(&read),
        ["The sum of the tax, 67500.00, was taken for the tax of all lines."]
    );
}

#[test]
fn a_document_in_an_envelope_is_read() {
    let xml = write(&plain()).unwrap();
    let (_, invoice) = xml.split_once("?>").unwrap();
    let envelope = format!("<e:Envelope xmlns:e=\"urn:e\"><e:Header/>{invoice}</e:Envelope>");
    let read = read(envelope.as_bytes(), &Limits::default()).unwrap();
    assert_eq!((read.document, read.beside), (plain(), Vec::new()));
}

#[test]
fn an_envelope_with_several_documents_is_refused() {
    let xml = write(&plain()).unwrap();
    let (_, invoice) = xml.split_once("?>").unwrap();
    let mut credit = plain();
    credit.document_type = test_set::coded("380", "Credit Note");
    let credit = write(&credit).unwrap();
    let (_, credit) = credit.split_once("?>").unwrap();
    for (documents, count) in [(vec![invoice; 2], 2), (vec![credit, invoice, invoice], 3)] {
        let envelope = format!("<e:All xmlns:e=\"urn:e\">{}</e:All>", documents.concat());
        let faults = read(envelope.as_bytes(), &Limits::default()).unwrap_err();
        assert_eq!(
            faults[0].to_string(),
            format!(
                "/: The file has {count} invoices or credit notes; each needs a file of its own."
            )
        );
    }
}

#[test]
fn the_time_is_read_in_whole_seconds() {
    for (text, told) in [
        ("13:45:00", &[][..]),
        ("13:45:00.0000000", &[]),
        (
            "13:45:00.25",
            &["The time 13:45:00.25 became 13:45:00, without the fraction of a second."],
        ),
        (
            "13:45:00.999Z",
            &[
                "The time 13:45:00.999 became 13:45:00, without the fraction of a second.",
                "The zone “Z” of the time 13:45:00 was left out.",
            ],
        ),
    ] {
        let time = format!("<cbc:IssueTime>{text}</cbc:IssueTime><cac:AccountingSupplierParty>");
        let read = read_with(&[("<cac:AccountingSupplierParty>", &time)]).unwrap();
        let expected = Some(jiff::civil::time(13, 45, 0, 0));
        assert_eq!(read.document.issue_time, expected, "{text}");
        assert_eq!(sentences(&read), told, "{text}");
    }
}

#[test]
fn a_tax_that_states_only_its_rate_is_read_from_the_sums() {
    // As in Turkey: the rate stands in the sum, the kind of tax in a code, and the item has no category.
    let sum = "<cac:TaxTotal><cbc:TaxAmount currencyID=\"NGN\">67500.00</cbc:TaxAmount><cac:TaxSubtotal><cbc:TaxableAmount currencyID=\"NGN\">900000</cbc:TaxableAmount><cbc:TaxAmount currencyID=\"NGN\">67500.00</cbc:TaxAmount><cbc:Percent>7.5</cbc:Percent><cac:TaxCategory><cac:TaxScheme><cbc:Name>KDV</cbc:Name><cbc:TaxTypeCode>0015</cbc:TaxTypeCode></cac:TaxScheme></cac:TaxCategory></cac:TaxSubtotal></cac:TaxTotal>";
    let xml = write(&plain()).unwrap();
    let cut = |xml: String, from: &str, to: &str| {
        let start = xml.find(from).unwrap();
        let end = xml.find(to).unwrap() + to.len();
        format!("{}{}", &xml[..start], &xml[end..])
    };
    let xml = cut(
        xml,
        "<cac:ClassifiedTaxCategory>",
        "</cac:ClassifiedTaxCategory>",
    );
    let xml = cut(xml, "<cac:TaxTotal>", "</cac:TaxTotal>");
    let xml = xml
        .replace(
            "<cac:LegalMonetaryTotal>",
            &format!("{sum}<cac:LegalMonetaryTotal>"),
        )
        .replace("<cac:Item>", &format!("{sum}<cac:Item>"));
    let read = read(xml.as_bytes(), &Limits::default()).unwrap();
    let mut expected = plain();
    expected.lines[0].tax.category.name = "KDV".to_owned();
    sum_up(&mut expected);
    assert_eq!(read.document, expected);
    assert_eq!(
        sentences(&read),
        ["The tax category without a code of VAT became STANDARD_VAT."]
    );
}

#[test]
fn a_discount_is_divided_by_the_largest_remainder() {
    let mut document = plain();
    let vat = || tax("STANDARD_VAT", "7.5");
    document.lines = vec![
        line("One", "1", "10", vat()),
        line("Two", "1", "10", vat()),
        line("Three", "1", "10", vat()),
        line("Rice", "1", "10", tax("ZERO_VAT", "0")),
    ];
    document.charges = vec![
        charge(false, "10", Some("Loyalty"), Some(vat())),
        charge(true, "0.01", Some("Stamp"), Some(tax("ZERO_VAT", "0"))),
    ];
    sum_up(&mut document);
    let allocated = allocate_charges(&document).unwrap();
    let amounts: Vec<_> = allocated
        .document
        .lines
        .iter()
        .map(|line| line.amount)
        .collect();
    assert_eq!(amounts, ["6.66", "6.67", "6.67", "10.01"].map(decimal));
    assert_eq!(
        allocated.document.totals.lines,
        document.totals.tax_exclusive
    );
    let sentences: Vec<_> = allocated
        .changes
        .iter()
        .map(|change| &*change.sentence)
        .collect();
    assert_eq!(
        sentences,
        [
            "The fee of 0.01 (Stamp) was divided among 1 lines.",
            "The discount of 10 (Loyalty) was divided among 3 lines."
        ]
    );
    let simple = fold_fees_into_prices(&allocated.document).document;
    assert_eq!(simple.lines[3].price, decimal("10.01"));
    assert_eq!(simple.lines[3].charges, []);
}

#[test]
fn a_fee_of_another_tax_becomes_a_line_and_such_a_discount_is_refused() {
    let mut document = plain();
    let charge_of = |is_fee| charge(is_fee, "25", Some("Pallets"), Some(tax("ZERO_VAT", "0")));
    document.charges = vec![charge_of(true)];
    sum_up(&mut document);
    let allocated = allocate_charges(&document).unwrap().document;
    assert_eq!(
        (&*allocated.lines[1].name, allocated.lines[1].amount),
        ("Pallets", decimal("25"))
    );
    document.charges = vec![charge_of(false)];
    let refusal =
        |document: &TradeDocument| allocate_charges(document).unwrap_err().remove(0).sentence;
    assert_eq!(
        refusal(&document),
        "The discount of 25 (Pallets) has a tax that no line has."
    );
    document.charges = vec![charge(
        false,
        "900000.01",
        None,
        Some(tax("STANDARD_VAT", "7.5")),
    )];
    assert_eq!(
        refusal(&document),
        "The discount of 900000.01 (discount) is more than the 900000 of the lines of its tax."
    );
}

/// Each line gets a part of each fee, with its reason: small files could become many GB.
#[test]
fn charges_are_divided_among_lines_only_as_far_as_memory_allows() {
    for (charges, reason_bytes, is_refused) in [
        (100, 20, false),
        (3, 20_000, false),
        (4, 20_000, true),
        (1, 100_000, true),
    ] {
        let mut document = plain();
        document.lines = vec![line("One", "1", "10", tax("STANDARD_VAT", "7.5")); 1_000];
        let reason = "x".repeat(reason_bytes);
        document.charges = vec![charge(true, "100", Some(&reason), None); charges];
        sum_up(&mut document);
        let refused = allocate_charges(&document).err();
        let sentence = refused.map(|mut faults| faults.remove(0).sentence);
        assert_eq!(
            sentence.is_some_and(|told| told.contains("too many, or their reasons too long")),
            is_refused,
            "{charges} {reason_bytes}"
        );
    }
}

/// Lines without a tax get the only one of the document, so that a long name would be copied to each of them.
#[test]
fn a_very_long_name_of_a_tax_stays_beside() {
    for (bytes, is_read) in [(255, true), (256, false)] {
        let name = "x".repeat(bytes);
        let named = format!("<cbc:ID>VAT</cbc:ID><cbc:Name>{name}</cbc:Name>");
        let read = read_with(&[("<cbc:ID>VAT</cbc:ID>", &named)]).unwrap();
        let found = &read.document.lines[0].tax.category.name;
        assert_eq!(*found == name, is_read, "{found}");
    }
}

#[test]
fn a_price_that_rounding_hid_becomes_exact() {
    let mut document = plain();
    document.lines = vec![line("Fuel", "3", "0.333", tax("STANDARD_VAT", "7.5"))];
    document.lines[0].base_quantity = decimal("0.5");
    sum_up(&mut document);
    assert_eq!(document.lines[0].amount, decimal("2.00"));
    let line = fold_fees_into_prices(&document).document.lines.remove(0);
    assert_eq!(
        (line.quantity, line.price, line.base_quantity),
        (decimal("3"), decimal("0.666667"), Decimal::ONE)
    );
    assert_eq!(line.charges, [charge(false, "0.000001", None, None)]);
}
