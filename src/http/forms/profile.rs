//! Update of a taxpayer's business profile and settings. Absent fields stay unchanged; null removes a value that may be
//! missing. If both are sent, `business_email` wins over `email`.

use crate::domain::party::ProfileChange;
use crate::http::forms::account_settings::{self, read_setting_change};
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::reader::Reader;
use crate::http::forms::taxpayer::NATURE_CHARS_MAX;

#[expect(
    clippy::unnecessary_wraps,
    reason = "every form returns an `Option`, and this form requires no field"
)]
pub(crate) fn read(reader: &mut Reader<'_>) -> Option<ProfileChange> {
    let business_email = reader.optional("business_email").email();
    let email = reader.optional("email").email();
    Some(ProfileChange {
        city: reader.optional("city").text(TEXT_CHARS_MAX),
        state: reader.optional("state").text(TEXT_CHARS_MAX),
        country: reader.optional("country").country_text(TEXT_CHARS_MAX),
        email: business_email.or(email),
        name: reader.optional("name").text(TEXT_CHARS_MAX),
        phone: read_setting_change(reader, "phone", |reader| {
            reader.optional("phone").text(TEXT_CHARS_MAX)
        }),
        nature_of_business: read_setting_change(reader, "nature_of_business", |reader| {
            reader
                .optional("nature_of_business")
                .long_text(0, NATURE_CHARS_MAX)
        }),
        address: reader.optional("address").long_text(0, TEXT_CHARS_MAX),
        settings: account_settings::read(reader),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::party::settings::SettingChange;
    use crate::http::forms::testing::{
        broken_rules, check_refused, check_texts, read as read_with, texts,
    };

    #[test]
    fn each_field_keeps_its_rule() {
        let body = json!({ "city": "Jos" });
        let limits = [
            ("/city", 1, 255),
            ("/state", 1, 255),
            ("/country", 1, 255),
            ("/name", 1, 255),
            ("/phone", 1, 255),
            ("/nature_of_business", 1, 500),
            ("/address", 1, 255),
        ];
        check_texts(&body, &limits, read);
        let cases = [
            ("/state", "type", vec![json!(7)]),
            ("/business_email", "email", texts(&["plain"])),
            ("/email", "email", texts(&["plain"])),
        ];
        check_refused(&body, &cases, read);
    }

    #[test]
    fn null_removes_a_value_that_may_be_missing() {
        for (sent, expected) in [
            (
                json!({ "phone": "+234" }),
                SettingChange::Set("+234".to_owned()),
            ),
            (json!({ "phone": null }), SettingChange::Unset),
            (json!({ "phone": " " }), SettingChange::Keep),
            (json!({}), SettingChange::Keep),
        ] {
            let change = read_with(sent.clone(), read).unwrap().value;
            assert_eq!(change.phone, expected, "{sent}");
        }
        let sent = json!({ "nature_of_business": null, "city": null });
        let change = read_with(sent, read).unwrap().value;
        assert_eq!(change.nature_of_business, SettingChange::Unset);
        assert_eq!(change.city, None);
    }

    #[test]
    fn the_email_goes_by_two_names() {
        let email = |body| read_with(body, read).unwrap().value.email;
        assert_eq!(
            email(json!({ "email": "a@example.com" })).unwrap(),
            "a@example.com"
        );
        let both = json!({ "email": "a@example.com", "business_email": "b@example.com" });
        assert_eq!(email(both).unwrap(), "b@example.com");
        assert_eq!(email(json!({ "city": "Lagos" })), None);
        assert_eq!(
            broken_rules(read_with(json!({ "email": "odd" }), read)),
            ["email: email"]
        );
    }
}
