//! Draws a QR code.

use std::fmt::Write as _;

use qrcode::{Color, EcLevel, QrCode};

use crate::PdfError;

/// The maximum length of the text of a QR code, in bytes. The squares of a longer one are too small to scan from paper.
const QR_BYTES_MAX: usize = 1_200;

/// The width of the light margin that scanners need on each side, in squares.
const MARGIN: usize = 4;

/// True if the QR code of a text can be scanned from paper. The page says so where it leaves a code out.
pub fn can_print_qr(text: &str) -> bool {
    text.len() <= QR_BYTES_MAX
}

/// Draws a text as a QR code: an SVG with one path.
pub fn draw_qr(text: &str) -> Result<String, PdfError> {
    let code = QrCode::with_error_correction_level(text, EcLevel::M)
        .map_err(|error| PdfError::Internal(format!("the QR code: {error}")))?;
    let side = code.width() + 2 * MARGIN;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}"><path fill="white" d="M0,0h{side}v{side}h-{side}z"/><path d=""#
    );
    for (y, row) in code.to_colors().chunks(code.width()).enumerate() {
        let mut x = MARGIN;
        for run in row.chunk_by(|left, right| left == right) {
            let length = run.len();
            if run.first() == Some(&Color::Dark) {
                // Writing into a `String` never fails.
                let _ = write!(svg, "M{x},{}h{length}v1h-{length}z", y + MARGIN);
            }
            x += length;
        }
    }
    svg.push_str("\"/></svg>");
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_its_corner_and_a_margin() {
        let svg = draw_qr("QR").unwrap();
        assert!(svg.contains(r#"viewBox="0 0 29 29""#), "{svg}");
        assert!(svg.contains("M4,4h7v1h-7z"), "{svg}");
    }

    #[test]
    fn every_text_that_fits_on_paper_is_drawn() {
        let longest = "x".repeat(QR_BYTES_MAX);
        assert!(can_print_qr(&longest) && draw_qr(&longest).is_ok());
        assert!(!can_print_qr(&(longest + "x")));
    }
}
