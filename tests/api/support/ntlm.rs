//! The server's side of NTLMv2, written down from MS-NLMP alone: a challenge, and whether a response proves a
//! password over it.

use hmac::{Hmac, KeyInit, Mac};
use md4::{Digest, Md4};
use md5::Md5;

const MAGIC: &[u8] = b"NTLMSSP\0";

/// The account that may sign in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    pub(crate) user: &'static str,
    pub(crate) domain: &'static str,
    pub(crate) password: &'static str,
}

pub(crate) fn is_opening(message: &[u8]) -> bool {
    message.starts_with(MAGIC) && message[8..12] == 1_u32.to_le_bytes()
}

/// The second message (2.2.1.2): Unicode, extended session security, and the names of the server.
pub(crate) fn challenge(of_server: [u8; 8]) -> Vec<u8> {
    let name = wide("ERP");
    let mut target = Vec::new();
    for id in [2_u16, 1] {
        target.extend(id.to_le_bytes());
        target.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        target.extend(&name);
    }
    // The moment of the server, and the end.
    target.extend([7, 0, 8, 0]);
    target.extend(134_000_000_000_000_000_u64.to_le_bytes());
    target.extend([0; 4]);
    let mut message = MAGIC.to_vec();
    message.extend(2_u32.to_le_bytes());
    message.extend(field(name.len(), 56));
    message.extend(0xa288_8205_u32.to_le_bytes());
    message.extend(of_server);
    message.extend([0; 8]);
    message.extend(field(target.len(), 56 + name.len()));
    message.extend([10, 0, 0, 0, 0, 0, 0, 15]);
    message.extend(name);
    message.extend(target);
    message
}

/// Returns whether the third message (2.2.1.3) is from this account and proves its password (3.3.2).
pub(crate) fn is_proof(message: &[u8], of_server: [u8; 8], account: Account) -> bool {
    if !message.starts_with(MAGIC) || message[8..12] != 3_u32.to_le_bytes() {
        return false;
    }
    let names = (part(message, 28), part(message, 36));
    if names
        != (
            wide(account.domain).as_slice(),
            wide(account.user).as_slice(),
        )
    {
        return false;
    }
    let hash = Md4::digest(wide(account.password));
    let key = keyed(
        &hash,
        &[&wide(&account.user.to_uppercase()), &wide(account.domain)],
    );
    let (proof, blob) = part(message, 20).split_at(16);
    proof == keyed(&key, &[&of_server, blob])
}

fn field(length: usize, at: usize) -> Vec<u8> {
    let length = u16::try_from(length).unwrap().to_le_bytes();
    [
        length.as_slice(),
        &length,
        &u32::try_from(at).unwrap().to_le_bytes(),
    ]
    .concat()
}

fn part(message: &[u8], at: usize) -> &[u8] {
    let length = usize::from(u16::from_le_bytes([message[at], message[at + 1]]));
    let from = u32::from_le_bytes(message[at + 4..at + 8].try_into().unwrap()) as usize;
    &message[from..from + length]
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn keyed(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Md5>::new_from_slice(key).unwrap();
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}
