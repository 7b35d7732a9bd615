//! Cuts a large file into pieces of whole documents. Each piece is a file of the same format and is read by the same
//! reader; only the line and document numbers count from the start of the whole file. So a file of any length is
//! imported piece by piece, and a process that continues an import needs only the number of the next piece.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use crate::domain::import::array_elements::element_ranges;
use crate::domain::import::csv_table::{self, CsvRecords};
use crate::domain::import::source::{FileFormat, SourceFile, TOO_MANY_RULE, file_fault};
use crate::domain::import::table::WORKBOOK_WORD;
use crate::domain::import::{json_documents, table_documents};
use crate::domain::invoice::batch::INVOICES_MAX;
use crate::domain::kernel::fault::Fault;

/// The maximum number of documents of a file.
pub const DOCUMENTS_MAX: usize = 100_000;
/// The maximum number of documents of a piece. They are created in one transaction.
pub const PIECE_DOCUMENTS_MAX: usize = 500;
/// A piece that has this many bytes takes no further document.
const PIECE_BYTES_MAX: usize = 1 << 20;
/// The maximum size of the header of a table, because each piece repeats it.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// The maximum size of a document, including blank rows within it. It limits the memory that reading a piece needs.
const DOCUMENT_BYTES_MAX: usize = 2 << 20;

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub content: String,
    /// The number of lines or documents before the piece in the file, less the lines of the header that the piece
    /// repeats. It is added to each place in the piece, so that messages name places in the whole file.
    pub places_before: u64,
}

/// The byte ranges of the pieces of a file.
#[derive(Debug)]
pub struct FilePieces {
    /// The byte range of the header of a table, which each piece repeats; empty for other formats.
    head: Range<usize>,
    is_array: bool,
    ranges: Vec<PieceRange>,
    documents: usize,
    /// The reason why the file cannot be imported in pieces.
    fault: Option<Fault>,
}

#[derive(Debug, PartialEq, Eq)]
struct PieceRange {
    bytes: Range<usize>,
    places_before: u64,
    documents: usize,
}

impl PieceRange {
    /// True if a document that starts at this byte still fits into the piece. The size of the piece includes the blanks
    /// between documents.
    fn has_room(&self, start: usize) -> bool {
        let bytes = start.saturating_sub(self.bytes.start);
        self.documents < PIECE_DOCUMENTS_MAX && bytes < PIECE_BYTES_MAX
    }
}

impl FilePieces {
    /// Finds the byte ranges of the pieces. The text of a workbook is its table as CSV. `names` maps headers of the
    /// file to fields.
    pub fn find(
        format: FileFormat,
        text: &str,
        names: &BTreeMap<String, String>,
    ) -> Result<Self, Fault> {
        let mut cutter = PieceCutter::default();
        let head = match format {
            FileFormat::Csv | FileFormat::Xlsx => cutter.cut_table(text, names)?,
            FileFormat::Ndjson => cutter.cut_lines(text)?,
            FileFormat::Json => cutter.cut_array(text)?,
            FileFormat::Ubl => cutter.add_document(0..text.len(), 0).map(|()| 0..0)?,
        };
        Ok(Self {
            head,
            is_array: format == FileFormat::Json,
            ranges: cutter.ranges,
            documents: cutter.documents,
            fault: cutter.fault,
        })
    }

    pub fn document_count(&self) -> usize {
        self.documents
    }

    /// Returns the number of pieces.
    pub fn piece_count(&self) -> usize {
        self.ranges.len()
    }

    /// Reads every piece once, so that a faulty file is refused before anything of it is imported. Also checks that
    /// each piece has as many documents as were counted in it. Returns the first fault.
    pub fn check(
        &self,
        format: FileFormat,
        text: &str,
        names: &BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let mut pieces = self.pieces(text).zip(&self.ranges);
        pieces.try_for_each(|(piece, range)| {
            let file = piece.read(format, names)?;
            if file.documents.len() == range.documents {
                Ok(())
            } else {
                Err(unclear_invoice_end_fault())
            }
        })
    }

