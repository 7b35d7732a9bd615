//! The settings of a taxpayer's account, which are read together with the taxpayer's profile. An absent setting stays
//! unchanged. Null removes a setting that may be missing.

use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use invoice_pdf::{Colour, LOGO_BYTES_MAX, Logo, LogoKind, PdfError, Template};

use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::party::settings::{AccountSettingsChange, LogoFile, SettingChange};
use crate::http::forms::form_schema::FieldType;
use crate::http::forms::reader::Reader;

const REGISTRATION_CHARS_MAX: usize = 100;
const LOGO_FORMAT: &str = "a PNG, JPEG or SVG picture in base64, of 512 KiB at most";
const COLOUR_FORMAT: &str = "a colour of the form #rrggbb";
/// Accepts base64 with or without padding, because some programs leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(crate) fn read(reader: &mut Reader<'_>) -> AccountSettingsChange {
    AccountSettingsChange {
        registration_number: read_setting_change(reader, "registration_number", |reader| {
            let field = reader.optional("registration_number");
            field.identifier(REGISTRATION_CHARS_MAX)
        }),
        template: read_setting_change(reader, "template", |reader| {
            reader
                .optional("template")
                .word(find_template, || template_names().join(", "))
        }),
        accent: read_setting_change(reader, "colours", |reader| {
            reader.optional("colours").object(read_accent_colour)
        }),
        logo: read_setting_change(reader, "logo", read_logo),
        strict_documents: reader.optional("strict_documents").boolean(),
        strict_numbers: reader.optional("strict_numbers").boolean(),
        submit_after_approval: reader.optional("submit_after_approval").boolean(),
        transmit_after_signing: reader.optional("transmit_after_signing").boolean(),
    }
}

