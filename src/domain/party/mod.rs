//! Customers and taxpayers. The customer of an invoice is looked up by customer number, and then by tax number. If it
//! is stored already, its stored data is used, with two exceptions: a missing tax number is filled in from the invoice,
//! and a country that the authority does not list is replaced. Otherwise only a person of the account changes it.
//!
//! | File | Content |
//! |---|---|
//! | `email` | the rule for email addresses: the usual form only, without the quoted local parts and comments that RFC 5322 allows |
//! | `look_alike` | detects tax numbers that people cannot tell apart, by the look-alike characters of Unicode (UTS 39) |
//! | `normal_form` | normal forms of texts: two texts that people consider equal have the same normal form |
//! | `settings` | the settings of a taxpayer's account: the look of its documents, and which checks and which automatic steps apply to its invoices |
//! | `verification` | verification of a taxpayer's business id and tax number against the authority |

pub mod email;
pub mod look_alike;
pub mod normal_form;
pub mod settings;
pub mod verification;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::access::payer::Payer;
use crate::domain::kernel::codes::{Category, Subscription};
use crate::domain::kernel::ids::{CustomerId, IntegratorId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::settings::{AccountSettings, AccountSettingsChange, SettingChange};
use crate::domain::party::verification::{Verification, VerificationPolicy};
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::domain::reference::country::country_code;

/// The customer data of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomerDetails {
    pub no: String,
    pub name: String,
    pub email: String,
    pub tin: Option<String>,
    pub business_description: Option<String>,
    pub address: Address,
    #[serde(default)]
    pub telephone: Option<String>,
}

/// A postal address as the caller sent it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Address {
    pub street_name: String,
    pub city: String,
    pub state: Option<String>,
    pub postal_code: String,
    pub country: String,
}

impl CustomerDetails {
    /// Returns the API names of the fields that differ from `before`, without the number, which never changes.
    pub fn changed_fields_since(&self, before: &Self) -> Vec<&'static str> {
        let own = &self.address;
        let other = &before.address;
        [
            ("name", self.name != before.name),
            ("email", self.email != before.email),
            ("tin", self.tin != before.tin),
            (
                "business_description",
                self.business_description != before.business_description,
            ),
            ("telephone", self.telephone != before.telephone),
            ("address_street_name", own.street_name != other.street_name),
            ("address_city", own.city != other.city),
            ("address_state", own.state != other.state),
            ("address_postal_code", own.postal_code != other.postal_code),
            ("address_country", own.country != other.country),
        ]
        .into_iter()
        .filter_map(|(field, is_changed)| is_changed.then_some(field))
        .collect()
    }
}

/// A new contact person of a taxpayer.
#[derive(Debug, Clone)]
pub struct NewContact {
    pub first_name: String,
    pub last_name: String,
    pub email: String,
    pub phone: Option<String>,
    /// The Argon2id hash of the password, as a PHC string. `None` if the person is to choose one through an invitation.
    pub password_hash: Option<String>,
}

/// A stored customer. Its category is the category of the first invoice to this customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer {
    pub id: CustomerId,
    pub category: Category,
    pub details: CustomerDetails,
}

impl Customer {
    /// Sets the tax number if the customer has none. Returns true if the customer changed.
    pub fn fill_tin(&mut self, tin: Option<&String>) -> bool {
        match (&self.details.tin, tin) {
            (None, Some(tin)) => {
                self.details.tin = Some(tin.clone());
                true
            }
            _ => false,
        }
    }

    /// Replaces a country that the authority does not list by this one, if the authority lists it. Otherwise no invoice
    /// to the customer could be submitted. Returns true if the customer changed.
    pub fn replace_unlisted_country(&mut self, country: &str, catalog: &Catalog) -> bool {
        let stored = &mut self.details.address.country;
        let is_unlisted = catalog.has(ReferenceList::Countries, stored) == Some(false);
        let is_better = is_unlisted
            && country_code(catalog, stored).is_none()
            && country_code(catalog, country).is_some();
        if is_better {
            country.clone_into(stored);
        }
        is_better
    }
}

/// The customer as shown on one invoice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvoiceCustomer {
    pub id: CustomerId,
    /// The customer number that was sent with this invoice. It may differ from the number of a customer that was found
    /// by tax number.
    pub external_customer_no: String,
    pub name: String,
    pub tin: Option<String>,
    pub email: String,
}

