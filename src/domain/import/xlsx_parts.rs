//! Counts what the elements of an XLSX file would become in memory, before the library calamine reads them. Calamine
//! copies the format and the font into each style and the path into each sheet, and reserves room for as many shared
//! strings as the file states. So a file of a few kilobytes could take all memory of the machine.

use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::domain::import::source::file_fault;
use crate::domain::kernel::fault::Fault;

/// The maximum number of shared strings that a file may state. No file within the limit of its size has more cells.
const STRINGS_MAX: u64 = 2_000_000;
/// The maximum memory of all styles, and that of all sheets, in bytes.
const COPIES_BYTES_MAX: usize = 64 << 20;
/// The memory of a style or a sheet without its texts, in bytes. It may be too high, but never too low.
const COPY_BYTES: usize = 256;
/// The number of texts that calamine copies into a style or a sheet.
const COPY_TEXTS: usize = 2;

/// The numbers of elements, in all parts that were counted so far.
#[derive(Debug, Default)]
pub(super) struct PartElements {
    styles: ElementCopies,
    sheets: ElementCopies,
    /// The number of shared strings that the file states.
    strings: u64,
}

/// Elements into which calamine copies texts of other elements.
#[derive(Debug, Default)]
struct ElementCopies {
    count: usize,
    /// The length of the longest tag from which a text is copied, in bytes.
    longest: usize,
}

impl PartElements {
    /// Counts the elements of a part. Stops at the first error, as calamine does, for example in a picture, which is
    /// not XML.
    pub(super) fn count_elements(&mut self, part: impl BufRead) {
        let mut reader = Reader::from_reader(part);
        // These are the settings of calamine, so that calamine sees no element that is not counted here.
        let config = reader.config_mut();
        config.check_end_names = false;
        config.check_comments = false;
        config.expand_empty_elements = true;
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            match reader.read_event_into(&mut buffer) {
                Ok(Event::Start(tag)) => self.add_element(&tag),
                Ok(Event::Eof) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    fn add_element(&mut self, tag: &BytesStart<'_>) {
        match tag.local_name().as_ref() {
            "xf" => self.styles.count += 1,
            "numFmt" | "name" => self.styles.add_copied_tag(tag),
            "sheet" => self.sheets.count += 1,
            "Relationship" => self.sheets.add_copied_tag(tag),
            "sst" => {
                let stated = tag.split_once("uniqueCount");
                let stated = stated.map_or(0, |(_, text)| largest_number(text));
                self.strings = self.strings.max(stated);
            }
            _ => {}
        }
    }

    /// Refuses a file whose elements would take too much memory.
    pub(super) fn check_memory(&self) -> Result<(), Fault> {
        let is_small = |copies: &ElementCopies| copies.memory_bytes() <= COPIES_BYTES_MAX;
        if is_small(&self.styles) && is_small(&self.sheets) && self.strings <= STRINGS_MAX {
            return Ok(());
        }
        let message = "The file has too many or too long styles, sheets or shared strings.";
        Err(file_fault("max", message))
    }
}

impl ElementCopies {
    fn add_copied_tag(&mut self, tag: &str) {
        self.longest = self.longest.max(tag.len());
    }

    fn memory_bytes(&self) -> usize {
        let texts = self.longest.saturating_mul(COPY_TEXTS);
        self.count.saturating_mul(texts.saturating_add(COPY_BYTES))
    }
}

/// Returns the largest of the whole numbers in a text; zero if there is none.
fn largest_number(text: &str) -> u64 {
    let numbers = text.split(|sign: char| !sign.is_ascii_digit());
    let numbers = numbers.filter(|digits| !digits.is_empty());
    let numbers = numbers.map(|digits| digits.parse().unwrap_or(u64::MAX));
    numbers.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(parts: &[&str]) -> bool {
        let mut elements = PartElements::default();
        for part in parts {
            elements.count_elements(part.as_bytes());
        }
        elements.check_memory().is_err()
    }

    #[test]
    fn elements_that_would_take_much_memory_are_refused() {
        let long = "0".repeat(100_000);
        let styles = |count: usize| format!("<cellXfs>{}</cellXfs>", "<xf/>".repeat(count));
        let sheets = |count: usize| format!("<sheets>{}</sheets>", "<sheet/>".repeat(count));
        let format = format!("<x:numFmt formatCode='{long}'/>");
        let font = format!("<font><name val=\"{long}\"/></font>");
        let path = format!("<Relationship Target=\"{long}\"/>");
        let strings = |count: &str| format!("<sst count='3' uniqueCount = \"{count}\">");
        let many = styles(1_000);
        for (parts, expected) in [
            (vec![&*many, "<numFmt formatCode=\"0.00\"/>"], false),
            (vec![&*many, &*format], true),
            (vec![&*font, &*many], true),
            (vec!["<xf/>", &*format, &*font], false),
            (vec![&*styles(100_000)], false),
            (vec![&*styles(300_000)], true),
            (vec![&*path, &*sheets(1_000)], true),
            (vec![&*path, &*sheets(3)], false),
            (vec![&*strings("1200000")], false),
            (vec![&*strings("0000000000000000000000012")], false),
            (vec![&*strings("99999999999")], true),
            (vec![&*strings("99999999999999999999999")], true),
            (vec!["<sst uniqueCount=\"99999999999\"/>"], true),
            (vec!["\u{0}PNG <<<", "<sst count=\"99999999999\"/>"], false),
        ] {
            let shown = parts.concat();
            assert_eq!(is_refused(&parts), expected, "{shown:.60}");
        }
    }
}
