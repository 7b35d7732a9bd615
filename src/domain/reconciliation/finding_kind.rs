//! The kinds of differences between our records and the authority's, each with advice to an operator.

use crate::domain::kernel::codes::words;

words! {
    /// The kind of a difference. `Unreadable` is an entry of the authority's list from which no IRN could be read.
    FindingKind {
        MissingLocally = "missing_locally",
        NotSubmittedLocally = "not_submitted_locally",
        UnfinishedLocally = "unfinished_locally",
        HeldLocally = "held_locally",
        RefusedLocally = "refused_locally",
        CancelledLocally = "cancelled_locally",
        MissingRemotely = "missing_remotely",
        TransmittedRemotely = "transmitted_remotely",
        DeliveredRemotely = "delivered_remotely",
        NotTransmittedRemotely = "not_transmitted_remotely",
        NotDeliveredRemotely = "not_delivered_remotely",
        PaymentUnfinishedLocally = "payment_unfinished_locally",
        PaymentAheadRemotely = "payment_ahead_remotely",
        PaymentBehindRemotely = "payment_behind_remotely",
        PaymentDiffers = "payment_differs",
        Unreadable = "unreadable",
    }
}

impl FindingKind {
    /// Returns the advice to an operator about a listed difference.
    pub fn advice(self) -> &'static str {
        match self {
            Self::MissingLocally => {
                "It was signed by another way than this service: ask the taxpayer."
            }
            Self::NotSubmittedLocally => {
                "The invoice is stored and was signed by another way than this service: ask the taxpayer."
            }
            Self::HeldLocally => {
                "An operator paused the run: resume it, and it finds the signature."
            }
            Self::RefusedLocally => {
                "The run ended as refused: retry it, and it finds the signature."
            }
            Self::CancelledLocally => {
                "It counts as cancelled here and is signed there: ask the taxpayer which it is to be."
            }
            Self::MissingRemotely => {
                "The authority said yes to it and does not have it: ask the authority before anything is sent again."
            }
            Self::TransmittedRemotely => "It was transmitted by another way than this service.",
            Self::DeliveredRemotely => {
                "Its receipt was confirmed by another way than this service."
            }
            Self::NotTransmittedRemotely => {
                "The authority took the transmission and does not show it: ask the authority."
            }
            Self::NotDeliveredRemotely => {
                "The authority took the receipt and does not show it: ask the authority."
            }
            Self::UnfinishedLocally | Self::PaymentUnfinishedLocally => {
                "The run stopped short of what the authority has: resume it."
            }
            Self::PaymentAheadRemotely => {
                "The payment was told to the authority by another way: have the taxpayer record it here."
            }
            Self::PaymentBehindRemotely => {
                "The authority does not show what it was told of the payment, or refused it: have the taxpayer relay it again."
            }
            Self::PaymentDiffers => {
                "The two ledgers say different things of the payment: ask the taxpayer."
            }
            Self::Unreadable => {
                "The authority lists a line that names no invoice: ask the authority."
            }
        }
    }
}
