//! Reads the customer of Create Invoice (Standard), Create Invoices (Bulk) and Update Invoice.

use crate::domain::kernel::codes::Category;
use crate::domain::party::{Address, CustomerDetails};
use crate::http::forms::field::{LONG_TEXT_CHARS_MAX, TEXT_CHARS_MAX};
use crate::http::forms::reader::Reader;

/// The minimum length of the description of a customer's business, in characters.
pub(crate) const DESCRIPTION_CHARS_MIN: usize = 5;

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
