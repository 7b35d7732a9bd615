//! The causes for which documents of a file were refused, with the number of documents and the sum of their amounts.

use std::collections::BTreeMap;

use crate::domain::import::record::{ImportFault, ImportedDocument, RefusalCause};
use crate::domain::import::source::mask_indexes;
use crate::domain::money::Amount;

/// The causes of refusals, by rule, field and currency.
#[derive(Default)]
pub(super) struct RefusalCauses(BTreeMap<(String, String, Option<String>), RefusalCause>);

impl RefusalCauses {
    /// Counts a document once for each rule that it breaks at a field.
    pub(super) fn count_document(&mut self, document: &ImportedDocument, errors: &[ImportFault]) {
        let mut broken: Vec<_> = errors
            .iter()
            .map(|error| (error.rule.clone(), mask_indexes(&error.field)))
            .collect();
        broken.sort();
        broken.dedup();
        for (rule, field) in broken {
            let key = (rule.clone(), field.clone(), document.currency.clone());
            let cause = self.0.entry(key).or_insert_with(|| RefusalCause {
                rule,
                field,
                count: 0,
                amount: Amount::ZERO,
                currency: document.currency.clone(),
                unread: 0,
            });
            cause.count += 1;
            cause.unread += usize::from(document.amount.is_none());
            let amount = document.amount.unwrap_or_default();
            let sum = cause.amount.plus(amount);
            cause.amount = sum.unwrap_or(cause.amount);
        }
    }

    /// Returns the causes with the most documents first.
    pub(super) fn into_sorted(self) -> Vec<RefusalCause> {
        let mut causes: Vec<_> = self.0.into_values().collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
        causes
    }
}
