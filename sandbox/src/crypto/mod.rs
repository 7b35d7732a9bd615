//! The two secrets of the authority: the key pair behind QR codes and the cipher of downloads.

mod download;
mod keys;

pub(crate) use download::seal;
pub(crate) use keys::CryptoKeys;
