//! The picture that an account prints on its documents. It comes from a user, so files that could take much memory or
//! refer to other files are refused.

use std::io::Cursor;

use image::{ExtendedColorType, ImageDecoder, codecs::jpeg::JpegDecoder, codecs::png::PngDecoder};
use typst::foundations::Bytes;

use crate::PdfError;
use crate::drawing::check_drawing;

/// The largest file of a logo in bytes.
pub const LOGO_BYTES_MAX: usize = 512 * 1024;

/// The maximum number of pixels of a logo: a square of 2,000 pixels has 17 cm at 300 dpi.
pub const LOGO_PIXELS_MAX: u64 = 4_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogoKind {
    Png,
    Jpeg,
    Svg,
}

impl LogoKind {
    pub const ALL: [Self; 3] = [Self::Png, Self::Jpeg, Self::Svg];

    /// Returns the kind of a file by its first bytes. A file that is neither PNG nor JPEG is taken for an SVG drawing;
    /// the checks of drawings then refuse any other file.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        if bytes.starts_with(b"\x89PNG") {
            Self::Png
        } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
            Self::Jpeg
        } else {
            Self::Svg
        }
    }

    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Svg => "image/svg+xml",
        }
    }

    /// Returns the kind with this stored media type; `None` if there is none.
    pub fn from_media_type(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.media_type() == text)
    }

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
    /// Takes a picture that was checked when it was uploaded. Reads only its header.
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
    fn a_drawing_may_refer_to_its_own_parts() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" viewBox=\"0 0 9 9\">\
            <linearGradient id=\"a\"/><path id=\"b\" fill=\"url(#a)\" d=\"M0 0h9v9z\"/><use xlink:href=\"#b\" y=\"1\"/></svg>";
        let logo = Logo::new(LogoKind::Svg, svg.as_bytes().to_vec()).unwrap();
        logo.check().unwrap();
    }

    #[test]
    fn the_kind_of_a_file_shows_in_how_it_begins() {
        let cases = [
            (&PIXEL[..], LogoKind::Png),
            (&[0xff, 0xd8, 0xff, 0xe0], LogoKind::Jpeg),
            (b"<svg/>", LogoKind::Svg),
            (b"", LogoKind::Svg),
        ];
        for (bytes, kind) in cases {
            assert_eq!(LogoKind::from_bytes(bytes), kind);
            assert_eq!(LogoKind::from_media_type(kind.media_type()), Some(kind));
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
            let checked = Logo::new(kind, bytes).and_then(|logo| logo.check());
            assert!(matches!(checked, Err(PdfError::Logo(_))), "{kind:?}");
        }
    }
}
