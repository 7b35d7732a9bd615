//! The picture of a QR code: its dark squares as the path of an SVG.

use std::fmt::Write as _;

use qrcode::{Color, EcLevel, QrCode};

/// The light margin that a reader needs on each side, in squares.
const MARGIN_MODULES: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QrPicture {
    /// The width and the height of the picture in squares, with the margin.
    pub side: usize,
    /// The dark squares, as the `d` of an SVG path.
    pub path: String,
}

impl QrPicture {
    /// Draws a text as a QR code. Returns `None` if the text is too long.
    pub fn from_text(text: &str) -> Option<Self> {
        let code = QrCode::with_error_correction_level(text, EcLevel::M).ok()?;
        let width = code.width();
        let squares = code.to_colors();
        let mut path = String::new();
        for (y, row) in squares.chunks(width).enumerate() {
            let mut x = 0;
            for run in row.chunk_by(|left, right| left == right) {
                if run.first() == Some(&Color::Dark) {
                    // Writing into a string never fails.
                    let length = run.len();
                    let _ = write!(
                        path,
                        "M{},{}h{length}v1h-{length}z",
                        x + MARGIN_MODULES,
                        y + MARGIN_MODULES
                    );
                }
                x += run.len();
            }
        }
        Some(Self {
            side: width + 2 * MARGIN_MODULES,
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_its_corner_and_a_margin() {
        let picture = QrPicture::from_text("QR").unwrap();
        assert_eq!(picture.side, 21 + 8);
        assert!(picture.path.starts_with("M4,4h7v1h-7z"), "{}", picture.path);
        assert!(
            picture.path.contains("M4,5h1v1h-1zM10,5h1v1h-1z"),
            "the side of the corner: {}",
            picture.path
        );
    }

    #[test]
    fn a_text_that_is_too_long_has_no_picture() {
        assert!(QrPicture::from_text(&"x".repeat(344)).is_some());
        assert_eq!(QrPicture::from_text(&"x".repeat(3_000)), None);
    }
}
