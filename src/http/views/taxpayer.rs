//! A taxpayer. Create Taxpayer names the tax number `tin_no` and formats timestamps differently (spec.md).

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::{plain_time, precise_time};
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::settings::AccountSettings;
use crate::domain::party::verification::VerificationStatus;
use crate::domain::party::{Contact, Taxpayer};

/// A taxpayer in the response of Create Taxpayer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CreatedTaxpayer<'a> {
    id: TaxpayerId,
    name: &'a str,
    email: &'a str,
    tin_no: &'a str,
    address: &'a str,
    nature_of_business: Option<&'a str>,
    authority_business_id: &'a str,
    authority_service_id: &'a str,
    created_at: String,
    updated_at: String,
}

impl<'a> From<&'a Taxpayer> for CreatedTaxpayer<'a> {
    fn from(taxpayer: &'a Taxpayer) -> Self {
        Self {
            id: taxpayer.id,
            name: &taxpayer.name,
            email: &taxpayer.email,
            tin_no: &taxpayer.tin,
            address: &taxpayer.address,
            nature_of_business: taxpayer.nature_of_business.as_deref(),
            authority_business_id: &taxpayer.business_id,
            authority_service_id: &taxpayer.service_id,
            created_at: precise_time(taxpayer.created_at),
            updated_at: precise_time(taxpayer.updated_at),
        }
    }
}

/// A taxpayer in the responses of all endpoints but Create Taxpayer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Taxpayer)]
pub(crate) struct TaxpayerView<'a> {
    id: TaxpayerId,
    name: &'a str,
    tin: &'a str,
    email: &'a str,
    nature_of_business: Option<&'a str>,
    authority_service_id: &'a str,
    authority_business_id: &'a str,
    address: &'a str,
    /// Says whether the tax authority knows a taxpayer with this business id and tax number. `verification_reason`
    /// explains the answer.
    verification: VerificationStatus,
    verification_reason: Option<&'static str>,
    created_at: String,
    updated_at: String,
    users: Vec<ContactPersonView<'a>>,
}

/// A contact person of the taxpayer. The password and its hash are never shown.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = User)]
struct ContactPersonView<'a> {
    id: i64,
    first_name: &'a str,
    last_name: &'a str,
    email: &'a str,
    phone: Option<&'a str>,
    created_at: String,
    updated_at: String,
}

impl<'a> TaxpayerView<'a> {
    pub(crate) fn new(taxpayer: &'a Taxpayer, contacts: &'a [Contact]) -> Self {
        Self {
            id: taxpayer.id,
            name: &taxpayer.name,
            tin: &taxpayer.tin,
            email: &taxpayer.email,
            nature_of_business: taxpayer.nature_of_business.as_deref(),
            authority_service_id: &taxpayer.service_id,
            authority_business_id: &taxpayer.business_id,
            address: &taxpayer.address,
            verification: taxpayer.verification.status(),
            verification_reason: taxpayer.verification.reason(),
            created_at: plain_time(taxpayer.created_at),
            updated_at: plain_time(taxpayer.updated_at),
            users: contacts.iter().map(ContactPersonView::from).collect(),
        }
    }
}

impl<'a> From<&'a Contact> for ContactPersonView<'a> {
    fn from(contact: &'a Contact) -> Self {
        Self {
            id: contact.id,
            first_name: &contact.first_name,
            last_name: &contact.last_name,
            email: &contact.email,
            phone: contact.phone.as_deref(),
            created_at: plain_time(contact.created_at),
            updated_at: plain_time(contact.updated_at),
        }
    }
}

/// A taxpayer in the list that operators see.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OperatedTaxpayer<'a> {
    id: TaxpayerId,
    integrator_id: IntegratorId,
    name: &'a str,
    tin: &'a str,
    email: &'a str,
    authority_service_id: &'a str,
    authority_business_id: &'a str,
    verification: VerificationStatus,
    verification_reason: Option<&'static str>,
    created_at: String,
    updated_at: String,
}

impl<'a> OperatedTaxpayer<'a> {
    pub(crate) fn new(taxpayer: &'a Taxpayer) -> Self {
        Self {
            id: taxpayer.id,
            integrator_id: taxpayer.integrator_id,
            name: &taxpayer.name,
            tin: &taxpayer.tin,
            email: &taxpayer.email,
            authority_service_id: &taxpayer.service_id,
            authority_business_id: &taxpayer.business_id,
            verification: taxpayer.verification.status(),
            verification_reason: taxpayer.verification.reason(),
            created_at: precise_time(taxpayer.created_at),
            updated_at: precise_time(taxpayer.updated_at),
        }
    }
}

/// A taxpayer with all fields of the business profile, and the settings of its account.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Profile)]
pub(crate) struct ProfileView<'a> {
    #[serde(flatten)]
    taxpayer: TaxpayerView<'a>,
    phone: Option<&'a str>,
    city: Option<&'a str>,
    state: Option<&'a str>,
    country: Option<&'a str>,
    #[serde(flatten)]
    settings: SettingsView<'a>,
    /// Names of the fields that are missing before the profile is complete.
    missing: Vec<&'static str>,
}

/// The settings of the account.
#[derive(Debug, Serialize, ToSchema)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the switches of the API, each on its own"
)]
struct SettingsView<'a> {
    /// The number under which the business is registered, printed on its documents.
    registration_number: Option<&'a str>,
    /// The template of printed documents.
    template: &'static str,
    /// The colours of printed documents; null if the colours of the template are used.
    colours: Option<Colours>,
    /// The picture on printed documents; null if there is none.
    logo: Option<LogoView<'a>>,
    /// True if a document that differs from the stored invoice is refused.
    strict_documents: bool,
    /// True if an invoice number that the authority would refuse is refused at once.
    strict_numbers: bool,
    /// True if an approved invoice is submitted automatically.
    submit_after_approval: bool,
    /// True if a signed invoice is transmitted automatically.
    transmit_after_signing: bool,
}

#[derive(Debug, Serialize, ToSchema)]
struct Colours {
    /// The colour of titles and lines, as `#rrggbb`.
    accent: String,
}

/// The facts about the file of the logo, without the picture itself.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Logo)]
struct LogoView<'a> {
    media_type: &'static str,
    /// The length of the file, in bytes.
    bytes: usize,
    /// The digest of the file, in hexadecimal digits.
    sha256: &'a str,
}

impl<'a> From<&'a AccountSettings> for SettingsView<'a> {
    fn from(settings: &'a AccountSettings) -> Self {
        Self {
            registration_number: settings.registration_number.as_deref(),
            template: settings.template.name(),
            colours: settings.accent.map(|accent| Colours {
                accent: accent.to_string(),
            }),
            logo: settings.logo.as_ref().map(|logo| LogoView {
                media_type: logo.kind.media_type(),
                bytes: logo.bytes,
                sha256: &logo.digest,
            }),
            strict_documents: settings.strict_documents,
            strict_numbers: settings.strict_numbers,
            submit_after_approval: settings.submit_after_approval,
            transmit_after_signing: settings.transmit_after_signing,
        }
    }
}

impl<'a> ProfileView<'a> {
    pub(crate) fn new(taxpayer: &'a Taxpayer, contacts: &'a [Contact]) -> Self {
        Self {
            taxpayer: TaxpayerView::new(taxpayer, contacts),
            phone: taxpayer.phone.as_deref(),
            city: taxpayer.place.city.as_deref(),
            state: taxpayer.place.state.as_deref(),
            country: taxpayer.place.country.as_deref(),
            settings: SettingsView::from(&taxpayer.settings),
            missing: taxpayer.missing_profile_fields(),
        }
    }
}
