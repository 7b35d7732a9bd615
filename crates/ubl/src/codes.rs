//! Maps the authority's codes to those of UBL and back. A trade document has the authority's codes. UBL has those of
//! the United Nations (UNTDID 1001, 4461, 5153 and 5305). The same number often has different meanings in the two.

use rust_decimal::Decimal;
use trade_document::CodeAndName;

/// The outermost element of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootKind {
    Invoice,
    CreditNote,
}

/// The authority's document types that UBL has, too: code, name, root element and code of UNTDID 1001. If several rows
/// have the same UBL code, reading it gives the first row. The authority's 380 and 381 are swapped in UNTDID.
const DOCUMENT_TYPES: [(&str, &str, RootKind, &str); 10] = [
    ("381", "Commercial Invoice", RootKind::Invoice, "380"),
    ("380", "Credit Note", RootKind::CreditNote, "381"),
    ("384", "Debit Note", RootKind::Invoice, "383"),
    ("394", "Self-billed Invoice", RootKind::Invoice, "389"),
    ("385", "Self Billed", RootKind::Invoice, "389"),
    ("386", "Factored", RootKind::Invoice, "393"),
    ("390", "Proforma", RootKind::Invoice, "325"),
    ("392", "Consignment", RootKind::Invoice, "395"),
    (
        "393",
        "Self-billed Credit Note",
        RootKind::CreditNote,
        "261",
    ),
    ("397", "Final Settlement", RootKind::Invoice, "218"),
];

/// The codes of UNTDID 1001 that mean a credit note, even in an element `Invoice`.
const CREDIT_CODES: [&str; 13] = [
    "81", "83", "261", "262", "296", "308", "381", "396", "420", "458", "502", "503", "532",
];
/// The codes of UNTDID 1001, other than 383, that mean a debit note.
const DEBIT_CODES: [&str; 2] = ["84", "527"];

/// The codes of UNTDID 1001 for documents that the buyer issues: invoices, and credit notes below. The authority has no
/// type for a self-billed debit note (527).
const SELF_BILLED_INVOICES: [&str; 5] = ["389", "471", "473", "500", "501"];
const SELF_BILLED_CREDITS: [&str; 2] = ["261", "502"];

/// Returns the UBL code of the credit note that cancels a document of this authority's type. The credit note for a
/// self-billed document is self-billed, too.
pub(crate) fn credit_note_code(authority_code: &str) -> &'static str {
    let is_self_billed = ubl_document_type(authority_code)
        .is_some_and(|(_, code)| SELF_BILLED_INVOICES.contains(&code));
    if is_self_billed { "261" } else { "381" }
}

/// Returns the root element and the UBL code of one of the authority's document types.
pub(crate) fn ubl_document_type(authority_code: &str) -> Option<(RootKind, &'static str)> {
    DOCUMENT_TYPES
        .iter()
        .find(|(own, ..)| *own == authority_code)
        .map(|(_, _, root, foreign)| (*root, *foreign))
}

/// The authority's code for a code of UBL.
pub(crate) struct ReadCode<T> {
    pub value: T,
    /// True if both codes mean the same; false if the authority's code only has the nearest meaning.
    pub is_exact: bool,
}

/// Returns the authority's document type for a UBL code. `name` is the attribute of the code with that name: our writer
/// stores the name of the type there, because two types may have the same code.
pub(crate) fn read_document_type(
    root: RootKind,
    ubl_code: &str,
    name: Option<&str>,
) -> ReadCode<CodeAndName> {
    let same = |row: &&(&str, &str, RootKind, &str)| row.2 == root && row.3 == ubl_code;
    let by_name = DOCUMENT_TYPES
        .iter()
        .filter(same)
        .find(|row| Some(row.1) == name);
    let exact = by_name.or_else(|| DOCUMENT_TYPES.iter().find(same));
    let is_charge = root == RootKind::Invoice;
    let is_self_billed = SELF_BILLED_INVOICES.contains(&ubl_code);
    let (own, title) = match (exact, root) {
        (Some(row), _) => (row.0, row.1),
        (None, _) if is_self_billed && is_charge => ("394", "Self-billed Invoice"),
        (None, _) if is_self_billed || SELF_BILLED_CREDITS.contains(&ubl_code) => {
            ("393", "Self-billed Credit Note")
        }
        (None, RootKind::Invoice) if DEBIT_CODES.contains(&ubl_code) => ("384", "Debit Note"),
        (None, RootKind::Invoice) if !CREDIT_CODES.contains(&ubl_code) => {
            ("381", "Commercial Invoice")
        }
        (None, _) => ("380", "Credit Note"),
    };
    let name = match (exact, name) {
        (Some(_), Some(name)) => name,
        _ => title,
    };
    ReadCode {
        value: CodeAndName {
            code: own.to_owned(),
            name: name.to_owned(),
        },
        is_exact: exact.is_some(),
    }
}

