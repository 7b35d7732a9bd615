//! Reads the sheet of an XLSX file: a ZIP archive (APPNOTE.TXT) of XML files that are compressed with DEFLATE (RFC
//! 1951).

use quick_xml::Reader;
use quick_xml::events::Event;

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

fn number(bytes: &[u8]) -> usize {
    let all = bytes.iter().rev();
    all.fold(0, |number, byte| (number << 8) | usize::from(*byte))
}

/// Returns a file of a ZIP archive, found by the central directory at the archive's end.
fn entry(file: &[u8], name: &str) -> Vec<u8> {
    let mut at = file
        .windows(4)
        .position(|four| four == b"PK\x01\x02")
        .unwrap();
    loop {
        let header = &file[at..];
        assert!(header.starts_with(b"PK\x01\x02"), "{name} is not there");
        let name_length = number(&header[28..30]);
        if &header[46..46 + name_length] == name.as_bytes() {
            let start = number(&header[42..46]);
            let local = &file[start..];
            let skipped = 30 + number(&local[26..28]) + number(&local[28..30]);
            let size = number(&header[20..24]);
            return inflate(&local[skipped..skipped + size]);
        }
        at += 46 + name_length + number(&header[30..32]) + number(&header[32..34]);
    }
}

struct Bits<'a> {
    data: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: usize) -> usize {
        (0..count).fold(0, |value, shift| {
            let bit = (self.data[self.at / 8] >> (self.at % 8)) & 1;
            self.at += 1;
            value | (usize::from(bit) << shift)
        })
    }

    fn symbol(&mut self, code: &Code) -> usize {
        let (mut value, mut first, mut index) = (0, 0, 0);
        for count in &code.counts[1..] {
            value |= self.take(1);
            if value < first + count {
                return code.symbols[index + value - first];
            }
            index += count;
            first = (first + count) << 1;
            value <<= 1;
        }
        panic!("no such code");
    }
}

/// A Huffman code: how many symbols have each length, and the symbols in the order of their codes.
struct Code {
    counts: [usize; 16],
    symbols: Vec<usize>,
}

impl Code {
    fn new(lengths: &[usize]) -> Self {
        let mut counts = [0; 16];
        for length in lengths.iter().filter(|length| **length > 0) {
            counts[*length] += 1;
        }
        let mut symbols: Vec<_> = (0..lengths.len())
            .filter(|symbol| lengths[*symbol] > 0)
            .collect();
        symbols.sort_by_key(|symbol| lengths[*symbol]);
        Self { counts, symbols }
    }
}

fn inflate(data: &[u8]) -> Vec<u8> {
    let mut bits = Bits { data, at: 0 };
    let mut out = Vec::new();
    loop {
        let is_last = bits.take(1) == 1;
        match bits.take(2) {
            0 => {
                let start = bits.at.div_ceil(8) + 4;
                let length = number(&data[start - 4..start - 2]);
                out.extend_from_slice(&data[start..start + length]);
                bits.at = (start + length) * 8;
            }
            1 => {
                let lengths: Vec<_> = (0..288)
                    .map(|symbol| match symbol {
                        144..256 => 9,
                        256..280 => 7,
                        _ => 8,
                    })
                    .collect();
                inflate_block(
                    &mut bits,
                    &mut out,
                    &Code::new(&lengths),
                    &Code::new(&[5; 30]),
                );
            }
            2 => {
                let (literals, distances) = read_codes(&mut bits);
                inflate_block(&mut bits, &mut out, &literals, &distances);
            }
            other => panic!("a block of kind {other}"),
        }
        if is_last {
            return out;
        }
    }
}

fn read_codes(bits: &mut Bits<'_>) -> (Code, Code) {
    const ORDER: [usize; 19] = [
        16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
    ];
    let literal_count = bits.take(5) + 257;
    let distance_count = bits.take(5) + 1;
    let length_count = bits.take(4) + 4;
    let mut lengths = [0; 19];
    for place in &ORDER[..length_count] {
        lengths[*place] = bits.take(3);
    }
    let code = Code::new(&lengths);
    let mut lengths = Vec::new();
    while lengths.len() < literal_count + distance_count {
        let (value, count) = match bits.symbol(&code) {
            16 => (*lengths.last().unwrap(), bits.take(2) + 3),
            17 => (0, bits.take(3) + 3),
            18 => (0, bits.take(7) + 11),
            length => (length, 1),
        };
        lengths.resize(lengths.len() + count, value);
    }
    let (literals, distances) = lengths.split_at(literal_count);
    (Code::new(literals), Code::new(distances))
}

fn inflate_block(bits: &mut Bits<'_>, out: &mut Vec<u8>, literals: &Code, distances: &Code) {
    loop {
        let symbol = bits.symbol(literals);
        let length = match symbol {
            0..256 => {
                out.push(u8::try_from(symbol).unwrap());
                continue;
            }
            256 => return,
            257..265 => symbol - 254,
            265..285 => {
                let extra = (symbol - 261) / 4;
                (((symbol - 261) % 4 + 4) << extra) + 3 + bits.take(extra)
            }
            _ => 258,
        };
        let distance = match bits.symbol(distances) {
            short @ 0..4 => short + 1,
            long => {
                let extra = long / 2 - 1;
                ((long % 2 + 2) << extra) + 1 + bits.take(extra)
            }
        };
        for _ in 0..length {
            out.push(out[out.len() - distance]);
        }
    }
}