    /// Returns the pieces. `text` must be the text that was passed to `find`.
    pub fn pieces(&self, text: &str) -> impl Iterator<Item = Piece> {
        self.ranges.iter().map(|range| {
            let documents = text.get(range.bytes.clone()).unwrap_or_default();
            let head = text.get(self.head.clone()).unwrap_or_default();
            let content = if self.is_array {
                format!("[{documents}]")
            } else {
                format!("{head}{documents}")
            };
            Piece {
                content,
                places_before: range.places_before,
            }
        })
    }
}

impl Piece {
    pub fn read(
        &self,
        format: FileFormat,
        names: &BTreeMap<String, String>,
    ) -> Result<SourceFile, Fault> {
        let bytes = self.content.as_bytes();
        let word = match format {
            FileFormat::Ndjson => return json_documents::read_lines(bytes, self.places_before),
            FileFormat::Json => return json_documents::read_piece(bytes, self.places_before),
            FileFormat::Xlsx => WORKBOOK_WORD,
            FileFormat::Csv | FileFormat::Ubl => "line",
        };
        let table = csv_table::read_piece(bytes, word, self.places_before)?;
        table_documents::read(table, names)
    }
}

#[derive(Default)]
struct PieceCutter {
    ranges: Vec<PieceRange>,
    documents: usize,
    /// The byte at which the last document begins.
    document_start: usize,
    fault: Option<Fault>,
}

impl PieceCutter {
    /// Adds a document with this byte range, to the last piece or to a new one.
    fn add_document(&mut self, bytes: Range<usize>, places_before: u64) -> Result<(), Fault> {
        if self.documents == DOCUMENTS_MAX {
            let message = format!(
                "The file has more than {DOCUMENTS_MAX} invoices: split it into files of at most {DOCUMENTS_MAX} each."
            );
            return Err(Fault::new("file", TOO_MANY_RULE, message));
        }
        self.document_start = bytes.start;
        self.check_size(bytes.end)?;
        self.documents += 1;
        let last = self.ranges.last_mut();
        if let Some(last) = last.filter(|last| last.has_room(bytes.start)) {
            last.bytes.end = bytes.end;
            last.documents += 1;
        } else {
            self.ranges.push(PieceRange {
                bytes,
                places_before,
                documents: 1,
            });
        }
        Ok(())
    }

    /// Adds the bytes up to `end` to the last document.
    fn extend_last_document(&mut self, end: usize) -> Result<(), Fault> {
        self.check_size(end)?;
        if let Some(last) = self.ranges.last_mut() {
            last.bytes.end = end;
        }
        Ok(())
    }

    /// Refuses the last document if it is too large when it ends at `end`.
    fn check_size(&self, end: usize) -> Result<(), Fault> {
        if end.saturating_sub(self.document_start) > DOCUMENT_BYTES_MAX {
            return Err(file_fault("max", "An invoice has more than 2 MiB."));
        }
        Ok(())
    }

    /// Cuts a table between its invoices. The rows of an invoice must follow one another. Returns the byte range of the
    /// header without the blank lines around it, because each piece repeats the header and there may be millions of
    /// blank lines.
    fn cut_table(
        &mut self,
        text: &str,
        names: &BTreeMap<String, String>,
    ) -> Result<Range<usize>, Fault> {
        csv_table::check_column_count(text.as_bytes())?;
        let mut records = CsvRecords::new(text.as_bytes());
        let Some(header) = records.read_next()? else {
            return Ok(0..0);
        };
        let column =
            table_documents::invoice_number_column(&header.header_cells(header.line)?, names)?;
        let head = header.bytes;
        if head.len() > HEADER_BYTES_MAX {
            self.fault = Some(header_fault());
        }
        let head_text = text.get(head.clone()).unwrap_or_default();
        let head_lines = u64::try_from(head_text.matches('\n').count()).unwrap_or_default();
        let mut seen = HashSet::new();
        let mut last = None;
        while let Some(record) = records.read_next()? {
            if record.is_blank() {
                continue;
            }
            let number = Some(record.cell(column)).filter(|number| !number.is_empty());
            let number = number.map(|number| invoice_number_hash(&number));
            if number.is_some() && number == last {
                self.extend_last_document(record.bytes.end)?;
                continue;
            }
            last = number;
            if number.is_some_and(|number| !seen.insert(number)) {
                self.fault
                    .get_or_insert_with(|| scattered_rows_fault(record.line));
                self.document_start = record.bytes.start;
                continue;
            }
            self.add_document(record.bytes, record.line - 1 - head_lines)?;
        }
        Ok(head)
    }