/// Returns the name of the authority's document type; empty for a type that UBL does not have.
pub(crate) fn document_type_name(authority_code: &str) -> &'static str {
    DOCUMENT_TYPES
        .iter()
        .find(|row| row.0 == authority_code)
        .map_or("", |row| row.1)
}

/// The authority's tax categories: code, category of UNTDID 5305 (`None` means S, or Z at zero percent), and tax of
/// UNTDID 5153. If several rows have the same pair of UBL codes, reading it gives the first row, and the writer adds
/// the authority's code of the others.
const TAX_CATEGORIES: [(&str, Option<&str>, &str); 27] = [
    ("STANDARD_VAT", Some("S"), "VAT"),
    ("ZERO_VAT", Some("Z"), "VAT"),
    ("EXEMPTED", Some("E"), "VAT"),
    ("REDUCED_VAT", Some("S"), "VAT"),
    ("STANDARD_GST", Some("S"), "GST"),
    ("ZERO_GST", Some("Z"), "GST"),
    ("REDUCED_GST", Some("S"), "GST"),
    ("CONSUMPTION_TAX", None, "LOC"),
    ("SALES_TAX", None, "STT"),
    ("SERVICE_TAX", None, "LOC"),
    ("LUXURY_TAX", None, "LOC"),
    ("TOURISM_LEVY", None, "LOC"),
    ("ALCOHOL_EXCISE_TAX", None, "EXC"),
    ("TOBACCO_EXCISE_TAX", None, "EXC"),
    ("FUEL_EXCISE_TAX", None, "EXC"),
    ("TELECOM_EXCISE_TAX", None, "EXC"),
    ("SUGAR_TAX", None, "EXC"),
    ("IMPORT_DUTY", None, "CUD"),
    ("EXPORT_DUTY", None, "CUD"),
    ("CARBON_TAX", None, "ENV"),
    ("PLASTIC_TAX", None, "ENV"),
    ("PROPERTY_TAX", None, "OTH"),
    ("CAPITAL_GAINS_TAX", None, "OTH"),
    ("COMPANY_INCOME_TAX", None, "OTH"),
    ("EDUCATION_TAX", None, "OTH"),
    ("WITHHOLDING_TAX", None, "OTH"),
    ("STAMP_DUTY", None, "OTH"),
];

/// The categories of `TAX_CATEGORIES` that are the first with their UBL codes, so the writer need not add their code.
const PLAIN_TAX_CATEGORIES: [&str; 5] = [
    "STANDARD_VAT",
    "ZERO_VAT",
    "EXEMPTED",
    "STANDARD_GST",
    "ZERO_GST",
];

/// A tax category in UBL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UblTax {
    pub category: &'static str,
    pub scheme: &'static str,
    /// True if the writer must add the authority's own code, because another category has the same UBL codes.
    pub is_ambiguous: bool,
}

/// Returns the tax category of UBL for one of the authority's.
pub(crate) fn ubl_tax_category(authority_code: &str, percent: Option<Decimal>) -> Option<UblTax> {
    let (_, category, scheme) = TAX_CATEGORIES.iter().find(|row| row.0 == authority_code)?;
    let at_rate = if percent.unwrap_or_default().is_zero() {
        "Z"
    } else {
        "S"
    };
    Some(UblTax {
        category: category.unwrap_or(at_rate),
        scheme,
        is_ambiguous: !PLAIN_TAX_CATEGORIES.contains(&authority_code),
    })
}

/// Returns the authority's tax category for UBL codes. `own` is the authority's code that our writer may have added;
/// empty if there is none.
pub(crate) fn read_tax_category(
    category: &str,
    scheme: &str,
    own: &str,
    percent: Option<Decimal>,
) -> ReadCode<&'static str> {
    if let Some(row) = TAX_CATEGORIES.iter().find(|row| row.0 == own) {
        return ReadCode {
            value: row.0,
            is_exact: true,
        };
    }
    let exact = TAX_CATEGORIES
        .iter()
        .find(|row| row.1 == Some(category) && row.2 == scheme);
    if let Some(row) = exact {
        return ReadCode {
            value: row.0,
            is_exact: true,
        };
    }
    let is_zero = percent.unwrap_or_default().is_zero();
    let own = match (category, scheme) {
        ("E" | "AE" | "O", _) => "EXEMPTED",
        ("AA" | "AB", _) => "REDUCED_VAT",
        ("S" | "H", "GST") => "STANDARD_GST",
        ("S" | "H" | "L" | "M" | "B" | "AC" | "AD", _) => "STANDARD_VAT",
        ("Z" | "G" | "K", "GST") => "ZERO_GST",
        ("Z" | "G" | "K", _) => "ZERO_VAT",
        (_, "GST") if !is_zero => "STANDARD_GST",
        _ if is_zero => "ZERO_VAT",
        _ => "STANDARD_VAT",
    };
    ReadCode {
        value: own,
        is_exact: false,
    }
}

