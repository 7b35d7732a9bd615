//! Tests of the import profile, to which several pages may add answers at the same moment.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;

use super::{ID, TestTaxpayers};
use crate::actors::taxpayer::commands::{AddImportAnswers, SetImportProfile};
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::domain::import::answers::{CustomerAnswers, ImportAnswers};
use crate::domain::import::profile::{ImportProfile, PROFILE_BYTES_MAX};
use crate::domain::kernel::refusal::Refusal;
use crate::store::invoices::import_profiles;
use crate::store::testing::stores;

fn email(length: usize) -> BTreeMap<String, String> {
    BTreeMap::from([("email".to_owned(), "x".repeat(length))])
}

/// Returns a command that adds an answer about the customer with this number.
fn answer(no: usize) -> AddImportAnswers {
    AddImportAnswers(ImportAnswers {
        defaults: BTreeMap::new(),
        customers: vec![CustomerAnswers {
            key: no.to_string(),
            name: String::new(),
            values: email(1),
        }],
    })
}

#[actix_rt::test]
async fn answers_that_come_at_the_same_moment_are_all_kept() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        for numbers in [0..1, 1..20] {
            let sent = numbers.map(|no| app.taxpayers.send(ID, answer(no)));
            for outcome in join_all(sent).await {
                outcome.unwrap();
            }
        }
        let profile = import_profiles::owned_by(app.test.store.reader(), ID);
        let found: BTreeSet<_> = profile.await.unwrap().customers.into_keys().collect();
        let expected: BTreeSet<_> = (0..20).map(|no| no.to_string()).collect();
        assert_eq!(found, expected);
        app.close().await;
    }
}

#[actix_rt::test]
async fn answers_that_make_the_profile_too_large_are_refused() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        for (length, is_kept) in [(1, true), (PROFILE_BYTES_MAX, false)] {
            let profile = ImportProfile {
                defaults: email(length),
                ..ImportProfile::default()
            };
            let set = SetImportProfile(profile.clone());
            app.taxpayers.send(ID, set).await.unwrap();
            let added = app.taxpayers.send(ID, answer(1)).await;
            let is_refused = matches!(added, Err(TaxpayerError::Refused(Refusal::Invalid(_))));
            assert_eq!((added.is_ok(), is_refused), (is_kept, !is_kept));
            let stored = import_profiles::owned_by(app.test.store.reader(), ID);
            assert_eq!(stored.await.unwrap() != profile, is_kept);
        }
        app.close().await;
    }
}