    fn cut_lines(&mut self, text: &str) -> Result<Range<usize>, Fault> {
        let mut start = 0;
        for (line, before) in text.split_inclusive('\n').zip(0..) {
            let end = start + line.len();
            if !line.trim_ascii().is_empty() {
                self.add_document(start..end, before)?;
            }
            start = end;
        }
        Ok(0..0)
    }

    fn cut_array(&mut self, text: &str) -> Result<Range<usize>, Fault> {
        let Some(elements) = element_ranges(text, DOCUMENTS_MAX) else {
            if text.len() > DOCUMENT_BYTES_MAX {
                let message =
                    "The file must be an array of invoices, or an invoice of at most 2 MiB.";
                return Err(file_fault("json", message));
            }
            return self.add_document(0..text.len(), 0).map(|()| 0..0);
        };
        for (bytes, before) in elements.into_iter().zip(0..) {
            self.add_document(bytes, before)?;
        }
        Ok(0..0)
    }
}

fn header_fault() -> Fault {
    let message = "The first row has more than 64 KiB: shorten the names of the columns.";
    file_fault("max", message)
}

fn scattered_rows_fault(line: u64) -> Fault {
    let message = format!(
        "Line {line} has the invoice_no of an invoice further up: in a file of more than {INVOICES_MAX} invoices the \
         rows of an invoice must stand together, so sort it by invoice_no."
    );
    file_fault("order", message)
}

fn unclear_invoice_end_fault() -> Fault {
    let message = format!(
        "It is not clear where each invoice of the file ends: split the file into files of at most {INVOICES_MAX} \
         invoices each."
    );
    file_fault("order", message)
}