/// The reason that EN 16931 requires with the category E (BR-E-10).
pub(crate) const EXEMPTION_REASON: &str = "Exempted from tax";

/// The authority's payment means whose code has another meaning in UNTDID 4461, each with the code that means the same
/// there.
const PAYMENT_MEANS: [(&str, &str); 5] = [
    ("42", "2"),
    ("43", "3"),
    ("50", "54"),
    ("58", "21"),
    ("97", "1"),
];
/// The payment means that have the same code in both lists.
const SAME_PAYMENT_MEANS: [&str; 7] = ["10", "20", "30", "31", "48", "49", "ZZZ"];
/// The codes of UNTDID 4461 for which the authority only has a similar code, each with that code.
const NEAR_PAYMENT_MEANS: [(&str, &str); 8] = [
    ("42", "30"),
    ("45", "30"),
    ("57", "30"),
    ("58", "30"),
    ("59", "49"),
    ("55", "48"),
    ("23", "20"),
    ("68", "97"),
];

/// Returns the code of UNTDID 4461 for one of the authority's payment means. A code that is not in `PAYMENT_MEANS` is
/// returned unchanged: it has the same meaning in both lists or is unknown.
pub(crate) fn ubl_payment_means(authority_code: &str) -> &str {
    PAYMENT_MEANS
        .iter()
        .find(|row| row.0 == authority_code)
        .map_or(authority_code, |row| row.1)
}

/// Returns the authority's payment means for a code of UNTDID 4461; 97, which is none in particular, if there is not
/// even a similar one.
pub(crate) fn read_payment_means(ubl_code: &str) -> ReadCode<&'static str> {
    let with_other_code = PAYMENT_MEANS.iter().find(|row| row.1 == ubl_code);
    let mut with_same_code = SAME_PAYMENT_MEANS.into_iter();
    let same = with_other_code
        .map(|row| row.0)
        .or_else(|| with_same_code.find(|code| *code == ubl_code));
    let near = NEAR_PAYMENT_MEANS.iter().find(|row| row.0 == ubl_code);
    ReadCode {
        value: same.unwrap_or_else(|| near.map_or("97", |row| row.1)),
        is_exact: same.is_some(),
    }
}

/// The unit of everything that is counted in pieces.
pub(crate) const EACH: &str = "EA";

/// The packages of UN/ECE Recommendation 21. Recommendation 20 puts an X before their codes.
const PACKAGES: [(&str, &str); 34] = [
    ("X4G", "steel box"),
    ("XAM", "ampoule"),
    ("XBA", "barrel"),
    ("XBC", "bottle crate"),
    ("XBE", "bundle"),
    ("XBG", "bag"),
    ("XBH", "bunch"),
    ("XBJ", "bucket"),
    ("XBK", "basket"),
    ("XBL", "bale"),
    ("XBO", "bottle"),
    ("XBR", "bar"),
    ("XBT", "bolt"),
    ("XBX", "box"),
    ("XCA", "can"),
    ("XCR", "crate"),
    ("XCS", "case"),
    ("XCT", "carton"),
    ("XCY", "cylinder"),
    ("XDR", "drum"),
    ("XEN", "envelope"),
    ("XJR", "jar"),
    ("XKG", "keg"),
    ("XNE", "unpacked goods"),
    ("XPA", "packet"),
    ("XPC", "parcel"),
    ("XPK", "package"),
    ("XPP", "piece"),
    ("XPX", "pallet"),
    ("XRL", "reel"),
    ("XRO", "roll"),
    ("XSA", "sack"),
    ("XST", "sheet"),
    ("XTU", "tube"),
];

/// Returns the name of a unit that is a package of Recommendation 21; `None` for any other unit.
pub(crate) fn package_name(unit: &str) -> Option<&'static str> {
    let is_package = unit.len() == 3 && unit.starts_with('X');
    let named = PACKAGES.iter().find(|row| row.0 == unit);
    is_package.then(|| named.map_or("package", |row| row.1))
}

