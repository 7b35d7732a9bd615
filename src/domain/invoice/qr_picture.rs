//! The picture of a QR code: its dark squares as the path of an SVG, as an SVG file and as a PNG file.

use std::fmt::Write as _;

use qrcode::{Color, EcLevel, QrCode};

/// The width of the light margin that a reader needs on each side, in squares.
const MARGIN_MODULES: usize = 4;
/// The width of a square of the PNG in pixels, large enough that a phone can read the code from a screen.
const SQUARE_PIXELS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QrPicture {
    /// The width and the height of the picture in squares, including the margin.
    pub side: usize,
    /// The dark squares, as the attribute `d` of an SVG path.
    pub path: String,
    /// The squares row by row, without the margin. Dark squares are true.
    squares: Vec<bool>,
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
            squares: squares
                .iter()
                .map(|square| *square == Color::Dark)
                .collect(),
        })
    }

    /// Returns the picture as an SVG file.
    pub fn svg(&self) -> String {
        let Self { side, path, .. } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {side} {side}\" shape-rendering=\"crispEdges\">\
             <rect width=\"{side}\" height=\"{side}\" fill=\"#fff\"/><path d=\"{path}\" fill=\"#000\"/></svg>\n"
        )
    }

    /// Returns the picture as a PNG file in black and white. Each square is `SQUARE_PIXELS` wide.
    pub fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let pixels = self.side * SQUARE_PIXELS;
        let row_bytes = pixels.div_ceil(8);
        let mut rows = vec![u8::MAX; row_bytes * pixels];
        let width = self.side - 2 * MARGIN_MODULES;
        for (at, _) in self.squares.iter().enumerate().filter(|(_, dark)| **dark) {
            let left = (at % width + MARGIN_MODULES) * SQUARE_PIXELS;
            let top = (at / width + MARGIN_MODULES) * SQUARE_PIXELS;
            for y in top..top + SQUARE_PIXELS {
                for x in left..left + SQUARE_PIXELS {
                    if let Some(byte) = rows.get_mut(y * row_bytes + x / 8) {
                        *byte &= !(0x80 >> (x % 8));
                    }
                }
            }
        }
        let mut file = Vec::new();
        let side = u32::try_from(pixels).unwrap_or(u32::MAX);
        let mut encoder = png::Encoder::new(&mut file, side, side);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::One);
        encoder.write_header()?.write_image_data(&rows)?;
        Ok(file)
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
    fn the_files_show_the_same_squares() {
        let picture = QrPicture::from_text("QR").unwrap();
        assert!(picture.svg().contains(&picture.path));
        let file = picture.png().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file))
            .read_info()
            .unwrap();
        let mut rows = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut rows).unwrap();
        assert_eq!((info.width, info.height), (29 * 8, 29 * 8));
        let dark = |x: usize, y: usize| {
            let byte = rows[(y * SQUARE_PIXELS + 3) * info.line_size + x];
            byte == 0
        };
        // The finder in the corner: a row of seven dark squares, and below it the sides.
        let corner: Vec<_> = (3..12).map(|x| dark(x, 4)).collect();
        assert_eq!(
            corner,
            [false, true, true, true, true, true, true, true, false]
        );
        assert_eq!((dark(4, 5), dark(5, 5), dark(10, 5)), (true, false, true));
    }

    #[test]
    fn a_text_that_is_too_long_has_no_picture() {
        // The lengths of codes that are encrypted with RSA keys of 2,048 to 8,192 bits.
        for length in [344, 684, 1_368] {
            let picture = QrPicture::from_text(&"x".repeat(length));
            assert!(picture.is_some(), "{length}");
        }
        assert_eq!(QrPicture::from_text(&"x".repeat(3_000)), None);
    }
}
