//! Writes the pages that people look at: `cargo run --release -p invoice_pdf --example pages -- FOLDER`

mod samples;

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use invoice_pdf::{Look, Sheet, Standing, Template, render};
use samples::{ARABIC, GREEK, HEBREW, YORUBA, credit_note, invoice, invoice_in_script, logo};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("name a folder")?);
    fs::create_dir_all(&folder)?;
    let documents = [
        ("lines1", Standing::Signed, invoice(1)),
        ("lines3", Standing::Signed, invoice(3)),
        ("lines200", Standing::Signed, invoice(200)),
        ("lines2000", Standing::Signed, invoice(2_000)),
        ("credit_note", Standing::Signed, credit_note()),
        ("draft", Standing::Draft, invoice(40)),
        ("received", Standing::Received, invoice(3)),
        ("arabic", Standing::Signed, invoice_in_script(ARABIC)),
        ("yoruba", Standing::Signed, invoice_in_script(YORUBA)),
        ("greek", Standing::Signed, invoice_in_script(GREEK)),
        ("hebrew", Standing::Signed, invoice_in_script(HEBREW)),
    ];
    for template in Template::ALL {
        for (name, standing, document) in &documents {
            let look = Look {
                template,
                logo: (*name != "lines1").then(logo).transpose()?,
                ..Look::default()
            };
            let pdf = render(&Sheet {
                document,
                look: &look,
                standing: *standing,
                qr: (*standing != Standing::Draft).then_some(samples::QR),
                verify_link: (*standing == Standing::Signed)
                    .then_some("https://invoices.example/verify/AAAAAAAAAAAAAAAAAAAAAA"),
                ubl: Some(b"<Invoice/>"),
            })?;
            fs::write(folder.join(format!("{name}-{}.pdf", template.name())), pdf)?;
        }
    }
    Ok(())
}
