//! The fonts: Latin with stacked accents, Greek and Cyrillic, Arabic and Hebrew.

use std::sync::OnceLock;

use ttf_parser::Face;
use typst::foundations::Bytes;
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;

/// The files, the regular one of each family before the bold one. The order is that of `fonts` in parts.typ.
const FILES: [&[u8]; 6] = [
    include_bytes!("../fonts/NotoSans-Regular.ttf"),
    include_bytes!("../fonts/NotoSans-Bold.ttf"),
    include_bytes!("../fonts/NotoSansArabic-Regular.ttf"),
    include_bytes!("../fonts/NotoSansArabic-Bold.ttf"),
    include_bytes!("../fonts/NotoSansHebrew-Regular.ttf"),
    include_bytes!("../fonts/NotoSansHebrew-Bold.ttf"),
];

/// Characters below this code are looked up once, because nearly all text consists of them.
const COMMON: usize = 0x250;

/// The width of a character without a glyph, in thousandths of an em.
const UNKNOWN_WIDTH: u32 = 1_000;

/// The parsed fonts.
pub struct Fonts {
    pub book: LazyHash<FontBook>,
    pub fonts: Vec<Font>,
    /// The same fonts, for looking up single characters.
    faces: Vec<Face<'static>>,
    common: Vec<Option<u32>>,
}

impl Fonts {
    /// Returns the fonts. They are parsed at the first call.
    pub fn get() -> &'static Self {
        static FONTS: OnceLock<Fonts> = OnceLock::new();
        FONTS.get_or_init(|| {
            let fonts: Vec<Font> = FILES
                .into_iter()
                .filter_map(|file| Font::new(Bytes::new(file), 0))
                .collect();
            let faces: Vec<Face<'static>> = FILES
                .into_iter()
                .filter_map(|file| Face::parse(file, 0).ok())
                .collect();
            let common = (0..COMMON)
                .map(|code| {
                    let character = char::from_u32(u32::try_from(code).ok()?)?;
                    advance_width(faces.get(1)?, character)
                })
                .collect();
            Self {
                book: LazyHash::new(FontBook::from_fonts(&fonts)),
                fonts,
                faces,
                common,
            }
        })
    }

    /// True if one font family has every character of a cluster, because typst chooses the font for whole clusters.
    pub fn covers(&self, cluster: &str) -> bool {
        if cluster.chars().all(|character| self.is_common(character)) {
            return true;
        }
        self.faces.chunks(2).any(|family| {
            family.iter().all(|face| {
                cluster
                    .chars()
                    .all(|character| advance_width(face, character).is_some())
            })
        })
    }

    /// Returns the width of a text in bold type, in thousandths of an em. Regular type is not wider.
    pub fn width(&self, text: &str) -> u32 {
        text.chars()
            .map(|character| {
                usize::try_from(u32::from(character))
                    .ok()
                    .and_then(|code| *self.common.get(code)?)
                    .or_else(|| {
                        let bold = self.faces.chunks(2).filter_map(<[Face<'static>]>::last);
                        bold.into_iter()
                            .find_map(|face| advance_width(face, character))
                    })
                    .unwrap_or(UNKNOWN_WIDTH)
            })
            .sum()
    }

    fn is_common(&self, character: char) -> bool {
        usize::try_from(u32::from(character))
            .ok()
            .and_then(|code| self.common.get(code))
            .is_some_and(Option::is_some)
    }
}

/// Returns the width of a character in thousandths of an em; `None` if the font does not have it.
fn advance_width(face: &Face<'_>, character: char) -> Option<u32> {
    // Glyph 0 is the box for an unknown character. A font may map a character that it does not have to this box.
    let glyph = face.glyph_index(character).filter(|glyph| glyph.0 > 0)?;
    let advance = face.glyph_hor_advance(glyph)?;
    Some(u32::from(advance) * 1_000 / u32::from(face.units_per_em()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_font_is_parsed_and_the_families_are_those_of_the_template() {
        let fonts = Fonts::get();
        assert_eq!(fonts.fonts.len(), FILES.len());
        for family in ["noto sans", "noto sans arabic", "noto sans hebrew"] {
            assert!(fonts.book.contains_family(family), "{family}");
        }
    }

    #[test]
    fn the_scripts_of_the_users_are_covered_and_chinese_is_not() {
        let fonts = Fonts::get();
        for cluster in [
            "A",
            "ẹ\u{300}",
            "ọ\u{301}",
            "ṣ",
            "ń",
            "Ω",
            "Ж",
            "ب",
            "ش",
            "ש",
            "₦",
            "€",
            "\u{fffd}",
            "…",
        ] {
            assert!(fonts.covers(cluster), "{cluster}");
        }
        for cluster in ["中", "🙂", "a\u{64b}", "\u{ffff}"] {
            assert!(!fonts.covers(cluster), "{cluster}");
        }
    }

    #[test]
    fn digits_are_of_one_width() {
        let fonts = Fonts::get();
        let widths: Vec<u32> = (0..10)
            .map(|digit| fonts.width(&digit.to_string()))
            .collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{widths:?}");
    }
}
