//! The client's messages of NTLM (MS-NLMP): NEGOTIATE, and AUTHENTICATE with an `NTLMv2` response to the server's
//! CHALLENGE. Deliberately absent: `NTLMv1`, anonymous sign-in, and signing or sealing of later messages.
//!
//! A challenge is untrusted, so each offset and length in it is checked. Section numbers are those of MS-NLMP.

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use md4::{Digest, Md4};
use md5::Md5;
use secrecy::ExposeSecret;

use super::ntlm::NtlmLogin;

const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";

/// `NegotiateFlags` (MS-NLMP, section 2.2.2.5).
const NEGOTIATE_UNICODE: u32 = 0x0000_0001;
const NEGOTIATE_REQUEST_TARGET: u32 = 0x0000_0004;
const NEGOTIATE_NTLM: u32 = 0x0000_0200;
const NEGOTIATE_ALWAYS_SIGN: u32 = 0x0000_8000;
const NEGOTIATE_EXTENDED_SESSION_SECURITY: u32 = 0x0008_0000;
const NEGOTIATE_TARGET_INFO: u32 = 0x0080_0000;
const OFFERED_FLAGS: u32 = NEGOTIATE_UNICODE
    | NEGOTIATE_REQUEST_TARGET
    | NEGOTIATE_NTLM
    | NEGOTIATE_ALWAYS_SIGN
    | NEGOTIATE_EXTENDED_SESSION_SECURITY;

/// The ids of attributes of the target information (MS-NLMP, section 2.2.2.1).
const AV_EOL: u16 = 0;
const AV_FLAGS: u16 = 6;
const AV_TIMESTAMP: u16 = 7;
/// The bit of `MsvAvFlags` for a message that has an integrity code (MIC).
const AV_FLAGS_HAS_MIC: u32 = 2;

/// The lengths of a CHALLENGE and of our AUTHENTICATE without their payload.
const CHALLENGE_HEAD_BYTES: usize = 48;
const AUTHENTICATE_HEAD_BYTES: usize = 88;
const MIC_RANGE: std::ops::Range<usize> = 72..88;

/// The time from 1601, where `FILETIME` begins, to 1970, in units of 100 ns.
const TICKS_TO_1970: i128 = 116_444_736_000_000_000;

type Digest16 = [u8; 16];

/// Makes each sign-in different: a random nonce, and the current time for a server that does not send its own.
#[derive(Debug, Clone, Copy)]
pub struct NonceAndTime {
    pub nonce: [u8; 8],
    pub now: Timestamp,
}

/// Writes the first message (NEGOTIATE), which contains the flags that this client offers.
pub(super) fn negotiate_message() -> Vec<u8> {
    let mut message = SIGNATURE.to_vec();
    message.extend(1_u32.to_le_bytes());
    message.extend(OFFERED_FLAGS.to_le_bytes());
    // The fields for domain and workstation are empty.
    message.extend([0; 16]);
    message
}

/// The parts of the second message (CHALLENGE) that are needed for the third message.
#[derive(Debug, PartialEq, Eq)]
struct Challenge<'m> {
    flags: u32,
    nonce: [u8; 8],
    /// The target information: the id and the value of each attribute, without the terminator. No id occurs twice.
    attributes: Vec<(u16, &'m [u8])>,
}

impl<'m> Challenge<'m> {
    fn parse(message: &'m [u8]) -> Option<Self> {
        let is_challenge =
            message.starts_with(SIGNATURE) && array_at(message, 8)? == 2_u32.to_le_bytes();
        let flags = u32::from_le_bytes(array_at(message, 20)?);
        if !is_challenge || flags & NEGOTIATE_UNICODE == 0 || message.len() < CHALLENGE_HEAD_BYTES {
            return None;
        }
        let name = payload_range(message, 12)?;
        let info = payload_range(message, 40)?;
        if overlaps(&name, &info) {
            return None;
        }
        let attributes = if flags & NEGOTIATE_TARGET_INFO == 0 {
            Vec::new()
        } else {
            parse_attributes(message.get(info)?)?
        };
        Some(Self {
            flags,
            nonce: array_at(message, 24)?,
            attributes,
        })
    }

