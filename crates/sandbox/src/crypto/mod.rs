//! The cryptography of the authority: the key pair for QR codes, and the cipher of downloaded documents.

mod download;
mod keys;

pub(crate) use download::encrypt_document;
pub(crate) use keys::CryptoKeys;
