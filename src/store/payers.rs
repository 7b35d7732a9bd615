//! The integrators of the taxpayers, kept in memory after the first read. A taxpayer never changes its integrator, so
//! an entry is always valid. With these entries, limits by integrator need no query for each request.

use dashmap::DashMap;

use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};

/// The maximum number of entries. At this size they take about 4 MB.
const TAXPAYERS_MAX: usize = 131_072;

#[derive(Debug, Default)]
pub(crate) struct PayerCache(DashMap<TaxpayerId, IntegratorId>);

impl PayerCache {
    pub(crate) fn find(&self, taxpayer: TaxpayerId) -> Option<IntegratorId> {
        self.0.get(&taxpayer).map(|payer| *payer)
    }

    pub(crate) fn keep(&self, taxpayer: TaxpayerId, payer: IntegratorId) {
        if self.0.len() >= TAXPAYERS_MAX {
            self.0.clear();
        }
        self.0.insert(taxpayer, payer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_taxpayers_are_kept_than_the_bound() {
        let payers = PayerCache::default();
        for id in 0..i64::try_from(TAXPAYERS_MAX).unwrap() + 10 {
            payers.keep(TaxpayerId(id), IntegratorId(id));
        }
        assert_eq!(payers.0.len(), 10);
    }
}
