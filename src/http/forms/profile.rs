//! The business profile: what completes it, and what of a taxpayer may be changed. What is not sent stays.

use crate::domain::party::ProfileChange;
use crate::http::forms::field::TEXT_MAX;
use crate::http::forms::reader::Reader;
use crate::http::forms::taxpayer::NATURE_MAX;

#[expect(clippy::unnecessary_wraps, reason = "forms are read alike, and this one requires nothing")]
pub(crate) fn read(reader: &mut Reader<'_>) -> Option<ProfileChange> {
    Some(ProfileChange {
        city: reader.optional("city").text(TEXT_MAX),
        state: reader.optional("state").text(TEXT_MAX),
        country: reader.optional("country").text(TEXT_MAX),
        email: reader.optional("business_email").email(),
        name: reader.optional("name").text(TEXT_MAX),
        phone: reader.optional("phone").text(TEXT_MAX),
        nature_of_business: reader.optional("nature_of_business").long_text(0, NATURE_MAX),
        address: reader.optional("address").long_text(0, TEXT_MAX),
    })
}