    fn attribute_value(&self, attribute: u16) -> Option<&'m [u8]> {
        self.attributes
            .iter()
            .find(|(id, _)| *id == attribute)
            .map(|(_, value)| *value)
    }

    /// Returns the server's time, if the challenge contains it. Our AUTHENTICATE then needs an integrity code.
    fn timestamp(&self) -> Option<[u8; 8]> {
        self.attribute_value(AV_TIMESTAMP)?.try_into().ok()
    }

    /// Copies the target information of the challenge. `has_mic` adds the flag for an integrity code.
    fn target_info(&self, has_mic: bool) -> Option<Vec<u8>> {
        let mut info = Vec::new();
        let others = self
            .attributes
            .iter()
            .filter(|(id, _)| !has_mic || *id != AV_FLAGS);
        for (id, value) in others {
            append_attribute(&mut info, *id, value)?;
        }
        if has_mic {
            let before = self
                .attribute_value(AV_FLAGS)
                .and_then(|value| value.try_into().ok())
                .map_or(0, u32::from_le_bytes);
            append_attribute(
                &mut info,
                AV_FLAGS,
                &(before | AV_FLAGS_HAS_MIC).to_le_bytes(),
            )?;
        }
        append_attribute(&mut info, AV_EOL, &[])?;
        Some(info)
    }
}

/// Writes the AUTHENTICATE message, which proves that we know the password (section 3.3.2). Returns `None` if this
/// client cannot answer the challenge.
pub(super) fn authenticate_message(
    opening: &[u8],
    challenge: &[u8],
    login: NtlmLogin<'_>,
    nonce_and_time: NonceAndTime,
) -> Option<Vec<u8>> {
    let asked = Challenge::parse(challenge)?;
    let timestamp = asked.timestamp();
    let key = response_key(login)?;
    let info = asked.target_info(timestamp.is_some())?;
    let time = timestamp.unwrap_or_else(|| file_time(nonce_and_time.now));
    let blob = client_blob(time, nonce_and_time.nonce, &info);
    // The specification calls this value `NTProofStr`.
    let proof = keyed_digest(&key, &[&asked.nonce, &blob])?;
    let lm = match timestamp {
        Some(_) => vec![0; 24],
        None => [
            keyed_digest(&key, &[&asked.nonce, &nonce_and_time.nonce])?.as_slice(),
            &nonce_and_time.nonce,
        ]
        .concat(),
    };
    let nt = [proof.as_slice(), &blob].concat();
    let flags = asked.flags & (OFFERED_FLAGS | NEGOTIATE_TARGET_INFO);
    let mut message = build_message(
        flags,
        [&lm, &nt, &utf16_le(login.domain), &utf16_le(login.username)],
    )?;
    if timestamp.is_some() {
        let session_key = keyed_digest(&key, &[&proof])?;
        let code = keyed_digest(&session_key, &[opening, challenge, &message])?;
        message.get_mut(MIC_RANGE)?.copy_from_slice(&code);
    }
    Some(message)
}

/// Writes an AUTHENTICATE (section 2.2.1.3). `parts`: LM response, NT response, domain and user.
fn build_message(flags: u32, parts: [&[u8]; 4]) -> Option<Vec<u8>> {
    let mut head = SIGNATURE.to_vec();
    head.extend(3_u32.to_le_bytes());
    let mut payload: Vec<u8> = Vec::new();
    for part in parts.into_iter().chain([&[][..], &[]]) {
        let length = u16::try_from(part.len()).ok()?.to_le_bytes();
        let at = u32::try_from(AUTHENTICATE_HEAD_BYTES + payload.len()).ok()?;
        head.extend([length, length].concat());
        head.extend(at.to_le_bytes());
        payload.extend(part);
    }
    head.extend(flags.to_le_bytes());
    head.resize(AUTHENTICATE_HEAD_BYTES, 0);
    head.extend(payload);
    Some(head)
}

/// Derives the key from the password, the user and the domain (`NTOWFv2` of the specification).
fn response_key(login: NtlmLogin<'_>) -> Option<Digest16> {
    let hash = Md4::digest(utf16_le(login.password.expose_secret()));
    let user: String = login.username.chars().map(windows_upper_case).collect();
    keyed_digest(&hash, &[&utf16_le(&user), &utf16_le(login.domain)])
}

/// Converts a letter to upper case as Windows does: a letter whose upper case is more than one letter stays as it is.
fn windows_upper_case(letter: char) -> char {
    let mut capitals = letter.to_uppercase();
    match (capitals.next(), capitals.next()) {
        (Some(capital), None) => capital,
        _ => letter,
    }
}

/// Writes `NTLMv2_CLIENT_CHALLENGE` (section 2.2.2.7), which section 3.3.2 calls `temp`.
fn client_blob(time: [u8; 8], nonce: [u8; 8], info: &[u8]) -> Vec<u8> {
    [
        &[1, 1, 0, 0, 0, 0, 0, 0],
        time.as_slice(),
        &nonce,
        &[0; 4],
        info,
        &[0; 4],
    ]
    .concat()
}