/// Reads a setting. Null removes the setting, and an absent field leaves it unchanged.
pub(crate) fn read_setting_change<T>(
    reader: &mut Reader<'_>,
    name: &str,
    read: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> SettingChange<T> {
    let is_null = reader.is_null(name);
    match read(reader) {
        Some(value) => SettingChange::Set(value),
        None if is_null => SettingChange::Unset,
        None => SettingChange::Keep,
    }
}

fn find_template(name: &str) -> Option<Template> {
    Template::from_name(&name.to_ascii_lowercase())
}

pub(crate) fn template_names() -> [&'static str; 2] {
    Template::ALL.map(Template::name)
}

fn read_accent_colour(reader: &mut Reader<'_>) -> Option<Colour> {
    let field = reader
        .required("accent")
        .record_type(|| FieldType::Formatted {
            rule: "colour",
            description: COLOUR_FORMAT.to_owned(),
        });
    field.check_trimmed(|text| {
        text.parse()
            .map_err(|_| FieldRule::must_be("colour", COLOUR_FORMAT))
    })
}

fn read_logo(reader: &mut Reader<'_>) -> Option<LogoFile> {
    let field = reader
        .optional("logo")
        .record_type(|| FieldType::Formatted {
            rule: "logo",
            description: LOGO_FORMAT.to_owned(),
        });
    field.check_trimmed(decode_logo)
}

/// Decodes a picture and checks its first bytes. Other damage is found when the picture is test-printed later.
fn decode_logo(text: &str) -> Result<LogoFile, FieldRule> {
    let digits = match text.split_once(";base64,") {
        Some((start, digits)) if start.starts_with("data:") => digits,
        _ => text,
    };
    // The text of a file with more than `LOGO_BYTES_MAX` bytes is not decoded: base64 writes three bytes as four
    // digits.
    if digits.len() > LOGO_BYTES_MAX.div_ceil(3) * 4 {
        return Err(unusable_logo_rule(&format!(
            "it may have {LOGO_BYTES_MAX} bytes at most: save it smaller"
        )));
    }
    let bytes = BASE64
        .decode(digits)
        .map_err(|_| FieldRule::must_be("logo", LOGO_FORMAT))?;
    let kind = LogoKind::from_bytes(&bytes);
    let logo = LogoFile {
        kind,
        bytes: Arc::from(bytes.as_slice()),
    };
    match Logo::new(kind, bytes) {
        Ok(_) => Ok(logo),
        Err(PdfError::Logo(reason)) => Err(unusable_logo_rule(reason)),
        Err(refusal) => Err(unusable_logo_rule(&refusal.to_string())),
    }
}

/// Returns the rule that an unusable picture breaks. `reason` says why the picture cannot be used.
pub(crate) fn unusable_logo_rule(reason: &str) -> FieldRule {
    FieldRule::other("logo", format!("cannot be used: {reason}"))
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use super::*;
    use crate::http::forms::testing::{broken_rules, read as read_with};

    fn read_settings(body: Value) -> AccountSettingsChange {
        let read = read_with(body, |reader| Some(read(reader)));
        read.unwrap().value
    }

    fn rules(body: Value) -> Vec<String> {
        broken_rules(read_with(body, |reader| Some(read(reader))))
    }

    fn svg(part: &str) -> Value {
        let svg = format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{part}</svg>");
        json!({ "logo": STANDARD.encode(svg) })
    }

    #[test]
    fn an_absent_setting_stays_and_null_removes_a_setting() {
        assert_eq!(read_settings(json!({})), AccountSettingsChange::default());
        let unset =
            json!({ "registration_number": null, "template": null, "colours": null, "logo": null });
        let change = read_settings(unset);
        assert_eq!(change.registration_number, SettingChange::Unset);
        assert_eq!(change.template, SettingChange::Unset);
        assert_eq!(change.accent, SettingChange::Unset);
        assert_eq!(change.logo, SettingChange::Unset);
        let set = json!({
            "registration_number": " RC 12 ", "template": "Compact", "colours": { "accent": "#0F4C5C" },
            "strict_numbers": true, "strict_documents": false,
        });
        let change = read_settings(set);
        assert_eq!(
            change.registration_number,
            SettingChange::Set("RC 12".to_owned())
        );
        assert_eq!(change.template, SettingChange::Set(Template::Compact));
        assert_eq!(
            change.accent,
            SettingChange::Set("#0f4c5c".parse().unwrap())
        );
        assert_eq!(change.strict_numbers, Some(true));
        assert_eq!(change.strict_documents, Some(false));
        assert_eq!(change.submit_after_approval, None);
    }

    #[test]
    fn odd_settings_are_refused_by_name() {
        let cases = [
            (json!({ "template": "../classic" }), "template: one_of"),
            (json!({ "colours": "#0f4c5c" }), "colours: type"),
            (json!({ "colours": {} }), "colours.accent: required"),
            (
                json!({ "colours": { "accent": "red" } }),
                "colours.accent: colour",
            ),
            (
                json!({ "colours": { "accent": "#0f4c5c; x" } }),
                "colours.accent: colour",
            ),
            (json!({ "strict_numbers": "yes" }), "strict_numbers: type"),
            (
                json!({ "registration_number": "x".repeat(101) }),
                "registration_number: max",
            ),
            (
                json!({ "registration_number": "a\u{202e}b" }),
                "registration_number: invisible_characters",
            ),
        ];
        for (body, rule) in cases {
            assert_eq!(rules(body.clone()), [rule], "{body}");
        }
    }

    #[test]
    fn a_logo_is_a_picture_in_base64() {
        let path = svg("<path d=\"M0 0h9v9z\"/>");
        let digits = path["logo"].as_str().unwrap();
        for good in [
            digits.to_owned(),
            digits.trim_end_matches('=').to_owned(),
            format!("data:image/svg+xml;base64,{digits}"),
        ] {
            let SettingChange::Set(logo) = read_settings(json!({ "logo": good })).logo else {
                panic!("{good}")
            };
            assert_eq!(logo.kind, LogoKind::Svg);
        }
        for odd in [
            json!({ "logo": 7 }),
            json!({ "logo": "%%%" }),
            json!({ "logo": STANDARD.encode("a plain text") }),
            json!({ "logo": "A".repeat(5 << 20) }),
            svg("<script>alert(1)</script>"),
            svg("<use href=\"https://evil.example/x.svg#a\"/>"),
        ] {
            let logo_rules = rules(odd);
            assert!(
                matches!(logo_rules.as_slice(), [rule] if rule.starts_with("logo: ")),
                "{logo_rules:?}"
            );
        }
    }
}
