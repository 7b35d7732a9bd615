//! What makes an actix actor a supervised one.
