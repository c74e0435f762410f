//! SQL: statements that fail before or after they are applied.

use tenure_core::StoreErrorKind;

/// Every second statement fails while the server is in trouble: surely rolled back (dead-lock, lock time-out), or with
/// nothing known about it.
pub(super) fn statement_fails(luck: u64) -> Option<StoreErrorKind> {
    match luck % 4 {
        0 => Some(StoreErrorKind::Unavailable),
        1 => Some(StoreErrorKind::Unknown),
        _ => None,
    }
}
