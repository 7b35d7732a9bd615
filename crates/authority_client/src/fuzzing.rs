//! Readers of the authority's answers, for the fuzz targets in `fuzz/`. Compiled for fuzzing and for tests only.

use serde::de::DeserializeOwned;

use crate::crypto::download::EncryptedDocument;
use crate::crypto::keys::CryptoKeys;
use crate::operation::Operation;
use crate::transport::answer::AuthorityAnswer;
use crate::transport::classify;
use crate::transport::exchange::RawResponse;
use crate::wire::{Confirmation, Entity, InvoiceInTransit, Parties, SearchPage};

/// Parses the bytes as a key file and as an answer to each operation.
pub fn read_answer(text: &[u8]) {
    drop(CryptoKeys::parse(text));
    let Some(answer) = AuthorityAnswer::parse(text) else {
        return;
    };
    assert!(
        !answer.sentence(400).is_empty(),
        "there is always something to show"
    );
    let _ = answer.mentions_field();
    drop((
        InvoiceInTransit::read_list(&answer.data),
        Parties::read(&answer.data),
    ));
    read_data_as::<Confirmation>(&answer);
    read_data_as::<SearchPage>(&answer);
    read_data_as::<Entity>(&answer);
    if let Ok(document) = serde_json::from_value::<EncryptedDocument>(answer.data) {
        drop(document.decrypt(&"0a1b2c3d-0000-4000-8000-000000000000".into()));
    }
    for operation in Operation::ALL {
        for status in [200, 202, 400, 401, 404, 409, 422, 429, 500, 503] {
            drop(classify::classify_response(
                operation,
                &RawResponse {
                    status,
                    retry_after: None,
                    date: None,
                    body: text.to_vec(),
                },
            ));
        }
    }
}

fn read_data_as<T: DeserializeOwned>(answer: &AuthorityAnswer) {
    drop(serde_json::from_value::<T>(answer.data.clone()));
}
