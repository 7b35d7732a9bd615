//! Tests of rotating the secret that signs the webhooks of a taxpayer.

use std::time::Duration;

use futures_util::future::join_all;
use rand::SeedableRng;
use rand::rngs::StdRng;
use secrecy::ExposeSecret;
use timing::clock::{Clock, SystemClock};
use webhook_client::SigningSecret;

use super::{BY, ID, TestTaxpayers, webhook};
use crate::actors::taxpayer::commands::RotateSecret;
use crate::store::testing::stores;
use crate::store::webhooks::{self, LoadedEndpoint};

#[actix_rt::test]
async fn secrets_replaced_within_a_day_still_sign() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let secret = |n: u8| SigningSecret::generate(&mut StdRng::from_seed([n; 32]));
        let before = app.taxpayers.send(ID, webhook()).await.unwrap();
        for n in [1, 2, 3] {
            app.taxpayers
                .send(
                    ID,
                    RotateSecret {
                        endpoint: ID.into(),
                        secret: secret(n),
                        by: BY,
                    },
                )
                .await
                .unwrap();
        }
        let recipient = webhooks::load_endpoint(&app.test.store, ID.into(), SystemClock.now())
            .await
            .unwrap();
        let LoadedEndpoint {
            endpoint, secrets, ..
        } = recipient.unwrap();
        assert!(
            endpoint.updated_at > before.updated_at,
            "attempts that began before say nothing about the new secret"
        );
        let expected = [3, 2, 1].map(|n| secret(n).text().expose_secret().to_owned());
        assert_eq!(secrets[..3], expected);
        assert_eq!(
            secrets.len(),
            4,
            "the first one, generated with the endpoint, signs too"
        );
        let later = SystemClock
            .now()
            .saturating_add(Duration::from_hours(25))
            .unwrap();
        let recipient = webhooks::load_endpoint(&app.test.store, ID.into(), later)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(recipient.secrets, expected[..1]);
        app.close().await;
    }
}

#[actix_rt::test]
async fn concurrently_rotated_secrets_all_sign() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        app.taxpayers.send(ID, webhook()).await.unwrap();
        let secret = |n: u8| SigningSecret::generate_pair(&mut StdRng::from_seed([n; 32]));
        let rotations = (0..6).map(|n| {
            app.taxpayers.send(
                ID,
                RotateSecret {
                    endpoint: ID.into(),
                    secret: secret(n),
                    by: BY,
                },
            )
        });
        assert!(
            join_all(rotations)
                .await
                .into_iter()
                .all(|done| done.is_ok())
        );
        let found = webhooks::load_endpoint(&app.test.store, ID.into(), SystemClock.now())
            .await
            .unwrap();
        let LoadedEndpoint {
            endpoint, secrets, ..
        } = found.unwrap();
        for n in 0..6 {
            assert!(
                secrets.contains(&secret(n).text().expose_secret().to_owned()),
                "{n}"
            );
        }
        assert_eq!(
            endpoint.public_key,
            SigningSecret::parse(&secrets[0]).unwrap().public_key()
        );
        app.close().await;
    }
}