fn file_time(now: Timestamp) -> [u8; 8] {
    let ticks = now.as_nanosecond() / 100 + TICKS_TO_1970;
    u64::try_from(ticks).unwrap_or(0).to_le_bytes()
}

/// Computes the HMAC-MD5 of the parts. Never `None`, because HMAC accepts keys of any length.
fn keyed_digest(key: &[u8], parts: &[&[u8]]) -> Option<Digest16> {
    let mut mac = Hmac::<Md5>::new_from_slice(key).ok()?;
    for part in parts {
        mac.update(part);
    }
    Some(mac.finalize().into_bytes().into())
}

fn utf16_le(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Parses the attributes of the target information. Returns `None` without a terminator or with a repeated attribute.
fn parse_attributes(mut info: &[u8]) -> Option<Vec<(u16, &[u8])>> {
    let mut found: Vec<(u16, &[u8])> = Vec::new();
    loop {
        let id = u16::from_le_bytes(array_at(info, 0)?);
        let length = usize::from(u16::from_le_bytes(array_at(info, 2)?));
        let value = info.get(4..4 + length)?;
        info = info.get(4 + length..)?;
        match id {
            AV_EOL => return (length == 0).then_some(found),
            AV_TIMESTAMP if length != 8 => return None,
            AV_FLAGS if length != 4 => return None,
            _ if found.iter().any(|(known, _)| *known == id) => return None,
            _ => found.push((id, value)),
        }
    }
}

fn append_attribute(info: &mut Vec<u8>, id: u16, value: &[u8]) -> Option<()> {
    info.extend(id.to_le_bytes());
    info.extend(u16::try_from(value.len()).ok()?.to_le_bytes());
    info.extend(value);
    Some(())
}

/// Reads a length and an offset at `field` and returns that range; `None` if it is not inside the payload.
fn payload_range(message: &[u8], field: usize) -> Option<std::ops::Range<usize>> {
    let length = usize::from(u16::from_le_bytes(array_at(message, field)?));
    let from = usize::try_from(u32::from_le_bytes(array_at(message, field + 4)?)).ok()?;
    if length == 0 {
        return Some(0..0);
    }
    let to = from.checked_add(length)?;
    (from >= CHALLENGE_HEAD_BYTES && to <= message.len()).then_some(from..to)
}

fn overlaps(one: &std::ops::Range<usize>, other: &std::ops::Range<usize>) -> bool {
    !one.is_empty() && !other.is_empty() && one.start < other.end && other.start < one.end
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use secrecy::SecretString;

    use super::*;

    // Test values of MS-NLMP: those of section 4.2.1, and the challenge of section 4.2.4.
    const SERVER_NONCE: [u8; 8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
    const FRESH: NonceAndTime = NonceAndTime {
        nonce: [0xaa; 8],
        now: Timestamp::UNIX_EPOCH,
    };
    const FLAGS: u32 = 0xe28a_8233;
    const INFO: &str = "02000c0044006f006d00610069006e0001000c0053006500720076006500720000000000";

    fn password() -> SecretString {
        "Password".to_owned().into()
    }

    fn login(password: &SecretString) -> NtlmLogin<'_> {
        NtlmLogin {
            username: "User",
            password,
            domain: "Domain",
        }
    }

    fn challenge_with(flags: u32, info: &[u8]) -> Vec<u8> {
        let name = utf16_le("Server");
        let field = |length: usize, at: usize| {
            let length = u16::try_from(length).unwrap().to_le_bytes();
            [
                length.as_slice(),
                &length,
                &u32::try_from(at).unwrap().to_le_bytes(),
            ]
            .concat()
        };
        let mut message = [SIGNATURE.as_slice(), &2_u32.to_le_bytes()].concat();
        message.extend(field(name.len(), 56));
        message.extend(flags.to_le_bytes());
        message.extend(SERVER_NONCE);
        message.extend([0; 8]);
        message.extend(field(info.len(), 56 + name.len()));
        message.extend([6, 0, 0x70, 0x17, 0, 0, 0, 15]);
        message.extend(name);
        message.extend(info);
        message
    }

    fn published_challenge() -> Vec<u8> {
        challenge_with(FLAGS, &hex::decode(INFO).unwrap())
    }

    /// The challenge of the specification, with the server's time added as the last attribute.
    fn timed_challenge(time: u64) -> Vec<u8> {
        let mut info = hex::decode(INFO).unwrap();
        info.truncate(info.len() - 4);
        append_attribute(&mut info, AV_TIMESTAMP, &time.to_le_bytes()).unwrap();
        append_attribute(&mut info, AV_EOL, &[]).unwrap();
        challenge_with(FLAGS, &info)
    }

    fn answer(challenge: &[u8]) -> Option<Vec<u8>> {
        authenticate_message(&negotiate_message(), challenge, login(&password()), FRESH)
    }

    fn part(message: &[u8], field: usize) -> &[u8] {
        let length = usize::from(u16::from_le_bytes(array_at(message, field).unwrap()));
        let from = u32::from_le_bytes(array_at(message, field + 4).unwrap()) as usize;
        &message[from..from + length]
    }

    #[test]
    fn the_published_vectors_match() {
        let key = response_key(login(&password())).unwrap();
        // MS-NLMP, section 4.2.4.1.1.
        assert_eq!(hex::encode(key), "0c868a403bfd7a93a3001ef22ef02e3f");
        // MS-NLMP, section 4.2.4.1.3, with time 0.
        let info = hex::decode(INFO).unwrap();
        let temp = client_blob([0; 8], FRESH.nonce, &info);
        let expected = [
            "01010000000000000000000000000000aaaaaaaaaaaaaaaa00000000",
            INFO,
            "00000000",
        ]
        .concat();
        assert_eq!(hex::encode(&temp), expected);
        // MS-NLMP, section 4.2.4.2.1.
        let lm = keyed_digest(&key, &[&SERVER_NONCE, &FRESH.nonce]).unwrap();
        assert_eq!(hex::encode(lm), "86c35097ac9cec102554764a57cccc19");
        // MS-NLMP, section 4.2.4.2.2.
        let proof = keyed_digest(&key, &[&SERVER_NONCE, &temp]).unwrap();
        assert_eq!(hex::encode(proof), "68cd0ab851e51c96aabc927bebef6a1c");
        // MS-NLMP, section 4.2.4.1.2.
        let session_key = keyed_digest(&key, &[&proof]).unwrap();
        assert_eq!(hex::encode(session_key), "8de40ccadbc14a82f15cb0ad0de95ca3");
    }

    #[test]
    fn the_opening_offers_no_more_than_it_needs() {
        let opening = negotiate_message();
        assert_eq!(
            (opening.len(), &opening[..12]),
            (32, &b"NTLMSSP\0\x01\0\0\0"[..])
        );
        assert_eq!(
            u32::from_le_bytes(array_at(&opening, 12).unwrap()),
            0x0008_8205
        );
    }

    #[test]
    fn a_response_proves_the_password_for_the_challenge() {
        let message = answer(&published_challenge()).unwrap();
        assert!(message.starts_with(b"NTLMSSP\0\x03\0\0\0"));
        assert_eq!(
            (part(&message, 28), part(&message, 36)),
            (&*utf16_le("Domain"), &*utf16_le("User"))
        );
        assert_eq!((part(&message, 44), part(&message, 52)), (&[][..], &[][..]));
        assert_eq!(
            u32::from_le_bytes(array_at(&message, 60).unwrap()),
            FLAGS & (OFFERED_FLAGS | NEGOTIATE_TARGET_INFO)
        );
        let key = response_key(login(&password())).unwrap();
        let (proof, blob) = part(&message, 20).split_at(16);
        assert_eq!(proof, keyed_digest(&key, &[&SERVER_NONCE, blob]).unwrap());
        assert_eq!(
            blob[8..16],
            116_444_736_000_000_000_u64.to_le_bytes(),
            "the client's time: 1970"
        );
        assert_eq!(
            hex::encode(part(&message, 12)),
            "86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa"
        );
        assert_eq!(
            message[MIC_RANGE], [0; 16],
            "a server without a time wants no code"
        );
    }

    #[test]
    fn a_server_that_sends_its_time_gets_an_integrity_code() {
        let challenge = timed_challenge(134_000_000_000_000_000);
        let message = answer(&challenge).unwrap();
        assert_eq!(part(&message, 12), [0; 24], "no LM response");
        let (proof, blob) = part(&message, 20).split_at(16);
        assert_eq!(
            blob[8..16],
            134_000_000_000_000_000_u64.to_le_bytes(),
            "the server's time"
        );
        let info = parse_attributes(&blob[28..]).unwrap();
        assert!(
            info.contains(&(AV_FLAGS, &AV_FLAGS_HAS_MIC.to_le_bytes()[..])),
            "{info:?}"
        );
        let key = response_key(login(&password())).unwrap();
        let session_key = keyed_digest(&key, &[proof]).unwrap();
        let mut blank = message.clone();
        blank[MIC_RANGE].fill(0);
        let code = keyed_digest(&session_key, &[&negotiate_message(), &challenge, &blank]).unwrap();
        assert_eq!(message[MIC_RANGE], code);
        assert!(
            !message.windows(16).any(|window| window == session_key),
            "no key is sent"
        );
    }

    #[test]
    fn flags_of_the_server_stay_beside_ours() {
        let mut info = Vec::new();
        append_attribute(&mut info, AV_FLAGS, &1_u32.to_le_bytes()).unwrap();
        append_attribute(&mut info, AV_TIMESTAMP, &[7; 8]).unwrap();
        append_attribute(&mut info, AV_EOL, &[]).unwrap();
        let message = answer(&challenge_with(FLAGS, &info)).unwrap();
        let sent = parse_attributes(&part(&message, 20)[44..]).unwrap();
        assert_eq!(
            sent,
            [
                (AV_TIMESTAMP, &[7; 8][..]),
                (AV_FLAGS, &3_u32.to_le_bytes()[..])
            ]
        );
    }

    #[test]
    fn a_user_name_is_uppercased_letter_by_letter() {
        let capitals: String = "straße éŉ Ada".chars().map(windows_upper_case).collect();
        assert_eq!(capitals, "STRAßE Éŉ ADA");
    }

    #[test]
    fn hostile_challenges_are_refused() {
        let good = published_challenge();
        assert!(answer(&good).is_some());
        let with = |at: usize, bytes: &[u8]| {
            let mut message = good.clone();
            message[at..at + bytes.len()].copy_from_slice(bytes);
            message
        };
        let end = u32::try_from(good.len()).unwrap();
        let info = |text: &str| challenge_with(FLAGS, &hex::decode(text).unwrap());
        for (what, message) in [
            ("nothing", Vec::new()),
            ("zeros", vec![0; 64]),
            ("another signature", with(0, b"NTLMSSX\0")),
            ("another type", with(8, &3_u32.to_le_bytes())),
            (
                "no Unicode",
                with(20, &(FLAGS & !NEGOTIATE_UNICODE).to_le_bytes()),
            ),
            ("a name beyond the end", with(16, &end.to_le_bytes())),
            (
                "a name at the end of memory",
                with(16, &u32::MAX.to_le_bytes()),
            ),
            ("a name in the head", with(16, &8_u32.to_le_bytes())),
            ("a name of a huge length", with(12, &u16::MAX.to_le_bytes())),
            (
                "information beyond the end",
                with(44, &(end - 1).to_le_bytes()),
            ),
            (
                "information at the end of memory",
                with(44, &u32::MAX.to_le_bytes()),
            ),
            ("information in the head", with(44, &24_u32.to_le_bytes())),
            (
                "information of a huge length",
                with(40, &u16::MAX.to_le_bytes()),
            ),
            ("information over the name", with(44, &60_u32.to_le_bytes())),
            ("no end", info("02000200440001000200")),
            ("an end with a value", info("0000020044000000")),
            ("an attribute beyond the end", info("0200ffff4400")),
            ("a short time", info("070004000102030400000000")),
            (
                "two times",
                info("07000800000000000000000007000800000000000000000000000000"),
            ),
            ("long flags", info("06000800000000000000000000000000")),
        ] {
            assert_eq!(answer(&message), None, "{what}");
        }
        for length in 0..CHALLENGE_HEAD_BYTES {
            assert_eq!(answer(&good[..length]), None, "{length} bytes");
        }
        let without_info = with(20, &(FLAGS & !NEGOTIATE_TARGET_INFO).to_le_bytes());
        assert!(
            answer(&without_info).is_some(),
            "target information is the server's to leave out"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn an_arbitrary_challenge_never_panics(message in prop::collection::vec(any::<u8>(), 0..512)) {
            let _ = answer(&message);
            let _ = parse_attributes(&message);
        }

        #[test]
        fn no_change_of_a_challenge_is_more_than_refused(
            changes in prop::collection::vec((0_usize..100, any::<u8>()), 1..8),
            is_timed in any::<bool>(),
        ) {
            let mut message = if is_timed { timed_challenge(7) } else { published_challenge() };
            let length = message.len();
            for (at, byte) in changes {
                message[at % length] = byte;
            }
            if let Some(answer) = answer(&message) {
                prop_assert!(answer.len() < AUTHENTICATE_HEAD_BYTES + 512);
            }
        }
    }
}
