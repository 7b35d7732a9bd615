//! The form of Create Taxpayer (spec.md, "System Integrator API"): reads the details of the new taxpayer from the body.

use secrecy::SecretString;

use crate::domain::access::password::is_common;
use crate::domain::invoice::irn::is_service_id;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::party::BusinessLocation;
use crate::domain::party::look_alike;
use crate::domain::party::normal_form;
use crate::http::forms::field::{Field, TEXT_CHARS_MAX};
use crate::http::forms::reader::Reader;

/// The maximum length of a tax number, in characters.
const TIN_CHARS_MAX: usize = 20;
/// The maximum length of the description of a taxpayer's business, in characters.
pub(crate) const NATURE_CHARS_MAX: usize = 500;
/// The minimum length of a password, in characters.
const PASSWORD_CHARS_MIN: usize = 12;

/// The warning for a common password. The account is created without such a password, because anybody could guess it
/// and sign in before the person does.
const COMMON_PASSWORD_WARNING: &str = "contact_person.password is one of those that everybody tries first, so it is not set: the person chooses one with an invitation";

#[derive(Debug)]
pub(crate) struct NewTaxpayer {
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) tin: String,
    pub(crate) phone: Option<String>,
    pub(crate) nature_of_business: Option<String>,
    pub(crate) service_id: String,
    pub(crate) business_id: String,
    pub(crate) address: String,
    /// Create Taxpayer does not ask for the location, but the pages of integrators do.
    pub(crate) place: BusinessLocation,
    pub(crate) contact: ContactPerson,
}

#[derive(Debug)]
pub(crate) struct ContactPerson {
    pub(crate) first_name: String,
    pub(crate) last_name: String,
    pub(crate) email: String,
    pub(crate) phone: Option<String>,
    /// `None` if the person is to choose a password with the link of an invitation, because the body has no password,
    /// or a password that is easy to guess.
    pub(crate) password: Option<SecretString>,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<NewTaxpayer> {
    let name = reader.required("name").text(TEXT_CHARS_MAX);
    let email = reader.required("email").email();
    let tin = reader.required("tin_no").identifier(TIN_CHARS_MAX);
    if tin
        .as_deref()
        .is_some_and(|tin| normal_form::normal_tin(tin).is_none())
    {
        reader.report_fault(
            "tin_no",
            FieldRule::other("tin", "must have letters or digits"),
        );
    }
    if tin.as_deref().is_some_and(look_alike::is_imitation) {
        reader.report_fault(
            "tin_no",
            FieldRule::other("look_alike", "must not have letters that look like others"),
        );
    }
    let phone = reader.optional("phone").text(TEXT_CHARS_MAX);
    let nature_of_business = reader
        .optional("nature_of_business")
        .long_text(0, NATURE_CHARS_MAX);
    let service_id_rule = FieldRule::must_be("format", "exactly 8 hexadecimal characters");
    let service_id = reader
        .required("authority_service_id")
        .fitting_text(service_id_rule, is_service_id);
    let business_id = read_uuid(reader.required("authority_business_id"));
    let address = reader.required("address").long_text(0, TEXT_CHARS_MAX);
    let contact = reader
        .required("contact_person")
        .object(read_contact_person);
    Some(NewTaxpayer {
        name: name?,
        email: email?,
        tin: tin?,
        phone,
        nature_of_business,
        service_id: service_id?,
        business_id: business_id?,
        address: address?,
        place: BusinessLocation::default(),
        contact: contact?,
    })
}

/// Reads the fields of Create Taxpayer and the location, so that the profile of the new account is complete.
pub(crate) fn read_with_location(reader: &mut Reader<'_>) -> Option<NewTaxpayer> {
    let place = BusinessLocation {
        city: reader.optional("city").text(TEXT_CHARS_MAX),
        state: reader.optional("state").text(TEXT_CHARS_MAX),
        country: reader.optional("country").country_text(TEXT_CHARS_MAX),
    };
    let new = read(reader)?;
    Some(NewTaxpayer { place, ..new })
}

fn read_contact_person(reader: &mut Reader<'_>) -> Option<ContactPerson> {
    let first_name = reader.required("first_name").text(TEXT_CHARS_MAX);
    let last_name = reader.required("last_name").text(TEXT_CHARS_MAX);
    let email = reader.required("email").email();
    let phone = reader.optional("phone").text(TEXT_CHARS_MAX);
    let password = reader
        .optional("password")
        .password(PASSWORD_CHARS_MIN, TEXT_CHARS_MAX);
    let is_common_password = password.as_deref().is_some_and(is_common);
    if is_common_password {
        reader.warn(COMMON_PASSWORD_WARNING);
    }
    Some(ContactPerson {
        first_name: first_name?,
        last_name: last_name?,
        email: email?,
        phone,
        password: password
            .filter(|_| !is_common_password)
            .map(SecretString::from),
    })
}

/// Reads a UUID in the hyphenated format of 36 characters. Upper and lower case are both accepted.
pub(crate) fn read_uuid(field: Field<'_>) -> Option<String> {
    field.fitting_text(FieldRule::must_be("uuid", "a UUID"), is_uuid)
}

pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use secrecy::ExposeSecret;

