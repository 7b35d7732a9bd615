//! Reads the customer of Create Invoice (Standard), Create Invoices (Bulk) and Update Invoice, and the change of a stored
//! customer.

use std::ops::RangeInclusive;

use crate::domain::kernel::codes::Category;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::party::{Address, Customer, CustomerDetails};
use crate::http::forms::field::{LONG_TEXT_CHARS_MAX, TEXT_CHARS_MAX};
use crate::http::forms::reader::Reader;

/// The minimum length of the description of a customer's business, in characters.
pub(crate) const DESCRIPTION_CHARS_MIN: usize = 5;
/// The allowed length of a telephone number, in characters: digits, blanks, dashes, brackets and the leading `+`.
const PHONE_CHARS: RangeInclusive<usize> = 6..=20;

/// Reads a customer. A business or a government body needs a tax number and a description.
pub(crate) fn read(reader: &mut Reader<'_>, category: Option<Category>) -> Option<CustomerDetails> {
    read_with_tin_requirement(reader, category, category.is_some_and(Category::needs_tin))
}

/// Reads a customer whose tax number is required only if `needs_tin` is true, whatever the category.
pub(crate) fn read_with_tin_requirement(
    reader: &mut Reader<'_>,
    category: Option<Category>,
    needs_tin: bool,
) -> Option<CustomerDetails> {
    let is_business = category.is_some_and(Category::needs_tin);
    let no = reader.required("no").identifier(TEXT_CHARS_MAX);
    let name = reader.required("name").text(TEXT_CHARS_MAX);
    let email = reader.required("email").email();
    let tin = reader
        .required_if(needs_tin, "tin")
        .identifier(TEXT_CHARS_MAX);
    let business_description = reader
        .required_if(is_business, "business_description")
        .long_text(DESCRIPTION_CHARS_MIN, LONG_TEXT_CHARS_MAX);
    let address = read_address(reader);
    Some(CustomerDetails {
        no: no?,
        name: name?,
        email: email?,
        tin,
        business_description,
        address: address?,
        telephone: None,
    })
}

fn read_address(reader: &mut Reader<'_>) -> Option<Address> {
    let street_name = reader.required("address_street_name").text(TEXT_CHARS_MAX);
    let city = reader.required("address_city").text(TEXT_CHARS_MAX);
    let state = reader.required("address_state").text(TEXT_CHARS_MAX);
    let postal_code = reader.required("address_postal_code").text(TEXT_CHARS_MAX);
    let country = reader
        .required("address_country")
        .country_text(TEXT_CHARS_MAX);
    Some(Address {
        street_name: street_name?,
        city: city?,
        state: Some(state?),
        postal_code: postal_code?,
        country: country?,
    })
}

/// Reads the new data of a stored customer. Its number stays, and so does its tax number unless it has none. An address
/// without a state, as Create Invoice (Full) stores it, may stay without one.
pub(crate) fn read_change(reader: &mut Reader<'_>, stored: &Customer) -> Option<CustomerDetails> {
    let details = &stored.details;
    let name = reader.required("name").text(TEXT_CHARS_MAX);
    let email = reader.required("email").email();
    let tin = match &details.tin {
        Some(tin) => Some(tin.clone()),
        None => reader.optional("tin").identifier(TEXT_CHARS_MAX),
    };
    let telephone = read_telephone(reader);
    let business_description = reader
        .required_if(stored.category.needs_tin(), "business_description")
        .long_text(DESCRIPTION_CHARS_MIN, LONG_TEXT_CHARS_MAX);
    let street_name = reader.required("address_street_name").text(TEXT_CHARS_MAX);
    let city = reader.required("address_city").text(TEXT_CHARS_MAX);
    let state = reader
        .required_if(details.address.state.is_some(), "address_state")
        .text(TEXT_CHARS_MAX);
    let postal_code = reader.required("address_postal_code").text(TEXT_CHARS_MAX);
    let country = reader
        .required("address_country")
        .country_text(TEXT_CHARS_MAX);
    let address = Address {
        street_name: street_name?,
        city: city?,
        state,
        postal_code: postal_code?,
        country: country?,
    };
    Some(CustomerDetails {
        no: details.no.clone(),
        name: name?,
        email: email?,
        tin,
        business_description,
        address,
        telephone,
    })
}

pub(crate) fn read_telephone(reader: &mut Reader<'_>) -> Option<String> {
    let format = "6 to 20 digits, spaces, dashes and brackets, with or without a leading +";
    let rule = FieldRule::must_be("telephone", format);
    reader
        .optional("telephone")
        .fitting_text(rule, is_telephone)
}

fn is_telephone(text: &str) -> bool {
    let number = text.strip_prefix('+').unwrap_or(text);
    PHONE_CHARS.contains(&text.chars().count())
        && number
            .chars()
            .all(|letter| letter.is_ascii_digit() || " -()".contains(letter))
        && number.contains(|letter: char| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::kernel::ids::CustomerId;
    use crate::http::forms::testing::{check, check_required, read as read_with};

    fn stored(category: Category, tin: Option<&str>, state: Option<&str>) -> Customer {
        Customer {
            id: CustomerId(7),
            category,
            details: CustomerDetails {
                no: "C-1".into(),
                name: "Shop".into(),
                email: "shop@example.com".into(),
                tin: tin.map(str::to_owned),
                business_description: None,
                address: Address {
                    state: state.map(str::to_owned),
                    ..Address::default()
                },
                telephone: Some("+2348020000000".into()),
            },
        }
    }

    fn change() -> Value {
        json!({
            "name": "Shop", "email": "shop@example.com", "business_description": "Retail",
            "address_street_name": "7 New Road", "address_city": "Jos", "address_state": "Plateau",
            "address_postal_code": "930001", "address_country": "NG",
        })
    }

    #[test]
    fn a_change_has_the_rules_of_the_customer_that_it_changes() {
        let business = stored(Category::B2B, Some("T-1"), Some("FCT"));
        let names = [
            "/name",
            "/email",
            "/business_description",
            "/address_street_name",
            "/address_city",
            "/address_state",
            "/address_postal_code",
            "/address_country",
        ];
        check_required(&change(), &names, |reader| read_change(reader, &business));
        let consumer = stored(Category::B2C, None, None);
        let cases = [
            ("/business_description", None, ""),
            ("/address_state", None, ""),
            ("/telephone", Some(json!("080 300-00")), ""),
            ("/telephone", Some(json!("call me")), "telephone: telephone"),
            ("/email", Some(json!("plain")), "email: email"),
        ];
        check(&change(), &cases, |reader| read_change(reader, &consumer));
    }

    #[test]
    fn a_number_stays_and_a_tin_is_only_filled_in() {
        let mut sent = change();
        sent["tin"] = json!("T-2");
        for (tin, expected) in [(Some("T-1"), "T-1"), (None, "T-2")] {
            let customer = stored(Category::B2C, tin, None);
            let read = read_with(sent.clone(), |reader| read_change(reader, &customer));
            let details = read.unwrap().value;
            assert_eq!(details.tin.as_deref(), Some(expected));
            assert_eq!((&*details.no, details.telephone), ("C-1", None));
        }
    }
}
