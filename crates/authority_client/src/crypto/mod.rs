//! Key files of the authority, the QR codes made with them, and the decryption of downloads.

pub(super) mod download;
pub(super) mod keys;
mod qr;
