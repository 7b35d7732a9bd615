//! Measures speed, or memory over a number of documents:
//! `cargo run --release -p invoice_pdf --example measure -- [DOCUMENTS]`

mod samples;

use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

use invoice_pdf::{Look, Sheet, Standing, Template, render};
use samples::{ARABIC, GREEK, HEBREW, YORUBA, credit_note, invoice, invoice_in_script, logo};

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        Some(documents) => measure_memory(documents.parse()?),
        None => measure_speed(),
    }
}

fn measure_speed() -> Result<(), Box<dyn Error>> {
    for template in Template::ALL {
        for (lines, runs) in [(1, 101), (3, 101), (200, 31), (2_000, 5)] {
            let document = invoice(lines);
            let mut times = Vec::new();
            let mut bytes = 0;
            for _ in 0..runs {
                let start = Instant::now();
                bytes = print(&document, template)?;
                times.push(start.elapsed());
            }
            times.sort_unstable();
            let [p50, p99] = [50, 99].map(|percent| times[(runs - 1) * percent / 100]);
            println!(
                "{} {lines} lines: p50 {p50:?}, p99 {p99:?}, {bytes} bytes, {}",
                template.name(),
                resident_memory_line()?
            );
        }
    }
    Ok(())
}

fn measure_memory(count_max: u32) -> Result<(), Box<dyn Error>> {
    let documents: Vec<_> = [ARABIC, YORUBA, GREEK, HEBREW]
        .into_iter()
        .map(invoice_in_script)
        .chain([credit_note(), invoice(3)])
        .collect();
    let mut busy = Duration::ZERO;
    for (count, document) in (1..=count_max).zip(documents.iter().cycle()) {
        let start = Instant::now();
        print(document, Template::Classic)?;
        busy += start.elapsed();
        if count == 1_000 || count % 2_500 == 0 {
            println!(
                "{count} documents, {:?} each: {}",
                busy / count,
                resident_memory_line()?
            );
        }
    }
    Ok(())
}

fn print(
    document: &trade_document::TradeDocument,
    template: Template,
) -> Result<usize, Box<dyn Error>> {
    let look = Look {
        template,
        logo: Some(logo()?),
        ..Look::default()
    };
    let pdf = render(&Sheet {
        document,
        look: &look,
        standing: Standing::Signed,
        qr: Some(samples::QR),
        verify_link: Some("https://invoices.example/verify/AAAAAAAAAAAAAAAAAAAAAA"),
        ubl: Some(b"<Invoice/>"),
    })?;
    Ok(pdf.len())
}

/// Returns the line of `/proc/self/status` with the resident memory of this process.
fn resident_memory_line() -> Result<String, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    Ok(line.unwrap_or("VmRSS: unknown").replace('\t', " "))
}
