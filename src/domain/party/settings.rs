//! The settings of a taxpayer's account: the look of its documents, and which checks and which automatic steps apply to
//! its invoices.

use std::sync::Arc;

use invoice_pdf::{Colour, LogoKind, Template};
use sha2::{Digest, Sha256};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the switches of the API, each on its own"
)]
pub struct AccountSettings {
    /// The number under which the business is registered, printed below its address.
    pub registration_number: Option<String>,
    pub template: Template,
    /// The colour of titles and lines; `None` means the colour of the template.
    pub accent: Option<Colour>,
    /// The format, size and digest of the logo. The picture is loaded only to print it.
    pub logo: Option<LogoProperties>,
    /// True if Validate, Submit and Report refuse a document that differs from the stored invoice with the same IRN. If
    /// false, they only warn.
    pub strict_documents: bool,
    /// True if an invoice number that the authority does not accept is refused when the invoice is created.
    pub strict_numbers: bool,
    /// True if an invoice is submitted automatically once it is approved.
    pub submit_after_approval: bool,
    /// True if an invoice is transmitted automatically once it is signed.
    pub transmit_after_signing: bool,
}

/// The properties of a stored logo, without the picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogoProperties {
    pub kind: LogoKind,
    /// The length of the file in bytes.
    pub bytes: usize,
    /// The SHA-256 of the file in hexadecimal digits.
    pub digest: String,
}

/// A picture that has passed the checks of its format, to be stored as logo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogoFile {
    pub kind: LogoKind,
    pub bytes: Arc<[u8]>,
}

impl LogoFile {
    fn logo_properties(&self) -> LogoProperties {
        LogoProperties {
            kind: self.kind,
            bytes: self.bytes.len(),
            digest: hex::encode(Sha256::digest(&self.bytes)),
        }
    }
}

/// A change of a setting that may be without a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SettingChange<T> {
    #[default]
    Keep,
    Unset,
    Set(T),
}

impl<T> SettingChange<T> {
    pub fn apply(self, value: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Unset => *value = None,
            Self::Set(new) => *value = Some(new),
        }
    }
}

/// A partial change of the settings. A setting that is `None` or `Keep` is not changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountSettingsChange {
    pub registration_number: SettingChange<String>,
    pub template: SettingChange<Template>,
    pub accent: SettingChange<Colour>,
    pub logo: SettingChange<LogoFile>,
    pub strict_documents: Option<bool>,
    pub strict_numbers: Option<bool>,
    pub submit_after_approval: Option<bool>,
    pub transmit_after_signing: Option<bool>,
}

impl AccountSettingsChange {
    pub fn apply(self, settings: &mut AccountSettings) {
        self.registration_number
            .apply(&mut settings.registration_number);
        self.accent.apply(&mut settings.accent);
        match self.template {
            SettingChange::Keep => {}
            SettingChange::Unset => settings.template = Template::default(),
            SettingChange::Set(template) => settings.template = template,
        }
        match self.logo {
            SettingChange::Keep => {}
            SettingChange::Unset => settings.logo = None,
            SettingChange::Set(logo) => settings.logo = Some(logo.logo_properties()),
        }
        let switches = [
            (&mut settings.strict_documents, self.strict_documents),
            (&mut settings.strict_numbers, self.strict_numbers),
            (
                &mut settings.submit_after_approval,
                self.submit_after_approval,
            ),
            (
                &mut settings.transmit_after_signing,
                self.transmit_after_signing,
            ),
        ];
        for (switch, to) in switches {
            *switch = to.unwrap_or(*switch);
        }
    }
}

impl AccountSettings {
    /// Returns the API names of the settings that differ from `before`.
    pub fn changed_fields_since(&self, before: &Self) -> impl Iterator<Item = &'static str> {
        let compared = [
            (
                "registration_number",
                self.registration_number != before.registration_number,
            ),
            ("template", self.template != before.template),
            ("colours", self.accent != before.accent),
            ("logo", self.logo != before.logo),
            (
                "strict_documents",
                self.strict_documents != before.strict_documents,
            ),
            (
                "strict_numbers",
                self.strict_numbers != before.strict_numbers,
            ),
            (
                "submit_after_approval",
                self.submit_after_approval != before.submit_after_approval,
            ),
            (
                "transmit_after_signing",
                self.transmit_after_signing != before.transmit_after_signing,
            ),
        ];
        compared
            .into_iter()
            .filter_map(|(field, is_changed)| is_changed.then_some(field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_leaves_alone_what_it_does_not_name() {
        let before = AccountSettings {
            registration_number: Some("RC 1".into()),
            strict_documents: true,
            ..AccountSettings::default()
        };
        let mut after = before.clone();
        AccountSettingsChange::default().apply(&mut after);
        assert_eq!(after, before);
        let change = AccountSettingsChange {
            registration_number: SettingChange::Unset,
            template: SettingChange::Set(Template::Compact),
            strict_documents: Some(false),
            logo: SettingChange::Set(LogoFile {
                kind: LogoKind::Svg,
                bytes: Arc::from(*b"<svg/>"),
            }),
            ..AccountSettingsChange::default()
        };
        change.apply(&mut after);
        assert_eq!(after.logo.as_ref().unwrap().bytes, 6);
        let changed: Vec<_> = after.changed_fields_since(&before).collect();
        assert_eq!(
            changed,
            [
                "registration_number",
                "template",
                "logo",
                "strict_documents"
            ]
        );
    }
}