/// Older codes, and words that invoices have instead of a code, for things that are counted in pieces.
const PIECES: [&str; 16] = [
    "1", "EACH", "NIU", "NO", "NOS", "PC", "PCE", "PCS", "PIECE", "PIECES", "ST", "STK", "STUK",
    "UN", "UNIT", "UNITS",
];

/// True if the text means a piece, though it is no code of Recommendation 20.
pub(crate) fn is_piece_word(unit: &str) -> bool {
    PIECES.contains(&&*unit.to_uppercase())
}

/// True if this is a unit of time. Services are counted in such units.
pub(crate) fn is_time_unit(unit: &str) -> bool {
    ["HUR", "DAY", "WEE", "MON", "ANN", "MIN", "SEC", "QAN"].contains(&unit)
}

/// The currencies of ISO 4217 whose number of decimal digits is not two.
const CURRENCY_DIGITS: [(&str, u32); 23] = [
    ("BHD", 3),
    ("BIF", 0),
    ("CLP", 0),
    ("DJF", 0),
    ("GNF", 0),
    ("IQD", 3),
    ("ISK", 0),
    ("JOD", 3),
    ("JPY", 0),
    ("KMF", 0),
    ("KRW", 0),
    ("KWD", 3),
    ("LYD", 3),
    ("OMR", 3),
    ("PYG", 0),
    ("RWF", 0),
    ("TND", 3),
    ("UGX", 0),
    ("VND", 0),
    ("VUV", 0),
    ("XAF", 0),
    ("XOF", 0),
    ("XPF", 0),
];

/// Returns the number of digits that amounts of this currency have after the decimal point.
pub(crate) fn currency_digits(currency: &str) -> u32 {
    CURRENCY_DIGITS
        .iter()
        .find(|row| row.0 == currency)
        .map_or(2, |row| row.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_type_comes_back() {
        for (own, name, ..) in DOCUMENT_TYPES {
            let (root, foreign) = ubl_document_type(own).unwrap();
            let read = read_document_type(root, foreign, Some(name));
            let coded = &read.value;
            assert_eq!(
                (&*coded.code, &*coded.name, read.is_exact),
                (own, name, true)
            );
        }
        assert_eq!(ubl_document_type("399"), None);
    }

    #[test]
    fn the_swapped_codes_are_swapped() {
        assert_eq!(ubl_document_type("381"), Some((RootKind::Invoice, "380")));
        assert_eq!(
            ubl_document_type("380"),
            Some((RootKind::CreditNote, "381"))
        );
    }

    #[test]
    fn a_credit_code_in_an_invoice_means_a_credit_note() {
        for (foreign, own) in [("381", "380"), ("386", "381")] {
            let read = read_document_type(RootKind::Invoice, foreign, None);
            assert_eq!((&*read.value.code, read.is_exact), (own, false));
        }
    }

    #[test]
    fn what_the_buyer_issued_stays_self_billed() {
        for (root, foreign, own) in [
            (RootKind::Invoice, "389", "394"),
            (RootKind::Invoice, "501", "394"),
            (RootKind::Invoice, "261", "393"),
            (RootKind::Invoice, "502", "393"),
            (RootKind::CreditNote, "261", "393"),
            (RootKind::CreditNote, "389", "393"),
        ] {
            assert_eq!(
                read_document_type(root, foreign, None).value.code,
                own,
                "{foreign}"
            );
        }
        for (own, foreign) in [
            ("394", "261"),
            ("385", "261"),
            ("381", "381"),
            ("384", "381"),
        ] {
            assert_eq!(credit_note_code(own), foreign, "{own}");
        }
    }

    #[test]
    fn every_tax_category_comes_back() {
        for (own, ..) in TAX_CATEGORIES {
            for percent in [None, Some(Decimal::ZERO), Some(Decimal::TEN)] {
                let ubl = ubl_tax_category(own, percent).unwrap();
                let beside = if ubl.is_ambiguous { own } else { "" };
                let read = read_tax_category(ubl.category, ubl.scheme, beside, percent);
                assert_eq!((read.value, read.is_exact), (own, true));
            }
        }
        let read = read_tax_category("AE", "VAT", "", None);
        assert_eq!((read.value, read.is_exact), ("EXEMPTED", false));
    }

    #[test]
    fn every_payment_means_comes_back() {
        let own = PAYMENT_MEANS.iter().map(|row| row.0);
        for own in own.chain(SAME_PAYMENT_MEANS) {
            let read = read_payment_means(ubl_payment_means(own));
            assert_eq!((read.value, read.is_exact), (own, true));
        }
        // In UNTDID 4461, 58 is a transfer and no draft.
        let read = read_payment_means("58");
        assert_eq!((read.value, read.is_exact), ("30", false));
    }
}
