//! The look of an account's documents: template, colour and logo.

use std::fmt;
use std::str::FromStr;

use crate::{Logo, PdfError};

/// The look of a document: chosen by an account, and the same for all its documents.
#[derive(Debug, Clone, Default)]
pub struct Look {
    pub template: Template,
    pub colour: Colour,
    pub logo: Option<Logo>,
}

/// An arrangement of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Template {
    /// A wide page header, and a coloured row above the lines.
    #[default]
    Classic,
    /// Smaller type and narrow margins, for documents of many lines.
    Compact,
}

impl Template {
    pub const ALL: [Self; 2] = [Self::Classic, Self::Compact];

    /// Returns the name under which an account stores its choice.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Compact => "compact",
        }
    }

    /// Returns the template with this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|template| template.name() == name)
    }
}

/// The accent colour of the title, the rules and the table header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour {
    red: u8,
    green: u8,
    blue: u8,
}

/// The brightness of a colour, from 0 to 255, above which black text on it is easier to read than white text.
const BRIGHT: u32 = 150;

impl Colour {
    /// True if white text on the colour, or text in the colour on white paper, is hard to read.
    pub(crate) fn is_bright(self) -> bool {
        let [red, green, blue] = [self.red, self.green, self.blue].map(u32::from);
        (299 * red + 587 * green + 114 * blue) / 1_000 > BRIGHT
    }
}

/// Writes the colour as `#rrggbb`.
impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.red, self.green, self.blue)
    }
}

impl Default for Colour {
    /// Returns a dark blue-green. It also prints well in grey.
    fn default() -> Self {
        Self {
            red: 0x0f,
            green: 0x4c,
            blue: 0x5c,
        }
    }
}

impl FromStr for Colour {
    type Err = PdfError;

    /// Reads a colour of the form `#rrggbb`.
    fn from_str(text: &str) -> Result<Self, PdfError> {
        let number = text
            .strip_prefix('#')
            .filter(|digits| {
                digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| PdfError::Colour(text.chars().take(20).collect()))?;
        let [_, red, green, blue] = number.to_be_bytes();
        Ok(Self { red, green, blue })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_has_a_hash_and_six_digits() {
        for good in ["#0f4c5c", "#FFFFFF", "#000000"] {
            assert_eq!(
                good.parse::<Colour>().unwrap().to_string(),
                good.to_lowercase()
            );
        }
        for bad in [
            "", "#", "0f4c5c", "#fff", "#0f4c5c0", "#0f4c5g", "#+f4c5c", "red", "#\"; a",
        ] {
            assert_eq!(
                bad.parse::<Colour>(),
                Err(PdfError::Colour(bad.to_owned())),
                "{bad}"
            );
        }
    }

    #[test]
    fn white_is_bright_and_the_default_colour_is_dark() {
        assert!("#ffffff".parse::<Colour>().unwrap().is_bright());
        assert!("#ffd700".parse::<Colour>().unwrap().is_bright());
        assert!(!Colour::default().is_bright());
    }

    #[test]
    fn a_template_is_found_by_its_name() {
        for template in Template::ALL {
            assert_eq!(Template::from_name(template.name()), Some(template));
        }
        assert_eq!(Template::from_name("../classic"), None);
    }
}
