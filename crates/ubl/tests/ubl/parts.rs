//! The parts for which a document has no field: what is kept of them, and where it is written again.

use crate::test_set::{documents, plain};
use trade_document::{Reference, ReferenceKind};
use ubl::{
    Limits, ReadDocument, UnmappedPart, parts_after_emptying, read, write, write_with_parts,
};

const SUPPLIER: &str = "<cac:AccountingSupplierParty>";

/// Reads the XML of the plain invoice with some of its texts replaced.
fn read_with(replacements: &[(&str, &str)]) -> ReadDocument {
    let mut xml = write(&plain()).unwrap_or_default();
    for (from, to) in replacements {
        assert!(xml.contains(from), "{from} is not in {xml}");
        xml = xml.replace(from, to);
    }
    read(xml.as_bytes(), &Limits::default()).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// Writes the document that was read, and asserts that it comes back with the same parts.
fn write_again(first: &ReadDocument) -> String {
    let xml = write_with_parts(&first.document, &first.beside).unwrap_or_default();
    let second = read(xml.as_bytes(), &Limits::default());
    let second = second.unwrap_or_else(|faults| panic!("{faults:?}"));
    assert_eq!(second.document, first.document);
    assert_eq!(second.beside, first.beside);
    xml
}

#[test]
fn attributes_of_xml_itself_keep_their_prefix() {
    let note = format!("<cbc:Note xml:lang=\"de\">Hallo</cbc:Note>{SUPPLIER}");
    let extension = "<ext:UBLExtensions><ext:UBLExtension><ext:ExtensionContent><s:Sign xmlns:s=\"urn:s\" xml:id=\"a\"/>\
                     </ext:ExtensionContent></ext:UBLExtension></ext:UBLExtensions><cbc:CustomizationID>";
    let first = read_with(&[(SUPPLIER, &note), ("<cbc:CustomizationID>", extension)]);
    let xml = write_again(&first);
    for attribute in [" xml:lang=\"de\"", " xml:id=\"a\""] {
        assert!(xml.contains(attribute), "{attribute}: {xml}");
    }
    assert!(!xml.contains("XML/1998"), "{xml}");
}

#[test]
fn amounts_beside_a_negative_invoice_turn_with_it_and_those_of_prices_stay() {
    let tax = |amount: &str| {
        format!(
            "<cac:TaxTotal><cbc:TaxAmount currencyID=\"USD\">{amount}</cbc:TaxAmount></cac:TaxTotal>"
        )
    };
    let discount = "<cac:AllowanceCharge><cbc:ChargeIndicator>false</cbc:ChargeIndicator>\
                    <cbc:Amount currencyID=\"NGN\">5.00</cbc:Amount></cac:AllowanceCharge>";
    let totals = "<cac:LegalMonetaryTotal>";
    let sums = [">900000.00<", ">67500.00<", ">967500.00<", ">2<"];
    let negative = sums.map(|sum| sum.replacen('>', ">-", 1));
    for (stated, expected) in [
        ("-45.00", "45.00"),
        ("45.00", "-45.00"),
        ("0.00", "0.00"),
        ("-0.00", "0.00"),
    ] {
        let other = format!("{}{totals}", tax(stated));
        let price = format!("{discount}</cac:Price>");
        let mut replacements = vec![(totals, other.as_str()), ("</cac:Price>", price.as_str())];
        replacements.extend(sums.into_iter().zip(negative.iter().map(String::as_str)));
        let first = read_with(&replacements);
        assert_eq!(first.document.document_type.code, "380");
        let values: Vec<_> = first.beside.iter().map(|part| &*part.value).collect();
        assert_eq!(values, [discount, &*tax(expected)], "{stated}");
    }
}

#[test]
fn an_attribute_does_not_make_its_element() {
    let party = "/Invoice/cac:AccountingSupplierParty/cac:Party";
    for path in [
        "/Invoice/cbc:Note/@languageID".to_owned(),
        "/Invoice/cac:PaymentMeans[2]/cbc:PaymentMeansCode/@name".to_owned(),
        format!("{party}/cac:PartyName/cbc:Name/@languageID"),
        format!("{party}/cac:PartyLegalEntity/cbc:CompanyID/@schemeID"),
    ] {
        let part = UnmappedPart {
            path: path.clone(),
            value: "en".to_owned(),
        };
        let xml = write_with_parts(&plain(), &[part]).unwrap();
        assert_eq!(xml, write(&plain()).unwrap(), "{path}");
    }
    // A base quantity of one is left out, but it may have a unit.
    let part = UnmappedPart {
        path: "/Invoice/cac:InvoiceLine/cac:Price/cbc:BaseQuantity/@unitCode".to_owned(),
        value: "XBX".to_owned(),
    };
    let xml = write_with_parts(&plain(), &[part]).unwrap();
    let quantity = "<cbc:BaseQuantity unitCode=\"XBX\">1</cbc:BaseQuantity>";
    assert!(xml.contains(quantity), "{xml}");
}

#[test]
fn an_empty_element_does_not_count_among_those_that_are_written_again() {
    let added = "<cbc:Note></cbc:Note><cbc:Note languageID=\"en\"/><cbc:Note languageID=\"de\">Hallo</cbc:Note>\
                 <cac:AdditionalDocumentReference><cbc:ID/><cbc:DocumentDescription>None</cbc:DocumentDescription>\
                 </cac:AdditionalDocumentReference>\
                 <cac:AdditionalDocumentReference><cbc:ID>A</cbc:ID>\
                 <cbc:DocumentDescription>Plan</cbc:DocumentDescription></cac:AdditionalDocumentReference>";
    let first = read_with(&[(SUPPLIER, &format!("{added}{SUPPLIER}"))]);
    assert_eq!(first.document.notes, ["Hallo"]);
    assert_eq!(first.document.references.len(), 1);
    let bare: String = write_again(&first).split_whitespace().collect();
    for text in [
        "<cbc:NotelanguageID=\"de\">Hallo</cbc:Note>",
        "<cbc:ID>A</cbc:ID><cbc:DocumentDescription>Plan</cbc:DocumentDescription>",
    ] {
        assert!(bare.contains(text), "{text}: {bare}");
    }
    assert_eq!(bare.matches("<cbc:Note").count(), 1, "{bare}");
}

#[test]
fn what_belongs_to_a_reference_is_kept_whether_the_reference_stays_or_goes() {
    let ids = ["A", "B", "C"];
    let mut document = plain();
    let references = ids.iter().map(|id| Reference {
        kind: ReferenceKind::Additional,
        id: (*id).to_owned(),
        issue_date: None,
    });
    document.references = references.collect();
    let parts: Vec<_> = ids
        .iter()
        .enumerate()
        .map(|(index, id)| UnmappedPart {
            path: format!("/Invoice/cac:AdditionalDocumentReference[{}]", index + 1),
            value: format!("<cbc:DocumentDescription>Of{id}</cbc:DocumentDescription>"),
        })
        .collect();
    for gone in [
        vec![],
        vec!["A"],
        vec!["B"],
        vec!["C"],
        vec!["A", "C"],
        vec!["A", "B", "C"],
    ] {
        let mut emptied = document.clone();
        emptied.references.retain(|one| !gone.contains(&&*one.id));
        let kept = parts_after_emptying(&document, &emptied, &parts);
        let xml = write_with_parts(&emptied, &kept).unwrap();
        let bare: String = xml.split_whitespace().collect();
        for id in ids {
            let described = format!(
                "<cbc:ID>{id}</cbc:ID><cbc:DocumentDescription>Of{id}</cbc:DocumentDescription>"
            );
            assert!(bare.contains(&described), "{gone:?} {id}: {xml}");
        }
    }
}

#[test]
fn a_text_of_a_party_or_a_line_that_is_emptied_is_written_again() {
    let all = documents();
    let (_, mut document) = all.into_iter().find(|(name, _)| *name == "full").unwrap();
    document.customer.address.state = Some("Kano".to_owned());
    document.lines.push(document.lines[0].clone());
    let registration = "/Invoice/cac:AccountingCustomerParty/cac:Party/cac:PartyLegalEntity";
    let scheme = UnmappedPart {
        path: format!("{registration}/cbc:CompanyID/@schemeID"),
        value: "0088".to_owned(),
    };
    let mut emptied = document.clone();
    emptied.issue_time = None;
    let customer = &mut emptied.customer;
    customer.registration = None;
    customer.telephone = None;
    customer.email = None;
    customer.address.state = None;
    emptied.lines[1].description = None;
    let kept = parts_after_emptying(&document, &emptied, std::slice::from_ref(&scheme));
    let values: Vec<_> = kept.iter().map(|part| &*part.value).collect();
    let expected = "<cbc:CompanyID schemeID=\"0088\">RC 654321</cbc:CompanyID>";
    assert!(values.contains(&expected), "{values:?}");
    let again = write_with_parts(&emptied, &kept).unwrap();
    assert_eq!(again, write_with_parts(&document, &[scheme]).unwrap());
    // The document has a telephone of its own by now, which wins.
    emptied.customer.telephone = Some("+1".to_owned());
    let other = write_with_parts(&emptied, &kept).unwrap();
    assert!(
        other.contains("<cbc:Telephone>+1</cbc:Telephone>"),
        "{other}"
    );
}

#[test]
fn the_code_of_a_trade_is_kept_beside_its_name_until_the_name_changes() {
    let code = "cbc:IndustryClassificationCode";
    for (attributes, name, is_kept) in [
        ("", "6201", false),
        (" listID=\"ISIC\"", "6201", true),
        (" name=\"Software\"", "Software", true),
    ] {
        let element = format!("<{code}{attributes}>6201</{code}>");
        let customer = "<cac:AccountingCustomerParty>";
        let mut xml = write(&plain()).unwrap();
        let (before, after) = xml.split_once(customer).unwrap();
        let start = after.find(&format!("<{code}>"));
        let mut after = after.to_owned();
        if let Some(start) = start {
            let end = after.find(&format!("</{code}>")).unwrap() + code.len() + 3;
            after.replace_range(start..end, "");
        }
        let after = after.replacen("<cac:Party>", &format!("<cac:Party>{element}"), 1);
        xml = format!("{before}{customer}{after}");
        let mut first = read(xml.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(first.document.customer.description.as_deref(), Some(name));
        assert_eq!(!first.beside.is_empty(), is_kept, "{attributes}");
        assert!(write_again(&first).contains(&element), "{attributes}");
        first.document.customer.description = Some("Bakery".to_owned());
        let xml = write_with_parts(&first.document, &first.beside).unwrap();
        assert!(
            xml.contains(">Bakery<") && !xml.contains("Software"),
            "{xml}"
        );
    }
}
