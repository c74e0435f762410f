//! One named test per clause.

/// Makes one named test per clause, each run on a harness of its own, in a module `conformance`.
///
/// The harness is an expression that is evaluated for each test, in an async context. `skips` lists the clauses that
/// this bench lacks the means for; a clause that is skipped and not listed fails. With `ignore: "reason"` the tests run
/// only with `--ignored`: for stores whose server is not always there.
///
/// ```
/// use std::sync::Arc;
/// use tenure_conformance::{Harness, async_trait, conformance};
/// use tenure_core::{LeaseStore, MemoryStore, StoreError};
///
/// struct Memory(MemoryStore);
///
/// #[async_trait]
/// impl Harness for Memory {
///     async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
///         Ok(Arc::new(self.0.clone()))
///     }
/// }
///
/// conformance!(Memory(MemoryStore::new()), skips: ["setup-rights", "time-zone"]);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! conformance {
    ($harness:expr $(,)?) => {
        $crate::conformance!($harness, skips: []);
    };
    ($harness:expr, skips: [$($skip:literal),* $(,)?] $(,)?) => {
        $crate::conformance_module!($harness, [$($skip),*], []);
    };
    ($harness:expr, skips: [$($skip:literal),* $(,)?], ignore: $reason:literal $(,)?) => {
        $crate::conformance_module!($harness, [$($skip),*], [#[ignore = $reason]]);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_module {
    ($harness:expr, [$($skip:literal),*], $attributes:tt) => {
        mod conformance {
            #[allow(unused_imports)]
            use super::*;

            const SKIPS: &[&str] = &[$($skip),*];

            fn check(test: &str) {
                let child = concat!(module_path!(), "::serves_as_another_process");
                $crate::check(test, SKIPS, child, || async { $harness });
            }

            #[test]
            fn the_skips_are_clauses() {
                $crate::check_skips(SKIPS);
            }

            #[test]
            fn serves_as_another_process() {
                $crate::check_child(|| async { $harness });
            }

            $crate::each_clause!(test_of_clause, $attributes);
        }
    };
}

/// Calls `$make` with the name of every clause, as a test is called. Kept by hand: a macro cannot ask a function.
#[doc(hidden)]
#[macro_export]
macro_rules! each_clause {
    ($make:ident $(, $attributes:tt)?) => {
        $crate::$make! {
            $($attributes)?
            acquire_free acquire_held acquire_held_unchanged acquire_contended acquire_own acquire_own_restarts_ttl
            acquire_late_copy acquire_never_shortens acquire_expired_own acquire_after_release acquire_foreign

            token_release token_expiry token_candidates token_campaign token_client token_server token_removed
            token_constant token_unique

            renew_extends renew_grant renew_candidate renew_token renew_expired renew_released renew_never_held
            renew_removed renew_superseded renew_never_shortens renew_foreign

            release_frees release_candidate release_token release_idempotent release_expired release_never_held
            release_removed

            expiry_bounds expiry_renewed expiry_holder_gone expiry_read expiry_ttls expiry_outsider

            read_holder read_nobody read_time_left read_loser read_monotonic read_plain read_foreign read_list

            watch_release watch_grant watch_renewal watch_expiry watch_removal watch_start watch_several watch_cut
            watch_gap

            name_case name_blanks name_separators name_braces name_percent name_quotes name_unicode name_prefix
            name_long name_apart

            payload_round_trip payload_kept payload_next

            doubt_bid_request_lost doubt_bid_reply_lost doubt_bid_orphan doubt_bid_delayed doubt_bid_overtaken
            doubt_bid_repeated doubt_renewal_request_lost doubt_renewal_reply_lost doubt_renewal_delayed
            doubt_renewal_repeated doubt_release_request_lost doubt_release_reply_lost doubt_release_delayed
            doubt_release_repeated doubt_words

            cancel_acquire cancel_renew cancel_release cancel_read cancel_batch cancel_watch cancel_storm

            time_fraction time_minimum time_maximum time_wall_clock time_zone

            setup_describe setup_again setup_race setup_missing setup_credentials setup_rights

            batch_extends batch_mixed batch_foreign batch_empty batch_large batch_names

            torture_counter torture_fence torture_killed
        }
    };
}

/// A test for each name, which calls `check` where it stands.
#[doc(hidden)]
#[macro_export]
macro_rules! test_of_clause {
    ([] $($test:ident)*) => {$(
        #[test]
        fn $test() {
            check(stringify!($test));
        }
    )*};
    ([#[$attribute:meta]] $($test:ident)*) => {$(
        #[test]
        #[$attribute]
        fn $test() {
            check(stringify!($test));
        }
    )*};
}

#[doc(hidden)]
#[macro_export]
macro_rules! names_of_clauses {
    ($($test:ident)*) => {
        [$(stringify!($test)),*]
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_a_test_for_each_clause_in_the_order_of_the_suite() {
        let tests: Vec<_> = each_clause!(names_of_clauses).iter().map(|test| test.replace('_', "-")).collect();
        let ids: Vec<_> = crate::clauses().iter().map(|clause| clause.id().to_owned()).collect();
        assert_eq!(tests, ids);
    }
}
