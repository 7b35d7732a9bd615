//! The operations of the authority, and the effect that a failed call may have had.

/// One kind of call to the authority. Each operation has its own breaker, limit and counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    ValidateIrn,
    Validate,
    Sign,
    Confirm,
    UpdatePayment,
    SystemHealth,
    Lookup,
    Transmit,
    Acknowledge,
    Pull,
    Search,
    Download,
    Report,
    Resource,
    Entity,
}

/// The kind of effect that a failed call may have had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EffectKind {
    /// Only reads, so it has no effect.
    Read,
    /// Asks whether an IRN is still free, and changes nothing. The authority refuses this call for an IRN that is
    /// signed.
    Claim,
    /// Changes something at the authority, perhaps even if no answer arrived.
    Effect,
}

impl Operation {
    /// All operations. `operation as usize` is the index of an operation in this list.
    pub const ALL: [Self; 15] = [
        Self::ValidateIrn,
        Self::Validate,
        Self::Sign,
        Self::Confirm,
        Self::UpdatePayment,
        Self::SystemHealth,
        Self::Lookup,
        Self::Transmit,
        Self::Acknowledge,
        Self::Pull,
        Self::Search,
        Self::Download,
        Self::Report,
        Self::Resource,
        Self::Entity,
    ];

    /// The operation's name in logs, metrics and operators' pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::ValidateIrn => "validate_irn",
            Self::Validate => "validate",
            Self::Sign => "sign",
            Self::Confirm => "confirm",
            Self::UpdatePayment => "update_payment",
            Self::SystemHealth => "system_health",
            Self::Lookup => "lookup",
            Self::Transmit => "transmit",
            Self::Acknowledge => "acknowledge",
            Self::Pull => "pull",
            Self::Search => "search",
            Self::Download => "download",
            Self::Report => "report",
            Self::Resource => "resource",
            Self::Entity => "entity",
        }
    }

    pub(crate) fn effect_kind(self) -> EffectKind {
        match self {
            Self::Sign
            | Self::UpdatePayment
            | Self::Transmit
            | Self::Acknowledge
            | Self::Report => EffectKind::Effect,
            Self::ValidateIrn => EffectKind::Claim,
            _ => EffectKind::Read,
        }
    }
}

/// The eleven reference lists, named as in the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceList {
    InvoiceTypes,
    PaymentMeans,
    TaxCategories,
    Currencies,
    VatExemptions,
    ProductCodes,
    ServiceCodes,
    InvoiceQuantityCodes,
    Lgas,
    States,
    Countries,
}

impl ResourceList {
    pub const ALL: [Self; 11] = [
        Self::InvoiceTypes,
        Self::PaymentMeans,
        Self::TaxCategories,
        Self::Currencies,
        Self::VatExemptions,
        Self::ProductCodes,
        Self::ServiceCodes,
        Self::InvoiceQuantityCodes,
        Self::Lgas,
        Self::States,
        Self::Countries,
    ];

    /// The list's name in our paths, such as `/v1/core/resources/{name}`.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvoiceTypes => "invoice-types",
            Self::PaymentMeans => "payment-means",
            Self::TaxCategories => "tax-categories",
            Self::Currencies => "currencies",
            Self::VatExemptions => "vat-exemptions",
            Self::ProductCodes => "product-codes",
            Self::ServiceCodes => "service-codes",
            Self::InvoiceQuantityCodes => "invoice-quantity-codes",
            Self::Lgas => "lgas",
            Self::States => "states",
            Self::Countries => "countries",
        }
    }

    /// Returns the list with this name in our paths.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|list| list.name() == name)
    }

    /// The list's name in the authority's paths. Two lists have another name there than in ours.
    pub fn upstream_name(self) -> &'static str {
        match self {
            Self::ProductCodes => "hs-codes",
            Self::ServiceCodes => "services-codes",
            other => other.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_at_the_index_of_its_discriminant() {
        for (index, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, index);
        }
    }

    #[test]
    fn two_lists_have_another_name_upstream() {
        let differing: Vec<_> = ResourceList::ALL
            .into_iter()
            .filter(|list| list.name() != list.upstream_name())
            .collect();
        assert_eq!(
            differing,
            [ResourceList::ProductCodes, ResourceList::ServiceCodes]
        );
        assert_eq!(ResourceList::from_name("lgas"), Some(ResourceList::Lgas));
        assert_eq!(ResourceList::from_name("hs-codes"), None);
    }
}
