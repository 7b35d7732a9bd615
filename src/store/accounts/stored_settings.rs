//! Converts the settings of a taxpayer to and from the JSON object of their column, which leaves out default values.

use database::StoreError;
use database::column::{RowRef, json};
use invoice_pdf::{Colour, LogoKind, Template};
use serde::{Deserialize, Serialize};

use crate::domain::party::settings::{AccountSettings, LogoProperties};

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct StoredSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    registration_number: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logo: Option<StoredLogo>,
    /// The names of the switches that are on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    on: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct StoredLogo {
    media_type: String,
    bytes: usize,
    sha256: String,
}

const STRICT_DOCUMENTS: &str = "strict_documents";
const STRICT_NUMBERS: &str = "strict_numbers";
const SUBMIT_AFTER_APPROVAL: &str = "submit_after_approval";
const TRANSMIT_AFTER_SIGNING: &str = "transmit_after_signing";

pub(super) fn settings_text(settings: &AccountSettings) -> String {
    let switches = [
        (STRICT_DOCUMENTS, settings.strict_documents),
        (STRICT_NUMBERS, settings.strict_numbers),
        (SUBMIT_AFTER_APPROVAL, settings.submit_after_approval),
        (TRANSMIT_AFTER_SIGNING, settings.transmit_after_signing),
    ];
    let is_plain = settings.template == Template::default();
    json(&StoredSettings {
        registration_number: settings.registration_number.clone(),
        template: (!is_plain).then(|| settings.template.name().to_owned()),
        accent: settings.accent.map(|colour| colour.to_string()),
        logo: settings.logo.as_ref().map(|logo| StoredLogo {
            media_type: logo.kind.media_type().to_owned(),
            bytes: logo.bytes,
            sha256: logo.digest.clone(),
        }),
        on: switches
            .into_iter()
            .filter(|(_, is_on)| *is_on)
            .map(|(name, _)| name.to_owned())
            .collect(),
    })
}

pub(super) fn parse_settings(at: &RowRef<i64>, text: &str) -> Result<AccountSettings, StoreError> {
    let stored: StoredSettings = at.parse_json(text)?;
    let is_on = |name: &str| stored.on.iter().any(|one| one == name);
    let template = stored.template.as_deref().map(|name| {
        Template::from_name(name).ok_or_else(|| at.corrupt(format!("no template {name}")))
    });
    let accent = stored
        .accent
        .as_deref()
        .map(|text| text.parse::<Colour>().map_err(|fault| at.corrupt(fault)));
    Ok(AccountSettings {
        template: template.transpose()?.unwrap_or_default(),
        accent: accent.transpose()?,
        strict_documents: is_on(STRICT_DOCUMENTS),
        strict_numbers: is_on(STRICT_NUMBERS),
        submit_after_approval: is_on(SUBMIT_AFTER_APPROVAL),
        transmit_after_signing: is_on(TRANSMIT_AFTER_SIGNING),
        logo: stored
            .logo
            .map(|logo| logo_properties(at, logo))
            .transpose()?,
        registration_number: stored.registration_number,
    })
}

fn logo_properties(at: &RowRef<i64>, logo: StoredLogo) -> Result<LogoProperties, StoreError> {
    let kind = LogoKind::from_media_type(&logo.media_type);
    Ok(LogoProperties {
        kind: kind.ok_or_else(|| at.corrupt(format!("no logo is {}", logo.media_type)))?,
        bytes: logo.bytes,
        digest: logo.sha256,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: RowRef<i64> = RowRef {
        table: "taxpayers",
        id: 1,
    };

    #[test]
    fn settings_are_read_as_they_were_written() {
        let all = AccountSettings {
            registration_number: Some("RC 1".into()),
            template: Template::Compact,
            accent: Some("#123456".parse().unwrap()),
            logo: Some(LogoProperties {
                kind: LogoKind::Jpeg,
                bytes: 7,
                digest: "ab".into(),
            }),
            strict_documents: true,
            strict_numbers: false,
            submit_after_approval: true,
            transmit_after_signing: true,
        };
        assert_eq!(parse_settings(&ROW, &settings_text(&all)).unwrap(), all);
        let plain = AccountSettings::default();
        assert_eq!(settings_text(&plain), "{}");
        assert_eq!(parse_settings(&ROW, "{}").unwrap(), plain);
    }

    #[test]
    fn an_unknown_choice_is_an_error() {
        for text in [
            r#"{"template":"odd"}"#,
            r#"{"accent":"red"}"#,
            r#"{"logo":{"media_type":"image/gif","bytes":1,"sha256":""}}"#,
            "7",
        ] {
            assert!(parse_settings(&ROW, text).is_err(), "{text}");
        }
    }
}