/// Returns a hash that stands for an invoice number, to save memory. Among a hundred thousand numbers, two have the
/// same hash in about one of four billion files.
fn invoice_number_hash(number: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    number.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::import::table::{Row, Table};

    fn cut(format: FileFormat, text: &str) -> Result<FilePieces, Fault> {
        FilePieces::find(format, text, &BTreeMap::new())
    }

    /// Returns the place and the number of each document, as the reader of the whole file and as those of the pieces
    /// tell them.
    fn list_documents(file: &SourceFile) -> Vec<String> {
        let documents = file.documents.iter().map(|document| {
            let number = document
                .body
                .as_ref()
                .and_then(|body| body.get("invoice_no"));
            let number = number.map(ToString::to_string).unwrap_or_default();
            format!("{} {number}", document.places.document_place())
        });
        documents.collect()
    }

    fn told_by_pieces(format: FileFormat, text: &str) -> Vec<String> {
        let names = BTreeMap::new();
        let cuts = cut(format, text).unwrap();
        let pieces = cuts.pieces(text);
        pieces
            .flat_map(|piece| list_documents(&piece.read(format, &names).unwrap()))
            .collect()
    }

    #[test]
    fn pieces_read_as_the_whole_file_does() {
        let rows = (0..700).map(|number| format!("A{number},\"x\ny\"\nA{number},\n\n"));
        let table = format!("\ninvoice_no,customer.name\n\n{}", rows.collect::<String>());
        let lines = (0..700).map(|number| format!("{{\"invoice_no\":\"A{number}\"}}\n\r\n"));
        let lines = lines.collect::<String>();
        let bodies =
            (0..700).map(|number| format!("{{\"invoice_no\":\"A{number}\",\"n\":[1,{{}}]}}"));
        let array = format!(" [ {} ] ", bodies.collect::<Vec<_>>().join(" , "));
        let bulk = format!("{{ \"invoices\": {array} }}");
        let names = BTreeMap::new();
        for (format, text, whole) in [
            (
                FileFormat::Csv,
                &table,
                table_documents::read(csv_table::read(table.as_bytes()).unwrap(), &names).unwrap(),
            ),
            (
                FileFormat::Ndjson,
                &lines,
                json_documents::read_lines(lines.as_bytes(), 0).unwrap(),
            ),
            (
                FileFormat::Json,
                &array,
                json_documents::read(array.as_bytes()).unwrap(),
            ),
            (
                FileFormat::Json,
                &bulk,
                json_documents::read(bulk.as_bytes()).unwrap(),
            ),
        ] {
            let cuts = cut(format, text).unwrap();
            assert_eq!(
                (cuts.document_count(), cuts.piece_count()),
                (700, 2),
                "{format}"
            );
            assert_eq!(cuts.check(format, text, &names), Ok(()));
            assert_eq!(
                told_by_pieces(format, text),
                list_documents(&whole),
                "{format}"
            );
        }
    }

    #[test]
    fn the_rows_of_a_workbook_keep_their_numbers() {
        let row = |number, cells: [&str; 2]| Row {
            number,
            cells: cells.map(str::to_owned).to_vec(),
            ..Row::default()
        };
        let table = Table {
            word: "row",
            header: ["invoice_no", "customer.name"].map(str::to_owned).to_vec(),
            rows: vec![
                row(3, ["A", "=x\ny"]),
                row(7, ["B", "'"]),
                row(8, ["B", ""]),
            ],
        };
        let text = csv_table::to_csv(&table);
        assert_eq!(
            told_by_pieces(FileFormat::Xlsx, &text),
            ["row 3 \"A\"", "rows 7 to 8 \"B\""]
        );
        let piece = cut(FileFormat::Xlsx, &text)
            .unwrap()
            .pieces(&text)
            .next()
            .unwrap();
        let file = piece.read(FileFormat::Xlsx, &BTreeMap::new()).unwrap();
        let cells = file.table.unwrap().rows.swap_remove(0).cells;
        assert_eq!(cells, ["A", "=x y"]);
    }

    #[test]
    fn no_piece_repeats_more_than_the_header() {
        let name = "x".repeat(HEADER_BYTES_MAX / 20);
        let unread = format!(",{name}").repeat(21);
        let rows = (0..=PIECE_DOCUMENTS_MAX).map(|number| format!("A{number},1\r\n"));
        let rows = rows.collect::<String>();
        let blank = "\r\n".repeat(50_000);
        for (start, is_refused) in [
            ("invoice_no,x\r\n".to_owned(), false),
            (format!("{blank}invoice_no,x\r\n"), false),
            (format!("invoice_no,x\r\n{blank}"), false),
            (format!("invoice_no,x\r\n{blank}{blank},\r\n"), false),
            (format!("\"invoice_no\",\"x\r\ny\"\n{blank}"), false),
            (format!("invoice_no{unread}\r\n"), true),
        ] {
            let text = format!("{start}{rows}");
            let shown = start.len();
            let cuts = cut(FileFormat::Csv, &text).unwrap();
            let checked = cuts.check(FileFormat::Csv, &text, &BTreeMap::new());
            assert_eq!(checked.is_err(), is_refused, "{shown}");
            let bytes: usize = cuts.pieces(&text).map(|piece| piece.content.len()).sum();
            let most = rows.len() + 2 * HEADER_BYTES_MAX;
            assert_eq!(bytes > most, is_refused, "{shown}");
            if !is_refused {
                let whole = csv_table::read(text.as_bytes()).unwrap();
                let line = whole.rows.last().unwrap().number;
                let told = told_by_pieces(FileFormat::Csv, &text);
                let last = format!("line {line} \"A{PIECE_DOCUMENTS_MAX}\"");
                assert_eq!(told.last(), Some(&last), "{shown}");
            }
        }
    }

    #[test]
    fn an_invoice_whose_rows_stand_apart_is_refused_with_its_line() {
        let names = BTreeMap::new();
        let check = |text: &str| {
            let cuts = cut(FileFormat::Csv, text).unwrap();
            cuts.check(FileFormat::Csv, text, &names)
        };
        let fault = check("invoice_no\nA\nB\nA\n").unwrap_err();
        assert_eq!(fault.rule(), "order");
        assert!(fault.to_string().starts_with("Line 4 has"), "{fault}");
        assert_eq!(check("invoice_no,x\n,1\nA,1\n,1\n"), Ok(()));
        // The reader takes these numbers for the same, and this row for blank.
        let same = "invoice_no,x\nA,1\n\u{a0}A\u{a0},1\n\u{a0},\u{a0}\n'-5,1\n-5,1\n";
        assert_eq!(cut(FileFormat::Csv, same).unwrap().document_count(), 2);
        assert_eq!(check(same), Ok(()));
        let apart = check("invoice_no\nA\nB\n\u{a0}A\n").unwrap_err();
        assert_eq!(apart.rule(), "order");
        assert_eq!(check("invoice_no\nA\n=B\n"), Ok(()));
        let formula = cut(FileFormat::Csv, "invoice_no,=x\nA,1\n");
        assert_eq!(formula.map(|_| ()).unwrap_err().rule(), "formula");
    }

    #[test]
    fn a_piece_that_reads_as_more_documents_than_were_counted_is_refused() {
        let cuts = cut(FileFormat::Json, "1,2").unwrap();
        assert_eq!(cuts.document_count(), 1);
        let fault = cuts.check(FileFormat::Json, "1,2", &BTreeMap::new());
        assert_eq!(fault.unwrap_err().rule(), "order");
    }

    #[test]
    fn a_document_has_a_greatest_size() {
        let rule = |format, text: &str| cut(format, text).map_err(|fault| fault.rule().to_owned());
        let line = format!("\"{}\"\n", "x".repeat(DOCUMENT_BYTES_MAX));
        let rows = format!(
            "invoice_no,x\n{}",
            "A,,,,,,,\n".repeat(DOCUMENT_BYTES_MAX / 8)
        );
        for (format, text) in [(FileFormat::Ndjson, &line), (FileFormat::Csv, &rows)] {
            assert_eq!(rule(format, text).unwrap_err(), "max");
        }
        let array = format!("[{line},1]");
        assert_eq!(rule(FileFormat::Json, &array).unwrap_err(), "max");
        assert_eq!(rule(FileFormat::Json, &line).unwrap_err(), "json");
        let commas = format!("[{}]", ",".repeat(DOCUMENTS_MAX + 9));
        assert_eq!(rule(FileFormat::Json, &commas).unwrap_err(), TOO_MANY_RULE);
        let blank = format!(
            "invoice_no,x\nA,1\n{}B,1\n",
            ",\n".repeat(PIECE_BYTES_MAX / 2)
        );
        assert_eq!(cut(FileFormat::Csv, &blank).unwrap().piece_count(), 2);
    }

    #[test]
    fn a_file_has_a_greatest_number_of_documents_and_a_piece_a_greatest_size() {
        let most = "7\n".repeat(DOCUMENTS_MAX);
        assert_eq!(cut(FileFormat::Ndjson, &most).unwrap().piece_count(), 200);
        let fault = cut(FileFormat::Ndjson, &format!("{most}7\n")).unwrap_err();
        assert_eq!(fault.rule(), "batch_too_large");
        let long = format!("\"{}\"\n", "x".repeat(PIECE_BYTES_MAX)).repeat(3);
        assert_eq!(cut(FileFormat::Ndjson, &long).unwrap().piece_count(), 3);
        for text in ["", "\n\n"] {
            assert_eq!(cut(FileFormat::Ndjson, text).unwrap().document_count(), 0);
            assert_eq!(cut(FileFormat::Csv, text).unwrap().document_count(), 0);
        }
    }
}
