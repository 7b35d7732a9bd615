//! Finds the elements of a JSON array in its text without parsing them. Whether an element is valid JSON is checked
//! later, when the element is parsed.

use std::ops::Range;

/// The tokens before the array in the body of Create Invoices (Bulk).
const BULK_START: [&str; 3] = ["{", "\"invoices\"", ":"];

/// Returns the byte range of each element of an array. The text is the array, or the body of Create Invoices (Bulk)
/// with the array in it. Returns `None` for any other text, and if the array does not end at the end of the text. Stops
/// searching once it has found more than `elements_max` elements.
pub fn element_ranges(text: &str, elements_max: usize) -> Option<Vec<Range<usize>>> {
    let mut rest = text.trim_start();
    let is_bulk = rest.starts_with('{');
    if is_bulk {
        for part in BULK_START {
            rest = rest.strip_prefix(part)?.trim_start();
        }
    }
    let start = text.len() - rest.strip_prefix('[')?.len();
    let mut scan = ElementScan::default();
    let mut elements = Vec::new();
    let mut from = start;
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match scan.take_byte(byte) {
            ScanStep::Inside => {}
            ScanStep::Separator => {
                elements.push(from..at);
                if elements.len() > elements_max {
                    return Some(elements);
                }
                from = at + 1;
            }
            ScanStep::End => {
                let is_empty = elements.is_empty() && text[from..at].trim().is_empty();
                if !is_empty {
                    elements.push(from..at);
                }
                let tail = text[at + 1..].trim();
                return (tail == if is_bulk { "}" } else { "" }).then_some(elements);
            }
        }
    }
    None
}

#[derive(Default)]
struct ElementScan {
    depth: usize,
    is_text: bool,
    is_escaped: bool,
}

enum ScanStep {
    Inside,
    /// The comma between two elements.
    Separator,
    /// The bracket that ends the array.
    End,
}

impl ElementScan {
    fn take_byte(&mut self, byte: u8) -> ScanStep {
        if self.is_text {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_text = false,
                _ => {}
            }
            return ScanStep::Inside;
        }
        match byte {
            b'"' => self.is_text = true,
            b'[' | b'{' => self.depth += 1,
            b']' | b'}' if self.depth == 0 => return ScanStep::End,
            b']' | b'}' => self.depth -= 1,
            b',' if self.depth == 0 => return ScanStep::Separator,
            _ => {}
        }
        ScanStep::Inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_between_the_commas_of_the_array_alone() {
        for (text, expected) in [
            ("[]", Some(&[][..])),
            (" [ 1 ] ", Some(&[" 1 "])),
            (
                r#"[{"a":[1,2]},"x,]\",",3]"#,
                Some(&[r#"{"a":[1,2]}"#, r#""x,]\",""#, "3"]),
            ),
            (r#"{ "invoices" : [1,2] }"#, Some(&["1", "2"])),
            ("[1,]", Some(&["1", ""])),
            (r#"{"invoices":[1],"x":2}"#, None),
            (r#"{"invoice_no":"A"}"#, None),
            ("[1] 2", None),
            ("[1", None),
            ("7", None),
            ("", None),
        ] {
            let found = element_ranges(text, 9).map(|all| {
                let parts = all.into_iter().map(|bytes| &text[bytes]);
                parts.collect::<Vec<_>>()
            });
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_search_ends_when_there_are_too_many_elements() {
        let text = format!("[{}]", ",".repeat(1_000));
        assert_eq!(element_ranges(&text, 9).map(|all| all.len()), Some(10));
    }
}
