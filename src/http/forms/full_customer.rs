//! Reads the customer of Create Invoice (Full) (spec.md, `accounting_customer_party`).

use crate::domain::kernel::codes::Category;
use crate::domain::party::{Address, CustomerDetails};
use crate::http::forms::customer::{DESCRIPTION_CHARS_MIN, read_telephone};
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::reader::Reader;

const TIN_CHARS_MAX: usize = 50;
const DESCRIPTION_CHARS_MAX: usize = 500;
const CITY_CHARS_MAX: usize = 100;
const POSTAL_ZONE_CHARS_MAX: usize = 50;

/// Reads a customer. A business or a government body needs a tax number and a description.
pub(crate) fn read(reader: &mut Reader<'_>, category: Option<Category>) -> Option<CustomerDetails> {
    let is_business = category.is_some_and(Category::needs_tin);
    let no = reader.required("customer_no").identifier(TEXT_CHARS_MAX);
    let name = reader.required("party_name").text(TEXT_CHARS_MAX);
    let email = reader.required("email").email();
    let tin = reader
        .required_if(is_business, "tin")
        .identifier(TIN_CHARS_MAX);
    let business_description = reader
        .required_if(is_business, "business_description")
        .long_text(DESCRIPTION_CHARS_MIN, DESCRIPTION_CHARS_MAX);
    let telephone = read_telephone(reader);
    let address = reader.required("postal_address").object(read_address);
    Some(CustomerDetails {
        no: no?,
        name: name?,
        email: email?,
        tin,
        business_description,
        address: address?,
        telephone,
    })
}

fn read_address(reader: &mut Reader<'_>) -> Option<Address> {
    let street_name = reader.required("street_name").text(TEXT_CHARS_MAX);
    let city = reader.required("city_name").text(CITY_CHARS_MAX);
    let postal_code = reader.required("postal_zone").text(POSTAL_ZONE_CHARS_MAX);
    let country = reader.required("country").country();
    Some(Address {
        street_name: street_name?,
        city: city?,
        state: None,
        postal_code: postal_code?,
        country: country?,
    })
}
