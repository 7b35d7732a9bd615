//! The taxpayers that operators have paused, as this process last read them from the database. Commands check this list
//! in memory, so the check needs no query.

use std::sync::{Arc, PoisonError, RwLock};

use crate::domain::kernel::audit::ActorWithName;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::taxpayer_pause::{TaxpayerPause, is_held_back};

/// The paused taxpayers, kept in memory. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct PausedTaxpayers(Arc<RwLock<Arc<Vec<TaxpayerPause>>>>);

impl PausedTaxpayers {
    /// Replaces the list.
    pub fn set(&self, pauses: Vec<TaxpayerPause>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pauses);
    }

    pub fn list(&self) -> Arc<Vec<TaxpayerPause>> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn find(&self, taxpayer: TaxpayerId) -> Option<TaxpayerPause> {
        let list = self.list();
        let pause = list.iter().find(|pause| pause.taxpayer_id == taxpayer);
        pause.cloned()
    }

    /// True if the taxpayer is paused, and commands of this actor are refused during the pause.
    pub(super) fn is_held_back(
        &self,
        taxpayer: TaxpayerId,
        acting: Option<&ActorWithName>,
    ) -> bool {
        let list = self.list();
        list.iter().any(|pause| pause.taxpayer_id == taxpayer)
            && acting.is_some_and(|acting| is_held_back(acting.actor))
    }
}
