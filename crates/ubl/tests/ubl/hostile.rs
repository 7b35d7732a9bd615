//! XML that is not safe to read is refused in one sentence, and no bytes make the reader panic.

use crate::test_set;
use proptest::prelude::*;
use ubl::{Cause, Limits, UnmappedPart, read, write, write_with_parts};

fn first_fault(xml: impl AsRef<[u8]>, limits: &Limits) -> String {
    match read(xml.as_ref(), limits) {
        Ok(_) => "read".to_owned(),
        Err(faults) => faults
            .first()
            .map_or_else(String::new, |fault| fault.sentence.clone()),
    }
}

fn plain() -> String {
    write(&test_set::plain()).unwrap_or_default()
}

#[test]
fn a_doctype_is_refused() {
    let xml = plain().replace(
        "<Invoice",
        "<!DOCTYPE Invoice [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]><Invoice",
    );
    assert_eq!(
        first_fault(xml, &Limits::default()),
        "The XML has a DOCTYPE, which no UBL document needs and which is not read."
    );
}

#[test]
fn an_entity_is_refused_and_a_character_is_not() {
    let with = |text: &str| plain().replace("Lagos", text);
    assert_eq!(
        first_fault(with("&lagos;"), &Limits::default()),
        "The XML uses the entity lagos, which is not read."
    );
    let read = read(
        with("&#x4c;&#97;g<![CDATA[&o]]>s").as_bytes(),
        &Limits::default(),
    )
    .unwrap();
    assert_eq!(
        read.document.supplier.address.city.as_deref(),
        Some("Lag&os")
    );
}

#[test]
fn each_limit_is_told() {
    let limits = Limits::default();
    let deep = format!("{}{}", "<a>".repeat(50), "</a>".repeat(50));
    let cases = [
        (
            plain(),
            Limits {
                bytes_max: 1000,
                ..limits
            },
            format!(
                "The document has {} bytes; at most 1000 are read.",
                plain().len()
            ),
        ),
        (
            deep,
            limits,
            "More than 40 elements stand in each other; deeper ones are not read.".to_owned(),
        ),
        (
            plain(),
            Limits {
                elements_max: 20,
                ..limits
            },
            "The document has more than 20 elements and attributes.".to_owned(),
        ),
        (
            plain(),
            Limits {
                lines_max: 0,
                ..limits
            },
            "The document has more than 0 lines.".to_owned(),
        ),
        (
            format!("<{}/>", "a".repeat(200)),
            limits,
            "A name has more than 128 bytes.".to_owned(),
        ),
    ];
    for (xml, limits, sentence) in cases {
        assert_eq!(first_fault(xml, &limits), sentence);
    }
}

#[test]
fn what_is_no_ubl_is_told() {
    for (xml, sentence) in [
        ("", "The document has no element."),
        ("<Invoice>", "The XML ends inside the element {}Invoice."),
        (
            "<Invoice/><Invoice/>",
            "The XML has more than one outermost element.",
        ),
        (
            "<Invoice/>text",
            "The XML has text outside of its outermost element.",
        ),
        ("<x:Invoice/>", "The prefix x has no namespace."),
        (
            "<html/>",
            "The document is “html”; only Invoice and CreditNote of UBL 2 are read.",
        ),
        (
            "<Order xmlns='urn:oasis:names:specification:ubl:schema:xsd:Order-2'/>",
            "The document is “Order”; only Invoice and CreditNote of UBL 2 are read.",
        ),
    ] {
        assert_eq!(first_fault(xml, &Limits::default()), sentence);
    }
    assert_eq!(
        first_fault(b"<Invoice>\xff</Invoice>", &Limits::default()),
        "The document is not in UTF-8: byte 9 is not text."
    );
}

#[test]
fn other_encodings_and_prefixes_are_read() {
    let document = test_set::plain();
    let xml = plain();
    let utf_16: Vec<u8> = xml.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let renamed = xml
        .replace("cbc:", "b:")
        .replace("xmlns:cbc", "xmlns:b")
        .replace("cac:", "a:")
        .replace("xmlns:cac", "xmlns:a")
        .replace("<Invoice xmlns=", "<u:Invoice xmlns:u=")
        .replace("</Invoice>", "</u:Invoice>");
    let latin = xml
        .replace("UTF-8", "ISO-8859-1")
        .replace("Lagos", "Lag\u{f3}s");
    let latin: Vec<u8> = latin
        .chars()
        .map(|one| u8::try_from(u32::from(one)).unwrap_or(b'?'))
        .collect();
    for bytes in [
        [&[0xFF, 0xFE], &*utf_16].concat(),
        [&[0xEF, 0xBB, 0xBF], xml.as_bytes()].concat(),
        renamed.into_bytes(),
    ] {
        assert_eq!(read(&bytes, &Limits::default()).unwrap().document, document);
    }
    let read = read(&latin, &Limits::default()).unwrap();
    assert_eq!(
        read.document.supplier.address.city.as_deref(),
        Some("Lagós")
    );
}

