//! Floor 1: the client of the tax authority.
