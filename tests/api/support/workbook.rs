//! Reads the sheet of an XLSX file: a ZIP archive of XML files.

use std::io::{Cursor, Read as _};

use quick_xml::Reader;
use quick_xml::events::Event;
use zip::ZipArchive;

/// A cell as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SheetCell {
    /// The name of the cell's place, such as `B2`.
    pub(crate) place: String,
    pub(crate) is_number: bool,
    pub(crate) text: String,
}

/// Returns the cells of the first sheet, row by row. Empty cells are left out.
pub(crate) fn cells(file: &[u8]) -> Vec<SheetCell> {
    let xml = String::from_utf8(entry(file, "xl/worksheets/sheet1.xml")).unwrap();
    assert!(xml.contains("state=\"frozen\""), "the header is not frozen");
    assert!(xml.contains("<col min=\"1\""), "a date shows as ####");
    assert!(!xml.contains("<f>"), "a cell is computed");
    let mut reader = Reader::from_str(&xml);
    let mut cells = Vec::new();
    let mut is_value = false;
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) if tag.name().as_ref() == "c" => {
                let attribute = |name: &str| {
                    let found = tag.try_get_attribute(name).unwrap();
                    found.map(|found| found.value.into_owned())
                };
                cells.push(SheetCell {
                    place: attribute("r").unwrap(),
                    is_number: attribute("t").is_none(),
                    text: String::new(),
                });
            }
            Event::Start(tag) => is_value = ["t", "v"].contains(&tag.name().as_ref()),
            Event::End(_) => is_value = false,
            Event::Text(text) if is_value => {
                cells.last_mut().unwrap().text += &text;
            }
            Event::GeneralRef(name) if is_value => {
                let sign = match &*name {
                    "amp" => "&",
                    "lt" => "<",
                    "gt" => ">",
                    "quot" => "\"",
                    other => panic!("{other:?}"),
                };
                cells.last_mut().unwrap().text += sign;
            }
            Event::Eof => return cells,
            _ => {}
        }
    }
}

/// Returns a file of a ZIP archive.
fn entry(file: &[u8], name: &str) -> Vec<u8> {
    let mut archive = ZipArchive::new(Cursor::new(file)).unwrap();
    let mut bytes = Vec::new();
    archive
        .by_name(name)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}