const XHTML: &str = "http://www.w3.org/1999/xhtml";
const SVG: &str = "http://www.w3.org/2000/svg";
const XSLT: &str = "http://www.w3.org/1999/XSL/Transform";
const INVOICE: &str = "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2";

fn extension(content: &str) -> String {
    format!(
        "<ext:UBLExtensions><ext:UBLExtension><ext:ExtensionContent>{content}</ext:ExtensionContent>\
         </ext:UBLExtension></ext:UBLExtensions>"
    )
}

fn plain_with(content: &str) -> String {
    let start = "<cbc:CustomizationID>";
    plain().replace(start, &format!("{}{start}", extension(content)))
}

#[test]
fn what_a_browser_would_act_on_is_neither_kept_nor_written() {
    for (content, namespace) in [
        (
            format!("<h:script xmlns:h=\"{XHTML}\">bad()</h:script>"),
            XHTML,
        ),
        (format!("<script xmlns=\"{XHTML}\">bad()</script>"), XHTML),
        (format!("<s:svg xmlns:s=\"{SVG}\" onload=\"bad()\"/>"), SVG),
        (
            format!("<a xmlns=\"urn:x\"><b><s:g xmlns:s=\"{SVG}\">bad()</s:g></b></a>"),
            SVG,
        ),
        (
            format!("<t:stylesheet xmlns:t=\"{XSLT}\">bad()</t:stylesheet>"),
            XSLT,
        ),
        (
            format!("<a xmlns=\"urn:x\" xmlns:h=\"{XHTML}\" h:onclick=\"bad()\"/>"),
            XHTML,
        ),
    ] {
        let harmless = "<s:Sign xmlns:s=\"urn:s\">kept</s:Sign>";
        for (content, is_kept) in [(content.clone(), false), (content.clone() + harmless, true)] {
            let first = read(plain_with(&content).as_bytes(), &Limits::default()).unwrap();
            let mut told = first.changes.iter();
            let told = told.find(|one| one.cause == Cause::ActiveContent).unwrap();
            assert!(told.sentence.contains(namespace), "{told}");
            let xml = write_with_parts(&first.document, &first.beside).unwrap();
            assert!(!xml.contains("bad()") && !xml.contains(namespace), "{xml}");
            assert_eq!(xml.contains(">kept<"), is_kept, "{xml}");
            assert_eq!(xml.contains("UBLExtensions"), is_kept, "{xml}");
            // An earlier version has kept the part.
            let part = UnmappedPart {
                path: "/Invoice".to_owned(),
                value: extension(&content),
            };
            assert_eq!(write_with_parts(&first.document, &[part]).unwrap(), xml);
        }
    }
}

#[test]
fn a_namespace_is_told_once_however_many_elements_have_it() {
    let both = format!("<h:a xmlns:h=\"{XHTML}\"/><s:b xmlns:s=\"{SVG}\"/>");
    let first = read(
        plain_with(&both.repeat(1_000)).as_bytes(),
        &Limits::default(),
    );
    let changes = first.unwrap().changes;
    let told = changes
        .iter()
        .filter(|one| one.cause == Cause::ActiveContent);
    let told: Vec<_> = told.map(|one| (&*one.path, &*one.sentence)).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    for ((path, sentence), namespace) in told.into_iter().zip([XHTML, SVG]) {
        assert!(path.contains("ExtensionContent"), "{path}");
        assert!(sentence.contains(namespace), "{sentence}");
    }
}

#[test]
fn no_name_becomes_the_declaration_of_a_namespace() {
    let from_root = format!("xmlns:i=\"{INVOICE}\" i:xmlns");
    for (content, fault) in [
        (
            format!("<i:script {from_root}=\"{XHTML}\">1</i:script>"),
            "read",
        ),
        (
            format!("<i:a {from_root}:h=\"{XHTML}\">1</i:a>"),
            "\"xmlns:h\" is not the name of an element or attribute.",
        ),
        (
            "<p:n0:script xmlns:p=\"urn:x\">1</p:n0:script>".to_owned(),
            "\"n0:script\" is not the name of an element or attribute.",
        ),
    ] {
        let xml = plain_with(&content);
        assert_eq!(first_fault(&xml, &Limits::default()), fault, "{content}");
        if let Ok(first) = read(xml.as_bytes(), &Limits::default()) {
            let xml = write_with_parts(&first.document, &first.beside).unwrap();
            assert!(
                xml.contains(":xmlns=\"") && !xml.contains(&format!(" xmlns=\"{XHTML}")),
                "{xml}"
            );
        }
    }
    for name in ["xmlns", "xmlns:h"] {
        let part = UnmappedPart {
            path: format!("/Invoice/cac:AccountingSupplierParty/cac:Party/@{name}"),
            value: XHTML.to_owned(),
        };
        let xml = write_with_parts(&test_set::plain(), &[part]).unwrap();
        assert_eq!(xml, plain());
    }
}

