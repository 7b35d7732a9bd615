//! Verification of a taxpayer's business id and tax number against the authority.

use crate::domain::kernel::codes::words;
use crate::domain::party::normal_form::is_same_tin;

words! {
    VerificationStatus { Pending = "pending", Verified = "verified", Unverified = "unverified" }
}

words! {
    /// The source that confirmed a taxpayer's business id and tax number.
    ConfirmedBy { Authority = "confirmed_by_authority", Operator = "confirmed_by_operator" }
}

words! {
    /// The reason why a taxpayer is not verified.
    UnverifiedReason {
        TinMismatch = "tin_mismatch",
        BusinessUnknown = "business_unknown",
        NoAnswer = "no_answer",
    }
}

words! {
    /// The setting `accounts.verification`: with `Require`, only verified taxpayers may create invoices; with `Warn`,
    /// all may.
    VerificationPolicy { Warn = "warn", Require = "require" }
}

/// The verification state of a taxpayer, with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// The authority has not been asked yet.
    Pending,
    Verified(ConfirmedBy),
    Unverified(UnverifiedReason),
}

/// One business in a list that the authority returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedBusiness<'a> {
    pub id: &'a str,
    pub tin: Option<&'a str>,
}

impl Verification {
    /// Looks up the business id in the authority's list and compares the tax number there with the taxpayer's.
    pub fn compare<'a>(
        business_id: &str,
        tin: &str,
        listed: impl IntoIterator<Item = ListedBusiness<'a>>,
    ) -> Self {
        let own = listed
            .into_iter()
            .find(|business| business.id.eq_ignore_ascii_case(business_id));
        match own.map(|business| business.tin) {
            None | Some(None) => Self::Unverified(UnverifiedReason::BusinessUnknown),
            Some(Some(listed)) if is_same_tin(listed, tin) => {
                Self::Verified(ConfirmedBy::Authority)
            }
            Some(Some(_)) => Self::Unverified(UnverifiedReason::TinMismatch),
        }
    }

    /// Returns the new state after a check with the result `found`; `None` if the state does not change. A verified
    /// taxpayer stays verified. If the authority did not answer, an earlier reason stays.
    pub fn after_check(self, found: Self) -> Option<Self> {
        let is_silence = found == Self::Unverified(UnverifiedReason::NoAnswer);
        let stays = match self {
            Self::Pending => found == Self::Pending,
            Self::Verified(_) => true,
            Self::Unverified(_) => is_silence || found == Self::Pending || found == self,
        };
        (!stays).then_some(found)
    }

    pub fn status(self) -> VerificationStatus {
        match self {
            Self::Pending => VerificationStatus::Pending,
            Self::Verified(_) => VerificationStatus::Verified,
            Self::Unverified(_) => VerificationStatus::Unverified,
        }
    }

    /// Returns the source of the confirmation or the reason why the taxpayer is unverified; `None` while the check is
    /// pending.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Pending => None,
            Self::Verified(by) => Some(by.as_str()),
            Self::Unverified(doubt) => Some(doubt.as_str()),
        }
    }

    /// Parses the texts that `status` and `reason` return.
    pub fn parse(status: &str, reason: Option<&str>) -> Result<Self, String> {
        match (status.parse()?, reason) {
            (VerificationStatus::Pending, None) => Ok(Self::Pending),
            (VerificationStatus::Verified, Some(reason)) => Ok(Self::Verified(reason.parse()?)),
            (VerificationStatus::Unverified, Some(reason)) => Ok(Self::Unverified(reason.parse()?)),
            (status, reason) => Err(format!("a taxpayer is not {status} because of {reason:?}")),
        }
    }

    pub fn is_verified(self) -> bool {
        matches!(self, Self::Verified(_))
    }

    /// True if the policy allows a taxpayer in this state to create and receive invoices.
    pub fn satisfies(self, policy: VerificationPolicy) -> bool {
        policy == VerificationPolicy::Warn || self.is_verified()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "bb99420d-d6bb-422c-b371-b9f6d6009aae";

    fn compare_listed(listed: &[(&str, Option<&str>)]) -> Verification {
        let listed = listed
            .iter()
            .map(|(id, tin)| ListedBusiness { id, tin: *tin });
        Verification::compare(ID, "12345678-0001", listed)
    }

    #[test]
    fn only_a_listed_business_with_the_same_tin_is_confirmed() {
        let upper = ID.to_uppercase();
        let confirmed = Verification::Verified(ConfirmedBy::Authority);
        assert_eq!(
            compare_listed(&[("other", Some("1")), (&upper, Some("12345678 0001"))]),
            confirmed
        );
        assert_eq!(
            compare_listed(&[(ID, Some("12345678-0002"))]),
            Verification::Unverified(UnverifiedReason::TinMismatch)
        );
        let unknown = Verification::Unverified(UnverifiedReason::BusinessUnknown);
        assert_eq!(compare_listed(&[]), unknown);
        assert_eq!(compare_listed(&[("other", Some("12345678-0001"))]), unknown);
        assert_eq!(compare_listed(&[(ID, None)]), unknown);
    }

    #[test]
    fn a_confirmation_stays_and_silence_takes_nothing_back() {
        let pending = Verification::Pending;
        let [mismatch, unknown, silent] = [
            UnverifiedReason::TinMismatch,
            UnverifiedReason::BusinessUnknown,
            UnverifiedReason::NoAnswer,
        ]
        .map(Verification::Unverified);
        let [authority, operator] =
            [ConfirmedBy::Authority, ConfirmedBy::Operator].map(Verification::Verified);
        for found in [mismatch, unknown, silent, authority, operator] {
            assert_eq!(pending.after_check(found), Some(found));
            assert_eq!(authority.after_check(found), None);
            assert_eq!(operator.after_check(found), None);
        }
        for before in [mismatch, unknown, silent] {
            assert_eq!(before.after_check(silent), None);
            assert_eq!(before.after_check(before), None);
            assert_eq!(before.after_check(authority), Some(authority));
        }
        assert_eq!(
            (silent.after_check(mismatch), mismatch.after_check(unknown)),
            (Some(mismatch), Some(unknown))
        );
    }

    #[test]
    fn a_verification_is_read_as_it_is_written() {
        let all = [Verification::Pending]
            .into_iter()
            .chain(ConfirmedBy::ALL.iter().copied().map(Verification::Verified))
            .chain(
                UnverifiedReason::ALL
                    .iter()
                    .copied()
                    .map(Verification::Unverified),
            );
        for one in all {
            assert_eq!(
                Verification::parse(one.status().as_str(), one.reason()),
                Ok(one)
            );
            assert!(one.satisfies(VerificationPolicy::Warn));
            assert_eq!(
                one.satisfies(VerificationPolicy::Require),
                one.is_verified()
            );
        }
        for (status, reason) in [
            ("pending", Some("no_answer")),
            ("verified", None),
            ("verified", Some("no_answer")),
            ("odd", None),
        ] {
            assert!(
                Verification::parse(status, reason).is_err(),
                "{status} {reason:?}"
            );
        }
    }
}
