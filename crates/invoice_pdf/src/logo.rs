//! The picture that an account prints on its documents. It comes from a user, so files that could take much memory or
//! refer to other files are refused.

use std::io::Cursor;

use image::codecs::{jpeg::JpegDecoder, png::PngDecoder};
use image::{ExtendedColorType, ImageDecoder, ImageError, Limits};
use typst::foundations::Bytes;

use crate::PdfError;
use crate::drawing::check_drawing;

/// The largest file of a logo in bytes.
pub const LOGO_BYTES_MAX: usize = 512 * 1024;

/// The maximum number of pixels of a logo: a square with sides of 2,000 pixels, which are 17 cm at 300 dpi.
pub const LOGO_PIXELS_MAX: u64 = 4_000_000;

/// The maximum size of the colour profile in a PNG, in bytes. It is packed: 512 KB of a file can become 500 MB.
const PROFILE_BYTES_MAX: usize = 1 << 20;

/// The maximum memory, in bytes, for the data before the pixels of a PNG and for one row of pixels.
const HEAD_BYTES_MAX: u64 = 40 << 20;

const TOO_MANY_PIXELS: PdfError =
    PdfError::Logo("it has more than 4 million pixels: save it smaller");
const BAD_PROFILE: PdfError = PdfError::Logo(
    "its colour profile is larger than 1 MiB or cannot be read: save it without a profile",
);

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
            LogoKind::Png => check_png(&bytes)?,
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

fn check_png(bytes: &[u8]) -> Result<(), PdfError> {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(HEAD_BYTES_MAX);
    let decoder = PngDecoder::with_limits(Cursor::new(bytes), limits);
    let mut decoder = decoder.map_err(|error| match error {
        ImageError::Limits(_) => TOO_MANY_PIXELS,
        _ => PdfError::Logo("it is not a PNG file"),
    })?;
    check_raster(&decoder)?;
    // The decoder leaves out a profile beyond its limit. The typesetter unpacks it without a limit.
    let profile = decoder.icc_profile().ok().flatten();
    let is_small = profile.is_some_and(|profile| profile.len() <= PROFILE_BYTES_MAX);
    if has_profile(bytes) && !is_small {
        return Err(BAD_PROFILE);
    }
    Ok(())
}

/// True if a PNG has a colour profile before its pixels. Decoders ignore one that comes later.
fn has_profile(png: &[u8]) -> bool {
    let mut rest = png.get(8..).unwrap_or_default();
    while let Some((length, named)) = rest.split_first_chunk::<4>() {
        if named.starts_with(b"iCCP") {
            return true;
        }
        if named.starts_with(b"IDAT") {
            return false;
        }
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        // The name of a chunk and its checksum have four bytes each.
        let end = length.saturating_add(8);
        rest = named.get(end..).unwrap_or_default();
    }
    false
}

fn check_raster(decoder: &impl ImageDecoder) -> Result<(), PdfError> {
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > LOGO_PIXELS_MAX {
        return Err(TOO_MANY_PIXELS);
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
            .check_printable()
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

    fn checksum(bytes: &[u8]) -> u32 {
        let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
                let carried = if sum & 1 == 1 { 0xedb8_8320 } else { 0 };
                (sum >> 1) ^ carried
            })
        });
        !sum
    }

    /// Returns a picture with a colour profile of one zero and `repeats` times 258 more, packed.
    fn with_profile(repeats: usize) -> Vec<u8> {
        // One block with the fixed codes: a zero, its repetitions, the end. The first bit of a byte is its lowest.
        let bits = format!("11000110000{}0000000", "1100010100000".repeat(repeats));
        let block = bits.as_bytes().chunks(8).map(|byte| {
            let bits = byte.iter().rev();
            bits.fold(0, |sum, bit| sum * 2 + (bit - b'0'))
        });
        let zeros = u32::try_from((1 + 258 * repeats) % 65_521).unwrap();
        let mut chunk = b"iCCPp\0\0\x78\x01".to_vec();
        chunk.extend(block);
        chunk.extend(((zeros << 16) | 1).to_be_bytes());
        let length = u32::try_from(chunk.len() - 4).unwrap();
        let sum = checksum(&chunk).to_be_bytes();
        let (head, pixels) = PIXEL.split_at(33);
        [head, &length.to_be_bytes(), &chunk, &sum, pixels].concat()
    }

    #[test]
    fn a_colour_profile_that_unpacks_to_much_is_refused() {
        let mut damaged = with_profile(1);
        // A byte within the packed profile; the checksum of the chunk is wrong then.
        damaged[46] ^= 1;
        for (picture, is_good) in [
            (PIXEL.to_vec(), true),
            (with_profile(1), true),
            (with_profile(4_000), true),
            (with_profile(5_000), false),
            (with_profile(200_000), false),
            (damaged, false),
        ] {
            let bytes = picture.len();
            let checked = Logo::new(LogoKind::Png, picture).map(drop);
            let expected = if is_good { Ok(()) } else { Err(BAD_PROFILE) };
            assert_eq!(checked, expected, "{bytes}");
        }
    }

    #[test]
    fn a_drawing_may_refer_to_its_own_parts() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" viewBox=\"0 0 9 9\">\
            <linearGradient id=\"a\"/><path id=\"b\" fill=\"url(#a)\" d=\"M0 0h9v9z\"/><use xlink:href=\"#b\" y=\"1\"/></svg>";
        let logo = Logo::new(LogoKind::Svg, svg.as_bytes().to_vec()).unwrap();
        logo.check_printable().unwrap();
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
            let checked = Logo::new(kind, bytes).and_then(|logo| logo.check_printable());
            assert!(matches!(checked, Err(PdfError::Logo(_))), "{kind:?}");
        }
    }
}