#[test]
fn an_encoding_with_other_letters_is_not_read_as_latin_1() {
    let document = test_set::plain();
    for (encoding, is_read) in [
        ("ISO-8859-1", true),
        ("iso-8859-1", true),
        ("ISO-8859-15", false),
        ("ISO-8859-16", false),
        ("windows-1252", false),
    ] {
        let ascii = plain().replace("UTF-8", encoding);
        let found = read(ascii.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(found.document, document, "{encoding}");
        // The byte of a letter that is another one in each of them.
        let (before, after) = ascii.split_once("Lagos").unwrap();
        let bytes = [before.as_bytes(), b"Lag\xa4s", after.as_bytes()].concat();
        let found = read(&bytes, &Limits::default());
        assert_eq!(found.is_ok(), is_read, "{encoding}");
    }
}

#[test]
fn no_charge_of_a_line_leaves_the_range_of_numbers() {
    let rated = "<cbc:ChargeIndicator>false</cbc:ChargeIndicator>\
                 <cbc:MultiplierFactorNumeric>1</cbc:MultiplierFactorNumeric>\
                 <cbc:Amount currencyID=\"NGN\">-1</cbc:Amount>\
                 <cbc:BaseAmount currencyID=\"NGN\">79228162514264337593543950335</cbc:BaseAmount>";
    let fee = "<cbc:ChargeIndicator>true</cbc:ChargeIndicator>\
               <cbc:Amount currencyID=\"NGN\">999999999999999</cbc:Amount>";
    let too_large = "The numbers are too large to be multiplied.";
    for (charge, quantity, price, sentence) in [
        (rated, "2", "450000.00", "read"),
        (fee, "79228162514264", "999999999999999.999999", too_large),
        (fee, "1", "999999999999999", "read"),
        (fee, "10", "100000000000000", too_large),
    ] {
        let charge = format!("<cac:AllowanceCharge>{charge}</cac:AllowanceCharge><cac:Item>");
        let xml = plain()
            .replace("<cac:Item>", &charge)
            .replace(">2</cbc:Inv", &format!(">{quantity}</cbc:Inv"))
            .replace(">450000.00</cbc:Pri", &format!(">{price}</cbc:Pri"));
        let found = first_fault(xml, &Limits::default());
        assert_eq!(found, sentence, "{quantity} {price}");
    }
}

#[test]
fn a_document_of_ten_thousand_lines_is_read_and_written() {
    let mut document = test_set::plain();
    let mut line = document.lines[0].clone();
    line.unit.code = "XBX".to_owned();
    document.lines = vec![line; 10_000];
    test_set::sum_up(&mut document);
    let xml = write(&document).unwrap();
    let read = read(xml.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(
        (read.document.lines.len(), read.changes.len()),
        (10_000, 10_000)
    );
    assert_eq!(read.beside.len(), 10_000);
    assert_eq!(
        ubl::write_with_parts(&read.document, &read.beside).unwrap(),
        xml
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes, &Limits::default());
    }

    #[test]
    fn no_damage_makes_it_panic(
        (set, place, text) in (0_usize..20, any::<prop::sample::Index>(), "[0-9<>/\"&; .:a-z-]{0,6}"),
        length in 0_usize..12,
    ) {
        let (_, document) = &test_set::documents()[set];
        let mut xml: Vec<char> = write(document).unwrap().chars().collect();
        let start = place.index(xml.len());
        let end = xml.len().min(start + length);
        xml.splice(start..end, text.chars());
        let _ = read(xml.iter().collect::<String>().as_bytes(), &Limits::default());
    }

    #[test]
    fn no_numbers_make_it_panic(
        numbers in prop::collection::vec("-?[0-9]{0,16}(\\.[0-9]{0,20})?", 12),
    ) {
        // Every amount, quantity and price of the document is another number.
        let mut numbers = numbers.iter().cycle();
        let xml = write(&test_set::plain()).unwrap();
        let lines = xml.lines().map(|line| {
            let is_number = line.contains("currencyID") || line.contains("unitCode") || line.contains("Percent");
            match (is_number, line.find('>'), line.rfind('<')) {
                (true, Some(start), Some(end)) => {
                    format!("{}{}{}", &line[..=start], numbers.next().map_or("", |one| one), &line[end..])
                }
                _ => line.to_owned(),
            }
        });
        let xml = lines.collect::<Vec<_>>().join("\n");
        if let Ok(read) = read(xml.as_bytes(), &Limits::default()) {
            let _ = write(&read.document);
            if let Ok(allocated) = ubl::allocate_charges(&read.document) {
                let _ = ubl::fold_fees_into_prices(&allocated.document);
            }
        }
    }
}
