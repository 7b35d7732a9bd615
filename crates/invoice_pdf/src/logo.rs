//! The picture that an account prints on its documents. It comes from a user, so what could cost memory or reach for
//! other files is refused.

use std::io::Cursor;

use image::{ExtendedColorType, ImageDecoder, codecs::jpeg::JpegDecoder, codecs::png::PngDecoder};
use typst::foundations::Bytes;

use crate::{PdfError, typesetter};

/// The largest file of a logo in bytes.
pub const LOGO_BYTES_MAX: usize = 512 * 1024;

/// The most pixels of a logo. 4 million are 20 cm at 300 dpi.
pub const LOGO_PIXELS_MAX: u64 = 4_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogoKind {
    Png,
    Jpeg,
    Svg,
}

impl LogoKind {
    pub(crate) const fn file_name(self) -> &'static str {
        match self {
            Self::Png => "logo.png",
            Self::Jpeg => "logo.jpg",
            Self::Svg => "logo.svg",
        }
    }
}

/// A picture that has passed the checks of its kind.
#[derive(Debug, Clone)]
pub struct Logo {
    pub(crate) kind: LogoKind,
    pub(crate) bytes: Bytes,
}

impl Logo {
    /// Takes the bytes of a picture that was checked when it was uploaded. Reads no more than its head.
    pub fn new(kind: LogoKind, bytes: Vec<u8>) -> Result<Self, PdfError> {
        if bytes.len() > LOGO_BYTES_MAX {
            return Err(PdfError::LogoTooLarge {
                bytes: bytes.len(),
                max: LOGO_BYTES_MAX,
            });
        }
        match kind {
            LogoKind::Png => {
                let decoder = PngDecoder::new(Cursor::new(&bytes));
                check_raster(&decoder.map_err(|_| PdfError::Logo("it is not a PNG file"))?)?;
            }
            LogoKind::Jpeg => {
                let decoder = JpegDecoder::new(Cursor::new(&bytes));
                check_raster(&decoder.map_err(|_| PdfError::Logo("it is not a JPEG file"))?)?;
            }
            LogoKind::Svg => check_drawing(&bytes)?,
        }
        Ok(Self {
            kind,
            bytes: Bytes::new(bytes),
        })
    }

    /// Sets the picture on an empty page, so that a damaged one is refused at its upload and not at each document.
    /// Takes as long as a document.
    pub fn check(&self) -> Result<(), PdfError> {
        typesetter::set_logo(self).map(drop).map_err(|_| {
            PdfError::Logo("it is damaged: open it in a drawing program and save it again")
        })
    }
}

fn check_raster(decoder: &impl ImageDecoder) -> Result<(), PdfError> {
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > LOGO_PIXELS_MAX {
        return Err(PdfError::Logo(
            "it has more than 4 million pixels: save it smaller",
        ));
    }
    match decoder.original_color_type() {
        ExtendedColorType::Cmyk8 => Err(PdfError::Logo("its colours are CMYK: save it as RGB")),
        _ => Ok(()),
    }
}

/// Refuses what makes a drawing more than paths: pictures and files that it refers to, text in fonts that nobody has
/// here, filters, which are computed pixel by pixel, and entities, which can multiply.
fn check_drawing(bytes: &[u8]) -> Result<(), PdfError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| PdfError::Logo("it is not an SVG file in UTF-8"))?
        .to_ascii_lowercase();
    if !text.contains("<svg") {
        return Err(PdfError::Logo("it is not an SVG file"));
    }
    for (part, refusal) in [
        ("<!entity", "it declares entities: save it as plain SVG"),
        ("image", "it contains a picture: draw it with paths"),
        ("<text", "it contains text: convert the text to paths"),
        ("filter", "it contains a filter: save it as plain SVG"),
    ] {
        if text.contains(part) {
            return Err(PdfError::Logo(refusal));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PNG of one red pixel.
    const PIXEL: [u8; 69] = [
        0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44,
        0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x90,
        0x77, 0x53, 0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8,
        0xcf, 0xc0, 0x00, 0x00, 0x03, 0x01, 0x01, 0x00, 0xc9, 0xfe, 0x92, 0xef, 0x00, 0x00, 0x00,
        0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
    ];

    #[test]
    fn a_picture_is_what_its_kind_says() {
        Logo::new(LogoKind::Png, PIXEL.to_vec())
            .unwrap()
            .check()
            .unwrap();
        for (kind, bytes) in [
            (LogoKind::Jpeg, &PIXEL[..]),
            (LogoKind::Svg, &PIXEL[..]),
            (LogoKind::Png, b"<svg/>"),
            (LogoKind::Png, b""),
            (LogoKind::Svg, b"<html/>"),
        ] {
            assert!(
                matches!(Logo::new(kind, bytes.to_vec()), Err(PdfError::Logo(_))),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn a_picture_that_is_too_large_is_refused_before_it_is_decoded() {
        let mut huge = PIXEL.to_vec();
        huge[18] = 0xff;
        huge[22] = 0xff;
        // The checksum of the changed head.
        huge[29..33].copy_from_slice(&[0x18, 0x7a, 0x8a, 0x44]);
        let refused = Logo::new(LogoKind::Png, huge);
        let Err(PdfError::Logo(reason)) = refused else {
            panic!("{refused:?}")
        };
        assert!(reason.contains("4 million"), "{reason}");
        let bytes = LOGO_BYTES_MAX + 1;
        assert_eq!(
            Logo::new(LogoKind::Svg, vec![b' '; bytes]).err(),
            Some(PdfError::LogoTooLarge {
                bytes,
                max: LOGO_BYTES_MAX
            })
        );
    }

    #[test]
    fn a_drawing_consists_of_paths_alone() {
        for part in [
            "<image href=\"file:///etc/passwd\"/>",
            "<feImage href=\"x.png\"/>",
            "<text>Shop</text>",
            "<filter id=\"a\"/>",
            "<!ENTITY a \"b\">",
        ] {
            let svg = format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{part}</svg>");
            let refused = Logo::new(LogoKind::Svg, svg.into_bytes());
            assert!(matches!(refused, Err(PdfError::Logo(_))), "{part}");
        }
    }

    #[test]
    fn a_damaged_picture_is_found_at_its_upload() {
        let mut damaged = PIXEL.to_vec();
        damaged.truncate(50);
        for (kind, bytes) in [
            (LogoKind::Png, damaged),
            (LogoKind::Svg, b"<svg><path".to_vec()),
        ] {
            let logo = Logo::new(kind, bytes).unwrap();
            assert!(matches!(logo.check(), Err(PdfError::Logo(_))), "{kind:?}");
        }
    }
}