    use crate::http::forms::testing::{
        check, check_refused, check_required, check_texts, read as read_with, texts, with_member,
    };

    fn body() -> Value {
        json!({
            "name": "Dangoyaro Mills", "email": "books@example.com", "tin_no": "12345678-0001",
            "authority_service_id": "94AD90FB", "authority_business_id": "bb99420d-d6bb-422c-b371-b9f6d6009aae",
            "address": "1 Marina",
            "contact_person": { "first_name": "Ada", "last_name": "Obi", "email": "ada@example.com" }
        })
    }

    #[test]
    fn every_required_field_is_required() {
        let paths = [
            "/name",
            "/email",
            "/tin_no",
            "/authority_service_id",
            "/authority_business_id",
            "/address",
            "/contact_person",
            "/contact_person/first_name",
            "/contact_person/last_name",
            "/contact_person/email",
        ];
        check_required(&body(), &paths, read);
    }

    #[test]
    fn a_value_outside_what_its_field_takes_is_refused() {
        let limits = [
            ("/name", 1, 255),
            ("/nature_of_business", 1, 500),
            ("/address", 1, 255),
            ("/contact_person/first_name", 1, 255),
        ];
        check_texts(&body(), &limits, read);
        let uuids = texts(&["not-a-uuid", "11111111111141118111000000000001", "94AD90FB"]);
        let hidden = texts(&[
            "\u{2067}01234567-0001",
            "01234567-\u{200b}0001",
            "01234567-000\u{e0031}1",
            "0\u{fe0f}1234567-0001",
            "01234567\u{3164}0001",
            "01234567\u{17b4}-0001",
            "01234567\u{2800}0001",
        ]);
        let cases = [
            ("/name", "type", vec![json!(7)]),
            (
                "/email",
                "email",
                texts(&["plain", "a@b", "a b@example.com", "a@@example.com"]),
            ),
            (
                "/email",
                "max",
                vec![json!(format!("{}@example.com", "x".repeat(250)))],
            ),
            ("/tin_no", "type", vec![json!(12_345)]),
            ("/tin_no", "tin", texts(&["./-\u{2212}"])),
            (
                "/tin_no",
                "look_alike",
                texts(&["12-\u{41e}1", "\u{41e}1234567-0001"]),
            ),
            ("/tin_no", "invisible_characters", hidden),
            (
                "/authority_service_id",
                "format",
                texts(&["94AD90F", "94AD90FBB", "94AD90FG"]),
            ),
            ("/authority_business_id", "uuid", uuids),
            ("/contact_person", "type", texts(&["Ada Obi"])),
            ("/contact_person/email", "email", texts(&["ada"])),
            (
                "/contact_person/password",
                "min",
                texts(&["short", "eleven char"]),
            ),
        ];
        check_refused(&body(), &cases, read);
    }

    #[test]
    fn each_field_keeps_its_rule() {
        let cases = [
            ("/tin_no", Some(json!("1".repeat(20))), ""),
            ("/tin_no", Some(json!("1".repeat(21))), "tin_no: max"),
            (
                "/tin_no",
                Some(json!("-./\u{2013}\u{200b}")),
                "tin_no: invisible_characters",
            ),
            ("/phone", Some(json!(1)), "phone: type"),
            ("/authority_service_id", Some(json!("94ad90fb")), ""),
            ("/contact_person/password", Some(json!("twelve chars")), ""),
            ("/contact_person/password", Some(json!("Password2026!")), ""),
            (
                "/contact_person/password",
                Some(json!("x".repeat(11))),
                "contact_person.password: min",
            ),
        ];
        check(&body(), &cases, read);
    }

    #[test]
    fn a_common_password_is_not_set_and_gets_a_warning() {
        for (password, is_set) in [
            (json!("Password123!"), false),
            (json!("password1234"), false),
            (json!("123456789012"), false),
            (json!("a few easy words"), true),
        ] {
            let body = with_member(&body(), "/contact_person/password", Some(password.clone()));
            let form = read_with(body, read).unwrap();
            assert_eq!(form.value.contact.password.is_some(), is_set, "{password}");
            let expected: &[&str] = if is_set {
                &[]
            } else {
                &[COMMON_PASSWORD_WARNING]
            };
            assert_eq!(form.warnings, expected, "{password}");
        }
    }

    #[test]
    fn texts_lose_the_blanks_around_them_and_passwords_do_not() {
        let body = with_member(&body(), "/name", Some(json!(" Dangoyaro Mills\t")));
        let body = with_member(&body, "/email", Some(json!(" books@example.com")));
        let body = with_member(
            &body,
            "/contact_person/password",
            Some(json!(" a password ")),
        );
        let form = read_with(body, read).unwrap().value;
        assert_eq!(
            (form.name.as_str(), form.email.as_str()),
            ("Dangoyaro Mills", "books@example.com")
        );
        assert_eq!(
            form.contact.password.unwrap().expose_secret(),
            " a password "
        );
    }
}
