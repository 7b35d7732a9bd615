//! Businesses by id and parties by tax number. The first call that names one adds it, so no setup is needed.

use serde::{Deserialize, Serialize};

use super::Ledger;

/// A supplier or customer in the authority's directory of taxpayers.
#[derive(Debug, Clone)]
pub(crate) struct Party {
    pub(crate) tin: String,
    pub(crate) name: String,
    pub(crate) online: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Business {
    pub(crate) id: String,
    pub(crate) tin: Option<String>,
    pub(crate) service_id: Option<ServiceId>,
}

/// The service id of a business: the middle segment of its IRNs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServiceId {
    /// Set over the control interface. Every IRN of the business must contain this service id.
    Enrolled(String),
    /// Seen in the first IRN of the business. Later IRNs may contain another service id.
    Seen(String),
}

impl ServiceId {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Enrolled(text) | Self::Seen(text) => text,
        }
    }
}

/// The body of `POST /sandbox/businesses`: `business_id`, `tin` or both. An absent member keeps the stored value.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartyEnrolment {
    pub business_id: Option<String>,
    pub tin: Option<String>,
    pub name: Option<String>,
    pub service_id: Option<String>,
    pub online: Option<bool>,
}

impl Ledger {
    pub(crate) fn enrol(&mut self, enrolment: &PartyEnrolment) -> Result<(), &'static str> {
        let mut tin = enrolment.tin.clone();
        if let Some(id) = &enrolment.business_id {
            let business = self.business(id);
            business.tin = tin.take().or_else(|| business.tin.take());
            let service_id = enrolment.service_id.clone().map(ServiceId::Enrolled);
            business.service_id = service_id.or_else(|| business.service_id.take());
            tin.clone_from(&business.tin);
        }
        match tin {
            Some(tin) => self.change_party(&tin, enrolment),
            None if enrolment.business_id.is_none() => {
                return Err("business_id or tin is required");
            }
            None if enrolment.online.is_some() || enrolment.name.is_some() => {
                return Err("tin is required: this business has not used one yet");
            }
            None => {}
        }
        Ok(())
    }

    fn change_party(&mut self, tin: &str, enrolment: &PartyEnrolment) {
        let party = self.party(tin, "");
        if let Some(name) = &enrolment.name {
            party.name.clone_from(name);
        }
        party.online = enrolment.online.unwrap_or(party.online);
    }

    /// Returns the business with this id. Enrols the business if its id is unknown.
    pub(crate) fn business(&mut self, id: &str) -> &mut Business {
        let key = id.to_lowercase();
        self.businesses
            .entry(key.clone())
            .or_insert_with(|| Business {
                id: key,
                tin: None,
                service_id: None,
            })
    }

    /// Returns the party with this tax number. Adds it as online if it is unknown. Sets `name` if the party has none.
    pub(crate) fn party(&mut self, tin: &str, name: &str) -> &mut Party {
        let party = self.parties.entry(tin.to_owned()).or_insert_with(|| Party {
            tin: tin.to_owned(),
            name: name.to_owned(),
            online: true,
        });
        if party.name.is_empty() {
            name.clone_into(&mut party.name);
        }
        party
    }
}