impl InvoiceCustomer {
    /// True if the invoice shows the name, the email and the tax number that the customer has now.
    pub fn is_up_to_date(&self, details: &CustomerDetails) -> bool {
        self.name == details.name && self.email == details.email && self.tin == details.tin
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taxpayer {
    pub id: TaxpayerId,
    pub integrator_id: IntegratorId,
    pub name: String,
    pub email: String,
    pub tin: String,
    pub phone: Option<String>,
    pub nature_of_business: Option<String>,
    pub service_id: String,
    pub business_id: String,
    pub address: String,
    pub place: BusinessLocation,
    pub settings: AccountSettings,
    pub subscription: Subscription,
    pub verification: Verification,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The location of a taxpayer's business. Create Taxpayer does not ask for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BusinessLocation {
    pub city: Option<String>,
    pub state: Option<String>,
    pub country: Option<String>,
}

impl Taxpayer {
    /// Returns the account to which use by the taxpayer is charged.
    pub fn payer(&self) -> Payer {
        Payer::Integrator(self.integrator_id)
    }

    /// Checks the subscription, the profile and, if the policy requires it, the verification of the taxpayer.
    pub fn check_may_create_invoices(&self, policy: VerificationPolicy) -> Result<(), Refusal> {
        if self.subscription != Subscription::Active {
            return Err(Refusal::SubscriptionInactive);
        }
        let missing = self.missing_profile_fields();
        if !missing.is_empty() {
            return Err(Refusal::ProfileIncomplete(missing));
        }
        self.check_verified(policy)
    }

    /// Checks that the taxpayer is verified, if the policy requires verified taxpayers.
    pub fn check_verified(&self, policy: VerificationPolicy) -> Result<(), Refusal> {
        if self.verification.satisfies(policy) {
            Ok(())
        } else {
            Err(Refusal::TaxpayerUnverified)
        }
    }

    /// Returns the API names of the profile fields that differ from `before`.
    pub fn changed_fields_since(&self, before: &Self) -> Vec<&'static str> {
        [
            ("business_email", self.email != before.email),
            ("name", self.name != before.name),
            ("phone", self.phone != before.phone),
            (
                "nature_of_business",
                self.nature_of_business != before.nature_of_business,
            ),
            ("address", self.address != before.address),
            ("city", self.place.city != before.place.city),
            ("state", self.place.state != before.place.state),
            ("country", self.place.country != before.place.country),
        ]
        .into_iter()
        .filter_map(|(field, is_changed)| is_changed.then_some(field))
        .chain(self.settings.changed_fields_since(&before.settings))
        .collect()
    }

    /// Returns the API names of the fields that the profile lacks to be complete (spec.md, "Taxpayer API").
    pub fn missing_profile_fields(&self) -> Vec<&'static str> {
        let absent = |field: &Option<String>| field.as_deref().is_none_or(str::is_empty);
        [
            ("city", absent(&self.place.city)),
            ("state", absent(&self.place.state)),
            ("country", absent(&self.place.country)),
            ("business_email", self.email.is_empty()),
            ("authority_business_id", self.business_id.is_empty()),
            ("authority_service_id", self.service_id.is_empty()),
        ]
        .into_iter()
        .filter_map(|(field, missing)| missing.then_some(field))
        .collect()
    }
}

/// A contact person of a taxpayer. The email address is the login of this person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    pub id: i64,
    pub first_name: String,
    pub last_name: String,
    pub email: String,
    pub phone: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A partial change of a business profile. A field that is `None` or `Keep` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileChange {
    pub city: Option<String>,
    pub state: Option<String>,
    pub country: Option<String>,
    pub email: Option<String>,
    pub name: Option<String>,
    pub phone: SettingChange<String>,
    pub nature_of_business: SettingChange<String>,
    pub address: Option<String>,
    pub settings: AccountSettingsChange,
}

impl ProfileChange {
    pub fn apply(self, taxpayer: &mut Taxpayer) {
        let set = |field: &mut String, value: Option<String>| {
            if let Some(value) = value {
                *field = value;
            }
        };
        set(&mut taxpayer.email, self.email);
        set(&mut taxpayer.name, self.name);
        set(&mut taxpayer.address, self.address);
        taxpayer.place.city = self.city.or(taxpayer.place.city.take());
        taxpayer.place.state = self.state.or(taxpayer.place.state.take());
        taxpayer.place.country = self.country.or(taxpayer.place.country.take());
        self.phone.apply(&mut taxpayer.phone);
        self.nature_of_business
            .apply(&mut taxpayer.nature_of_business);
        self.settings.apply(&mut taxpayer.settings);
    }
}

#[cfg(test)]
impl Taxpayer {
    pub(crate) fn sample(id: TaxpayerId, integrator_id: IntegratorId) -> Self {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        Self {
            id,
            integrator_id,
            name: "Dangoyaro Mills".into(),
            email: "books@example.com".into(),
            tin: "12345678-0001".into(),
            phone: None,
            nature_of_business: Some("Milling".into()),
            service_id: "94AD90FB".into(),
            business_id: "bb99420d-d6bb-422c-b371-b9f6d6009aae".into(),
            address: "1 Marina".into(),
            place: BusinessLocation {
                city: Some("Lagos".into()),
                state: None,
                country: None,
            },
            settings: AccountSettings::default(),
            subscription: Subscription::Active,
            verification: Verification::Pending,
            created_at: now,
            updated_at: now,
        }
    }
}
